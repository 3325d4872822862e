//! Decimal numbers of time units.

use becalm_units::{Nanos, UnknownName};

/// Units for numbers without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<TimeUnit>("unit", text)
}

impl TimeUnit {
    pub(super) const fn nanoseconds(self) -> i64 {
        (self.picoseconds() / 1_000) as i64
    }

    pub(super) const fn picoseconds(self) -> u64 {
        match self {
            Self::Ns => 1_000,
            Self::Us => 1_000_000,
            Self::Ms => 1_000_000_000,
            Self::S => 1_000_000_000_000,
        }
    }
}

/// A decimal number of a unit, in picoseconds; finer digits are cut off.
pub(super) fn picoseconds(number: &str, unit: TimeUnit) -> Result<i128, &'static str> {
    let scale = unit.picoseconds();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err("is no decimal number of 0 or more");
    }
    // A number of units beyond 64 bits is beyond any time.
    let whole: u64 = whole.parse().map_err(|_| "does not fit")?;
    let (mut finer, mut place) = (0, scale);
    for digit in fraction.bytes() {
        place /= 10;
        finer += u64::from(digit - b'0') * place;
    }
    Ok(i128::from(whole) * i128::from(scale) + i128::from(finer))
}

/// The same, rounded to nanoseconds.
pub(super) fn nanos(number: &str, unit: TimeUnit) -> Result<Nanos, &'static str> {
    let rounded = (picoseconds(number, unit)? + 500).div_euclid(1_000);
    i64::try_from(rounded).map(Nanos::new).map_err(|_| "does not fit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_those_of_their_digits(number in "[0-9]{1,22}", fraction in "[0-9]{0,15}", unit in 1..=4_usize) {
            let (zeros, unit) = (3 * unit, [TimeUnit::Ns, TimeUnit::Us, TimeUnit::Ms, TimeUnit::S][unit - 1]);
            let written = if fraction.is_empty() { number.clone() } else { format!("{number}.{fraction}") };
            let digits = format!("{number}{}", &format!("{fraction:0<zeros$}")[..zeros]);
            let fits = number.parse::<u64>().is_ok();
            prop_assert_eq!(picoseconds(&written, unit).ok(), fits.then(|| digits.parse::<i128>().unwrap()));
        }
    }
}
