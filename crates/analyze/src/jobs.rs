//! Compares jobs: the average and the worst case of each, as in Figure 8 of De et al. 2009, and whether they differ from the first.
//!
//! The phases of a job are cut into consecutive blocks. Bootstrap: the blocks are drawn with replacement, and the scatter of the draws' averages and
//! worst cases gives the confidence intervals. Phases that are late in trains stay together.

use becalm_stats::SEED;
use becalm_stats::nearest_rank;
use becalm_stats::splitmix::SplitMix64;

use crate::compare::Verdict;
use crate::job::JobPhases;
use crate::phases::{PhaseFigures, Slowest, count_worst};

/// The number of blocks per job.
const BLOCKS: usize = 40;

/// Minimum number of phases per block; with fewer there are no intervals.
const BLOCK_MIN: usize = 10;

/// The number of draws.
const DRAWS: usize = 1_000;

/// A time of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PhaseTime {
    /// qt: the compute phase.
    Qt,
    /// bt: the collective.
    Bt,
    /// qtbt: both.
    Qtbt,
}

impl PhaseTime {
    /// Its name in the paper.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qt => "qt",
            Self::Bt => "bt",
            Self::Qtbt => "qtbt",
        }
    }

    /// The largest such time over the ranks, phase by phase, in nanoseconds.
    #[must_use]
    pub fn durations(self, slowest: &Slowest) -> &[i64] {
        match self {
            Self::Qt => &slowest.compute,
            Self::Bt => &slowest.collective,
            Self::Qtbt => &slowest.total,
        }
    }
}

/// A figure of a job, and its change from that of the first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobFigure {
    /// In nanoseconds.
    pub ns: f64,
    /// The ratio to the first job's, less 1; `None` for the first itself, and if that is 0.
    pub change: Option<f64>,
    /// The interval of the change; `None` if a job is too short for one.
    pub interval: Option<ChangeInterval>,
    /// Whether the two differ; `None` if nothing is compared.
    pub verdict: Option<Verdict>,
}

/// The ends of the 95 % interval of a change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChangeInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// One time of one job.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobRow {
    /// Which time.
    pub time: PhaseTime,
    /// The number of the job.
    pub job: usize,
    /// The mean over all phases.
    pub average: JobFigure,
    /// The mean of the largest 1 %.
    pub worst: JobFigure,
    /// The longest, in nanoseconds.
    pub max_ns: i64,
}

/// Compares jobs with the first of them: the rows of each time, job after job. A job without phases has none.
pub fn against_first(jobs: &[&JobPhases]) -> Vec<JobRow> {
    let mut rows = Vec::new();
    for time in [PhaseTime::Qt, PhaseTime::Bt, PhaseTime::Qtbt] {
        let mut first: Option<Bootstrap> = None;
        for (number, job) in jobs.iter().enumerate() {
            let series = time.durations(&job.slowest);
            let Some(figures) = PhaseFigures::from_durations(series) else { continue };
            // Each job has its own seed, so the draws of two do not coincide.
            let drawn = Bootstrap { figures, draws: draws(series, SEED + number as u64) };
            let figure = |value: fn(&PhaseFigures) -> f64, which: usize| drawn.figure(first.as_ref(), value, which);
            let (average, worst) = (figure(|figures| figures.mean_ns, 0), figure(|figures| figures.worst_ns, 1));
            rows.push(JobRow { time, job: number, average, worst, max_ns: figures.max_ns });
            first.get_or_insert(drawn);
        }
    }
    rows
}

/// The figures of a series, and those of the draws from it.
struct Bootstrap {
    figures: PhaseFigures,
    draws: Vec<[f64; 2]>,
}

impl Bootstrap {
    fn figure(&self, first: Option<&Self>, value: fn(&PhaseFigures) -> f64, which: usize) -> JobFigure {
        let ns = value(&self.figures);
        let Some((first, base)) = first.map(|first| (first, value(&first.figures))).filter(|(_, base)| *base > 0.0)
        else {
            return JobFigure { ns, change: None, interval: None, verdict: None };
        };
        let pairs = self.draws.iter().zip(&first.draws).filter(|(_, base)| base[which] > 0.0);
        let mut ratios: Vec<f64> = pairs.map(|(own, base)| own[which] / base[which]).collect();
        ratios.sort_by(f64::total_cmp);
        let end = |share| ratios.get(nearest_rank(share, ratios.len())).map(|ratio| ratio - 1.0);
        let interval = end(0.025).zip(end(0.975)).map(|(low, high)| ChangeInterval { low, high });
        let verdict = match interval {
            None => Verdict::NotEnoughData,
            Some(ends) if ends.low > 0.0 => Verdict::Higher,
            Some(ends) if ends.high < 0.0 => Verdict::Lower,
            Some(_) => Verdict::NoDifferenceShown,
        };
        JobFigure { ns, change: Some(ns / base - 1.0), interval, verdict: Some(verdict) }
    }
}

/// The mean and the worst case of each draw; empty if the series is too short.
fn draws(series: &[i64], seed: u64) -> Vec<[f64; 2]> {
    let each = series.len() / BLOCKS;
    if each < BLOCK_MIN {
        return Vec::new();
    }
    // The remainder belongs to the last block.
    let block = |phase: usize| (phase / each).min(BLOCKS - 1);
    let mut sums = [(0_i128, 0_usize); BLOCKS];
    for (phase, duration) in series.iter().enumerate() {
        let (sum, phases) = &mut sums[block(phase)];
        *sum += i128::from(*duration);
        *phases += 1;
    }
    let mut falling: Vec<(i64, usize)> = series.iter().enumerate().map(|(phase, ns)| (*ns, block(phase))).collect();
    falling.sort_unstable_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let mut random = SplitMix64::new(seed);
    (0..DRAWS)
        .map(|_| {
            let mut times = [0_usize; BLOCKS];
            (0..BLOCKS).for_each(|_| times[random.below(BLOCKS as u64) as usize] += 1);
            drawn_figures(&times, &sums, &falling)
        })
        .collect()
}

