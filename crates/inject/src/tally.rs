//! Statistics of requested and delivered detours on one CPU.
//!
//! The injecting thread updates them while it injects: adding a detour takes no memory and no system call.

use becalm_stats::Moments;
use becalm_units::Nanos;
use hdrhistogram::Histogram;

use crate::document::{Injected, InjectedPlace, NoisePlace, Shortfall};

/// The largest lateness recorded; later ones count as this.
const LATEST_NS: u64 = 10_000_000_000;

/// The detours of one CPU. All moments are in nanoseconds.
#[derive(Clone, Debug)]
pub struct DeliveryTally {
    /// The lengths of due detours.
    pub due: Moments,
    /// The intervals from one due start to the next.
    pub due_intervals: Moments,
    /// The lengths of delivered detours: the time that a thread on that CPU loses.
    pub delivered: Moments,
    /// The intervals from one delivered start to the next.
    pub intervals: Moments,
    /// The number of detours that were not delivered because their time was over before the thread got the CPU.
    pub missed: u64,
    /// The number of late detours that started right where the previous one ended.
    pub joined: u64,
    late: Histogram<u64>,
    last_due: Option<Nanos>,
    last_start: Option<Nanos>,
}

impl Default for DeliveryTally {
    fn default() -> Self {
        let late = Histogram::new_with_bounds(1, LATEST_NS, 2).expect("the bounds are in order");
        Self {
            due: Moments::default(),
            due_intervals: Moments::default(),
            delivered: Moments::default(),
            intervals: Moments::default(),
            missed: 0,
            joined: 0,
            late,
            last_due: None,
            last_start: None,
        }
    }
}

impl DeliveryTally {
    /// Adds a due detour.
    pub fn add_due(&mut self, at: Nanos, length: Nanos) {
        self.due.add(length.get());
        if let Some(last) = self.last_due.replace(at) {
            self.due_intervals.add((at - last).get());
        }
    }

    /// Adds a delivered detour, and how late it started.
    pub fn add_delivered(&mut self, start: Nanos, length: Nanos, late: Nanos) {
        self.delivered.add(length.get());
        if let Some(last) = self.last_start.replace(start) {
            self.intervals.add((start - last).get());
        }
        self.add_late(late, 1);
    }

    /// Adds this many detours that started this late.
    pub(crate) fn add_late(&mut self, late: Nanos, count: u64) {
        self.late.saturating_record_n(late.get().max(1) as u64, count);
    }

    /// How late detours started, at a quantile between 0 and 1; early ones count as not late. `None` if none was delivered.
    pub fn late(&self, quantile: f64) -> Option<Nanos> {
        (!self.late.is_empty()).then(|| Nanos::new(self.late.value_at_quantile(quantile) as i64))
    }

    /// The detours of a place, due for the time `observed`. None of them was left out or merged with another.
    pub fn injected_place(&self, place: NoisePlace, observed: Nanos, shortest: Nanos) -> InjectedPlace {
        InjectedPlace {
            place,
            observed,
            requested: figures(&self.due, &self.due_intervals, observed),
            delivered: figures(&self.delivered, &self.intervals, observed),
            missed: self.missed,
            joined: self.joined,
            overtaken: 0,
            late: self.late(0.5).zip(self.late(0.99)),
            shortest,
            left_out: Shortfall::default(),
            merged: 0,
        }
    }
}

/// The figures of detours with these lengths and intervals.
pub(crate) fn figures(lengths: &Moments, intervals: &Moments, observed: Nanos) -> Injected {
    Injected {
        count: lengths.count(),
        interval_ns: intervals.mean(),
        interval_stddev_ns: intervals.stddev(),
        length_ns: lengths.mean(),
        length_stddev_ns: lengths.stddev(),
        ends: lengths.min().zip(lengths.max()).map(|(least, most)| (Nanos::new(least), Nanos::new(most))),
        ratio: (observed > Nanos::ZERO).then(|| lengths.total() as f64 / observed.get() as f64),
    }
}

#[cfg(test)]
mod tests {
    use becalm_units::CpuId;

    use super::*;

    #[test]
    fn intervals_are_between_starts() {
        let mut tally = DeliveryTally::default();
        for (at, late) in [(100, 3), (300, 0), (600, 50)] {
            tally.add_due(Nanos::new(at), Nanos::new(20));
            tally.add_delivered(Nanos::new(at + late), Nanos::new(21), Nanos::new(late));
        }
        assert_eq!((tally.due.count(), tally.due_intervals.mean()), (3, Some(250.0)));
        assert_eq!((tally.intervals.min(), tally.intervals.max()), (Some(197), Some(350)));
        assert_eq!((tally.late(0.5), tally.late(1.0)), (Some(Nanos::new(3)), Some(Nanos::new(50))));
        tally.add_delivered(Nanos::new(700), Nanos::new(1), Nanos::MAX);
        assert!(tally.late(1.0).unwrap() >= Nanos::new(LATEST_NS as i64));
    }

    #[test]
    fn a_place_without_detours_has_no_figures() {
        let place = DeliveryTally::default().injected_place(NoisePlace::Cpu(CpuId::new(1)), Nanos::ZERO, Nanos::ZERO);
        assert_eq!((place.requested, place.delivered), (Injected::default(), Injected::default()));
        assert_eq!(place.late, None);
    }
}
