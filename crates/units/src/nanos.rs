//! Durations and instants in integer nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A duration, or an instant since the origin of a run, in integer nanoseconds.
///
/// The range is that of `i64`: 292 years. The operators panic on overflow in every build, because overflow can only be a bug. For values
/// from users or files, use the `checked_` and `saturating_` methods.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(i64);

impl Nanos {
    /// Zero; the origin of a run.
    pub const ZERO: Self = Self(0);
    /// The longest time, about 292 years.
    pub const MAX: Self = Self(i64::MAX);

    /// A time in nanoseconds; negative times are before the origin.
    pub const fn new(ns: i64) -> Self {
        Self(ns)
    }

    /// A time in microseconds.
    pub const fn from_micros(us: i64) -> Self {
        Self(us * 1_000)
    }

    /// A time in milliseconds.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms * 1_000_000)
    }

    /// A time in seconds.
    pub const fn from_secs(s: i64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// The number of nanoseconds.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The time in seconds, rounded to the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The sum; `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// The difference; `None` on overflow.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// The sum, saturated on overflow: for times from a file, which may be arbitrary.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The same duration for the standard library; negative ones become zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.checked_add(other).expect("sum of two durations fits 292 years")
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.checked_sub(other).expect("difference of two durations fits 292 years")
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Neg for Nanos {
    type Output = Self;
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

/// Names and lengths of the units for parsing, largest first.
const UNITS: [(&str, i64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Prints in the largest of ns, us, ms, s that keeps the number at 1 or more, with at most three decimals: `850ns`, `15.2us`, `1ms`,
/// `12.345s`. A precision sets the number of decimals instead: `{:.1}`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (unit, length) = match magnitude {
            0..1_000 => ("ns", 1_u64),
            1_000..1_000_000 => ("us", 1_000),
            1_000_000..1_000_000_000 => ("ms", 1_000_000),
            _ => ("s", 1_000_000_000),
        };
        let sign = if self.0 < 0 { "-" } else { "" };
        let text = if length == 1 {
            format!("{sign}{magnitude}{unit}")
        } else if let Some(decimals) = f.precision() {
            format!("{sign}{:.decimals$}{unit}", magnitude as f64 / length as f64)
        } else {
            let number = format!("{:.3}", magnitude as f64 / length as f64);
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{sign}{number}{unit}")
        };
        f.pad_integral(true, "", &text)
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a duration: {why}; write a number with one of the units ns, us, ms, s, m, h, like 1.5ms")]
pub struct ParseNanosError {
    text: String,
    why: &'static str,
}

/// Parses `100ns 5us 1.5ms 10s 2m 1h`. The unit is required; zero is allowed, a sign is not. Fractions of a nanosecond are refused rather
/// than rounded.
impl FromStr for Nanos {
    type Err = ParseNanosError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = |why| ParseNanosError { text: text.to_owned(), why };
        let end = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .ok_or_else(|| err(if text.is_empty() { "it is empty" } else { "it has no unit" }))?;
        let (number, unit) = text.split_at(end);
        if number.is_empty() {
            return Err(err("it does not start with a number"));
        }
        let (_, length) = UNITS
            .iter()
            .find(|(name, _)| *name == unit || (*name == "us" && (unit == "\u{b5}s" || unit == "\u{3bc}s")))
            .ok_or_else(|| err("its unit is unknown"))?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(err("its number is malformed"));
        }
        let too_long = || err("it is longer than 292 years");
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_long())? };
        let mut ns = whole.checked_mul(*length).ok_or_else(too_long)?;
        let mut digit_length = *length;
        for digit in fraction.bytes() {
            let value = i64::from(digit - b'0');
            if digit_length % 10 != 0 && value != 0 {
                return Err(err("it is finer than a nanosecond"));
            }
            digit_length /= 10;
            ns = ns.checked_add(value * digit_length).ok_or_else(too_long)?;
        }
        Ok(Self(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_unit() {
        for (text, ns) in [
            ("0ns", 0),
            ("100ns", 100),
            ("5us", 5_000),
            ("5\u{b5}s", 5_000),
            ("1.5ms", 1_500_000),
            (".5s", 500_000_000),
            ("10s", 10_000_000_000),
            ("2m", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("1.000000001s", 1_000_000_001),
            ("1.50us", 1_500),
        ] {
            assert_eq!(text.parse(), Ok(Nanos::new(ns)), "{text}");
        }
    }

    #[test]
    fn refuses_nonsense_and_says_why() {
        for (text, why) in [
            ("", "empty"),
            ("10", "no unit"),
            ("s", "start with a number"),
            ("-1s", "start with a number"),
            ("10 s", "unit is unknown"),
            ("10d", "unit is unknown"),
            ("1.2.3s", "malformed"),
            (".s", "malformed"),
            ("0.5ns", "finer"),
            ("99999999999999999999s", "292 years"),
            ("9999999999s", "292 years"),
        ] {
            let error = text.parse::<Nanos>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn prints_with_a_fitting_unit() {
        for (ns, text) in
            [(0, "0ns"), (850, "850ns"), (15_200, "15.2us"), (1_000_000, "1ms"), (-12_345_000_000, "-12.345s")]
        {
            assert_eq!(Nanos::new(ns).to_string(), text);
        }
        assert_eq!(format!("{:>8.1}", Nanos::new(15_234)), "  15.2us");
    }

    proptest! {
        #[test]
        fn what_is_printed_below_a_second_reads_back(ns in 0_i64..1_000_000) {
            prop_assert_eq!(Nanos::new(ns).to_string().parse(), Ok(Nanos::new(ns)));
        }

        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            let _ = text.parse::<Nanos>();
        }
    }
}
