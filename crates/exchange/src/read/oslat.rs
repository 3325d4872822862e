//! oslat's text: a line for each figure, with a value for each core.
//!
//! Every pass of its loop is counted, so that the first buckets hold millions in which nothing happened. Buckets are named by their upper
//! edges; the last one holds all that is longer. The average has an error for all threads but the first, so that it is left out of several.

use becalm_model::distribution::{Edges, Quantity, Series};
use becalm_units::counted;

use super::distribution::{Distribution, Rows, above, count, cpu, decimal, integer, short, some_series, times};
use super::lines::{End, Lines, Progress, text};
use super::{ReadError, Source};

/// With what the lines begin that name the cores.
pub(super) const CORES: &str = "Core:";

/// What stands for the last bucket, which holds all that is longer; and what follows the buckets.
const REST: &str = "the last bucket (including overflows)";
const LAST: [&str; 5] = [REST, "Minimum", "Average", "Maximum", "Duration"];

/// A core while its lines come.
#[derive(Default)]
struct Core {
    series: Series,
    rows: Rows,
}

/// Reads what oslat prints.
///
/// # Errors
/// If a line has not a value for each core, buckets do not rise, or there are no cores.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<Distribution, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut found = Distribution::new("oslat", Quantity::Steps);
    found.loop_subtracted = Some(false);
    let (mut cores, mut labels) = (Vec::<Core>::new(), Vec::new());
    while let Some(line) = lines.next() {
        if let Some(version) = line.strip_prefix("oslat V ") {
            found.tool = format!("oslat of rt-tests {}", short(version.trim()));
        }
        let Some((label, values)) = line.split_once(":\t") else {
            // In front of the cores stand its settings.
            if !cores.is_empty() {
                lines.leave_out();
            }
            continue;
        };
        let values: Vec<&str> = values.split('(').next().unwrap_or_default().split_whitespace().collect();
        if label == "Core" {
            cores = values.iter().map(|word| core(word)).collect::<Result<_, _>>().map_err(|why| lines.error(why))?;
            continue;
        }
        if cores.is_empty() {
            continue;
        }
        if values.len() != cores.len() {
            return Err(lines.error(format!(
                "it has {} for {}",
                counted(values.len() as u64, "value", "values"),
                counted(cores.len() as u64, "core", "cores")
            )));
        }
        let rest = line.contains("(including overflows)");
        labels.push(if rest { REST } else { label });
        let several = cores.len() > 1;
        for (core, value) in cores.iter_mut().zip(values) {
            take(core, label, value, rest, several).map_err(|why| lines.error(why))?;
        }
    }
    found.series = cores.into_iter().map(finished).collect();
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
    let cpu = cpu(word)?;
    let series = Series { name: format!("CPU {cpu}"), cpu: Some(cpu), edges: Some(Edges::Upper), ..Series::default() };
    Ok(Core { series, rows: Rows::default() })
}

fn take(core: &mut Core, label: &str, value: &str, rest: bool, several: bool) -> Result<(), String> {
    let micros = |value: &str| times(integer(value, label)?, 1_000, label);
    match label {
        "Minimum" => core.series.min_ns = Some(micros(value)?),
        "Maximum" => core.series.max_ns = Some(micros(value)?),
        "Average" => core.series.mean_ns = (!several).then_some(decimal(value, label)? * 1e3),
        "Duration" => core.series.observed_ns = Some((decimal(value, label)? * 1e9).round() as i64),
        _ => {
            let Some(edge) = label.strip_suffix(" (us)") else { return Ok(()) };
            let (edge, count) = (micros(edge.trim())?, count(value, "count")?);
            let from = (edge - 1_000).max(0);
            if rest {
                core.series.above = above(from, count);
            } else {
                core.rows.push(from, edge.max(1), count)?;
            }
        }
    }
    Ok(())
}

fn finished(core: Core) -> Series {
    let mut series = Series { buckets: core.rows.buckets, ..core.series };
    series.count = Some(series.in_histogram());
    series
}
