//! A cost in figures: location with its interval, spread, and what interruptions did to the samples.

use becalm_model::cost::{CostRun, ProbeCosts, ProbeDoc, SeriesDoc};

use crate::events::{EventRate, event_rates};
use becalm_stats::{median_with_interval, nearest_rank};

/// An interruption that becomes visible in a sample takes at least so long, in picoseconds: 1 us, the threshold of
/// Beckman et al. 2007.
pub const SHORTEST_INTERRUPTION_PS: i64 = 1_000_000;

/// What the samples of a probe say. Times are in picoseconds a repetition.
///
/// No sample is left out of any figure but of the mean, and what is left out there is counted.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleFigures {
    /// How many samples there are.
    pub samples: u64,
    /// How many repetitions are in a sample, which is their mean.
    pub batch: u32,
    /// The median of the rounds' medians.
    pub median_ps: i64,
    /// The ends of its interval, from the order of the rounds' medians; `None` with fewer than six rounds. It holds
    /// what changes from round to round, which the number of samples does not make smaller.
    pub interval_ps: Option<(i64, i64)>,
    /// The smallest of all samples.
    pub min_ps: i64,
    /// The 5th percentile of all samples, by nearest rank.
    pub p5_ps: i64,
    /// The 95th percentile of all samples, by nearest rank.
    pub p95_ps: i64,
    /// The largest of all samples.
    pub max_ps: i64,
    /// The mean of the samples that were not interrupted.
    pub mean_ps: f64,
    /// The standard deviation of the samples that were not interrupted; 0 of one sample.
    pub stddev_ps: f64,
    /// How many samples were slow: beyond the upper quartile by three times the distance between the quartiles, and by
    /// 1 us over all their repetitions. A tick came in between, or they took a longer way through the kernel.
    pub slow: u64,
    /// How many samples count as interrupted: of the slow ones the slowest, as many as the kernel counted interrupts
    /// and pre-emptions at most; all of them where it does not tell.
    pub interrupted: u64,
    /// What the interrupted samples took beyond the median, all together and over all their repetitions.
    pub interrupted_excess_ps: i64,
}

impl SampleFigures {
    /// The figures of rounds of samples, each a mean over `batch` repetitions; `None` without samples. `counted` is how many
    /// interrupts and pre-emptions the kernel counted meanwhile, where it does.
    #[must_use]
    pub fn new(rounds: &[Vec<i64>], batch: u32, counted: Option<u64>) -> Option<Self> {
        let mut all: Vec<i64> = rounds.concat();
        all.sort_unstable();
        let (min, max) = (*all.first()?, *all.last()?);
        let at = |share| all[nearest_rank(share, all.len())];
        let medians: Vec<i64> = rounds.iter().filter_map(|round| Some(median_with_interval(round)?.0)).collect();
        let (median, interval) = median_with_interval(&medians)?;
        let (q1, q3) = (at(0.25), at(0.75));
        let visible = SHORTEST_INTERRUPTION_PS / i64::from(batch.max(1));
        let fence = q3.saturating_add((q3.saturating_sub(q1)).saturating_mul(3).max(visible));
        let slow = all.len() - all.partition_point(|sample| *sample <= fence);
        let interrupted = counted.map_or(slow, |counted| slow.min(usize::try_from(counted).unwrap_or(slow)));
        let quiet = all.len() - interrupted;
        let sum: i128 = all[..quiet].iter().map(|sample| i128::from(*sample)).sum();
        let mean_ps = sum as f64 / quiet as f64;
        let squares: f64 = all[..quiet].iter().map(|sample| (*sample as f64 - mean_ps).powi(2)).sum();
        let excess: i128 = all[quiet..].iter().map(|sample| i128::from(*sample) - i128::from(median)).sum();
        Some(Self {
            samples: all.len() as u64,
            batch,
            median_ps: median,
            interval_ps: interval,
            min_ps: min,
            p5_ps: at(0.05),
            p95_ps: at(0.95),
            max_ps: max,
            mean_ps,
            stddev_ps: (squares / (quiet.max(2) - 1) as f64).sqrt(),
            slow: slow as u64,
            interrupted: interrupted as u64,
            interrupted_excess_ps: i64::try_from(excess * i128::from(batch)).unwrap_or(i64::MAX),
        })
    }
}