/// The mean and the worst case of a series that contains each block this many times. `falling` are its phases with their blocks, the longest first.
fn drawn_figures(times: &[usize; BLOCKS], sums: &[(i128, usize); BLOCKS], falling: &[(i64, usize)]) -> [f64; 2] {
    let phases: usize = times.iter().zip(sums).map(|(times, (_, phases))| times * phases).sum();
    let sum: i128 = times.iter().zip(sums).map(|(times, (sum, _))| *times as i128 * sum).sum();
    let worst = count_worst(phases);
    let (mut left, mut longest) = (worst, 0_i128);
    for (ns, block) in falling {
        let taken = times[*block].min(left);
        longest += i128::from(*ns) * taken as i128;
        left -= taken;
        if left == 0 {
            break;
        }
    }
    [sum as f64 / phases.max(1) as f64, longest as f64 / worst.max(1) as f64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with the series written out, each block as often as it was drawn.
        #[test]
        fn figures_of_drawn_blocks_are_those_of_the_series(
            series in proptest::collection::vec(0_i64..50, BLOCKS * 2..BLOCKS * 4), seed in 0_u64..1_000
        ) {
            let each = series.len() / BLOCKS;
            let block = |phase: usize| (phase / each).min(BLOCKS - 1);
            let mut sums = [(0_i128, 0_usize); BLOCKS];
            for (phase, ns) in series.iter().enumerate() {
                sums[block(phase)].0 += i128::from(*ns);
                sums[block(phase)].1 += 1;
            }
            let mut falling: Vec<(i64, usize)> = series.iter().enumerate().map(|(at, ns)| (*ns, block(at))).collect();
            falling.sort_unstable_by_key(|(ns, _)| std::cmp::Reverse(*ns));
            let mut random = SplitMix64::new(seed);
            let mut times = [0_usize; BLOCKS];
            (0..BLOCKS).for_each(|_| times[random.below(BLOCKS as u64) as usize] += 1);
            let written: Vec<i64> = series
                .iter()
                .enumerate()
                .flat_map(|(phase, ns)| std::iter::repeat_n(*ns, times[block(phase)]))
                .collect();
            let plain = PhaseFigures::from_durations(&written).unwrap();
            let [mean, worst] = drawn_figures(&times, &sums, &falling);
            prop_assert!((mean - plain.mean_ns).abs() < 1e-9 && (worst - plain.worst_ns).abs() < 1e-9);
        }
    }

    /// A job of 4,000 phases of 1 ms plus up to 10 us, and with a detour of this length in one of 100 phases.
    fn job(detour: i64, seed: u64) -> JobPhases {
        let mut random = SplitMix64::new(seed);
        let mut slowest = Slowest::default();
        for _ in 0..4_000 {
            let late = if random.below(100) == 0 { detour } else { 0 };
            slowest.compute.push(1_000_000 + random.below(10_000) as i64 + late);
            slowest.collective.push(1_000);
            slowest.total.push(slowest.compute[slowest.compute.len() - 1] + 1_000);
            slowest.latest.push(0);
        }
        JobPhases { nodes: Vec::new(), slowest, ranks: Vec::new() }
    }

    #[test]
    fn jobs_that_differ_are_told_from_those_that_do_not() {
        let rows = against_first(&[&job(500_000, 1), &job(500_000, 2), &job(1_500_000, 3)]);
        let row = |time, job| rows.iter().find(|row| row.time == time && row.job == job).unwrap();
        assert_eq!(row(PhaseTime::Qt, 0).average.change, None);
        // Most such pairs do not differ; the test below checks that.
        assert!(row(PhaseTime::Qt, 1).average.interval.is_some());
        let later = row(PhaseTime::Qtbt, 2);
        assert_eq!((later.average.verdict, later.worst.verdict), (Some(Verdict::Higher), Some(Verdict::Higher)));
        let ChangeInterval { low, high } = later.worst.interval.unwrap();
        // 2.5 ms instead of 1.5 ms, two thirds more, in about one phase in a hundred.
        assert!(low > 0.2 && high < 1.2, "{low} {high}");
        assert_eq!(row(PhaseTime::Bt, 2).average.verdict, Some(Verdict::NoDifferenceShown));
        let short = |job: JobPhases| {
            let cut = |series: &[i64]| series[..BLOCKS * BLOCK_MIN - 1].to_vec();
            let Slowest { compute, collective, total, latest } = job.slowest;
            let slowest = Slowest { compute: cut(&compute), collective: cut(&collective), total: cut(&total), latest };
            JobPhases { slowest, ..job }
        };
        let rows = against_first(&[&short(job(0, 1)), &short(job(0, 2))]);
        assert_eq!(rows[1].average.verdict, Some(Verdict::NotEnoughData));
    }

    /// One in twenty jobs without a difference may be called different, in either direction; bootstrap percentiles keep about that.
    #[test]
    fn equal_jobs_seldom_differ() {
        let wrong = |pair: u64| {
            let rows = against_first(&[&job(500_000, 2 * pair), &job(500_000, 2 * pair + 1)]);
            rows.iter().any(|row| row.time == PhaseTime::Qt && row.average.verdict.is_some_and(Verdict::is_difference))
        };
        let wrong = (1..=60).filter(|pair| wrong(*pair)).count();
        assert!(wrong <= 8, "{wrong} of 60");
    }
}
