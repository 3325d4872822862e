//! cyclictest's text: the histogram of `-h`, `-H` and `--histfile` with its closing comments, or the lines of statistics that it prints
//! without one.
//!
//! A column is a thread, not a CPU. The extra column of `-H`, the sum of all, is left out. Values at or above the histogram's size are only
//! counted. The file does not show whether values are microseconds or, with `-N`, nanoseconds.

use super::distribution::{Rows, count, integer, overflow, some_series, times};
use super::lines::{End, Lines, Progress, is_row, text};
use super::time::TimeUnit;
use super::{ReadError, Source};
use crate::distribution::{DistributionDoc, Quantity, SERIES, Series};

/// The comment that starts a report, which may follow the command on its line.
const SETTING: &str = "# /dev/cpu_dma_latency";

/// The comment before a histogram.
pub(super) const HISTOGRAM: &str = "# Histogram";

/// Prefixes of closing comments that no other program writes.
pub(super) const CLOSING: [&str; 3] = ["# Min Latencies:", "# Avg Latencies:", "# Max Latencies:"];

/// Closing comments, with a value for each thread.
#[derive(Default)]
struct Remarks<'a> {
    total: Vec<&'a str>,
    min: Vec<&'a str>,
    avg: Vec<&'a str>,
    max: Vec<&'a str>,
    overflows: Vec<&'a str>,
}

impl Remarks<'_> {
    /// The unknown facts if closing comments are missing.
    fn missing(&self) -> Option<String> {
        let remarks = [("Min", &self.min), ("Avg", &self.avg), ("Max", &self.max), ("Overflows", &self.overflows)];
        let missing: Vec<&str> =
            remarks.into_iter().filter(|(_, values)| values.is_empty()).map(|(name, _)| name).collect();
        (!missing.is_empty()).then(|| {
            format!(
                "cyclictest's closing comments are missing ({}); it is not known whether rows are missing too, how many latencies were \
                 longer than the histogram, and whether the last column is the sum of all threads, as -H prints it",
                missing.join(", ")
            )
        })
    }
}

/// Reads a histogram or statistics with values in this unit. Fails if a row differs from the one before in its number of counts, is out of
/// order, or contradicts the closing comments; and if there is neither.
pub fn read(source: Source<'_>, unit: TimeUnit, progress: Progress<'_>) -> Result<DistributionDoc, ReadError> {
    let unit_ns = unit.nanoseconds();
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut found = DistributionDoc::new("cyclictest", Quantity::Wakeup);
    let (mut columns, mut end_ns, mut remarks) = (Vec::<Rows>::new(), 0, Remarks::default());
    let mut threads = Vec::<ThreadLine>::new();
    while let Some(line) = lines.next() {
        // A terminal gets the lines repeatedly, after codes that move its cursor.
        let line =
            line.rsplit_once('\u{1b}').and_then(|(_, codes)| codes.split_once('A')).map_or(line, |(_, rest)| rest);
        let has_rows = !columns.is_empty();
        let is_next = if line.contains(SETTING) {
            has_rows || !threads.is_empty()
        } else if line == HISTOGRAM || line.starts_with("T:") {
            has_rows
        } else {
            is_row(line) && !remarks.max.is_empty()
        };
        if is_next {
            return Err(lines.second_report());
        }
        if let Some(remark) = line.strip_prefix('#') {
            let (name, values) = remark.split_once(':').unwrap_or((remark, ""));
            let values = values.split_whitespace().collect();
            match name.trim() {
                "Total" => remarks.total = values,
                "Min Latencies" => remarks.min = values,
                "Avg Latencies" => remarks.avg = values,
                "Max Latencies" => remarks.max = values,
                "Histogram Overflows" => remarks.overflows = values,
                _ => {}
            }
        } else if line.starts_with("T:") {
            let thread = statistics(line, unit_ns).map_err(|why| lines.error(why))?;
            if let Some(last) = threads.iter_mut().find(|last| last.series.name == thread.series.name) {
                if !thread.continues(last) {
                    return Err(lines.second_report());
                }
                *last = thread;
            } else if threads.len() < SERIES {
                threads.push(thread);
            } else {
                return Err(lines.error("it has more threads than are kept"));
            }
        } else if is_row(line) {
            end_ns = row(line, unit_ns, &mut columns).map_err(|why| lines.error(why))?;
        } else if !(columns.is_empty() && threads.is_empty() || line.starts_with("policy:")) {
            // Settings precede the values.
            lines.leave_out()?;
        }
    }
    let mut end = End::Unmarked;
    if columns.is_empty() {
        found.series = threads.into_iter().map(|thread| thread.series).collect();
    } else {
        end = remarks.missing().map_or(End::Marked, End::Missing);
        found.series = histogram_series(columns, end_ns, unit_ns, &remarks).map_err(ReadError::new)?;
    }
    found.warnings.extend(lines.warnings(end));
    some_series(found, "cyclictest")
}

