//! The lengths of the loop's own steps on a quiet CPU, and the threshold derived from them.

use becalm_linux::clock::Counter;
use becalm_units::{CpuId, Nanos, TickRate, Ticks};

use super::acquire::{Lengths, LoopTally, keep, only_read};
use super::ring::Ring;

/// The step lengths of one CPU's loop, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepProfile {
    /// The shortest step, `t_min`: at most one step in a thousand is shorter. The minimum itself is useless: counters that advance in jumps sometimes
    /// show a difference of zero or of a fraction of a jump. If even this quantile is zero on a coarse counter, the mean step of the quietest batch.
    pub shortest: Ticks,
    /// The median step of the quietest batch.
    pub median: Ticks,
    /// The 99th percentile of the quietest batch.
    pub p99: Ticks,
}

/// The most steps per batch: half a millisecond at 8 ns per step, so most batches contain no tick.
const BATCH_STEPS: u64 = 1 << 16;
/// The fewest steps per batch: a thousandth of it is four, and a hundredth forty, far more than the ticks in a batch of a slow clock.
const LEAST_BATCH_STEPS: u64 = 1 << 12;
/// The duration of a batch between these limits. If the kernel reads a clock outside of the processor (HPET, ACPI timer), a step takes a microsecond
/// or more, and a batch as large as for a fast counter would take seconds.
const BATCH: Nanos = Nanos::from_millis(5);
/// The number of batches in a profile.
const BATCHES: usize = 24;
/// Steps longer than this many ticks share a bucket; they are noise, not the loop's own.
const BUCKETS: usize = 1 << 16;

