//! Whole numbers with prefixes, a type a meaning: ranks, of which `k` is 1,024, as jobs grow by powers of two; bytes, of which it is that as
//! well; and everything else that is counted, as phases and samples, of which it is 1,000.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is not a count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a count: {why}; write a whole number, with k, M, G or T for {base}, {base}^2, ..., like 16k")]
pub struct ParseCountError {
    text: String,
    why: &'static str,
    base: u64,
}

const PREFIXES: [char; 4] = ['k', 'M', 'G', 'T'];

/// The prefix's place and its factor, the largest first.
fn factors(base: u64) -> impl Iterator<Item = (char, u64)> {
    (1..).zip(PREFIXES).map(move |(power, name)| (name, base.pow(power))).collect::<Vec<_>>().into_iter().rev()
}

fn print(count: u64, base: u64) -> String {
    match factors(base).find(|(_, factor)| count != 0 && count.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", count / factor),
        None => count.to_string(),
    }
}

fn parse(text: &str, base: u64) -> Result<u64, ParseCountError> {
    let err = |why| ParseCountError { text: text.to_owned(), why, base };
    let (number, factor) = match text.char_indices().last() {
        Some((at, last)) if !last.is_ascii_digit() => {
            let prefix = factors(base).find(|(name, _)| *name == last || (*name == 'k' && last == 'K'));
            (&text[..at], prefix.ok_or_else(|| err("its ending is unknown"))?.1)
        }
        Some(_) => (text, 1),
        None => return Err(err("it is empty")),
    };
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(err("it does not start with a whole number"));
    }
    // 10,000 is two numbers where a list is read.
    if number.len() > 1 && number.starts_with('0') {
        return Err(err("it begins with 0, as what follows a comma in 10,000 does, which is written 10000"));
    }
    let number: u64 = number.parse().map_err(|_| err("it is too large"))?;
    number.checked_mul(factor).ok_or_else(|| err("it is too large"))
}

macro_rules! count {
    ($(#[$doc:meta])* $name:ident, $base:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// This many.
            pub const fn new(count: u64) -> Self {
                Self(count)
            }

            /// As a plain number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        /// Prints the largest prefix that divides the number.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&print(self.0, $base))
            }
        }
    };
}

count! {
    /// Phases, samples, detours and whatever else is counted, written like `64 1k 16k 1M`, where k = 1,000.
    Count, 1_000
}

count! {
    /// Ranks of a job, written like `64 1k 16k 1M 1G`, where k = 1,024.
    RankCount, 1_024
}

count! {
    /// Bytes, written like `64 1k 16KiB 1M 1GiB`, where k = 1,024.
    ByteCount, 1_024
}

impl FromStr for Count {
    type Err = ParseCountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, 1_000).map(Self)
    }
}

impl FromStr for RankCount {
    type Err = ParseCountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, 1_024).map(Self)
    }
}

impl FromStr for ByteCount {
    type Err = ParseCountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.strip_suffix("iB").or_else(|| text.strip_suffix('B')).unwrap_or(text);
        parse(plain, 1_024).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_prefix_is_depends_on_what_is_counted() {
        for (text, ranks, others) in [
            ("0", 0, 0),
            ("64", 64, 64),
            ("1k", 1_024, 1_000),
            ("16K", 16_384, 16_000),
            ("1M", 1 << 20, 1_000_000),
            ("1G", 1 << 30, 1_000_000_000),
            ("1T", 1 << 40, 1_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(RankCount(ranks)));
            assert_eq!(text.parse(), Ok(ByteCount(ranks)));
            assert_eq!(text.parse(), Ok(Count(others)));
        }
        for text in
            ["", "k", "-1", "1.5k", "1x", "99999999999999999999", "99999999999T", "+1", "10,000", "000", "\u{ff11}"]
        {
            assert!(text.parse::<RankCount>().is_err() && text.parse::<Count>().is_err(), "{text}");
        }
        assert!("1x".parse::<Count>().unwrap_err().to_string().contains("for 1000, 1000^2"));
    }

    #[test]
    fn bytes_may_have_their_unit() {
        for (text, bytes) in [("1GiB", 1 << 30), ("64kiB", 64 << 10), ("5B", 5), ("8k", 8 << 10)] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)));
        }
        assert!("1GiB".parse::<Count>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n: u64) {
            prop_assert_eq!(Count(n).to_string().parse(), Ok(Count(n)));
            prop_assert_eq!(RankCount(n).to_string().parse(), Ok(RankCount(n)));
            prop_assert_eq!(ByteCount(n).to_string().parse(), Ok(ByteCount(n)));
        }
    }
}
