//! How long the loop's own steps are on a quiet CPU, and the threshold that follows.

use becalm_linux::clock::Counter;
use becalm_units::{CpuId, Ticks};

use super::acquire::{Lengths, LoopTally, keep, only_read};
use super::ring::Ring;

/// The steps of one CPU's loop, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepProfile {
    /// The shortest step, `t_min`: the length that not more than one step in a thousand undercuts. Not the very
    /// shortest, as counters that move in leaps show a difference of zero, or of a fraction of a leap, now and then. Where
    /// the counter is so coarse that even this is zero, the mean step of the quietest batch.
    pub shortest: Ticks,
    /// The median step of the quietest batch.
    pub median: Ticks,
    /// The 99th percentile of the quietest batch.
    pub p99: Ticks,
}

/// Steps in one batch: half a millisecond at 8 ns a step, so that most batches hold no tick.
const BATCH_STEPS: u64 = 1 << 16;
/// The number of batches in a profile.
const BATCHES: usize = 24;
/// Steps longer than this many ticks share a bucket; they are noise, not the loop's own.
const BUCKETS: usize = 1 << 16;

impl StepProfile {
    /// Measures the steps on the current CPU. Takes about 15 ms.
    ///
    /// Of several batches the one with the smallest 99th percentile counts, so that noise during the others, even if
    /// it holds for most of the time, does not raise the threshold that it is to be measured with.
    #[must_use]
    pub fn measure<C: Counter>() -> Self {
        let mut buckets = vec![0_u32; BUCKETS];
        // The first batch warms up.
        only_read::<C>(BATCH_STEPS, &mut buckets);
        let mut best: Option<Self> = None;
        for _ in 0..BATCHES {
            buckets.fill(0);
            only_read::<C>(BATCH_STEPS, &mut buckets);
            let profile = Self::from_buckets(&buckets);
            if best.is_none_or(|best| (profile.p99, profile.median) < (best.p99, best.median)) {
                best = Some(profile);
            }
        }
        best.expect("at least one batch was measured")
    }

    fn from_buckets(buckets: &[u32]) -> Self {
        let total: u64 = buckets.iter().map(|count| u64::from(*count)).sum();
        let quantile = |numerator: u64, denominator: u64| {
            let mut seen = 0;
            let reached = buckets.iter().position(|count| {
                seen += u64::from(*count);
                seen * denominator >= total * numerator
            });
            reached.unwrap_or(buckets.len() - 1) as u64
        };
        // Longer steps than the 99th percentile are noise and must not raise the mean.
        let p99 = quantile(99, 100);
        let quiet = || buckets.iter().zip(0_u64..).take(p99 as usize + 1);
        let mean = || {
            let (sum, count) = quiet().fold((0, 0), |(sum, all), (count, length)| {
                (sum + u64::from(*count) * length, all + u64::from(*count))
            });
            sum / count.max(1)
        };
        let shortest = match quantile(1, 1000) {
            0 => mean(),
            shortest => shortest,
        };
        Self { shortest: Ticks::new(shortest), median: Ticks::new(quantile(1, 2)), p99: Ticks::new(p99) }
    }

    /// The automatic threshold: three times the 99th percentile of the quiet steps, and at least twice the
    /// median plus one tick, for counters so coarse that most steps are zero.
    ///
    /// The loop's own variation (a counter that moves in leaps, the sibling thread's load, a store to the ring) stays
    /// below about twice the 99th percentile; the shortest interrupts of today's processors take more than 200 ns.
    #[must_use]
    pub const fn auto_threshold(self) -> Ticks {
        let by_tail = self.p99.get() * 3;
        let by_median = self.median.get() * 2 + 1;
        Ticks::new(if by_tail > by_median { by_tail } else { by_median })
    }
}

/// How many stores are measured in one batch, and how many batches at most.
const STORES: usize = 256;
const STORE_BATCHES: usize = 16;
/// How many steps lie between two stores: enough that the processor no longer has the stores' branches in mind.
const STEPS_BETWEEN_STORES: u32 = 64;

/// The 99th percentile of the step that follows a stored one, which pays for storing it, on the current CPU; of the quietest of
/// several batches. `None` where the ring is too small for one. Takes about 2 ms, and leaves steps in the ring.
///
/// A threshold that is not above it would make a detour of what storing a detour costs, and of what storing that one costs,
/// for ever.
#[must_use]
pub fn step_after_store<C: Counter>(ring: &Ring, cpu: CpuId, lengths: Lengths) -> Option<Ticks> {
    let room = usize::try_from(ring.capacity()).unwrap_or(usize::MAX);
    let mut tally = LoopTally::new(Ticks::new(0));
    let mut batch = || {
        let mut after = [0_u64; STORES];
        for step in &mut after {
            let before = C::read();
            let mut end = before;
            for _ in 0..STEPS_BETWEEN_STORES {
                end = C::read();
            }
            keep(ring, cpu, (before, end), lengths, &mut tally);
            *step = C::read().saturating_sub(end);
        }
        after.sort_unstable();
        after[STORES * 99 / 100]
    };
    (0..(room / STORES).min(STORE_BATCHES)).map(|_| batch()).min().map(Ticks::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::clock::MonotonicRaw;

    #[test]
    fn quantiles_are_those_of_the_sorted_steps() {
        let mut buckets = vec![0; 200];
        // One reading in 10,000 is off by a leap.
        buckets[1] = 1;
        buckets[20] = 6_000;
        buckets[40] = 3_990;
        buckets[199] = 9;
        let profile = StepProfile::from_buckets(&buckets);
        let [short, long] = [20, 40].map(Ticks::new);
        assert_eq!(profile, StepProfile { shortest: short, median: short, p99: long });
        assert_eq!(profile.auto_threshold(), Ticks::new(120));
    }

    #[test]
    fn the_shortest_step_of_a_coarse_counter_is_the_mean() {
        let mut buckets = vec![0; 200];
        buckets[0] = 7_500;
        buckets[40] = 2_500;
        assert_eq!(StepProfile::from_buckets(&buckets).shortest, Ticks::new(10));
    }

    #[test]
    fn a_coarse_counter_still_gets_a_threshold() {
        let zero = Ticks::new(0);
        let profile = StepProfile { shortest: zero, median: zero, p99: zero };
        assert_eq!(profile.auto_threshold(), Ticks::new(1));
    }

    #[test]
    fn storing_takes_longer_than_reading() {
        let ring = Ring::new(1 << 14).unwrap();
        let never = Ticks::new(u64::MAX);
        let zero = Ticks::new(0);
        let lengths = Lengths { threshold: zero, always_stored: zero, may_have_moved: never, most: u64::MAX };
        let after = step_after_store::<MonotonicRaw>(&ring, CpuId::new(0), lengths).unwrap();
        assert!(after >= StepProfile::measure::<MonotonicRaw>().shortest, "{after:?}");
        assert_eq!(ring.waiting(), (STORES * STORE_BATCHES) as u64);
        let small = Ring::new(2).unwrap();
        assert_eq!(step_after_store::<MonotonicRaw>(&small, CpuId::new(0), lengths), None);
    }

    #[test]
    fn the_threshold_lies_above_the_steps() {
        let profile = StepProfile::measure::<MonotonicRaw>();
        assert!(profile.shortest <= profile.median && profile.median <= profile.p99);
        assert!(profile.auto_threshold() > profile.p99);
    }
}
