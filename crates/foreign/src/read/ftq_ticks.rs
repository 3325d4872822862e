//! ftq layouts with times in ticks of a counter: two files with a number per line (`PREFIX_times.dat` and `PREFIX_counts.dat`) of the
//! OpenMP variant and of the family of LLNL's FTQ, their pairs in one file (`-s`), and the CSV of the MPI variant with a count for each
//! rank.
//!
//! A time is the start of a window, which lasts until the start of the next one; the last one is left out, because its length is unknown.
//! Only the MPI variant has the rate of the counter. The OpenMP variant puts its threads one after another in one file, each with rising
//! times, so a step back starts the next thread. In the files of LLNL's family only those of the first thread are right: the others contain
//! each other's data.

use becalm_model::node::{Fixed, Warning};
use becalm_units::Nanos;

use super::distribution::{count, integer, short};
use super::ftq;
use super::lines::{End, Lines, Progress, text};
use super::samples::{SampleList, SampleRow};
use super::{ReadError, Source};

/// The suffixes of the two files.
const TIMES: &str = "_times.dat";
const COUNTS: &str = "_counts.dat";

/// The prefixes of the line with the counter's rate, and of other lines of the MPI variant.
const RATE: &str = "# Ticks per ns: ";
const REMARK: &str = "Rank ";

/// The most threads in a file, or ranks in a row.
const MOST_LISTS: usize = 1 << 12;

/// This many numbers of a file of times must rise for them to be starts, not lengths as of FWQ.
const RISING: usize = 8;

/// The contents of a file, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    /// The times of this prefix.
    Times(&'a str),
    /// The counts of this prefix.
    Counts(&'a str),
    /// Both.
    Both,
}

/// The contents of a file with this name.
pub fn part(name: &str) -> Part<'_> {
    if let Some(prefix) = name.strip_suffix(TIMES) {
        Part::Times(prefix)
    } else if let Some(prefix) = name.strip_suffix(COUNTS) {
        Part::Counts(prefix)
    } else {
        Part::Both
    }
}

/// True if a file looks like one of these.
pub(super) fn looks_so(text: &str, name: &str) -> bool {
    let mut rows = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_remark(line));
    let is_number = |word: &str| word.parse::<i64>().is_ok();
    match part(name) {
        Part::Counts(_) => rows.next().is_some_and(is_number),
        Part::Times(_) => {
            let first: Option<Vec<i64>> = rows.take(RISING).map(|row| row.parse().ok()).collect();
            first.is_some_and(|first| first.len() == RISING && first.is_sorted_by(|a, b| a < b))
        }
        Part::Both => {
            let is_row = |row: &str| row.contains(',') && row.split(',').all(is_number);
            let [first, second] = [rows.next(), rows.next()];
            first.is_some_and(is_row)
                && second.is_some_and(is_row)
                && (text.contains(RATE) || text.lines().any(|line| line.starts_with(REMARK)))
        }
    }
}

fn is_remark(line: &str) -> bool {
    line.starts_with('#') || line.starts_with(REMARK)
}

/// Reads a file that contains both: a list for each thread or rank. `rate_hz` is the rate of the counter, unless the file has it. Fails if
/// it is one of two files, a line differs from the others in form, and if the rate is unknown.
pub fn read(source: Source<'_>, rate_hz: Option<f64>, progress: Progress<'_>) -> Result<Vec<SampleList>, ReadError> {
    if let Part::Times(prefix) | Part::Counts(prefix) = part(source.name) {
        return Err(ReadError::new(format!(
            "it is one of two files: give both, {}{TIMES} and {}{COUNTS}",
            short(prefix),
            short(prefix)
        )));
    }
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let (mut grain, mut rate, mut times, mut columns) = (None, None, Vec::new(), Vec::<Vec<u64>>::new());
    while let Some(line) = lines.next() {
        if is_remark(line) {
            if !times.is_empty() && (line.starts_with(ftq::FIRST) || line.starts_with(RATE)) {
                return Err(lines.second_report());
            }
            grain = line.strip_prefix(ftq::FIRST).map_or(grain, ftq::grain);
            rate = line.strip_prefix(RATE).and_then(|rate| rate.trim().parse::<f64>().ok()).or(rate);
            continue;
        }
        let words = line.split(|sign: char| sign == ',' || sign.is_whitespace()).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.take(MOST_LISTS + 2).collect();
        if words.len() < 2 || words.len() > MOST_LISTS + 1 || !columns.is_empty() && words.len() != columns.len() + 1 {
            let wanted = if columns.is_empty() { "at least 2".to_owned() } else { (columns.len() + 1).to_string() };
            return Err(lines.error(format!("it has {} numbers, and not {wanted}", words.len())));
        }
        columns.resize(words.len() - 1, Vec::new());
        times.push(integer(words[0], "time").map_err(|why| lines.error(why))?);
        for (column, word) in columns.iter_mut().zip(&words[1..]) {
            let count = if line.contains(',') { half_of(word) } else { count(word, "count") };
            column.push(count.map_err(|why| lines.error(why))?);
        }
    }
    let rate = rate.filter(|ticks| (1e-6..=1e3).contains(ticks)).map(|ticks| ticks * 1e9).or(rate_hz);
    let mut lists = Vec::new();
    for column in &columns {
        lists.extend(threads(&times, column, rate, grain)?);
    }
    let warnings = lines.warnings(End::Unmarked);
    lists.iter_mut().for_each(|list: &mut SampleList| list.warnings.clone_from(&warnings));
    Ok(lists)
}

