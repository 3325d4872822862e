//! hiccups: a title line and a line for each CPU, `cpu threshold_ns hiccups pct99_ns pct999_ns max_ns`.
//!
//! A hiccup is a step of a loop that took longer than the threshold, which is eight times the smallest step of the clock unless it was given;
//! the loop's own time is in each. The quantiles are values of the sorted list and not between two. The run's length is not printed, and so
//! nothing can be said of rates or shares; nor is a sum or a mean.

use becalm_units::counted;

use super::distribution::{count, integer, some_series};
use super::lines::{End, Lines, Progress, is_row, text};
use super::{ReadError, Source};
use crate::distribution::{DistributionDoc, Level, Quantity, Series};

/// The title line, blanks aside.
pub(super) const TITLE: [&str; 6] = ["cpu", "threshold_ns", "hiccups", "pct99_ns", "pct999_ns", "max_ns"];

/// Reads what hiccups prints; columns may have been aligned.
///
/// # Errors
/// If the title line is missing, or a line after it is not six numbers.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<DistributionDoc, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut found = DistributionDoc::new("hiccups", Quantity::Stolen);
    found.loop_subtracted = Some(false);
    let mut titled = false;
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words == TITLE {
            if std::mem::replace(&mut titled, true) {
                return Err(lines.second_report());
            }
        } else if !is_row(line) {
            lines.leave_out()?;
        } else if titled {
            found.series.push(row(&words).map_err(|why| lines.error(why))?);
        } else {
            return Err(lines.error("the title line of hiccups is not in front of it"));
        }
    }
    found.warnings.extend(lines.warnings(End::Unmarked));
    some_series(found, "hiccups")
}

fn row(words: &[&str]) -> Result<Series, String> {
    let &[cpu, threshold, hiccups, p99, p999, max] = words else {
        return Err(format!("it has {} and not 6", counted(words.len() as u64, "column", "columns")));
    };
    let hiccups = count(hiccups, "number of hiccups")?;
    let [p99, p999, max] =
        [(p99, "99 % quantile"), (p999, "99.9 % quantile"), (max, "longest")].map(|(word, what)| integer(word, what));
    let (p99, p999, max) = (p99?, p999?, max?);
    let cpu = super::distribution::cpu(cpu)?;
    let some = hiccups > 0;
    let quantiles = vec![Level { at_ratio: 0.99, ns: p99 }, Level { at_ratio: 0.999, ns: p999 }];
    Ok(Series {
        name: format!("CPU {cpu}"),
        cpu: Some(cpu),
        threshold_ns: Some(integer(threshold, "threshold")?),
        count: Some(hiccups),
        max_ns: some.then_some(max),
        quantiles: if some { quantiles } else { Vec::new() },
        ..Series::default()
    })
}
