//! hiccups: a title line and a line for each CPU, `cpu threshold_ns hiccups pct99_ns pct999_ns max_ns`.
//!
//! A hiccup is a step of a loop that took longer than the threshold, which is eight times the smallest step of the clock unless it was
//! given; each includes the loop's own time. The quantiles are values of the sorted list, never between two. The output lacks the run's
//! length, and so rates and shares; it also has no sum and no mean.

use super::distribution::{count, cpu_series, integer, some_series, table};
use super::lines::Progress;
use super::{ReadError, Source};
use crate::distribution::{DistributionDoc, Level, Quantity, Series};

/// The title line, split at blanks.
pub(super) const TITLE: [&str; 6] = ["cpu", "threshold_ns", "hiccups", "pct99_ns", "pct999_ns", "max_ns"];

/// Reads the output of hiccups; columns may have been aligned. Fails if the title line is missing, or a line after it is not six numbers.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<DistributionDoc, ReadError> {
    let mut found = DistributionDoc::new("hiccups", Quantity::Stolen);
    found.loop_subtracted = Some(false);
    let rows = &mut |words: &[&str]| row(words).map(|series| found.series.push(series));
    found.warnings = table(source, progress, "hiccups", &TITLE, rows)?;
    some_series(found, "hiccups")
}

fn row(words: &[&str]) -> Result<Series, String> {
    let [cpu, threshold, hiccups, p99, p999, max] = std::array::from_fn(|at| words[at]);
    let hiccups = count(hiccups, "number of hiccups")?;
    let [p99, p999, max] =
        [(p99, "99 % quantile"), (p999, "99.9 % quantile"), (max, "longest")].map(|(word, what)| integer(word, what));
    let (p99, p999, max) = (p99?, p999?, max?);
    let some = hiccups > 0;
    let quantiles = vec![Level { at_ratio: 0.99, ns: p99 }, Level { at_ratio: 0.999, ns: p999 }];
    Ok(Series {
        threshold_ns: Some(integer(threshold, "threshold")?),
        count: Some(hiccups),
        max_ns: some.then_some(max),
        quantiles: if some { quantiles } else { Vec::new() },
        ..cpu_series(cpu)?
    })
}
