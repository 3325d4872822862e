//! Histograms and statistics without single events.

use std::fmt::Display;

use becalm_model::node::Warning;
use becalm_units::{CpuId, counted};

use super::lines::{End, Lines, Progress, is_row, text};
use super::{ReadError, Source};
use crate::distribution::{Above, Bucket, DistributionDoc, SERIES, Series};

/// A nonnegative integer that fits into 63 bits.
pub(super) fn integer(word: &str, what: &str) -> Result<i64, String> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    match word.parse() {
        Ok(number) if digits => Ok(number),
        _ if digits => Err(format!("the {what}, '{}', does not fit", short(word))),
        _ => Err(format!("the {what}, '{}', is no whole number of 0 or more", short(word))),
    }
}

/// The largest count: something that comes every nanosecond comes this often in three days.
pub(super) const MOST: u64 = 1 << 48;

/// The same as a count.
pub(super) fn count(word: &str, what: &str) -> Result<u64, String> {
    match integer(word, what)? as u64 {
        number if number < MOST => Ok(number),
        number => Err(format!("the {what}, {number}, is more than can be counted")),
    }
}

pub(super) fn cpu(word: &str) -> Result<CpuId, String> {
    let number: Option<u32> = word.parse().ok().filter(|number| *number < CpuId::LIMIT);
    number.map(CpuId::new).ok_or_else(|| format!("'{}' is no CPU", short(word)))
}

/// An empty series of a CPU.
pub(super) fn cpu_series(word: &str) -> Result<Series, String> {
    let cpu = cpu(word)?;
    Ok(Series { name: format!("CPU {cpu}"), cpu: Some(cpu), ..Series::default() })
}

/// The largest decimal number: it fits as a time in each unit.
pub(super) const LARGEST: f64 = 9e15;

/// A nonnegative decimal number.
pub(super) fn decimal(word: &str, what: &str) -> Result<f64, String> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match word.parse::<f64>() {
        Ok(number) if plain && number < LARGEST => Ok(number),
        _ => Err(format!("the {what}, '{}', is no decimal number of 0 or more", short(word))),
    }
}

/// The first characters of a word, for errors.
pub(super) fn short(word: &str) -> String {
    let mut short: String = word.chars().take(40).collect();
    if short.len() < word.len() {
        short.push_str("...");
    }
    short
}

/// This many units, in nanoseconds.
pub(super) fn times(number: i64, unit_ns: i64, what: &str) -> Result<i64, String> {
    number.checked_mul(unit_ns).ok_or_else(|| format!("the {what} is longer than times can be"))
}

/// The error for a row with a wrong number of columns.
pub(super) fn columns(found: usize, expected: impl Display) -> String {
    format!("it has {} and not {expected}", counted(found as u64, "column", "columns"))
}

/// The error for a line that lacks a value for each core or column.
pub(super) fn misfit(found: usize, expected: usize, what: &str) -> String {
    let expected = counted(expected as u64, what, &format!("{what}s"));
    format!("it has {} for {expected}", counted(found as u64, "value", "values"))
}

/// Reads a table of one tool: its title line, then a row of numbers for each CPU, which is passed to `take`.
pub(super) fn table(
    source: Source<'_>,
    progress: Progress<'_>,
    tool: &str,
    title: &[&str],
    take: &mut dyn FnMut(&[&str]) -> Result<(), String>,
) -> Result<Vec<Warning>, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut titled = false;
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == title {
            if std::mem::replace(&mut titled, true) {
                return Err(lines.second_report());
            }
        } else if !is_row(line) {
            lines.leave_out()?;
        } else if !titled {
            return Err(lines.error(format!("the title line of {tool} is not in front of it")));
        } else if words.len() != title.len() {
            return Err(lines.error(columns(words.len(), title.len())));
        } else {
            take(&words).map_err(|why| lines.error(why))?;
        }
    }
    Ok(lines.warnings(End::Unmarked))
}

/// A histogram whose rows come in rising order.
#[derive(Default)]
pub(super) struct Rows {
    pub buckets: Vec<Bucket>,
    end: i64,
}

impl Rows {
    /// Takes a row. Rows with a count of 0 are only checked for their order.
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

/// From this many rows on, their common divisor counts as the width without a warning.
pub(super) const SURE_ROWS: usize = 3;

/// The greatest common divisor: the largest possible width of buckets with such distances, because empty buckets may be left out.
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

/// Refuses a file without a series.
pub(super) fn some_series(found: DistributionDoc, what: &str) -> Result<DistributionDoc, ReadError> {
    if found.series.is_empty() {
        return Err(ReadError::new(format!("it holds nothing that {what} prints")));
    }
    if found.series.len() > SERIES {
        return Err(ReadError::new(format!("it has {} series, more than are kept", found.series.len())));
    }
    Ok(found)
}
