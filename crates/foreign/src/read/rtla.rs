//! The output of rtla: the table of `osnoise top -q` and `hwnoise`, and the histograms of `osnoise hist` and `timerlat hist`.
//!
//! A histogram's index is the lower edge of a bucket. Empty rows are left out and the bucket size is not printed: it divides all indexes,
//! and is taken to be their greatest common divisor, so each bucket contains its values. A column is a CPU; timerlat has one for its
//! handler, its thread, or a thread in user space. timerlat's values are wake-up latencies. osnoise's durations come from a histogram in
//! the kernel, so their shortest, mean and longest are lower edges of buckets. The duration in the header is the tool's own, in whole
//! seconds, and not the time of counting.

use becalm_model::warning;

use super::distribution::{
    Rows, SURE_ROWS, columns, count, cpu, cpu_series, decimal, greatest_common, integer, misfit, overflow, short,
    some_series, times,
};
use super::kernel_text::is_digits;
use super::lines::{End, Lines, Progress, text};
use super::{ReadError, Source};
use crate::distribution::{DistributionDoc, Edges, NamedCount, Quantity, Series};

/// The first lines of histograms.
pub(super) const HISTOGRAMS: [&str; 2] = ["# RTLA osnoise histogram", "# RTLA timerlat histogram"];

pub(super) const TABLE_BEGIN: &str = "CPU Period";

/// The sequence that clears the terminal.
const CLEAR: &str = "\u{1b}c";

/// The titles of the columns that both tables have.
const TABLE: &str = "CPU Period Runtime Noise % CPU Aval Max Noise Max Single HW NMI";

/// Reads a table or a histogram. Fails if the title lines are missing or a row does not fit them.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<DistributionDoc, ReadError> {
    let text = text(source.bytes)?;
    if text.lines().any(|line| HISTOGRAMS.contains(&line.trim())) {
        histogram(Lines::new(text, progress))
    } else {
        table(Lines::new(text, progress))
    }
}

/// A line without terminal control sequences.
pub(super) fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = match after.strip_prefix('[') {
            Some(codes) => codes.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').get(1..).unwrap_or(""),
            None => after.get(1..).unwrap_or(""),
        };
    }
    plain + rest
}

