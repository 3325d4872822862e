//! Rates of counters, as they are typed: `2.5GHz`.

/// Ticks a second: a number and `Hz`, `kHz`, `MHz` or `GHz`.
pub fn rate(text: &str) -> Result<f64, String> {
    let units = [("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0)];
    let found = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?.trim_end(), scale)));
    let hz = found.and_then(|(number, scale)| Some(number.parse::<f64>().ok()? * scale));
    hz.filter(|hz| (1e6..=1e11).contains(hz))
        .ok_or_else(|| format!("'{text}' is no rate of a counter; 1MHz to 100GHz were expected, such as 2.5GHz"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_unit_and_a_range() {
        assert_eq!((rate("2.5GHz"), rate("2100 MHz")), (Ok(2.5e9), Ok(2.1e9)));
        for wrong in ["2.5", "GHz", "-1GHz", "nanGHz", "1Hz", "1e9GHz", ""] {
            assert!(rate(wrong).is_err_and(|why| why.contains("2.5GHz")), "{wrong}");
        }
    }
}
