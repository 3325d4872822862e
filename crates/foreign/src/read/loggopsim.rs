//! The noise file of LogGOPSim: `start<TAB>duration` in nanoseconds, in order of time. Its reader skips the first event and never charges
//! the last, whose start is the length of the trace.

use becalm_units::Nanos;

use super::detours::{DetourList, InOrder};
use super::lines::{End, Lines, Progress, text};
use super::selfish::two_times;
use super::time::TimeUnit;
use super::{ReadError, Source};

/// Reads a noise file as LogGOPSim does: without the first event, and up to the last. LogGOPSim also takes netgauge's files, and counts
/// their footer as one more event; here comments are none. Fails for a line without two numbers, times that do not fit or overlap, and
/// fewer than two events.
pub fn read(source: Source<'_>, progress: Progress<'_>) -> Result<DetourList, ReadError> {
    let mut lines = Lines::new(text(source.bytes)?, progress);
    let mut detours = InOrder::default();
    let (mut first, mut last) = (true, None);
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            continue;
        }
        let event = two_times(line, TimeUnit::Ns).map_err(|why| lines.error(why))?;
        if let Some([start, duration]) = last.replace(event).filter(|_| !std::mem::take(&mut first)) {
            detours.push(start, duration).map_err(|why| lines.error(why))?;
        }
    }
    let length = last.filter(|_| !first).map(|[start, _]| (start + 500).div_euclid(1_000));
    let Some(length) = length.and_then(|ns| i64::try_from(ns).ok()).map(Nanos::new) else {
        return Err(ReadError::new("it lacks the two events that start and end a trace"));
    };
    // In becalm's own files, the event at the end of the trace has no duration, and no line end follows.
    let is_marked = last.is_some_and(|[_, duration]| duration == 0) && !source.bytes.ends_with(b"\n");
    let warnings = if is_marked { Vec::new() } else { lines.warnings(End::Unmarked) };
    let list = DetourList { length: Some(length), detours: detours.detours, warnings, ..DetourList::default() };
    if list.end() > length {
        return Err(ReadError::new("its last event starts before the end of the previous one"));
    }
    Ok(list)
}

/// True if a text looks like becalm's own export: with an event of no duration at its start and its end, no line break after that, and
/// between them events with durations that do not overlap.
pub(super) fn looks_so(source: Source<'_>) -> bool {
    source.bytes.starts_with(b"0\t0\n")
        && source.bytes.ends_with(b"\t0")
        && read(source, &mut |_| {}).is_ok_and(|list| list.detours.iter().all(|(_, duration)| *duration > Nanos::ZERO))
}