/// Reads the table. Without `-q`, rtla clears the terminal and prints it repeatedly: the last one counts.
fn table(mut lines: Lines<'_, '_>) -> Result<DistributionDoc, ReadError> {
    let mut found = DistributionDoc::new("rtla osnoise top", Quantity::Stolen);
    found.loop_subtracted = Some(false);
    // Whether each table so far was printed on a cleared terminal, and the values of the one before.
    let (mut titled, mut clears, mut is_redrawn, mut before) = (false, false, true, Vec::<Series>::new());
    while let Some(line) = lines.next() {
        clears |= line.contains(CLEAR);
        let line = plain(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.join(" ").starts_with(TABLE) {
            is_redrawn &= std::mem::take(&mut clears);
            if titled && !is_redrawn {
                return Err(lines.second_report());
            }
            titled = true;
            before = std::mem::take(&mut found.series);
            found.tool = if words.last() == Some(&"NMI") { "rtla hwnoise" } else { "rtla osnoise top" }.to_owned();
        } else if titled && words.get(1).is_some_and(|word| word.starts_with('#')) {
            let row = table_row(&line).map_err(|why| lines.error(why))?;
            // The run time of a CPU only grows.
            if before.iter().any(|old| old.cpu == row.cpu && old.observed_ns > row.observed_ns) {
                return Err(lines.second_report());
            }
            found.series.push(row);
        }
    }
    if !titled {
        return Err(ReadError::new(
            "it holds no table of 'rtla osnoise top' or 'rtla hwnoise', and no histogram of 'rtla osnoise hist' or 'rtla timerlat hist'",
        ));
    }
    found.warnings.extend(lines.warnings(End::Unmarked));
    some_series(found, "rtla")
}

fn table_row(line: &str) -> Result<Series, String> {
    const COUNTS: [&str; 5] = ["HW", "NMI", "IRQ", "Softirq", "Thread"];
    // The number of periods may directly follow the sign, or a blank.
    let line = line.replacen('#', " ", 1);
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() != 9 && words.len() != 12 {
        return Err(columns(words.len(), "9 or 12"));
    }
    let micros = |at: usize, what: &str| times(integer(words[at], what)?, 1_000, what);
    let series = cpu_series(words[0])?;
    decimal(words[4], "availability")?;
    let mut counts = vec![NamedCount { name: "periods".to_owned(), count: count(words[1], "number of periods")? }];
    for (name, word) in COUNTS.iter().zip(&words[7..]) {
        counts.push(NamedCount { name: (*name).to_owned(), count: count(word, name)? });
    }
    Ok(Series {
        observed_ns: Some(micros(2, "runtime")?),
        total_ns: Some(micros(3, "noise")?),
        max_ns: Some(micros(6, "longest")?),
        counts,
        ..series
    })
}

/// A column of a histogram while its rows are read.
#[derive(Default)]
struct ThreadColumn {
    series: Series,
    rows: Vec<(i64, u64)>,
    over: u64,
}

impl ThreadColumn {
    /// True if its shortest and longest are inside its first and last nonempty bucket, if buckets have this width in units.
    fn has_extremes_within(&self, width: i64, unit_ns: i64) -> bool {
        let mut some = self.rows.iter().filter(|(_, count)| *count > 0).map(|(index, _)| *index);
        let Some(first) = some.next() else { return true };
        let last = some.next_back().unwrap_or(first);
        let units = |ns: Option<i64>| ns.map(|ns| ns / unit_ns);
        units(self.series.min_ns).is_none_or(|min| (first..first.saturating_add(width)).contains(&min))
            && (self.over > 0
                || units(self.series.max_ns).is_none_or(|max| (last..last.saturating_add(width)).contains(&max)))
    }
}

fn histogram(mut lines: Lines<'_, '_>) -> Result<DistributionDoc, ReadError> {
    let mut found = DistributionDoc::new("rtla osnoise hist", Quantity::Stolen);
    let (mut unit_ns, mut asked, mut columns) = (1_000, None, Vec::<ThreadColumn>::new());
    let (mut headed, mut titled, mut is_whole) = (false, false, false);
    while let Some(line) = lines.next() {
        let line = plain(line);
        let line = line.trim();
        if HISTOGRAMS.contains(&line) || line.starts_with(TABLE_BEGIN) {
            if std::mem::replace(&mut headed, true) {
                return Err(lines.second_report());
            }
            if line == HISTOGRAMS[1] {
                found.tool = "rtla timerlat hist".to_owned();
                found.quantity = Quantity::Wakeup;
            }
        } else if is_whole {
            // rtla's closing messages follow the figures.
        } else if let Some(unit) = line.strip_prefix("# Time unit is ") {
            unit_ns = if unit.starts_with("nanoseconds") { 1 } else { 1_000 };
        } else if let Some(text) = line.strip_prefix("# Duration:") {
            asked = duration(text);
        } else if let Some(names) = line.strip_prefix("Index") {
            columns = names.split_whitespace().map(column).collect::<Result<_, _>>().map_err(|why| lines.error(why))?;
            titled = true;
        } else if titled && !line.starts_with('#') {
            row(line, unit_ns, &mut columns).map_err(|why| lines.error(why))?;
            is_whole = line.starts_with(FIGURES[FIGURES.len() - 1]);
        }
    }
    if !titled {
        return Err(ReadError::new(
            "it has no line that starts with Index and names the columns: run rtla without --no-header and --no-index",
        ));
    }
    found.loop_subtracted = (found.quantity == Quantity::Stolen).then_some(false);
    let end = if is_whole { End::Marked } else { End::Missing("the figures below its rows are missing".to_owned()) };
    found.warnings.extend(lines.warnings(end));
    if columns.is_empty() {
        // It has a column for each CPU with any event.
        found.series.push(Series { name: "all CPUs".to_owned(), asked_ns: asked, count: Some(0), ..Series::default() });
    }
    let width = width(&columns, unit_ns);
    let has_rows = columns.iter().any(|column| column.rows.iter().any(|(_, count)| *count > 0));
    if has_rows && (width.is_none() || columns[0].rows.len() < SURE_ROWS && width > Some(1)) {
        found.warnings.push(warning::imported_width_unknown(width.map(|width| width.saturating_mul(unit_ns))));
    }
    if let Some(width) = width {
        let beyond = columns.iter().filter(|column| !column.has_extremes_within(width, unit_ns));
        let beyond: Vec<&str> = beyond.map(|column| column.series.name.as_str()).collect();
        if !beyond.is_empty() {
            found.warnings.push(warning::imported_rows_missing(&beyond));
        }
    }
    for column in columns {
        let mut series = finished(column, width, unit_ns).map_err(ReadError::new)?;
        series.asked_ns = asked;
        series.edges = (found.quantity == Quantity::Stolen).then_some(Edges::Lower);
        found.series.push(series);
    }
    some_series(found, "rtla")
}

/// Days and hours, minutes and seconds: `0 00:01:30`.
fn duration(text: &str) -> Option<i64> {
    let mut words = text.split_whitespace();
    let days: i64 = words.next()?.parse().ok()?;
    let parts: Vec<i64> = words.next()?.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let &[hours, minutes, seconds] = parts.as_slice() else { return None };
    let sum = days.checked_mul(86_400)?.checked_add(hours.checked_mul(3_600)?)?;
    let sum = sum.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?;
    sum.checked_mul(1_000_000_000).filter(|ns| *ns > 0)
}

fn column(title: &str) -> Result<ThreadColumn, String> {
    let unknown = || format!("'{}' is no column of rtla", short(title));
    let (kind, number) = title.split_once('-').ok_or_else(unknown)?;
    let cpu = cpu(number)?;
    let name = match kind {
        "CPU" => format!("CPU {cpu}"),
        "IRQ" => format!("CPU {cpu} irq"),
        "Thr" => format!("CPU {cpu} thread"),
        "Usr" => format!("CPU {cpu} user"),
        _ => return Err(unknown()),
    };
    Ok(ThreadColumn { series: Series { name, cpu: Some(cpu), ..Series::default() }, ..ThreadColumn::default() })
}

/// The figures below the rows, the last one last.
const FIGURES: [&str; 5] = ["over:", "count:", "min:", "avg:", "max:"];

/// Takes a row of counts, or of a figure below them; any other line is a sentence. Without any event, there are no columns.
fn row(line: &str, unit_ns: i64, columns: &mut [ThreadColumn]) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let label = words.next().unwrap_or_default();
    let values: Vec<&str> = words.collect();
    let is_number = |word: &str| word == "-" || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_row = FIGURES.contains(&label) || is_digits(label);
    if columns.is_empty() || !is_row || !values.iter().all(|word| is_number(word)) {
        return Ok(());
    }
    if values.len() != columns.len() {
        return Err(misfit(values.len(), columns.len(), "column"));
    }
    for (column, value) in columns.iter_mut().zip(values) {
        // The initial value of a minimum, which stays without any event.
        let is_none = value == "-" || value.parse() == Ok(u64::MAX);
        let time = || if is_none { Ok(None) } else { times(integer(value, label)?, unit_ns, label).map(Some) };
        match label {
            "over:" => column.over = count(value, label)?,
            "count:" => column.series.count = Some(count(value, label)?),
            "min:" => column.series.min_ns = time()?,
            "max:" => column.series.max_ns = time()?,
            "avg:" => {
                column.series.mean_ns = if is_none { None } else { Some(decimal(value, label)? * unit_ns as f64) };
            }
            _ => {
                let index = integer(label, "index")?;
                if column.rows.last().is_some_and(|(last, _)| *last >= index) {
                    return Err("its index is not above the one in front of it".to_owned());
                }
                column.rows.push((index, count(value, "count")?));
            }
        }
    }
    Ok(())
}