impl StepProfile {
    /// Measures the steps on the current CPU with a counter of this rate. Takes about 15 ms, and a quarter of a second if each step takes two
    /// microseconds.
    ///
    /// Uses the batch with the smallest 99th percentile, so noise during the other batches, even if it lasts most of the time, does not raise the
    /// threshold.
    pub fn measure<C: Counter>(rate: TickRate) -> Self {
        let mut buckets = vec![0_u32; BUCKETS];
        // The first batch warms up and determines the length of a step.
        let taken = only_read::<C>(LEAST_BATCH_STEPS, &mut buckets);
        let steps = batch_steps(taken, rate);
        let mut best: Option<Self> = None;
        for _ in 0..BATCHES {
            buckets.fill(0);
            only_read::<C>(steps, &mut buckets);
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
        // Steps above the 99th percentile are noise and must not raise the mean.
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

    /// The automatic threshold: three times the 99th percentile of the quiet steps, and at least twice the median plus one tick, for counters so
    /// coarse that most steps are zero.
    ///
    /// The loop's own variation (a counter that advances in jumps, load of the hyperthread sibling, a store to the ring) stays below about twice the
    /// 99th percentile; the shortest interrupts of current processors take more than 200 ns.
    pub const fn auto_threshold(self) -> Ticks {
        let by_tail = self.p99.get() * 3;
        let by_median = self.median.get() * 2 + 1;
        Ticks::new(if by_tail > by_median { by_tail } else { by_median })
    }
}

/// The number of steps per batch if [`LEAST_BATCH_STEPS`] of them took `taken` ticks.
fn batch_steps(taken: u64, rate: TickRate) -> u64 {
    let fit = LEAST_BATCH_STEPS * rate.ticks_in(BATCH).get() / taken.max(1);
    fit.clamp(LEAST_BATCH_STEPS, BATCH_STEPS)
}

/// The number of stores measured per batch, and the largest number of batches.
const STORES: usize = 256;
const STORE_BATCHES: usize = 16;
/// No further batch starts after this time: batches of a slow clock take long, see [`BATCH`].
const ENOUGH_STORES: Nanos = Nanos::from_millis(100);
/// The number of steps between two stores, enough for the branch predictor to forget the store's branches.
const STEPS_BETWEEN_STORES: u32 = 64;

/// The 99th percentile of the step after a stored one, which includes the cost of storing, on the current CPU, in the quietest of several batches.
/// `None` if the ring is too small for one. Takes about 2 ms, and about 100 ms if each step takes two microseconds; leaves steps in the ring.
///
/// With a threshold at or below it, storing a detour would cause another detour, whose storing causes the next, forever.
pub fn step_after_store<C: Counter>(ring: &Ring, cpu: CpuId, rate: TickRate) -> Option<Ticks> {
    let lengths = Lengths::until_full(Ticks::new(0), rate);
    let room = usize::try_from(ring.capacity()).unwrap_or(usize::MAX);
    let mut tally = LoopTally::new(Ticks::new(0));
    let late = C::read() + rate.ticks_in(ENOUGH_STORES).get();
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
    let batches = (0..(room / STORES).min(STORE_BATCHES)).take_while(|&batch| batch == 0 || C::read() < late);
    batches.map(|_| batch()).min().map(Ticks::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    use becalm_linux::clock::MonotonicRaw;

    #[test]
    fn quantiles_are_those_of_the_sorted_steps() {
        let mut buckets = vec![0; 200];
        // One reading in 10,000 is off by a jump.
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

    /// The rate of the kernel's clocks.
    const NANOSECONDS: f64 = 1e9;

    #[test]
    fn storing_takes_longer_than_reading() {
        let ring = Ring::new(1 << 14).unwrap();
        let rate = TickRate::from_hz(NANOSECONDS);
        let after = step_after_store::<MonotonicRaw>(&ring, CpuId::new(0), rate).unwrap();
        assert!(after >= StepProfile::measure::<MonotonicRaw>(rate).shortest, "{after:?}");
        let (one, all) = (STORES as u64, (STORES * STORE_BATCHES) as u64);
        assert!((one..=all).contains(&ring.waiting()), "{} steps stored", ring.waiting());
        let small = Ring::new(2).unwrap();
        assert_eq!(step_after_store::<MonotonicRaw>(&small, CpuId::new(0), rate), None);
    }

    #[test]
    fn the_threshold_lies_above_the_steps() {
        let profile = StepProfile::measure::<MonotonicRaw>(TickRate::from_hz(NANOSECONDS));
        assert!(profile.shortest <= profile.median && profile.median <= profile.p99);
        assert!(profile.auto_threshold() > profile.p99);
    }

    #[test]
    fn batches_of_a_quick_counter_are_long_and_those_of_a_slow_clock_end_in_time() {
        let rate = TickRate::from_hz(NANOSECONDS);
        let steps = |step_ns: u64| batch_steps(LEAST_BATCH_STEPS * step_ns, rate);
        assert_eq!(steps(8), BATCH_STEPS);
        assert_eq!(steps(500), 10_000);
        assert_eq!(steps(2_300), LEAST_BATCH_STEPS);
        assert_eq!(steps(0), BATCH_STEPS, "a counter that stands still for so long");
    }

    /// A clock outside of the processor, measured by itself: each reading takes 2,300 ns.
    struct Slow;

    thread_local! {
        static READINGS: Cell<u64> = const { Cell::new(0) };
    }

    impl Counter for Slow {
        const NAME: &'static str = "slow";

        fn read() -> u64 {
            READINGS.set(READINGS.get() + 1);
            READINGS.get() * 2_300
        }
    }

    #[test]
    fn a_slow_clock_is_calibrated_in_less_than_a_second() {
        let rate = TickRate::from_hz(NANOSECONDS);
        let step = Ticks::new(2_300);
        assert_eq!(StepProfile::measure::<Slow>(rate), StepProfile { shortest: step, median: step, p99: step });
        let ring = Ring::new(1 << 14).unwrap();
        assert_eq!(step_after_store::<Slow>(&ring, CpuId::new(0), rate), Some(step));
        assert!(Slow::read() < 500_000_000, "it took {} ns", Slow::read());
    }
}
