//! Statistics of a cost: location with its interval, spread, and the effect of interruptions on the samples.

use becalm_analyze::events::{EventRate, event_rates};
use becalm_stats::{median_with_interval, nearest_rank};

use crate::documents::{CostRun, ProbeCosts, ProbeDoc, SeriesDoc};

/// The shortest interruption that shows up in a sample, in picoseconds: 1 us, the threshold of Beckman et al. 2007.
pub const SHORTEST_INTERRUPTION_PS: i64 = 1_000_000;

/// The statistics of the samples of a probe. Times are in picoseconds per repetition.
///
/// All samples count in every figure except mean and standard deviation; those left out there are counted.
#[derive(Clone, PartialEq, Debug)]
pub struct SampleFigures {
    /// Number of samples.
    pub samples: u64,
    /// Repetitions in a sample, which is their mean.
    pub batch: u32,
    /// Number of processes that took samples; 0 if the document lists no processes and rounds take their place.
    pub processes: u64,
    /// The median over the processes. A process counts with the median of its rounds' medians.
    pub median_ps: i64,
    /// The ends of its interval, from the order of the processes' medians, widened by their drift; `None` with fewer than six. It includes
    /// the variation between processes, which more samples or rounds do not reduce.
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
    /// The standard deviation of the samples that were not interrupted; 0 for one sample.
    pub stddev_ps: f64,
    /// Number of slow samples: above the upper quartile by three times the interquartile range, and by 1 us over all their repetitions. A
    /// tick interrupted them, or they took a slower path through the kernel.
    pub slow: u64,
    /// Number of samples that count as interrupted: the slowest of the slow ones, at most as many as the kernel counted interrupts and
    /// preemptions; all of them if it does not count these.
    pub interrupted: u64,
    /// The total excess of interrupted samples over the median, over all their repetitions.
    pub interrupted_excess_ps: i64,
}

impl SampleFigures {
    /// Computes the figures from rounds of samples, each a mean over `batch` repetitions; `None` without samples. `counted` is the number
    /// of interrupts and preemptions that the kernel counted, if it does. `by_process` is the number of rounds of each process; empty if
    /// one process took all.
    pub fn new(rounds: &[Vec<i64>], by_process: &[u32], batch: u32, counted: Option<u64>) -> Option<Self> {
        let mut all: Vec<i64> = rounds.concat();
        all.sort_unstable();
        let (min, max) = (*all.first()?, *all.last()?);
        let at = |share| all[nearest_rank(share, all.len())];
        let values = values(rounds, by_process);
        let (median, interval) = median_with_interval(&values)?;
        let interval = interval.map(|ends| if by_process.is_empty() { ends } else { widened(ends, &values) });
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
            processes: if by_process.is_empty() { 0 } else { values.len() as u64 },
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

/// One value per process: the median of its rounds' medians. The median of these values is the cost. Rounds of one process share the
/// placement of its pages and code, and the moment, so they make one value. If one process took all rounds, as in old measurements, the
/// medians of its rounds are used instead.
fn values(rounds: &[Vec<i64>], by_process: &[u32]) -> Vec<i64> {
    let median = |values: &[i64]| Some(median_with_interval(values)?.0);
    if by_process.is_empty() {
        return rounds.iter().filter_map(|round| median(round)).collect();
    }
    let mut rest = rounds;
    let mut values = Vec::with_capacity(by_process.len());
    for taken in by_process {
        let (own, others) = rest.split_at(rest.len().min(*taken as usize));
        let medians: Vec<i64> = own.iter().filter_map(|round| median(round)).collect();
        values.extend(median(&medians));
        rest = others;
    }
    values
}

/// Widens an interval of processes' medians by their drift: by the ratio of the medians of the first and the second half of the processes,
/// and at most by half the width. Activity on a CPU and its neighbors outlasts a process, so successive processes are alike, and the next
/// run may differ as much again. Differences may be negative, so for them the difference replaces the ratio.
fn widened((low, high): (i64, i64), values: &[i64]) -> (i64, i64) {
    let (first, second) = values.split_at(values.len() / 2);
    let median = |half: &[i64]| median_with_interval(half).map_or(low, |found| found.0);
    let (a, b) = (median(first), median(second));
    if low <= 0 {
        let most = high.abs_diff(low) / 2;
        let by = i64::try_from(a.abs_diff(b).min(most)).unwrap_or(i64::MAX);
        return (low.saturating_sub(by), high.saturating_add(by));
    }
    // The ends are the minimum and maximum only for few values.
    let (a, b) = (a.max(low) as f64, b.max(low) as f64);
    let factor = (a.max(b) / a.min(b)).min((high as f64 / low as f64).sqrt());
    ((low as f64 / factor).floor() as i64, (high as f64 * factor).ceil() as i64)
}

/// A measured cost, with the kernel's counts during it.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredCost {
    /// The figures of the samples.
    pub cost: SampleFigures,
    /// Interrupts that the kernel counted on the CPU; `None` if unknown.
    pub interrupts: Option<u64>,
    /// Number of preemptions of the measuring thread.
    pub preempted: u64,
    /// Counts of the processor per repetition; empty if it counts nothing.
    pub events: Vec<EventRate>,
}

impl MeasuredCost {
    /// The cost of a series of a stored measurement, with the rounds of its samples; `None` without samples.
    pub fn new(series: &SeriesDoc, rounds: &[Vec<i64>]) -> Option<Self> {
        let counted = match series.interruptions {
            // These samples are interruptions, so none is slow because of one.
            true => Some(0),
            false => series.interrupts.map(|interrupts| interrupts.saturating_add(series.preempted)),
        };
        let cost = SampleFigures::new(rounds, &series.rounds_by_process, series.batch, counted)?;
        let events = event_rates(&series.counts, series.counted);
        Some(Self { cost, interrupts: series.interrupts, preempted: series.preempted, events })
    }
}

/// A probe of traps or detours, with its figures.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeCost {
    /// The probe: its name, its method, and the reason if it was not measured.
    pub probe: ProbeDoc,
    /// Its figures; `None` if it was not measured, with the reason in the probe.
    pub measured: Option<MeasuredCost>,
}

