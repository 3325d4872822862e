//! What was delivered on one CPU, beside what was asked for.
//!
//! Kept while detours are injected, by the thread that injects them: adding to it takes no memory and no system call.

use becalm_units::Nanos;
use hdrhistogram::Histogram;

/// Lateness is kept up to this; more counts as this much.
const LATEST_NS: u64 = 10_000_000_000;

/// Count, mean, spread and ends of a series of durations (Welford 1962).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Moments {
    /// How many.
    pub count: u64,
    mean: f64,
    squares: f64,
    least: i64,
    most: i64,
}

impl Moments {
    fn add(&mut self, value: Nanos) {
        let value = value.get();
        self.least = if self.count == 0 { value } else { self.least.min(value) };
        self.most = if self.count == 0 { value } else { self.most.max(value) };
        self.count += 1;
        let off = value as f64 - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value as f64 - self.mean);
    }

    /// From its parts, the third being the sum of squared differences from the mean.
    pub(crate) const fn from_parts(count: u64, mean: f64, squares: f64, ends: (i64, i64)) -> Self {
        Self { count, mean, squares, least: ends.0, most: ends.1 }
    }

    /// The mean in nanoseconds; nothing of nothing.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// The sample's standard deviation in nanoseconds; nothing of fewer than two.
    #[must_use]
    pub fn stddev_ns(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }

    /// The least and the most; nothing of nothing.
    #[must_use]
    pub fn ends(&self) -> Option<(Nanos, Nanos)> {
        (self.count > 0).then(|| (Nanos::new(self.least), Nanos::new(self.most)))
    }

    /// The sum in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> f64 {
        self.mean * self.count as f64
    }
}

/// The detours of one CPU.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Lengths that were due.
    pub due: Moments,
    /// From one start that was due to the next.
    pub due_intervals: Moments,
    /// Lengths that were delivered, as a thread on that CPU loses them.
    pub delivered: Moments,
    /// From one start to the next.
    pub intervals: Moments,
    /// Detours that were not delivered, as the CPU was had only after their time was over.
    pub missed: u64,
    /// Detours that began right where the one before ended, being late.
    pub joined: u64,
    late: Histogram<u64>,
    last_due: Option<Nanos>,
    last_start: Option<Nanos>,
}

impl Default for Tally {
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

impl Tally {
    /// A detour was due.
    pub fn due(&mut self, at: Nanos, length: Nanos) {
        self.due.add(length);
        if let Some(last) = self.last_due.replace(at) {
            self.due_intervals.add(at - last);
        }
    }

    /// It was delivered, so much later than it was due.
    pub fn delivered(&mut self, start: Nanos, length: Nanos, late: Nanos) {
        self.delivered.add(length);
        if let Some(last) = self.last_start.replace(start) {
            self.intervals.add(start - last);
        }
        self.late_by(late, 1);
    }

    /// So many detours began so late.
    pub(crate) fn late_by(&mut self, late: Nanos, count: u64) {
        self.late.saturating_record_n(late.get().max(1) as u64, count);
    }

    /// How late starts were, at a quantile between 0 and 1; early counts as not late. Nothing of nothing.
    #[must_use]
    pub fn late(&self, quantile: f64) -> Option<Nanos> {
        (!self.late.is_empty()).then(|| Nanos::new(self.late.value_at_quantile(quantile) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_plain_way() {
        let mut moments = Moments::default();
        assert_eq!((moments.mean_ns(), moments.stddev_ns(), moments.ends()), (None, None, None));
        let values = [5_i64, 9, 2, 2, 7];
        values.iter().for_each(|value| moments.add(Nanos::new(*value)));
        let mean = 5.0;
        let squares: f64 = values.iter().map(|value| (*value as f64 - mean) * (*value as f64 - mean)).sum();
        assert!((moments.mean_ns().unwrap() - mean).abs() < 1e-12);
        assert!((moments.stddev_ns().unwrap() - (squares / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!(moments.ends(), Some((Nanos::new(2), Nanos::new(9))));
        assert!((moments.sum_ns() - 25.0).abs() < 1e-9);
    }

    #[test]
    fn intervals_are_between_starts() {
        let mut tally = Tally::default();
        for (at, late) in [(100, 3), (300, 0), (600, 50)] {
            tally.due(Nanos::new(at), Nanos::new(20));
            tally.delivered(Nanos::new(at + late), Nanos::new(21), Nanos::new(late));
        }
        assert_eq!((tally.due.count, tally.due_intervals.mean_ns()), (3, Some(250.0)));
        assert_eq!((tally.intervals.count, tally.intervals.ends()), (2, Some((Nanos::new(197), Nanos::new(350)))));
        assert_eq!((tally.late(0.5), tally.late(1.0)), (Some(Nanos::new(3)), Some(Nanos::new(50))));
        tally.delivered(Nanos::new(700), Nanos::new(1), Nanos::MAX);
        assert!(tally.late(1.0).unwrap() >= Nanos::new(LATEST_NS as i64));
    }
}
