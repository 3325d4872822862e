//! ftq: `<prefix>_<thread>.dat`, comments and a line for each window with its start, in nanoseconds since the first one, and its count of
//! work.
//!
//! A late window makes the next one shorter, because their ends are on a grid. A window lasts until the start of the next one; the last one
//! is left out, because its length is unknown. The comments contain the host name and the kernel's description of the processor, which are
//! not kept.

use becalm_model::node::Fixed;
use becalm_units::{CpuId, Nanos};

use super::distribution::{columns, count, integer};
use super::lines::{End, Lines, Progress, is_row, text};
use super::samples::{SampleList, SampleRow};
use super::{ReadError, Source};

/// Prefixes of the comments with the work of all windows of all threads, and the work if each window had done as much as the best one.
const TOTAL: &str = "# Total count is ";
const POSSIBLE: &str = "# Max possible work is ";

/// The prefix of the first comment.
pub(super) const FIRST: &str = "# Frequency ";

/// Reads the windows of a thread. Fails if a line is not a start and a count, or a window starts before its predecessor.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<SampleList, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let (mut cpu, mut grain, mut total, mut possible, mut windows) = (None, None, None, None, Vec::<(i64, u64)>::new());
    while let Some(line) = lines.next() {
        if let Some(remark) = line.strip_prefix('#') {
            if let Some(hz) = line.strip_prefix(FIRST) {
                if !windows.is_empty() {
                    return Err(lines.second_report());
                }
                grain = self::grain(hz);
            } else if let Some(count) = line.strip_prefix(TOTAL) {
                total = count.trim().parse::<u64>().ok();
            } else if let Some(count) = line.strip_prefix(POSSIBLE) {
                possible = count.trim().parse::<u64>().ok();
            } else if let Some((_, core)) =
                remark.trim().strip_prefix("thread ").and_then(|rest| rest.split_once(", core "))
            {
                // -1 if it was not bound.
                cpu = core.trim().parse().ok().map(CpuId::new);
            }
            continue;
        }
        if !is_row(line) {
            lines.leave_out()?;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[begin, work] = words.as_slice() else {
            return Err(lines.error(columns(words.len(), 2)));
        };
        let begin = integer(begin, "begin").map_err(|why| lines.error(why))?;
        if windows.last().is_some_and(|(last, _)| *last > begin) {
            return Err(lines.error("the window starts before the previous one"));
        }
        windows.push((begin, count(work, "count").map_err(|why| lines.error(why))?));
    }
    // With several threads, no file has its number of windows.
    let done = windows.iter().fold(0_u64, |sum, (_, work)| sum.saturating_add(*work));
    let best = windows.iter().map(|(_, work)| *work).max().unwrap_or(0);
    let is_whole = total == Some(done) && possible == Some(best.saturating_mul(windows.len() as u64));
    let end = if is_whole { End::Marked } else { End::Unmarked };
    let first = windows.first().map_or(0, |(begin, _)| *begin);
    let row = |pair: &[(i64, u64)]| SampleRow {
        start: Nanos::new(pair[0].0 - first),
        duration: Nanos::new(pair[1].0 - pair[0].0),
        work: pair[0].1,
    };
    Ok(SampleList {
        cpu,
        body: "ftq",
        iteration: "a pass of ftq's loop",
        fixed: Fixed::Time,
        grain,
        has_starts: true,
        samples: windows.windows(2).map(row).collect(),
        warnings: lines.warnings(end),
    })
}

/// The intended length of a window, from the number per second.
pub(super) fn grain(hz: &str) -> Option<Nanos> {
    let hz: Option<f64> = hz.trim().parse().ok().filter(|hz: &f64| (1e-3..=1e9).contains(hz));
    hz.map(|hz| Nanos::new((1e9 / hz).round() as i64))
}
