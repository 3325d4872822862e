//! Numbers of timer interrupts to add to those of a CPU.

/// Interrupts per second, or `idle`.
pub fn added_rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("Hz").unwrap_or(text);
    match number.parse() {
        _ if text == "idle" => Ok(0),
        Ok(hz) if (1..=100_000).contains(&hz) => Ok(hz),
        _ => Err(format!("'{text}' is not an interrupt rate: write idle, or a number of Hz from 1 to 100000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_or_idle() {
        assert_eq!((added_rate("idle"), added_rate("1000"), added_rate("20000Hz")), (Ok(0), Ok(1_000), Ok(20_000)));
        for text in ["", "0", "-1", "fast", "100001", "1kHz"] {
            assert!(added_rate(text).unwrap_err().contains("is not an interrupt rate"), "{text}");
        }
    }
}
