//! oslat's text: a line for each figure, with a value for each core.
//!
//! Every pass of its loop is counted, so the first buckets contain millions without an interruption. Buckets are named by their upper
//! edges; the last one has everything longer. Only the edges show the width (`-W`). If it is no multiple of 1 us, all times have three
//! decimals. The average is wrong for all threads but the first, so it is left out if there are several.

use becalm_model::node::Warning;
use becalm_model::warning;
use becalm_units::Nanos;

use super::distribution::{
    Rows, SURE_ROWS, count, cpu_series, decimal, greatest_common, misfit, overflow, short, some_series,
};
use super::lines::{End, Lines, Progress, text};
use super::time::{TimeUnit, nanos};
use super::{ReadError, Source};
use crate::distribution::{DistributionDoc, Edges, Quantity, Series};

/// The prefix of the lines that name the cores.
pub(super) const CORES: &str = "Core:";

/// Markers of the last bucket, which has everything longer, and of the lines after the buckets.
const REST: &str = "the last bucket (including overflows)";
const LAST: [&str; 5] = [REST, "Minimum", "Average", "Maximum", "Duration"];

/// A core while its lines are read.
#[derive(Default)]
struct Core {
    series: Series,
    counts: Vec<u64>,
}

/// Reads the output of oslat. Fails if a line lacks a value for each core, buckets do not rise, or there are no cores.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<DistributionDoc, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut found = DistributionDoc::new("oslat", Quantity::Steps);
    found.loop_subtracted = Some(false);
    let (mut cores, mut labels) = (Vec::<Core>::new(), Vec::new());
    let (mut edges, mut unit_ns, mut start) = (Vec::<i64>::new(), 1_000, None);
    while let Some(line) = lines.next() {
        if let Some(version) = line.strip_prefix("oslat V ") {
            found.tool = format!("oslat of rt-tests {}", short(version.trim()));
            start = Some(0);
        }
        if let Some(bias) = line.strip_prefix("Global bias set to ") {
            start = bias.strip_suffix(" (us)").and_then(|bias| micros(bias, "bias").ok());
        }
        let Some((label, values)) = line.split_once(":\t") else {
            // Settings precede the cores.
            if !cores.is_empty() {
                lines.leave_out()?;
            }
            continue;
        };
        let values: Vec<&str> = values.split('(').next().unwrap_or_default().split_whitespace().collect();
        if label == "Core" {
            if !cores.is_empty() {
                return Err(lines.second_report());
            }
            cores = values.iter().map(|word| core(word)).collect::<Result<_, _>>().map_err(|why| lines.error(why))?;
            continue;
        }
        if cores.is_empty() {
            continue;
        }
        if values.len() != cores.len() {
            return Err(lines.error(misfit(values.len(), cores.len(), "core")));
        }
        let rest = line.contains("(including overflows)");
        labels.push(if rest { REST } else { label });
        if let Some(name) = label.strip_suffix(" (us)") {
            let edge = micros(name, "bucket").map_err(|why| lines.error(why))?;
            if edges.last().is_some_and(|last| *last >= edge) {
                return Err(lines.error("its bucket does not follow the one in front of it"));
            }
            edges.push(edge);
            if name.contains('.') {
                unit_ns = 1;
            }
        }
        let several = cores.len() > 1;
        for (core, value) in cores.iter_mut().zip(values) {
            take(core, label, value, several).map_err(|why| lines.error(why))?;
        }
    }
    let (width, unsure) = width(&edges, start, unit_ns);
    let has_rest = labels.contains(&REST);
    let series = cores.into_iter().map(|core| finished(core, &edges, width, has_rest));
    found.series = series.collect::<Result<_, _>>().map_err(ReadError::new)?;
    found.warnings.extend(unsure);
    let missing: Vec<&str> = LAST.iter().copied().filter(|name| !labels.contains(name)).collect();
    let end = if missing.is_empty() {
        End::Marked
    } else {
        let missing = missing.join(", ");
        End::Missing(format!("these lines are missing: {missing}; it is not known whether anything took longer"))
    };
    found.warnings.extend(lines.warnings(end));
    if found.series.iter().any(|series| series.count == Some(0)) {
        return Err(ReadError::new("it has no buckets"));
    }
    some_series(found, "oslat")
}

fn core(word: &str) -> Result<Core, String> {
    let series = Series { edges: Some(Edges::Upper), ..cpu_series(word)? };
    Ok(Core { series, counts: Vec::new() })
}

/// A number of microseconds, in nanoseconds.
fn micros(value: &str, what: &str) -> Result<i64, String> {
    nanos(value, TimeUnit::Us).map(Nanos::get).map_err(|why| format!("the {what}, '{}', {why}", short(value)))
}

fn take(core: &mut Core, label: &str, value: &str, several: bool) -> Result<(), String> {
    match label {
        "Minimum" => core.series.min_ns = Some(micros(value, label)?),
        "Maximum" => core.series.max_ns = Some(micros(value, label)?),
        "Average" => core.series.mean_ns = (!several).then_some(decimal(value, label)? * 1e3),
        "Duration" => core.series.observed_ns = Some((decimal(value, label)? * 1e9).round() as i64),
        _ if label.ends_with(" (us)") => core.counts.push(count(value, "count")?),
        _ => {}
    }
    Ok(())
}

/// The width of buckets with these upper edges, as far as they show it, with a warning if they are too few; `start` is the start of the
/// first bucket, if known. Edges of empty buckets may be missing.
pub(super) fn width(edges: &[i64], start: Option<i64>, unit_ns: i64) -> (i64, Option<Warning>) {
    let all: Vec<i64> = start.into_iter().chain(edges.iter().copied()).collect();
    let common = all.windows(2).fold(0, |common, pair| greatest_common(common, (pair[1] - pair[0]).abs()));
    // A single edge only shows that times are not below 0.
    let width = if common > 0 { common } else { edges.first().copied().unwrap_or(unit_ns) };
    let is_sure = width <= unit_ns || edges.len() >= SURE_ROWS;
    (width, (!is_sure).then(|| warning::imported_width_unknown(Some(width))))
}

fn finished(core: Core, edges: &[i64], width: i64, has_rest: bool) -> Result<Series, String> {
    let Core { mut series, counts } = core;
    let mut rows = Rows::default();
    for (at, (edge, count)) in edges.iter().zip(counts).enumerate() {
        let from = (edge - width).max(0);
        if has_rest && at + 1 == edges.len() {
            series.above = overflow(from, count);
        } else {
            rows.push(from, (*edge).max(1), count)?;
        }
    }
    series.buckets = rows.buckets;
    series.count = Some(series.in_histogram());
    Ok(series)
}