/// A measured cost, and what the kernel counted meanwhile.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredCost {
    /// The figures of the samples.
    pub cost: SampleFigures,
    /// Interrupts that the kernel counted on the CPU; `None` if it does not tell.
    pub interrupts: Option<u64>,
    /// How often the measuring thread was pre-empted.
    pub preempted: u64,
    /// What the processor counted, by repetition; nothing where it counts nothing.
    pub events: Vec<EventRate>,
}

impl MeasuredCost {
    /// The cost of a series of a stored measurement, with the rounds of its samples; `None` without samples.
    #[must_use]
    pub fn new(series: &SeriesDoc, rounds: &[Vec<i64>]) -> Option<Self> {
        let counted = match series.interruptions {
            // None of them is slow for having been interrupted.
            true => Some(0),
            false => series.interrupts.map(|interrupts| interrupts.saturating_add(series.preempted)),
        };
        let cost = SampleFigures::new(rounds, series.batch, counted)?;
        let events = event_rates(&series.counts, series.counted);
        Some(Self { cost, interrupts: series.interrupts, preempted: series.preempted, events })
    }
}

/// A probe of traps or detours, with its figures.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeCost {
    /// What the document says of the probe: its name, how it was made, and why it was not, if so.
    pub probe: ProbeDoc,
    /// Its figures; `None` where nothing was measured, for the reason that the probe gives.
    pub measured: Option<MeasuredCost>,
}

impl ProbeCost {
    /// The probes of a stored measurement, in their order.
    #[must_use]
    pub fn all(run: &CostRun, costs: &ProbeCosts) -> Vec<Self> {
        let row = |probe: &ProbeDoc| {
            let series = probe.series.as_ref();
            let measured = series.and_then(|series| MeasuredCost::new(series, run.rounds(&probe.name)));
            Self { probe: probe.clone(), measured }
        };
        costs.probes.iter().map(row).collect()
    }

