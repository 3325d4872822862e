//! The layouts of ftq whose times are in ticks of a counter: two files a number a line (`PREFIX_times.dat` and `PREFIX_counts.dat`) of the
//! OpenMP variant and of the family of LLNL's FTQ, their pairs in one file (`-s`), and the CSV of the MPI variant with a count for each rank.
//!
//! A time is the begin of a window, whose length is that until the next one begins; of the last one it is not known, and it is left out.
//! How fast the counter was only the MPI variant says. The threads of the OpenMP variant stand one after another in one file, each with later and
//! later times, so that a step back begins the next thread. In the files of LLNL's family those of the first thread are right alone: the others
//! hold each other's data.

use becalm_model::node::{Fixed, Warning};
use becalm_units::Nanos;

use super::distribution::{count, integer, short};
use super::ftq;
use super::lines::{End, Lines, Progress, text};
use super::samples::{SampleList, SampleRow};
use super::{ReadError, Source};

/// How the names of the two files end.
const TIMES: &str = "_times.dat";
const COUNTS: &str = "_counts.dat";

/// With what the line of the counter's rate begins, and what the MPI variant says in between.
const RATE: &str = "# Ticks per ns: ";
const REMARK: &str = "Rank ";

/// No more threads stand in a file, nor ranks in a row.
const MOST_LISTS: usize = 1 << 12;

/// So many numbers of a file of times must rise for them to be begins, and not FWQ's lengths.
const RISING: usize = 8;

/// What a file holds, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    /// The times of such a prefix.
    Times(&'a str),
    /// The counts of such a prefix.
    Counts(&'a str),
    /// Both.
    Both,
}

/// What a file of this name holds.
pub fn part(name: &str) -> Part<'_> {
    if let Some(prefix) = name.strip_suffix(TIMES) {
        Part::Times(prefix)
    } else if let Some(prefix) = name.strip_suffix(COUNTS) {
        Part::Counts(prefix)
    } else {
        Part::Both
    }
}

/// Whether a file looks so.
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

/// Reads a file that holds both, of a counter with so many ticks a second unless the file says it: a list for each
/// thread or rank. Fails if it is one of two files, a line is not as the others are, and if nobody says how fast the
/// counter was.
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

/// A count of the MPI variant, which gathers eight bytes of a count that has four: the upper half is of whatever lay behind it.
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
    /// What must be known of the file.
    pub warnings: Vec<Warning>,
}

/// Puts the numbers of two files together, which have this prefix: a list for each thread. Fails if they are not as
/// many, a count is below zero, they are those of a further thread, and if nobody says how fast the counter was.
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

/// The windows of each thread, of which one ends where times go back.
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
            return Err(ReadError::new(format!("its times go back more than {MOST_LISTS} times: they are no begins")));
        }
        let first = of_thread[0];
        let since = |time: i64| {
            let ns = time.abs_diff(first) as f64 * 1e9 / rate;
            if ns < (i64::MAX / 4) as f64 {
                Ok(Nanos::new(ns.round() as i64))
            } else {
                Err(ReadError::new("its times lie further apart than times can").with_fix("; is {rate} right?"))
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
