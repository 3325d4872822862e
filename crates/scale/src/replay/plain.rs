//! The reference: every rank in every phase, with an index into its trace that moves along.

use becalm_units::Nanos;

use super::Clock;
use crate::ScaleError;
use crate::delay::DelayTable;
use crate::noise::NoiseTrace;

/// A rank on its trace. Times are those of the common clock.
struct ReplayedRank<'a> {
    trace: &'a NoiseTrace,
    /// The first detour that has not ended.
    slot: usize,
    /// The offset from its position on the circle to a time.
    shift: i64,
    /// The delay of whole laps, and the remaining grain.
    lap_delay: i64,
    rest: i64,
}

impl ReplayedRank<'_> {
    /// The delay of the phase that starts now. Time never runs backward between two calls.
    fn delay(&mut self, now: i64) -> i64 {
        let (starts, durations) = (self.trace.starts_ns(), self.trace.durations_ns());
        let step = |slot: &mut usize, shift: &mut i64| {
            *slot += 1;
            if *slot == starts.len() {
                (*slot, *shift) = (0, *shift + self.trace.length_ns());
            }
        };
        if starts.is_empty() {
            return self.lap_delay;
        }
        // A phase of many laps leaves the index behind by as many.
        let behind = now - (starts[self.slot] + self.shift);
        if behind >= 2 * self.trace.length_ns() {
            self.shift += (behind / self.trace.length_ns() - 1) * self.trace.length_ns();
        }
        while starts[self.slot] + durations[self.slot] + self.shift <= now {
            step(&mut self.slot, &mut self.shift);
        }
        let (mut slot, mut shift, mut at, mut left) = (self.slot, self.shift, now, self.rest);
        loop {
            let start = starts[slot] + shift;
            if start - at >= left {
                return self.lap_delay + (at + left) - now - self.rest;
            }
            left -= (start - at).max(0);
            at = start + durations[slot];
            step(&mut slot, &mut shift);
        }
    }
}

/// Runs all remaining phases, with these offsets for each kind of unit.
pub(super) fn run(
    table: &DelayTable<'_>,
    offsets: &[&[i64]],
    clock: &mut Clock<impl FnMut(Nanos)>,
) -> Result<(), ScaleError> {
    let mut ranks = Vec::new();
    for (kind, offsets) in table.kinds().iter().zip(offsets) {
        for offset in *offsets {
            for (trace, laps) in kind.traces.iter().zip(&kind.laps) {
                // The clock in whole laps and a position on the circle.
                let position = offset + clock.now;
                let lap = position - position.rem_euclid(kind.length);
                let first = trace.first_ending_after(position - lap);
                let count = trace.len().max(1) as i64;
                ranks.push(ReplayedRank {
                    trace,
                    slot: first.rem_euclid(count) as usize,
                    shift: lap - offset + first.div_euclid(count) * kind.length,
                    lap_delay: laps.delay,
                    rest: laps.rest,
                });
            }
        }
    }
    while !clock.finished() {
        let now = clock.now;
        let delay = ranks.iter_mut().map(|rank| rank.delay(now)).max().unwrap_or(0);
        clock.advance(delay)?;
    }
    Ok(())
}
