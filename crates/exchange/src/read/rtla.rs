//! What rtla prints: the table of `osnoise top -q` and `hwnoise`, and the histograms of `osnoise hist` and `timerlat hist`.
//!
//! A histogram's index is the lower edge of a bucket. Rows without any count are left out and the size of buckets is not told: it is taken to
//! be what all indexes of at least three rows are multiples of, and else one unit. A column is a CPU, and of timerlat one of its handler, of
//! its thread or of a thread in user space. timerlat's values are wake-up latencies. osnoise's durations come back from a histogram in the
//! kernel, so that its shortest, mean and longest are lower edges of buckets. The duration at its head is the tool's own, in whole seconds, and no
//! time for which anything was counted.

use becalm_model::distribution::{NamedCount, Quantity, Series};
use becalm_units::counted;

use super::distribution::{Distribution, Rows, above, count, cpu, decimal, integer, short, some_series, times};
use super::lines::{Lines, Progress, text};
use super::{ReadError, Source};

/// The first lines of histograms.
pub(super) const HISTOGRAMS: [&str; 2] = ["# RTLA osnoise histogram", "# RTLA timerlat histogram"];

/// In what the titles of the table begin.
pub(super) const TABLE_BEGIN: &str = "CPU Period";

/// The titles of the columns that both tables have.
const TABLE: &str = "CPU Period Runtime Noise % CPU Aval Max Noise Max Single HW NMI";

/// Reads a table or a histogram.
///
/// # Errors
/// If the title lines are missing or a row does not fit them.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<Distribution, ReadError> {
    let text = text(source.bytes)?;
    if text.lines().any(|line| HISTOGRAMS.contains(&line.trim())) {
        histogram(Lines::new(text, progress))
    } else {
        table(Lines::new(text, progress))
    }
}

