//! Shares of time, written in percent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A share between 0 and 1, written like `0.1%` or as a plain number.
#[derive(Clone, Copy, Default, PartialEq, PartialOrd, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(f64);

impl Share {
    /// Creates a share from thousandths; 1,000 and more are all.
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
        write!(f, "{}%", self.0 * 100.0)
    }
}

/// A text that is not a share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a share: write a percentage from 0% to 100% like 0.1%, or a number from 0 to 1 like 0.001")]
pub struct ParseShareError {
    text: String,
}

impl FromStr for Share {
    type Err = ParseShareError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = || ParseShareError { text: text.to_owned() };
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let ratio = number.parse::<f64>().map_err(|_| err())? / scale;
        if (0.0..=1.0).contains(&ratio) { Ok(Self(ratio)) } else { Err(err()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percentages_and_plain_numbers() {
        assert_eq!("0.1%".parse::<Share>().unwrap().ratio(), 0.001);
        assert_eq!("0.25".parse::<Share>().unwrap().ratio(), 0.25);
        for text in ["", "%", "101%", "-1%", "NaN", "inf", "2"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
