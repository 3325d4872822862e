//! Counts with binary prefixes: ranks, phases, samples.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A whole number, written like `64 1k 16k 1M 1G`, where k = 1,024.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Count(u64);

const PREFIXES: [(char, u32); 4] = [('k', 10), ('M', 20), ('G', 30), ('T', 40)];

impl Count {
    /// A count of this many.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count as a plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Prints the largest prefix that divides the number: `16k`, `1000`, `1M`.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = PREFIXES.iter().rev().find(|(_, bits)| self.0 != 0 && self.0.trailing_zeros() >= *bits);
        f.pad(&match exact {
            Some((name, bits)) => format!("{}{name}", self.0 >> bits),
            None => self.0.to_string(),
        })
    }
}

/// A text that is not a count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a count: {why}; write a whole number, with k, M, G or T for 1024, 1024^2, ..., like 16k")]
pub struct ParseCountError {
    text: String,
    why: &'static str,
}

impl FromStr for Count {
    type Err = ParseCountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let err = |why| ParseCountError { text: text.to_owned(), why };
        let (number, bits) = match text.char_indices().last() {
            Some((at, last)) if !last.is_ascii_digit() => {
                let prefix = PREFIXES.iter().find(|(name, _)| *name == last || (*name == 'k' && last == 'K'));
                (&text[..at], prefix.ok_or_else(|| err("its ending is unknown"))?.1)
            }
            Some(_) => (text, 0),
            None => return Err(err("it is empty")),
        };
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(err("it does not start with a whole number"));
        }
        let number: u64 = number.parse().map_err(|_| err("it is too large"))?;
        number.checked_mul(1 << bits).map(Self).ok_or_else(|| err("it is too large"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_prefixes() {
        for (text, n) in [("0", 0), ("64", 64), ("1k", 1024), ("16K", 16384), ("1M", 1 << 20), ("1G", 1 << 30)] {
            assert_eq!(text.parse(), Ok(Count(n)));
        }
        for text in ["", "k", "-1", "1.5k", "1x", "99999999999999999999", "99999999999T", "+1"] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n: u64) {
            prop_assert_eq!(Count(n).to_string().parse(), Ok(Count(n)));
        }
    }
}
