//! osjitter: a title line of 18 names and a line for each CPU.
//!
//! The smallest step of the loop, `loop_ns`, is subtracted from each interruption. `rt_s` is the requested time; the actual one is not
//! printed. If `#intr` is more than `#delta`, the store was full `ovfl_ns` after the start, and quantiles are of the time before alone.

use becalm_model::warning;
use becalm_units::Nanos;

use super::distribution::{count, cpu_series, decimal, integer, some_series, table, times};
use super::lines::Progress;
use super::{ReadError, Source};
use crate::distribution::{DistributionDoc, Level, NamedCount, Quantity, Series};

/// The title line, split at blanks.
pub(super) const TITLE: [&str; 18] = [
    "CPU",
    "TSC_khz",
    "#intr",
    "#delta",
    "ovfl_ns",
    "invol_ctx",
    "sum_intr_ns",
    "iratio",
    "rt_s",
    "loop_ns",
    "median_ns",
    "p20_ns",
    "p80_ns",
    "p90_ns",
    "p99_ns",
    "p99.9_ns",
    "max_ns",
    "mad_ns",
];

/// Reads the output of osjitter. Fails if the title line is missing, or a line after it is not 18 numbers.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<DistributionDoc, ReadError> {
    let mut found = DistributionDoc::new("osjitter", Quantity::Stolen);
    found.loop_subtracted = Some(true);
    let rows = &mut |words: &[&str]| {
        let (series, full) = row(words)?;
        found.warnings.extend(full.map(|at| warning::imported_store_full(&series.name, at)));
        found.series.push(series);
        Ok(())
    };
    let warnings = table(source, progress, "osjitter", &TITLE, rows)?;
    found.warnings.extend(warnings);
    some_series(found, "osjitter")
}

/// A CPU, and the time when its store was full, if it was.
fn row(words: &[&str]) -> Result<(Series, Option<Nanos>), String> {
    let number = |at: usize| integer(words[at], TITLE[at]);
    let series = cpu_series(words[0])?;
    let (events, kept) = (count(words[2], TITLE[2])?, count(words[3], TITLE[3])?);
    let (asked, overflow) = (times(number(8)?, 1_000_000_000, TITLE[8])?, Nanos::new(number(4)?));
    decimal(words[7], TITLE[7])?;
    let level = |at: usize, at_ratio: f64| number(at).map(|ns| Level { at_ratio, ns });
    let quantiles =
        vec![level(11, 0.2)?, level(10, 0.5)?, level(12, 0.8)?, level(13, 0.9)?, level(14, 0.99)?, level(15, 0.999)?];
    let some = events > 0;
    let series = Series {
        asked_ns: Some(asked),
        loop_ns: Some(number(9)?),
        count: Some(events),
        total_ns: Some(number(6)?),
        mean_ns: some.then_some(number(6)? as f64 / events as f64),
        max_ns: some.then_some(number(16)?),
        quantiles: if some { quantiles } else { Vec::new() },
        counts: vec![NamedCount { name: "involuntary switches".to_owned(), count: count(words[5], TITLE[5])? }],
        ..series
    };
    Ok((series, (events > kept).then_some(overflow)))
}