/// Takes a row of the histogram; returns the end of its bucket.
fn row(line: &str, unit_ns: i64, columns: &mut Vec<Rows>) -> Result<i64, String> {
    // Scripts that draw such histograms put commas between the columns.
    let mut words = line.split(|sign: char| sign == ',' || sign.is_whitespace()).filter(|word| !word.is_empty());
    let value = integer(words.next().unwrap_or_default(), "latency")?;
    let from = times(value, unit_ns, "latency")?;
    let below = from.checked_add(unit_ns).ok_or("the latency is longer than times can be")?;
    let counts = words.map(|word| count(word, "count")).collect::<Result<Vec<u64>, _>>()?;
    if columns.is_empty() {
        columns.resize_with(counts.len(), Rows::default);
    }
    if counts.len() != columns.len() || counts.is_empty() {
        return Err(format!("it has {} counts, and the first row has {}", counts.len(), columns.len()));
    }
    for (column, count) in columns.iter_mut().zip(counts) {
        column.push(from, below, count)?;
    }
    Ok(below)
}

/// The threads of a histogram, with their values from the closing comments.
fn histogram_series(
    mut columns: Vec<Rows>,
    end_ns: i64,
    unit_ns: i64,
    remarks: &Remarks<'_>,
) -> Result<Vec<Series>, String> {
    // Minima and means are of threads alone, even if the last column is the sum of all.
    let threads = if remarks.min.is_empty() { columns.len() } else { remarks.min.len() };
    if threads > columns.len() || columns.len() - threads > 1 {
        return Err(format!("its comments are of {threads} threads, but its rows have {} counts", columns.len()));
    }
    columns.truncate(threads);
    let at = |values: &[&str], thread: usize, what: &str| -> Result<Option<i64>, String> {
        values.get(thread).map(|word| integer(word, what)).transpose()
    };
    let mut series = Vec::with_capacity(threads);
    for (thread, column) in columns.into_iter().enumerate() {
        let overflows = remarks.overflows.get(thread).map(|word| count(word, "number of overflows")).transpose()?;
        let some = !column.buckets.is_empty() || overflows.is_some_and(|count| count > 0);
        let time = |values: &[&str], what: &str| -> Result<Option<i64>, String> {
            let value = at(values, thread, what)?.filter(|_| some);
            value.map(|value| times(value, unit_ns, what)).transpose()
        };
        let total = at(&remarks.total, thread, "total")?.map(|total| total as u64);
        let overflow = overflow(end_ns, overflows.unwrap_or(0));
        let mut row = Series {
            name: format!("thread {thread}"),
            min_ns: time(&remarks.min, "minimum")?,
            mean_ns: time(&remarks.avg, "average")?.map(|mean| mean as f64),
            max_ns: time(&remarks.max, "maximum")?,
            buckets: column.buckets,
            above: overflow,
            ..Series::default()
        };
        // The total is of the histogram; overflows are added to it.
        let counted = row.in_histogram();
        let overflowed = overflow.map_or(0, |beyond| beyond.count);
        if let Some(total) = total.filter(|total| *total != counted && total.saturating_add(overflowed) != counted) {
            return Err(format!("its total of thread {thread} is {total}, and its rows add up to {counted}"));
        }
        row.count = Some(counted);
        series.push(row);
    }
    Ok(series)
}

/// A line of statistics. cyclictest prints one per thread again and again on a terminal; the last one counts.
struct ThreadLine {
    /// The thread's ID in the kernel; 0 before it started.
    tid: u64,
    series: Series,
}

impl ThreadLine {
    /// True if it continues the run of the line before: the same kernel thread, with at least as many cycles.
    fn continues(&self, last: &Self) -> bool {
        (last.tid == 0 || last.tid == self.tid) && last.series.count <= self.series.count
    }
}

/// The values of a line like `T: 0 (1234) P:80 I:1000 C: 500 Min: 2 Act: 3 Avg: 3 Max: 40`.
fn statistics(line: &str, unit_ns: i64) -> Result<ThreadLine, String> {
    let after = |name: &str| -> Result<i64, String> {
        let (_, rest) = line.split_once(name).ok_or_else(|| format!("it has no {name}"))?;
        integer(rest.split_whitespace().next().unwrap_or_default(), name)
    };
    let name = format!("thread {}", after("T:")?);
    let cycles = after("C:")? as u64;
    let time = |name: &str| times(after(name)?, unit_ns, name);
    let (min, avg, max) = (time("Min:")?, time("Avg:")?, time("Max:")?);
    let some = cycles > 0;
    let tid = line.split_once('(').and_then(|(_, rest)| rest.split(')').next()?.trim().parse().ok()).unwrap_or(0);
    let series = Series {
        count: Some(cycles),
        min_ns: some.then_some(min),
        mean_ns: some.then_some(avg as f64),
        max_ns: some.then_some(max),
        name,
        ..Series::default()
    };
    Ok(ThreadLine { tid, series })
}
