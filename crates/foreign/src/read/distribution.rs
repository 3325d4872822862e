//! Histograms and statistics without single events.

use becalm_units::CpuId;

use super::ReadError;
use crate::distribution::{Above, Bucket, DistributionDoc, SERIES};

/// An integer of 0 or more that fits into 64 bits with its sign.
pub(super) fn integer(word: &str, what: &str) -> Result<i64, String> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    match word.parse() {
        Ok(number) if digits => Ok(number),
        _ if digits => Err(format!("the {what}, '{}', does not fit", short(word))),
        _ => Err(format!("the {what}, '{}', is no whole number of 0 or more", short(word))),
    }
}

/// No count is larger: what comes every nanosecond comes so often in three days.
pub(super) const MOST: u64 = 1 << 48;

/// The same as a count.
pub(super) fn count(word: &str, what: &str) -> Result<u64, String> {
    match integer(word, what)? as u64 {
        number if number < MOST => Ok(number),
        number => Err(format!("the {what}, {number}, is more than can be counted")),
    }
}

/// The number of a CPU.
pub(super) fn cpu(word: &str) -> Result<CpuId, String> {
    let number: Option<u32> = word.parse().ok().filter(|number| *number < CpuId::LIMIT);
    number.map(CpuId::new).ok_or_else(|| format!("'{}' is no CPU", short(word)))
}

/// No decimal number is larger, so that it fits as a time in each unit.
pub(super) const LARGEST: f64 = 9e15;

/// A decimal number of 0 or more.
pub(super) fn decimal(word: &str, what: &str) -> Result<f64, String> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match word.parse::<f64>() {
        Ok(number) if plain && number < LARGEST => Ok(number),
        _ => Err(format!("the {what}, '{}', is no decimal number of 0 or more", short(word))),
    }
}

/// A word as an error quotes it: its first characters.
pub(super) fn short(word: &str) -> String {
    let mut short: String = word.chars().take(40).collect();
    if short.len() < word.len() {
        short.push_str("...");
    }
    short
}

/// So many times a unit, in nanoseconds.
pub(super) fn times(number: i64, unit_ns: i64, what: &str) -> Result<i64, String> {
    number.checked_mul(unit_ns).ok_or_else(|| format!("the {what} is longer than times can be"))
}

/// A histogram whose rows come in rising order.
#[derive(Default)]
pub(super) struct Rows {
    pub buckets: Vec<Bucket>,
    end: i64,
}

impl Rows {
    /// Takes a row; those with a count of 0 are only held against the order.
    pub fn push(&mut self, from_ns: i64, below_ns: i64, count: u64) -> Result<(), String> {
        if from_ns < self.end || below_ns <= from_ns {
            return Err("its bucket does not follow the one in front of it".to_owned());
        }
        if count >= MOST {
            return Err(format!("a count of {count} cannot be"));
        }
        self.end = below_ns;
        if count > 0 {
            self.buckets.push(Bucket { from_ns, below_ns, count });
        }
        Ok(())
    }
}

/// With so many rows, their common divisor counts as the width without a warning.
pub(super) const SURE_ROWS: usize = 3;

/// The greatest common divisor: how wide buckets are at most whose edges are so far apart, as empty ones may be left out.
pub(super) const fn greatest_common(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The values beyond the histogram, if there are any.
pub(super) fn overflow(from_ns: i64, count: u64) -> Option<Above> {
    (count > 0).then_some(Above { from_ns, count })
}

/// Refuses a file in which nothing was found.
pub(super) fn some_series(found: DistributionDoc, what: &str) -> Result<DistributionDoc, ReadError> {
    if found.series.is_empty() {
        return Err(ReadError::new(format!("it holds nothing that {what} prints")));
    }
    if found.series.len() > SERIES {
        return Err(ReadError::new(format!("it has {} series, more than are kept", found.series.len())));
    }
    Ok(found)
}
