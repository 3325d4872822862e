//! Shares of time, in percent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A share between 0 and 1, printed as in `0.1%`.
#[derive(Clone, Copy, Default, PartialEq, PartialOrd, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(f64);

impl Share {
    /// The share for this part of 1; `None` for numbers outside 0 to 1.
    #[must_use]
    pub fn from_ratio(ratio: f64) -> Option<Self> {
        (0.0..=1.0).contains(&ratio).then_some(Self(ratio))
    }

    /// Creates a share from thousandths; more than 1,000 count as 1,000.
    pub const fn from_per_mille(thousandths: u16) -> Self {
        Self(if thousandths < 1_000 { thousandths as f64 / 1_000.0 } else { 1.0 })
    }

    /// The share as a plain number between 0 and 1.
    pub const fn ratio(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without rounding errors of binary fractions: 7%, not 7.000000000000001%.
        write!(f, "{}%", (self.0 * 1e12).round() / 1e10)
    }
}

/// A text that is not a share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseShareError {
    /// A number without unit is ambiguous: a percentage or a part of 1.
    #[error("'{number}' has no unit: write {number}%{}", part_of_one(number).map_or_else(String::new, |share| format!(", or {share} if you mean a part of 1")))]
    NoUnit {
        /// The number.
        number: String,
    },
    /// Anything else.
    #[error("'{text}' is not a share: write a percentage from 0% to 100%, like 0.1%")]
    NotAShare {
        /// The text.
        text: String,
    },
}

fn part_of_one(number: &str) -> Option<Share> {
    number.parse().ok().and_then(Share::from_ratio)
}

impl FromStr for Share {
    type Err = ParseShareError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let not_a_share = || ParseShareError::NotAShare { text: text.to_owned() };
        let is_percentage = |percent: &f64| (0.0..=100.0).contains(percent);
        let number = text.strip_suffix('%').unwrap_or(text);
        let percent = number.parse::<f64>().ok().filter(is_percentage).ok_or_else(not_a_share)?;
        if number == text {
            return Err(ParseShareError::NoUnit { number: number.to_owned() });
        }
        Ok(Self(percent / 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage() {
        assert_eq!("0.1%".parse::<Share>().unwrap().ratio(), 0.001);
        for text in ["", "%", "101%", "-1%", "NaN", "NaN%", "inf", "200"] {
            let error = text.parse::<Share>().unwrap_err().to_string();
            assert!(error.contains("is not a share"), "{error}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_what_it_could_mean() {
        for (text, meanings) in [("0.1", "write 0.1%, or 10% if"), ("1", "write 1%, or 100% if"), ("5", "write 5%")] {
            let error = text.parse::<Share>().unwrap_err().to_string();
            assert!(error.contains("no unit") && error.contains(meanings), "{error}");
        }
    }

    #[test]
    fn every_share_in_percent_is_written_as_it_was_read() {
        for tenths in 0..=1_000 {
            let text = format!("{}%", f64::from(tenths) / 10.0);
            assert_eq!(text.parse::<Share>().unwrap().to_string(), text);
        }
    }
}