/// The largest possible width of buckets, in units: the common divisor of all indexes; `None` if the rows do not show it.
fn width(columns: &[ThreadColumn], unit_ns: i64) -> Option<i64> {
    let first = columns.first()?;
    let common = first.rows.iter().fold(0, |common, (index, _)| greatest_common(common, *index));
    // No bucket is narrower than a unit. Wider ones contain the shortest and the longest of their column, if all rows are there.
    (common == 1 || common > 0 && columns.iter().all(|column| column.has_extremes_within(common, unit_ns)))
        .then_some(common)
}

fn finished(column: ThreadColumn, width: Option<i64>, unit_ns: i64) -> Result<Series, String> {
    let ThreadColumn { mut series, rows, over } = column;
    if let Some(width) = width {
        let mut buckets = Rows::default();
        for (index, count) in &rows {
            let from = times(*index, unit_ns, "index")?;
            let below = index.checked_add(width).ok_or("the index is too large").map_err(str::to_owned)?;
            buckets.push(from, times(below, unit_ns, "index")?, *count)?;
        }
        let end = rows.last().map_or(0, |(index, _)| (index + width).saturating_mul(unit_ns));
        (series.buckets, series.above) = (buckets.buckets, overflow(end, over));
    } else if let Some((from, _)) = rows.iter().find(|(_, count)| *count > 0) {
        let all = rows.iter().fold(over, |sum, (_, count)| sum.saturating_add(*count));
        series.above = overflow(times(*from, unit_ns, "index")?, all);
    } else {
        series.above = overflow(rows.last().map_or(0, |(last, _)| last.saturating_mul(unit_ns)), over);
    }
    if series.count == Some(0) {
        (series.min_ns, series.mean_ns, series.max_ns) = (None, None, None);
    }
    let counted = series.in_histogram();
    if series.count.is_some_and(|count| count != counted) {
        return Err(format!("the count of '{}' is not what its rows add up to, {counted}", series.name));
    }
    series.count = Some(counted);
    Ok(series)
}