    /// Why nothing was measured; `None` where something was.
    #[must_use]
    pub fn not_measured(&self) -> Option<&str> {
        match (&self.measured, &self.probe.series) {
            (Some(_), _) => None,
            (None, Some(_)) => Some("the probe gave no sample"),
            (None, None) => Some(self.probe.not_measured.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_samples_give_no_figures() {
        assert_eq!(SampleFigures::new(&[], 1, None), None);
        assert_eq!(SampleFigures::new(&[vec![], vec![]], 1, None), None);
    }

    #[test]
    fn a_tick_in_a_sample_is_counted_and_kept_out_of_the_mean_only() {
        // 20 rounds of 50 samples of 100 to 104 ns; every 100th has a tick of 5 us in it.
        let sample = |n: usize| 100_000 + (n % 5) as i64 * 1_000 + if n % 100 == 7 { 5_000_000 } else { 0 };
        let rounds: Vec<Vec<i64>> = (0..20).map(|r| (0..50).map(|n| sample(r * 50 + n)).collect()).collect();
        let cost = SampleFigures::new(&rounds, 1, Some(12)).unwrap();
        assert_eq!((cost.samples, cost.interrupted), (1_000, 10));
        assert_eq!((cost.median_ps, cost.interval_ps), (102_000, Some((102_000, 102_000))));
        assert_eq!((cost.min_ps, cost.p5_ps, cost.p95_ps, cost.max_ps), (100_000, 100_000, 104_000, 5_102_000));
        assert!((cost.mean_ps - 102_000.0).abs() < 1.0, "{}", cost.mean_ps);
        assert_eq!(cost.interrupted_excess_ps, 10 * 5_000_000);
        // The same ticks in samples of 50 repetitions are 100 ns each, and stand out as well.
        let rounds: Vec<Vec<i64>> = rounds
            .iter()
            .map(|round| round.iter().map(|ps| if *ps > 1_000_000 { 202_000 } else { *ps }).collect())
            .collect();
        let batched = SampleFigures::new(&rounds, 50, None).unwrap();
        assert_eq!((batched.interrupted, batched.interrupted_excess_ps), (10, 10 * 5_000_000));
    }

    #[test]
    fn a_slow_way_through_the_kernel_is_no_interruption() {
        // Every tenth sample takes 2 us more, and only one interrupt was counted: the slowest.
        let rounds: Vec<Vec<i64>> = (0..10)
            .map(|round| (0..30).map(|n| if n % 10 == 9 { 3_000_000 + round } else { 1_000_000 }).collect())
            .collect();
        let cost = SampleFigures::new(&rounds, 1, Some(1)).unwrap();
        assert_eq!((cost.slow, cost.interrupted, cost.interrupted_excess_ps), (30, 1, 2_000_009));
        assert!(cost.mean_ps > 1_190_000.0, "{}", cost.mean_ps);
    }

    #[test]
    fn few_rounds_have_no_interval() {
        let cost = SampleFigures::new(&[vec![3], vec![1], vec![2]], 1, None).unwrap();
        assert_eq!((cost.median_ps, cost.interval_ps, cost.interrupted), (2, None, 0));
    }

    #[test]
    fn interruptions_are_not_interrupted_and_counts_add_up() {
        let rounds = vec![[vec![1_000_000; 8], vec![9_000_000, 8_000_000]].concat(); 2];
        let series = |interrupts, interruptions| SeriesDoc {
            batch: 1,
            samples: 20,
            interrupts,
            preempted: 1,
            interruptions,
            counts: Vec::new(),
            counted: 0,
        };
        let interrupted = |series| MeasuredCost::new(&series, &rounds).unwrap().cost.interrupted;
        assert_eq!(interrupted(series(Some(2), false)), 3);
        assert_eq!(interrupted(series(None, true)), 0);
        // Nothing is known of interrupts: every slow sample may have been one.
        let unknown = MeasuredCost::new(&series(None, false), &rounds).unwrap();
        assert_eq!((unknown.cost.interrupted, unknown.interrupts), (unknown.cost.slow, None));
        assert_eq!(interrupted(series(Some(u64::MAX), false)), unknown.cost.slow);
        assert_eq!(MeasuredCost::new(&series(None, false), &[]), None);
    }

    #[test]
    fn the_standard_deviation_is_that_of_samples_without_interrupted_ones() {
        let rounds = vec![vec![90_000, 110_000, 90_000, 110_000]; 5];
        let cost = SampleFigures::new(&rounds, 1, None).unwrap();
        // 20 samples of +-10,000: 10,000 sqrt(20 / 19).
        assert!((cost.stddev_ps - 10_259.8).abs() < 0.1 && cost.mean_ps == 100_000.0, "{}", cost.stddev_ps);
        let mut interrupted = rounds;
        interrupted[0].push(90_000_000);
        let cost = SampleFigures::new(&interrupted, 1, None).unwrap();
        assert!(cost.interrupted == 1 && (cost.stddev_ps - 10_259.8).abs() < 0.1, "{}", cost.stddev_ps);
        assert_eq!(SampleFigures::new(&[vec![7]], 1, None).unwrap().stddev_ps, 0.0);
    }

    proptest! {
        #[test]
        fn figures_are_in_order_and_nothing_is_lost(
            rounds in proptest::collection::vec(proptest::collection::vec(0_i64..1 << 50, 0..30), 0..25), batch in 1_u32..99,
            counted in proptest::option::of(0_u64..40),
        ) {
            let Some(cost) = SampleFigures::new(&rounds, batch, counted) else {
                prop_assert!(rounds.iter().all(Vec::is_empty));
                return Ok(());
            };
            prop_assert_eq!(cost.samples as usize, rounds.iter().map(Vec::len).sum::<usize>());
            prop_assert!(cost.min_ps <= cost.p5_ps && cost.p5_ps <= cost.p95_ps && cost.p95_ps <= cost.max_ps);
            prop_assert!(cost.min_ps <= cost.median_ps && cost.median_ps <= cost.max_ps);
            prop_assert!(cost.interval_ps.is_none_or(|(low, high)| low <= cost.median_ps && cost.median_ps <= high));
            // At most a quarter lies beyond the upper quartile.
            prop_assert!(cost.slow * 4 <= cost.samples + 3);
            prop_assert_eq!(cost.interrupted, cost.slow.min(counted.unwrap_or(u64::MAX)));
            // Numbers of so many digits have rounding errors.
            let width = (cost.max_ps - cost.min_ps) as f64;
            prop_assert!(cost.stddev_ps >= 0.0 && cost.stddev_ps <= width.max(1.0), "{}", cost.stddev_ps);
            prop_assert!(cost.mean_ps >= cost.min_ps as f64 && cost.mean_ps <= cost.max_ps as f64);
        }
    }
}