/// A line without what steers terminals.
fn plain(line: &str) -> String {
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

/// Reads the table; of several that follow each other, the last one.
fn table(mut lines: Lines<'_, '_>) -> Result<Distribution, ReadError> {
    let mut found = Distribution::new("rtla osnoise top", Quantity::Stolen);
    found.loop_subtracted = Some(false);
    let mut titled = false;
    while let Some(line) = lines.next() {
        let line = plain(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.join(" ").starts_with(TABLE) {
            titled = true;
            found.series.clear();
            found.tool = if words.last() == Some(&"NMI") { "rtla hwnoise" } else { "rtla osnoise top" }.to_owned();
        } else if titled && words.get(1).is_some_and(|word| word.starts_with('#')) {
            found.series.push(table_row(&line).map_err(|why| lines.error(why))?);
        }
    }
    if !titled {
        return Err(ReadError::new("it has neither the titles of rtla's table nor the first line of its histograms"));
    }
    some_series(found, "rtla")
}

fn table_row(line: &str) -> Result<Series, String> {
    const COUNTS: [&str; 5] = ["HW", "NMI", "IRQ", "Softirq", "Thread"];
    // The number of periods may stand at the sign, or after a blank.
    let line = line.replacen('#', " ", 1);
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.len() != 9 && words.len() != 12 {
        return Err(format!("it has {} and not 9 or 12", counted(words.len() as u64, "column", "columns")));
    }
    let micros = |at: usize, what: &str| times(integer(words[at], what)?, 1_000, what);
    let cpu = cpu(words[0])?;
    decimal(words[4], "availability")?;
    let mut counts = vec![NamedCount { name: "periods".to_owned(), count: count(words[1], "number of periods")? }];
    for (name, word) in COUNTS.iter().zip(&words[7..]) {
        counts.push(NamedCount { name: (*name).to_owned(), count: count(word, name)? });
    }
    Ok(Series {
        name: format!("CPU {cpu}"),
        cpu: Some(cpu),
        observed_ns: Some(micros(2, "runtime")?),
        total_ns: Some(micros(3, "noise")?),
        max_ns: Some(micros(6, "longest")?),
        counts,
        ..Series::default()
    })
}

/// A column of a histogram while its rows come.
#[derive(Default)]
struct Column {
    series: Series,
    rows: Vec<(i64, u64)>,
    over: u64,
}

/// Reads a histogram.
fn histogram(mut lines: Lines<'_, '_>) -> Result<Distribution, ReadError> {
    let mut found = Distribution::new("rtla osnoise hist", Quantity::Stolen);
    let (mut unit_ns, mut asked, mut columns) = (1_000, None, Vec::<Column>::new());
    let mut titled = false;
    while let Some(line) = lines.next() {
        let line = plain(line);
        let line = line.trim();
        if line == HISTOGRAMS[1] {
            found.tool = "rtla timerlat hist".to_owned();
            found.quantity = Quantity::Wakeup;
        } else if let Some(unit) = line.strip_prefix("# Time unit is ") {
            unit_ns = if unit.starts_with("nanoseconds") { 1 } else { 1_000 };
        } else if let Some(text) = line.strip_prefix("# Duration:") {
            asked = duration(text);
        } else if let Some(names) = line.strip_prefix("Index") {
            columns = names.split_whitespace().map(column).collect::<Result<_, _>>().map_err(|why| lines.error(why))?;
            titled = true;
        } else if line.starts_with("ALL:") {
            break;
        } else if titled && !line.starts_with('#') {
            row(line, unit_ns, &mut columns).map_err(|why| lines.error(why))?;
        }
    }
    if !titled {
        return Err(ReadError::new(
            "it has no line that begins with Index and names the columns, as of --no-header or --no-index",
        ));
    }
    found.loop_subtracted = (found.quantity == Quantity::Stolen).then_some(false);
    for column in columns {
        let mut series = finished(column, unit_ns).map_err(ReadError::new)?;
        series.asked_ns = asked;
        found.series.push(series);
    }
    some_series(found, "rtla (on CPUs where it saw anything)")
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

/// A column by its title.
fn column(title: &str) -> Result<Column, String> {
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
    Ok(Column { series: Series { name, cpu: Some(cpu), ..Series::default() }, ..Column::default() })
}

/// Takes a row of counts, or of a figure that stands below them. Where nothing was seen, figures have one value and there are no columns.
fn row(line: &str, unit_ns: i64, columns: &mut [Column]) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let label = words.next().unwrap_or_default();
    let values: Vec<&str> = words.collect();
    if columns.is_empty() {
        return Ok(());
    }
    if values.len() != columns.len() {
        // What is said of lost events has words.
        let figure = label.ends_with(':') || label.bytes().all(|byte| byte.is_ascii_digit());
        let text = values.iter().any(|word| word.bytes().any(|byte| byte.is_ascii_alphabetic()));
        return if figure && !text {
            Err(format!(
                "it has {} for {}",
                counted(values.len() as u64, "value", "values"),
                counted(columns.len() as u64, "column", "columns")
            ))
        } else {
            Ok(())
        };
    }
    for (column, value) in columns.iter_mut().zip(values) {
        let time = || if value == "-" { Ok(None) } else { times(integer(value, label)?, unit_ns, label).map(Some) };
        match label {
            "over:" => column.over = count(value, label)?,
            "count:" => column.series.count = Some(count(value, label)?),
            "min:" => column.series.min_ns = time()?,
            "max:" => column.series.max_ns = time()?,
            "avg:" => {
                let mean = if value == "-" { None } else { Some(decimal(value, label)? * unit_ns as f64) };
                column.series.mean_ns = mean;
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

fn finished(column: Column, unit_ns: i64) -> Result<Series, String> {
    let Column { mut series, rows, over } = column;
    let common = rows.iter().fold(0, |common, (index, _)| greatest_common(common, *index));
    let width = if rows.len() >= 3 { common.max(1) } else { 1 };
    let mut buckets = Rows::default();
    for (index, count) in &rows {
        let from = times(*index, unit_ns, "index")?;
        let below = index.checked_add(width).ok_or("the index is too large").map_err(str::to_owned)?;
        buckets.push(from, times(below, unit_ns, "index")?, *count)?;
    }
    let end = rows.last().map_or(0, |(index, _)| (index + width).saturating_mul(unit_ns));
    (series.buckets, series.above) = (buckets.buckets, above(end, over));
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

const fn greatest_common(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
