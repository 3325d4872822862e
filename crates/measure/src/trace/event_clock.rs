//! Conversion from the time of the kernel's trace to the run's axis.

use becalm_linux::clock::Anchor;
use becalm_linux::ftrace::TraceClock;
use becalm_units::{Nanos, Ticks, TicksToNanos};

/// Converts the trace's time stamps to instants of the run.
#[derive(Clone, Copy, Debug)]
pub enum EventClock {
    /// The trace uses the same counter as the loops.
    Same(TicksToNanos),
    /// The trace uses `CLOCK_MONOTONIC_RAW`, the loops another counter.
    ///
    /// Both derive from one oscillator, so they are proportional between two anchors (readings of both at one instant). The error is that of the
    /// anchors, some tens of nanoseconds, however long the run.
    /// proportion; the error is that of the anchors, some tens of nanoseconds, however long the run.
    Raw {
        /// Converts the counter to the run's axis.
        axis: TicksToNanos,
        /// An anchor taken before the events.
        before: Anchor,
        /// An anchor taken after the events.
        after: Anchor,
    },
}

impl EventClock {
    /// For a trace with this clock, and loops that read the processor's own counter (`native`) or the raw clock.
    pub fn new(trace: TraceClock, native: bool, axis: TicksToNanos, anchor: Anchor) -> Self {
        if (trace == TraceClock::X86Tsc) == native {
            Self::Same(axis)
        } else {
            Self::Raw { axis, before: anchor, after: anchor }
        }
    }

    /// Adds a later anchor: the next events are between the previous anchor and this one.
    pub fn advance(&mut self, anchor: Anchor) {
        if let Self::Raw { before, after, .. } = self {
            *before = *after;
            *after = anchor;
        }
    }

    /// Whether anchors are useful.
    pub const fn needs_anchors(&self) -> bool {
        matches!(self, Self::Raw { .. })
    }

    /// The instant of a time stamp.
    pub fn instant(&self, stamp: u64) -> Nanos {
        match self {
            Self::Same(axis) => axis.instant(Ticks::new(stamp)),
            Self::Raw { axis, before, after } => {
                let elapsed = after.raw_ns as i128 - before.raw_ns as i128;
                let ticks = after.ticks.get() as i128 - before.ticks.get() as i128;
                let since = stamp as i128 - before.raw_ns as i128;
                let offset = if elapsed > 0 { since * ticks / elapsed } else { 0 };
                axis.instant(Ticks::new((before.ticks.get() as i128 + offset) as u64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::TickRate;

    #[test]
    fn a_raw_stamp_lands_where_the_counter_was() {
        let rate = TickRate::from_hz(2.5e9);
        let axis = TicksToNanos::new(Ticks::new(1_000), rate);
        let anchor = |ticks, raw_ns| Anchor { ticks: Ticks::new(ticks), raw_ns, wall_ns: 0, bracket: Ticks::new(0) };
        let mut clock = EventClock::new(TraceClock::MonoRaw, true, axis, anchor(1_000, 50));
        // The true rate is 2.5001 GHz; after a second the anchors reveal it.
        clock.advance(anchor(1_000 + 2_500_100_000, 1_000_000_050));
        assert_eq!(clock.instant(500_000_050), axis.instant(Ticks::new(1_000 + 1_250_050_000)));
        assert!(clock.needs_anchors());
    }

    #[test]
    fn the_same_counter_needs_no_detour() {
        let axis = TicksToNanos::new(Ticks::new(500), TickRate::from_hz(1e9));
        let anchor = Anchor { ticks: Ticks::new(0), raw_ns: 0, wall_ns: 0, bracket: Ticks::new(0) };
        let clock = EventClock::new(TraceClock::X86Tsc, true, axis, anchor);
        assert!(!clock.needs_anchors());
        assert_eq!(clock.instant(700), Nanos::new(200));
        assert!(!EventClock::new(TraceClock::MonoRaw, false, axis, anchor).needs_anchors());
    }
}