impl ProbeCost {
    /// The probes of a stored measurement, in their order.
    pub fn all(run: &CostRun, costs: &ProbeCosts) -> Vec<Self> {
        let row = |probe: &ProbeDoc| {
            let series = probe.series.as_ref();
            let measured = series.and_then(|series| MeasuredCost::new(series, run.rounds(&probe.name)));
            Self { probe: probe.clone(), measured }
        };
        costs.probes.iter().map(row).collect()
    }

    /// The reason if nothing was measured.
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
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    #[test]
    fn no_samples_give_no_figures() {
        assert_eq!(SampleFigures::new(&[], &[], 1, None), None);
        assert_eq!(SampleFigures::new(&[vec![], vec![]], &[], 1, None), None);
    }

    #[test]
    fn a_tick_in_a_sample_is_counted_and_kept_out_of_the_mean_only() {
        // 20 rounds of 50 samples of 100 to 104 ns; every 100th has a tick of 5 us in it.
        let sample = |n: usize| 100_000 + (n % 5) as i64 * 1_000 + if n % 100 == 7 { 5_000_000 } else { 0 };
        let rounds: Vec<Vec<i64>> = (0..20).map(|r| (0..50).map(|n| sample(r * 50 + n)).collect()).collect();
        let cost = SampleFigures::new(&rounds, &[], 1, Some(12)).unwrap();
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
        let batched = SampleFigures::new(&rounds, &[], 50, None).unwrap();
        assert_eq!((batched.interrupted, batched.interrupted_excess_ps), (10, 10 * 5_000_000));
    }

    #[test]
    fn a_slow_way_through_the_kernel_is_no_interruption() {
        // Every tenth sample takes 2 us more, and only one interrupt was counted: the slowest.
        let rounds: Vec<Vec<i64>> = (0..10)
            .map(|round| (0..30).map(|n| if n % 10 == 9 { 3_000_000 + round } else { 1_000_000 }).collect())
            .collect();
        let cost = SampleFigures::new(&rounds, &[], 1, Some(1)).unwrap();
        assert_eq!((cost.slow, cost.interrupted, cost.interrupted_excess_ps), (30, 1, 2_000_009));
        assert!(cost.mean_ps > 1_190_000.0, "{}", cost.mean_ps);
    }

    #[test]
    fn few_rounds_have_no_interval() {
        let cost = SampleFigures::new(&[vec![3], vec![1], vec![2]], &[], 1, None).unwrap();
        assert_eq!((cost.median_ps, cost.interval_ps, cost.interrupted), (2, None, 0));
    }

    #[test]
    fn each_process_is_one_value() {
        // Rounds of three processes. The second took none.
        let rounds = vec![vec![3], vec![1], vec![2], vec![90, 70, 80], vec![60]];
        let cost = SampleFigures::new(&rounds, &[3, 0, 2], 1, None).unwrap();
        assert_eq!((cost.processes, cost.median_ps, cost.interval_ps), (2, 2, None));
        // Each of eight with as many rounds as it likes; the ends are those of all of them.
        let rounds: Vec<Vec<i64>> = (1..=8).flat_map(|process| vec![vec![process * 10; 3]; process as usize]).collect();
        let cost = SampleFigures::new(&rounds, &[1, 2, 3, 4, 5, 6, 7, 8], 1, None).unwrap();
        // The medians of the halves are 20 and 60; half the width is the square root of eight.
        assert_eq!((cost.processes, cost.median_ps, cost.interval_ps), (8, 40, Some((3, 227))));
    }

