//! netgauge's noise pattern with the methods fwq and ftq: comments, and a line for each sample with its number and its value. That is its
//! time in microseconds for fixed work, or its number of iterations for fixed time. ([`selfish`](super::selfish) reads the method selfish.)
//!
//! For fixed work, times are truncated to whole microseconds of a counter with its ticks per microsecond rounded up: shorter times vanish.
//! For fixed time, a window ends with the first iteration after its time; the excess is not printed.

use becalm_model::node::Fixed;
use becalm_units::Nanos;

use super::distribution::{columns, count, integer, times};
use super::lines::{End, Lines, Progress, is_row, text};
use super::samples::{SampleList, end_to_end};
use super::{ReadError, Source};

/// The comments before the samples of the two methods.
pub(super) const METHODS: [(&str, Fixed); 2] =
    [("# Fixed Work Quantum Benchmark", Fixed::Work), ("# Fixed Time Quantum Benchmark", Fixed::Time)];

/// The prefix of the first comment of a report, whatever the method.
pub(super) const FIRST: &str = "# Benchmark Method:";

/// Reads the samples of a file. Fails if neither of the methods is named, or a line is not a sample's number and its value.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<SampleList, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let (mut fixed, mut grain, mut announced, mut values) = (None, None, None, Vec::<u64>::new());
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            let is_start = line.starts_with(FIRST) || METHODS.iter().any(|(remark, _)| line == *remark);
            if is_start && !values.is_empty() {
                return Err(lines.second_report());
            }
            fixed = METHODS.iter().find(|(remark, _)| line == *remark).map(|(_, fixed)| *fixed).or(fixed);
            if let Some(duration) = line.strip_prefix("# Compute-Cycle Duration:") {
                let micros = duration.trim().strip_suffix("usec").and_then(|micros| micros.trim().parse::<u32>().ok());
                grain = micros.filter(|micros| *micros > 0).map(|micros| Nanos::from_micros(micros.into()));
            }
            if let Some(number) = line.strip_prefix("# Number of Cycles/Detours:") {
                announced = number.trim().parse::<usize>().ok();
            }
            continue;
        }
        if !is_row(line) {
            lines.leave_out()?;
            continue;
        }
        if fixed.is_none() {
            return Err(lines.error("no comment of netgauge's method fwq or ftq precedes it"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[number, value] = words.as_slice() else {
            return Err(lines.error(columns(words.len(), 2)));
        };
        if integer(number, "number").map_err(|why| lines.error(why))? != values.len() as i64 {
            return Err(lines.error(format!("it is not sample {}, which is the next", values.len())));
        }
        values.push(count(value, "value").map_err(|why| lines.error(why))?);
    }
    let fixed = fixed.ok_or_else(|| ReadError::new("it has no comment of netgauge's method fwq or ftq"))?;
    let end = match announced {
        Some(announced) if announced == values.len() => End::Marked,
        Some(announced) => End::Missing(format!("it announces {announced} samples and holds {}", values.len())),
        None => End::Unmarked,
    };
    let warnings = lines.warnings(end);
    let duration = |value: u64| match fixed {
        Fixed::Work => times(value as i64, 1_000, "sample").map(Nanos::new).map_err(ReadError::new),
        Fixed::Time => grain.ok_or_else(|| ReadError::new("the comment Compute-Cycle Duration is missing")),
    };
    let sample = |value: u64| Ok((duration(value)?, if fixed == Fixed::Time { value } else { 0 }));
    Ok(SampleList {
        cpu: None,
        body: "netgauge",
        iteration: "a pass of the workload of netgauge's noise pattern",
        fixed,
        grain,
        has_starts: false,
        samples: end_to_end(values.into_iter().map(sample))?,
        warnings,
    })
}
