//! Decimal numbers, exact to the nanosecond.

/// A decimal number of units of `unit` nanoseconds, rounded down to a whole nanosecond: exact, also for times since 1970, which a floating-point
/// number of microseconds cannot hold. `None` if it is no number, or does not fit.
pub fn decimal_ns(text: &str, unit: i64) -> Option<i64> {
    let text = text.trim();
    if !text.is_ascii() {
        return None;
    }
    if let Some(at) = text.find(['e', 'E']) {
        return with_exponent(&text[..at], text[at + 1..].parse().ok()?, unit);
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let mut value: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    value = value.checked_mul(i128::from(unit))?;
    let mut scale = i128::from(unit);
    for digit in fraction.bytes() {
        if scale % 10 != 0 {
            break;
        }
        scale /= 10;
        value += i128::from(digit - b'0') * scale;
    }
    i64::try_from(if negative { -value } else { value }).ok()
}

/// The same with a power of ten.
fn with_exponent(mantissa: &str, exponent: i32, unit: i64) -> Option<i64> {
    let (sign, digits) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !(-30..=30).contains(&exponent) || whole.len() + fraction.len() > 40 {
        return None;
    }
    let all = format!("{whole}{fraction}");
    let point = whole.len() as i32 + exponent;
    let moved = match usize::try_from(point) {
        Ok(point) if point < all.len() => format!("{}.{}", &all[..point], &all[point..]),
        Ok(point) => format!("{all}{}", "0".repeat(point - all.len())),
        Err(_) => format!("0.{}{all}", "0".repeat(point.unsigned_abs() as usize)),
    };
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    decimal_ns(&format!("{sign}{moved}"), unit)
}

#[cfg(test)]
mod tests {
    use super::decimal_ns;

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        assert_eq!(decimal_ns("1796043453123456.789", 1_000), Some(1_796_043_453_123_456_789));
        assert_eq!(decimal_ns("12", 1), Some(12));
        assert_eq!(decimal_ns("-0.5", 1_000), Some(-500));
        assert_eq!(decimal_ns(".25", 1_000_000_000), Some(250_000_000));
        assert_eq!(decimal_ns("7.", 1_000), Some(7_000));
        assert_eq!(decimal_ns("1.0019", 1_000), Some(1_001));
        assert_eq!(decimal_ns("1.5e3", 1_000), Some(1_500_000));
        assert_eq!(decimal_ns("2E-3", 1_000), Some(2));
        assert_eq!(decimal_ns("1.796043453123456789e15", 1_000), Some(1_796_043_453_123_456_789));
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in
            ["", ".", "-", "1x", "0x10", "1.2.3", "99999999999999999999", "1e99", "e5", "--1", "1e", "ée-1", "1é"]
        {
            assert_eq!(decimal_ns(text, 1), None, "{text}");
        }
        assert_eq!(decimal_ns("9223372036854775807", 1_000), None);
    }
}
