//! sysjitter's output, a line for each figure with a value for each core; and the files of `--raw`, one per core, with every interruption.
//!
//! Each interruption includes the loop's own time. In raw files the time stamp is the END of an interruption, counted from the start of its
//! core: cores start together, and the files have no other common origin. Files of `--sort` lack a column and are sorted by time again.

use becalm_units::counted;

use super::detours::{DetourList, InOrder};
use super::distribution::{columns, count, cpu, cpu_series, decimal, integer, misfit, some_series};
use super::lines::{End, Lines, Progress, text};
use super::time::{TimeUnit, nanos};
use super::{ReadError, Source};
use crate::distribution::{DistributionDoc, Level, Quantity, Series};

/// The prefix of the first line.
pub(super) const FIRST: &str = "core_i:";

/// Reads sysjitter's output. Fails if a line lacks a value for each core, or the lines of cores and counts are missing.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<DistributionDoc, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut found = DistributionDoc::new("sysjitter", Quantity::Stolen);
    found.loop_subtracted = Some(false);
    let mut last = "";
    while let Some(line) = lines.next() {
        let (name, values) = line.split_once(':').unwrap_or((line, ""));
        let values: Vec<&str> = values.split_whitespace().collect();
        if !NAMES.contains(&name) {
            lines.leave_out()?;
            continue;
        }
        last = name;
        if name == "core_i" {
            if !found.series.is_empty() {
                return Err(lines.second_report());
            }
            let cores: Result<_, _> = values.iter().map(|word| cpu_series(word)).collect();
            found.series = cores.map_err(|why| lines.error(why))?;
        } else if values.len() != found.series.len() {
            return Err(lines.error(misfit(values.len(), found.series.len(), "core")));
        }
        for (series, value) in found.series.iter_mut().zip(values) {
            take(series, name, value).map_err(|why| lines.error(why))?;
        }
    }
    if found.series.iter().any(|series| series.count.is_none()) {
        return Err(ReadError::new("the line int_n is missing"));
    }
    // With --verbose, the counter's readings follow.
    let is_whole = NAMES.iter().skip_while(|name| **name != LAST).any(|name| *name == last);
    let end = if is_whole { End::Marked } else { End::Missing(format!("its last line, {LAST}, is missing")) };
    found.warnings.extend(lines.warnings(end));
    some_series(found, "sysjitter")
}

/// The names of all lines, in order, and the last one without `--verbose`.
const NAMES: [&str; 20] = [
    "core_i",
    "threshold(ns)",
    "cpu_mhz",
    "runtime(ns)",
    "runtime(s)",
    "int_n",
    "int_n_per_sec",
    "int_min(ns)",
    "int_median(ns)",
    "int_mean(ns)",
    "int_90(ns)",
    "int_99(ns)",
    "int_999(ns)",
    "int_9999(ns)",
    "int_99999(ns)",
    "int_max(ns)",
    "int_total(ns)",
    LAST,
    "frc_start",
    "frc_stop",
];
const LAST: &str = "int_total(%)";

/// Takes a value of a core; redundant names are ignored.
fn take(series: &mut Series, name: &str, value: &str) -> Result<(), String> {
    let level = |at_ratio: f64| integer(value, name).map(|ns| Level { at_ratio, ns });
    match name {
        "threshold(ns)" => series.threshold_ns = Some(integer(value, name)?),
        "runtime(ns)" => series.observed_ns = Some(integer(value, name)?),
        "int_n" => series.count = Some(count(value, name)?),
        "int_min(ns)" => series.min_ns = Some(integer(value, name)?),
        "int_mean(ns)" => series.mean_ns = Some(decimal(value, name)?),
        "int_max(ns)" => series.max_ns = Some(integer(value, name)?),
        "int_total(ns)" => series.total_ns = Some(integer(value, name)?),
        "int_median(ns)" => series.quantiles.push(level(0.5)?),
        "int_90(ns)" => series.quantiles.push(level(0.9)?),
        "int_99(ns)" => series.quantiles.push(level(0.99)?),
        "int_999(ns)" => series.quantiles.push(level(0.999)?),
        "int_9999(ns)" => series.quantiles.push(level(0.9999)?),
        "int_99999(ns)" => series.quantiles.push(level(0.99999)?),
        _ => {}
    }
    Ok(())
}

/// The first bytes of raw files.
pub(super) const RAW_FIRST: &str = "# cpu_mhz:";

/// Reads a raw file of the core in the suffix of its name. Fails if a line is neither a comment nor three or four numbers, an interruption
/// ends before it started or starts before the end of the one before, or their number differs from that in the file.
pub fn read_raw(source: Source<'_>, progress: Progress<'_>) -> Result<DetourList, ReadError> {
    let cpu = source.name.rsplit_once('.').and_then(|(_, ending)| cpu(ending).ok());
    let mut list = DetourList { cpu, ..DetourList::default() };
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let (mut said, mut rows) = (None, Vec::new());
    while let Some(line) = lines.next() {
        if line.starts_with(RAW_FIRST) && !rows.is_empty() {
            return Err(lines.second_report());
        }
        if let Some(remark) = line.strip_prefix('#') {
            let (name, value) = remark.split_once(':').unwrap_or((remark, ""));
            let value = value.trim();
            match (name.trim(), value.strip_suffix(" seconds")) {
                ("threshold", _) => {
                    list.threshold = value.strip_suffix("ns").and_then(|ns| nanos(ns, TimeUnit::Ns).ok())
                }
                ("n_interruptions", _) => said = Some(count(value, "number").map_err(|why| lines.error(why))?),
                ("total_runtime", Some(seconds)) => list.length = nanos(seconds, TimeUnit::S).ok(),
                _ => {}
            }
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(end), Some(duration), 3 | 4) = (words.first(), words.last(), words.len()) else {
            return Err(lines.error(columns(words.len(), "3 or 4")));
        };
        let end = integer(end, "time stamp").map_err(|why| lines.error(why))?;
        let duration = integer(duration, "duration").map_err(|why| lines.error(why))?;
        if duration > end {
            return Err(lines.error("the interruption starts before the measurement"));
        }
        rows.push((end - duration, duration));
    }
    if said != Some(rows.len() as u64) {
        let says = said.map(|said| counted(said, "interruption", "interruptions"));
        let says = says.as_deref().unwrap_or("not how many interruptions there are");
        return Err(ReadError::new(format!("it says {says}, and holds {}", rows.len())));
    }
    rows.sort_unstable();
    let mut detours = InOrder::default();
    for (start, duration) in rows {
        let pushed = detours.push(i128::from(start) * 1_000, i128::from(duration) * 1_000);
        pushed.map_err(ReadError::new)?;
    }
    list.detours = detours.detours;
    Ok(list)
}
