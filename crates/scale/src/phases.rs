//! The durations of a job's phases: quantiles, and the share that noise delays.

use becalm_stats::Quantiles;
use becalm_units::Nanos;

/// The distribution of phase durations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhaseSpread {
    /// The number of phases.
    pub phases: u64,
    /// The number of phases delayed by noise.
    pub delayed: u64,
    /// The median.
    pub median: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The 99.9th percentile.
    pub p999: Nanos,
}

impl PhaseSpread {
    /// The share of phases delayed by noise, 0 to 1.
    pub fn delayed_ratio(&self) -> f64 {
        self.delayed as f64 / self.phases as f64
    }
}

/// Collects the durations of phases, in bounded memory.
///
/// Of the phases above the minimum, 16,384 are known exactly; if there are more, their delay is at most 0.1 % too high.
#[derive(Clone, Debug)]
pub(crate) struct PhaseDurations {
    /// No phase is shorter.
    least: i64,
    /// Longer ones are delayed.
    quiet: i64,
    as_least: u64,
    /// The time of the others above the minimum.
    more: Quantiles,
    others: u64,
    delayed: u64,
}

impl PhaseDurations {
    /// For phases that take this long without noise, and never less.
    pub(crate) fn never_below(quiet: Nanos) -> Self {
        Self { least: quiet.get(), ..Self::new(quiet) }
    }

    /// For phases that take this long without noise, but may be shorter, for example after a late one.
    pub(crate) fn new(quiet: Nanos) -> Self {
        Self { least: 0, quiet: quiet.get(), as_least: 0, more: Quantiles::default(), others: 0, delayed: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, duration: Nanos) {
        let duration = duration.get();
        self.delayed += u64::from(duration > self.quiet);
        if duration <= self.least {
            self.as_least += 1;
        } else {
            self.others += 1;
            self.more.add(duration - self.least);
        }
    }

    /// Adds the phases of another replica of the same job.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.as_least += other.as_least;
        self.others += other.others;
        self.delayed += other.delayed;
        self.more.merge(&other.more);
    }

    /// Their distribution; `None` without phases.
    pub(crate) fn spread(mut self) -> Option<PhaseSpread> {
        let phases = self.as_least + self.others;
        if phases == 0 {
            return None;
        }
        let [median, p99, p999] = [(1, 2), (99, 100), (999, 1_000)].map(|(part, whole)| {
            // The nearest rank, in whole numbers.
            let rank = (u128::from(phases) * part).div_ceil(whole) as u64;
            let more = rank.checked_sub(self.as_least).filter(|rank| *rank > 0).and_then(|rank| self.more.ranked(rank));
            Nanos::new(self.least + more.unwrap_or(0))
        });
        Some(PhaseSpread { phases, delayed: self.delayed, median, p99, p999 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn phases_that_may_be_shorter_are_ranked_too() {
        let mut durations = PhaseDurations::new(Nanos::new(100));
        [90, 100, 130].map(Nanos::new).into_iter().for_each(|duration| durations.add(duration));
        let spread = durations.spread().unwrap();
        assert_eq!((spread.median, spread.p99, spread.delayed), (Nanos::new(100), Nanos::new(130), 1));
        assert_eq!(PhaseDurations::new(Nanos::new(1)).spread(), None);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_all_phases_sorted(
            replicas in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0_i64), 1_i64..1_000_000], 1..300), 1..4),
        ) {
            let quiet = 1_000;
            let mut all = PhaseDurations::never_below(Nanos::new(quiet));
            for delays in &replicas {
                let mut one = PhaseDurations::never_below(Nanos::new(quiet));
                delays.iter().for_each(|delay| one.add(Nanos::new(quiet + delay)));
                all.merge(&one);
            }
            let mut sorted: Vec<i64> = replicas.concat();
            sorted.sort_unstable();
            let at = |share: f64| quiet + sorted[((share * sorted.len() as f64 - 1e-9).ceil() as usize).max(1) - 1];
            let spread = all.spread().unwrap();
            prop_assert_eq!(spread.phases, sorted.len() as u64);
            prop_assert_eq!(spread.delayed, sorted.iter().filter(|delay| **delay > 0).count() as u64);
            prop_assert_eq!([spread.median, spread.p99, spread.p999].map(Nanos::get), [0.5, 0.99, 0.999].map(at));
        }
    }
}