/// A count of the MPI variant, which gathers eight bytes of a four-byte count: the upper half is arbitrary memory.
fn half_of(word: &str) -> Result<u64, String> {
    let number: i64 = word.parse().map_err(|_| format!("the count, '{}', is no whole number", short(word)))?;
    Ok(number as u64 & u64::from(u32::MAX))
}

/// Reads the numbers of one of two files. Fails if a line is no whole number.
pub fn column(source: Source<'_>, progress: Progress<'_>) -> Result<SampleColumn, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut numbers = Vec::new();
    while let Some(line) = lines.next() {
        numbers.push(integer(line, "number").map_err(|why| lines.error(why))?);
    }
    Ok(SampleColumn { numbers, warnings: lines.warnings(End::Unmarked) })
}

/// The numbers of one of two files.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleColumn {
    /// In the order of the file.
    pub numbers: Vec<i64>,
    /// Warnings about the file.
    pub warnings: Vec<Warning>,
}

/// Combines the numbers of two files with this prefix: a list for each thread. Fails if their lengths differ, a count is negative, they are
/// those of a further thread, and if the rate of the counter is unknown.
pub fn joined(prefix: &str, times: &[i64], counts: &[i64], rate_hz: Option<f64>) -> Result<Vec<SampleList>, ReadError> {
    let thread = prefix.rsplit_once('_').and_then(|(_, number)| number.parse::<u32>().ok());
    if let Some(thread) = thread.filter(|thread| *thread > 0) {
        return Err(ReadError::new(format!(
            "it is of thread {thread}, and ftq writes other threads' data into the files of all threads but the first: import those of thread 0 \
             alone (if {thread} is no number of a thread, rename both files)"
        )));
    }
    if times.len() != counts.len() {
        return Err(ReadError::new(format!("it has {} times, and there are {} counts", times.len(), counts.len())));
    }
    let negative = counts.iter().position(|count| *count < 0);
    if let Some(row) = negative {
        return Err(ReadError::new(format!("count {} is below zero", row + 1)));
    }
    let counts: Vec<u64> = counts.iter().map(|count| count.unsigned_abs()).collect();
    threads(times, &counts, rate_hz, None)
}

/// The windows of each thread: a thread ends when times go back.
fn threads(
    times: &[i64],
    counts: &[u64],
    rate_hz: Option<f64>,
    grain: Option<Nanos>,
) -> Result<Vec<SampleList>, ReadError> {
    let rate = rate_hz.ok_or_else(|| {
        ReadError::new("its times are in ticks of a counter, and it does not say how fast that was")
            .with_fix("; say it with {rate}")
    })?;
    let (mut lists, mut from) = (Vec::new(), 0);
    for of_thread in times.chunk_by(|time, next| time <= next) {
        if lists.len() >= MOST_LISTS {
            return Err(ReadError::new(format!(
                "its times go back more than {MOST_LISTS} times: they are not start times"
            )));
        }
        let first = of_thread[0];
        let since = |time: i64| {
            let ns = time.abs_diff(first) as f64 * 1e9 / rate;
            if ns < (i64::MAX / 4) as f64 {
                Ok(Nanos::new(ns.round() as i64))
            } else {
                Err(ReadError::new("its times are further apart than times can be").with_fix("; is {rate} right?"))
            }
        };
        let mut samples = Vec::with_capacity(of_thread.len() - 1);
        for (pair, work) in of_thread.windows(2).zip(&counts[from..]) {
            let start = since(pair[0])?;
            samples.push(SampleRow { start, duration: since(pair[1])? - start, work: *work });
        }
        from += of_thread.len();
        lists.push(SampleList {
            cpu: None,
            body: "ftq",
            iteration: "a pass of ftq's loop",
            fixed: Fixed::Time,
            grain,
            has_starts: true,
            samples,
            warnings: Vec::new(),
        });
    }
    Ok(lists)
}
