//! Whole numbers: counts, and bytes. Suffixes mean the same for both: `k` is 1,000, and `Ki` 1,024.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not a count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a count: {why}; write a whole number, like 16384 or 16Ki (Ki, Mi, Gi, Ti: 1024 and its powers; k, M, G, T: 1000 and its powers)"
)]
pub struct ParseCountError {
    text: String,
    why: &'static str,
}

const PREFIXES: [char; 4] = ['k', 'M', 'G', 'T'];

/// The number without its suffix, and the factor of the suffix.
fn split(text: &str) -> Option<(&str, u64)> {
    let (number, base) = text.strip_suffix('i').map_or((text, 1_000_u64), |number| (number, 1_024));
    match number.chars().last()? {
        last if last.is_ascii_digit() => (base == 1_000).then_some((number, 1)),
        last => {
            let letter = if last == 'K' { 'k' } else { last };
            let (power, _) = (1..).zip(PREFIXES).find(|(_, prefix)| *prefix == letter)?;
            Some((&number[..number.len() - last.len_utf8()], base.pow(power)))
        }
    }
}

fn parse(text: &str) -> Result<u64, ParseCountError> {
    let err = |why| ParseCountError { text: text.to_owned(), why };
    if text.is_empty() {
        return Err(err("it is empty"));
    }
    let (number, factor) = split(text).ok_or_else(|| err("its suffix is unknown"))?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(err("it does not start with a whole number"));
    }
    // In a list, 10,000 is two numbers.
    if number.len() > 1 && number.starts_with('0') {
        return Err(err("it starts with 0, like the part behind the comma of 10,000, which is written 10000"));
    }
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(|| err("it is too large"))
}

macro_rules! count {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Creates a value from a number.
            pub const fn new(count: u64) -> Self {
                Self(count)
            }

            /// The value as a number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }
    };
}

count! {
    /// A count of ranks, phases, samples, detours and so on, parsed as in `64 10k 16Ki`, and printed as in `16,384`.
    Count
}

count! {
    /// Bytes, parsed as in `64 16KiB 1M 1GiB`, and printed as in `16KiB`.
    ByteCount
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() * 4 / 3);
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.into_iter().find(|(_, unit)| self.0 != 0 && self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => f.pad(&format!("{}{name}", self.0 / unit)),
            None => f.pad(&self.0.to_string()),
        }
    }
}

impl FromStr for Count {
    type Err = ParseCountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self)
    }
}

impl FromStr for ByteCount {
    type Err = ParseCountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.strip_suffix('B').unwrap_or(text)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_suffix_has_one_meaning() {
        for (text, count) in [
            ("0", 0),
            ("64", 64),
            ("1k", 1_000),
            ("16K", 16_000),
            ("16Ki", 16_384),
            ("16ki", 16_384),
            ("1M", 1_000_000),
            ("1Mi", 1 << 20),
            ("1T", 1_000_000_000_000),
            ("1Ti", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Count(count)));
            assert_eq!(text.parse(), Ok(ByteCount(count)));
        }
        for text in [
            "",
            "k",
            "Ki",
            "i",
            "16i",
            "-1",
            "1.5k",
            "1x",
            "1xi",
            "99999999999999999999",
            "99999999999T",
            "+1",
            "10,000",
            "000",
            "\u{ff11}",
            "1\u{ff11}",
        ] {
            assert!(text.parse::<Count>().is_err() && text.parse::<ByteCount>().is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_written_with_separators() {
        for (count, text) in [(0, "0"), (999, "999"), (1_024, "1,024"), (1 << 20, "1,048,576")] {
            assert_eq!(Count(count).to_string(), text);
        }
        assert_eq!(format!("{:>7}", Count(1_024)), "  1,024");
    }

    #[test]
    fn bytes_may_have_their_unit() {
        for (text, bytes) in [("1GiB", 1 << 30), ("64kiB", 64 << 10), ("5B", 5), ("8kB", 8_000)] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)));
        }
        assert!("1GiB".parse::<Count>().is_err());
    }

    proptest! {
        #[test]
        fn bytes_read_back_as_they_are_written(n: u64) {
            prop_assert_eq!(ByteCount(n).to_string().parse(), Ok(ByteCount(n)));
        }
    }
}