    #[test]
    fn an_interval_is_wider_by_what_processes_drifted() {
        let widened_range =
            |values: [i64; 8]| widened((*values.iter().min().unwrap(), *values.iter().max().unwrap()), &values);
        assert_eq!(widened_range([100; 8]), (100, 100));
        assert_eq!(widened_range([100, 200, 100, 200, 100, 200, 100, 200]), (100, 200));
        assert_eq!(widened_range([100, 100, 100, 200, 100, 120, 120, 200]), (83, 240));
        assert_eq!(widened_range([100, 100, 100, 100, 400, 400, 400, 400]), (50, 800));
        assert_eq!(widened_range([-8, -8, -8, -8, 4, 4, 4, 4]), (-14, 10));
        assert_eq!(widened_range([i64::MIN, 1, 1, 1, 1, 1, 1, i64::MAX]), (i64::MIN, i64::MAX));
    }

    /// Runs of one machine: a process shifts all of its rounds, by where its pages are and what the CPU did then; half of the
    /// shift goes on in the next process. Within a process, rounds differ a hundredth as much.
    #[test]
    fn intervals_of_runs_in_a_row_meet_where_they_are_over_processes() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        let (mut before, mut over_processes, mut over_rounds) = (0.0, Vec::new(), Vec::new());
        for _ in 0..40 {
            let mut rounds = Vec::new();
            for _ in 0..8 {
                before = 0.5 * before + uniform();
                let round = |noise: f64| vec![(150_000.0 * (1.0 + 0.2 * before + 0.002 * noise)) as i64; 9];
                rounds.extend((0..5).map(|_| round(uniform())));
            }
            let interval = |rounds: &[Vec<i64>], by_process: &[u32]| {
                SampleFigures::new(rounds, by_process, 1, None).unwrap().interval_ps.unwrap()
            };
            over_processes.push(interval(&rounds, &[5; 8]));
            // What a run of one process has said: twenty rounds of it.
            let one: Vec<Vec<i64>> = (0..20).map(|n| vec![rounds[0][0] + n; 9]).collect();
            over_rounds.push(interval(&one, &[]));
        }
        let meeting = |intervals: &[(i64, i64)]| {
            let pairs = intervals.iter().enumerate().flat_map(|(at, a)| intervals[..at].iter().map(move |b| (a, b)));
            let meet = pairs.clone().filter(|(a, b)| a.0 <= b.1 && b.0 <= a.1).count();
            meet as f64 / pairs.count() as f64
        };
        assert!(meeting(&over_processes) > 0.98, "{}", meeting(&over_processes));
        assert!(meeting(&over_rounds) < 0.1, "{}", meeting(&over_rounds));
    }

    #[test]
    fn interruptions_are_not_interrupted_and_counts_add_up() {
        let rounds = vec![[vec![1_000_000; 8], vec![9_000_000, 8_000_000]].concat(); 2];
        let series = |interrupts, interruptions| SeriesDoc {
            batch: 1,
            samples: 20,
            rounds_by_process: Vec::new(),
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
        let cost = SampleFigures::new(&rounds, &[], 1, None).unwrap();
        // 20 samples of +-10,000: 10,000 sqrt(20 / 19).
        assert!((cost.stddev_ps - 10_259.8).abs() < 0.1 && cost.mean_ps == 100_000.0, "{}", cost.stddev_ps);
        let mut interrupted = rounds;
        interrupted[0].push(90_000_000);
        let cost = SampleFigures::new(&interrupted, &[], 1, None).unwrap();
        assert!(cost.interrupted == 1 && (cost.stddev_ps - 10_259.8).abs() < 0.1, "{}", cost.stddev_ps);
        assert_eq!(SampleFigures::new(&[vec![7]], &[], 1, None).unwrap().stddev_ps, 0.0);
    }

    proptest! {
        #[test]
        fn figures_are_in_order_and_nothing_is_lost(
            rounds in proptest::collection::vec(proptest::collection::vec(0_i64..1 << 50, 0..30), 0..25), batch in 1_u32..99,
            counted in proptest::option::of(0_u64..40), by_process in proptest::collection::vec(1_u32..9, 0..9),
        ) {
            // As many rounds as there are, of as many processes as that takes; rounds of none are not given.
            let rounds: Vec<Vec<i64>> = rounds.into_iter().filter(|round| !round.is_empty()).collect();
            let told: u32 = by_process.iter().sum();
            let by_process = if told as usize >= rounds.len() { by_process } else { Vec::new() };
            let Some(cost) = SampleFigures::new(&rounds, &by_process, batch, counted) else {
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
