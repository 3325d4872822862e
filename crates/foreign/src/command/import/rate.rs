//! The rate of a counter, as users write it.

/// Parses a number of ticks per second: `2596120000`, `2596.12MHz`, `2.5GHz`. Fails if it is no such number between 1 kHz and 1 THz.
pub fn parse(text: &str) -> Result<f64, String> {
    let units = [("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0)];
    let unit = units.iter().find_map(|(name, hz)| Some((text.strip_suffix(name)?, *hz)));
    let (number, hz) = unit.unwrap_or((text, 1.0));
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match number.parse::<f64>() {
        Ok(number) if plain && (1e3..=1e12).contains(&(number * hz)) => Ok(number * hz),
        _ => Err(format!(
            "'{text}' is no rate of a counter: write one between 1kHz and 1000GHz, like 2.5GHz or 2500000000"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_or_are_in_hertz() {
        for (text, hz) in [("2.5GHz", 2.5e9), ("2500MHz", 2.5e9), ("2500000000", 2.5e9), ("1000kHz", 1e6)] {
            assert!((parse(text).unwrap() - hz).abs() < 1e-3, "{text}");
        }
        for text in ["", "GHz", "0", "-1GHz", "1e9", "2,5GHz", "inf", "NaN", "5THz"] {
            assert!(parse(text).unwrap_err().contains("no rate of a counter"), "{text}");
        }
    }
}
