//! The figures of a parallel benchmark's phases (De et al. 2009): the slowest rank in every phase, and the average and worst of those.
//!
//! For each rank and phase, qt is the time of the compute phase, bt that of the collective, and qtbt the sum. A job waits for its slowest rank, so
//! each is first reduced to its maximum over the ranks, separately: the rank that computes longest waits least in the collective.

use becalm_bundle::Phase;

/// The worst case is the mean of this share of the phases (De et al. 2009).
const WORST: f64 = 0.01;

/// The largest qt, bt and qtbt of each phase, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Slowest {
    /// qt: the compute phase.
    pub compute: Vec<i64>,
    /// bt: the collective after it.
    pub collective: Vec<i64>,
    /// The whole phase, qtbt, in nanoseconds.
    pub total: Vec<i64>,
    /// The rank that computed longest, for which the others waited; on ties the lowest.
    pub latest: Vec<u32>,
}

impl Slowest {
    /// Adds a phase of a rank. The phases of a rank come in order, so memory is proportional to the number of phases. Panics if there is neither such
    /// a phase nor one before it.
    pub fn add(&mut self, rank: u32, number: usize, phase: &Phase) {
        if number == self.total.len() {
            [&mut self.compute, &mut self.collective, &mut self.total].into_iter().for_each(|series| series.push(0));
            self.latest.push(rank);
        }
        let Phase { compute_ns, collective_ns, .. } = *phase;
        let (longest, latest) = (self.compute[number], &mut self.latest[number]);
        if compute_ns > longest || compute_ns == longest && rank < *latest {
            *latest = rank;
        }
        let largest = |value: &mut i64, new: i64| *value = (*value).max(new);
        largest(&mut self.compute[number], compute_ns);
        largest(&mut self.collective[number], collective_ns);
        largest(&mut self.total[number], compute_ns + collective_ns);
    }
}

/// The figures of a series of durations, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PhaseFigures {
    /// The average case: the mean over all phases.
    pub mean_ns: f64,
    /// The median over all phases, in nanoseconds.
    pub median_ns: i64,
    /// The worst case: the mean of the largest 1 %, at least of one.
    pub worst_ns: f64,
    /// The shortest phase, in nanoseconds.
    pub min_ns: i64,
    /// The longest phase, in nanoseconds.
    pub max_ns: i64,
}

impl PhaseFigures {
    /// Computes the figures of a series of durations in nanoseconds; `None` for an empty series.
    pub fn from_durations(durations: &[i64]) -> Option<Self> {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        let (&min_ns, &max_ns) = (sorted.first()?, sorted.last()?);
        let worst = count_worst(sorted.len());
        let mean =
            |values: &[i64]| values.iter().map(|value| i128::from(*value)).sum::<i128>() as f64 / values.len() as f64;
        Some(Self {
            mean_ns: mean(&sorted),
            median_ns: sorted[(sorted.len() - 1) / 2],
            worst_ns: mean(&sorted[sorted.len() - worst..]),
            min_ns,
            max_ns,
        })
    }
}

/// Consecutive phases of a time series.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PhaseSpan {
    /// The number of the first of these phases, from 0.
    pub first: u64,
    /// The number of phases in it.
    pub phases: u64,
    /// The mean duration of these phases, in nanoseconds.
    pub mean_ns: f64,
    /// The shortest of these phases, in nanoseconds.
    pub min_ns: i64,
    /// The longest of these phases, in nanoseconds.
    pub max_ns: i64,
    /// The number of the longest phase; on ties the first.
    pub longest: u64,
}

/// The time series in at most `spans` equal parts, or one per phase if there are fewer.
pub fn spans(durations: &[i64], spans: usize) -> Vec<PhaseSpan> {
    let each = durations.len().div_ceil(spans.max(1)).max(1);
    let span = |(at, part): (usize, &[i64])| {
        // `max_by_key` returns the last of equal elements, so in reverse the first.
        let longest = part.iter().enumerate().rev().max_by_key(|(_, value)| **value);
        let (longest, max_ns) = longest.map_or((0, 0), |(place, value)| (place, *value));
        PhaseSpan {
            first: (at * each) as u64,
            phases: part.len() as u64,
            mean_ns: part.iter().map(|value| i128::from(*value)).sum::<i128>() as f64 / part.len() as f64,
            min_ns: part.iter().copied().min().unwrap_or(0),
            max_ns,
            longest: (at * each + longest) as u64,
        }
    };
    durations.chunks(each).enumerate().map(span).collect()
}

/// The number of durations per length, in bins of equal width.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhaseHistogram {
    /// The start of each bin, in nanoseconds, and the number of durations in it.
    pub bins: Vec<(i64, u64)>,
    /// The end of the last bin, in nanoseconds.
    pub end_ns: i64,
    /// The number of longer durations.
    pub beyond: u64,
}

/// The minimum share of durations in a histogram; the others are the rare long ones.
const DRAWN: f64 = 0.99;

/// The histogram of durations from the shortest to the 99th percentile, in at most `bins` bins; `None` without durations.
pub fn histogram(durations: &[i64], bins: usize) -> Option<PhaseHistogram> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let first = *sorted.first()?;
    let inside = ((sorted.len() as f64 * DRAWN).ceil() as usize).clamp(1, sorted.len());
    let width = (sorted[inside - 1] - first) / bins.max(1) as i64 + 1;
    let count = (sorted[inside - 1] - first) / width + 1;
    let mut counts = vec![0; count as usize];
    let mut beyond = 0;
    for value in sorted {
        match counts.get_mut(((value - first) / width) as usize) {
            Some(count) => *count += 1,
            None => beyond += 1,
        }
    }
    let bins = counts.into_iter().enumerate().map(|(at, count)| (first + at as i64 * width, count)).collect();
    Some(PhaseHistogram { bins, end_ns: first + count * width, beyond })
}

/// The share of durations that are at least as long as certain lengths, in rising order of these: about `points` at most, denser the rarer they are.
pub fn survival(durations: &[i64], points: usize) -> Vec<(i64, f64)> {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let all = sorted.len() as f64;
    let mut found: Vec<(i64, f64)> = Vec::new();
    for step in 0..=points {
        // The number of durations at least that long: from one to all, by equal factors.
        let wanted = all.powf(step as f64 / points.max(1) as f64).round() as usize;
        let Some(value) = sorted.get(wanted.saturating_sub(1)) else { break };
        if found.last().is_none_or(|(last, _)| last != value) {
            found.push((*value, sorted.partition_point(|other| other >= value) as f64 / all));
        }
    }
    found.reverse();
    found
}

/// How often each rank was the latest, in each part of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LatestInParts {
    /// The number of the first phase of each part.
    pub first: Vec<u64>,
    /// The number of phases in the worst 1 %.
    pub worst: u64,
    /// The ranks, sorted by how often they were latest in the worst 1 %, then in all phases.
    pub ranks: Vec<LatestRank>,
}

/// How often a rank was the latest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LatestRank {
    /// The number of the rank.
    pub rank: u32,
    /// The number of phases in each part.
    pub parts: Vec<u64>,
    /// The number among the longest 1 % of all phases, at least of one.
    pub worst: u64,
}

impl LatestRank {
    /// The number of phases in all parts.
    pub fn phases(&self) -> u64 {
        self.parts.iter().sum()
    }
}

/// The number of worst-case phases among `phases`.
pub(crate) fn count_worst(phases: usize) -> usize {
    ((phases as f64 * WORST).round() as usize).clamp(1, phases.max(1))
}

/// Counts for each of `ranks` ranks how often it was latest in at most `parts` equal parts of a run, and in its worst phases.
pub fn latest_in_parts(slowest: &Slowest, ranks: u32, parts: usize) -> LatestInParts {
    let latest = &slowest.latest;
    let each = latest.len().div_ceil(parts.max(1)).max(1);
    let chunks = latest.chunks(each);
    let none = |rank| LatestRank { rank, parts: vec![0; chunks.len()], worst: 0 };
    let mut found: Vec<LatestRank> = (0..ranks).map(none).collect();
    for (part, chunk) in chunks.enumerate() {
        for rank in chunk {
            if let Some(latest_rank) = found.get_mut(*rank as usize) {
                latest_rank.parts[part] += 1;
            }
        }
    }
    let mut by_length: Vec<(i64, u32)> = slowest.total.iter().copied().zip(latest.iter().copied()).collect();
    // Of equally long phases the earlier ones come first.
    by_length.sort_by_key(|(total, _)| std::cmp::Reverse(*total));
    by_length.truncate(count_worst(by_length.len()));
    for (_, rank) in &by_length {
        if let Some(latest_rank) = found.get_mut(*rank as usize) {
            latest_rank.worst += 1;
        }
    }
    found.sort_by_key(|latest_rank| (std::cmp::Reverse((latest_rank.worst, latest_rank.phases())), latest_rank.rank));
    let first = (0..latest.len().div_ceil(each)).map(|part| (part * each) as u64).collect();
    LatestInParts { first, worst: by_length.len() as u64, ranks: found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_worst_case_is_the_mean_of_the_largest_hundredth() {
        assert_eq!(PhaseFigures::from_durations(&[]), None);
        let one = PhaseFigures::from_durations(&[7]).unwrap();
        assert_eq!((one.mean_ns, one.worst_ns, one.median_ns, one.min_ns, one.max_ns), (7.0, 7.0, 7, 7, 7));
        // 1 to 1,000 in some order: the largest ten are 991 to 1,000.
        let series: Vec<i64> = (0..1_000).map(|at| (at * 387) % 1_000 + 1).collect();
        let figures = PhaseFigures::from_durations(&series).unwrap();
        assert_eq!((figures.mean_ns, figures.worst_ns), (500.5, 995.5));
        assert_eq!((figures.median_ns, figures.min_ns, figures.max_ns), (500, 1, 1_000));
    }

    #[test]
    fn each_maximum_is_by_itself() {
        let mut slowest = Slowest::default();
        slowest.add(0, 0, &Phase { start_ns: 0, compute_ns: 100, collective_ns: 5 });
        slowest.add(1, 0, &Phase { start_ns: 9, compute_ns: 60, collective_ns: 44 });
        assert_eq!((slowest.compute[0], slowest.collective[0], slowest.total[0]), (100, 44, 105));
        slowest.add(1, 1, &Phase { start_ns: 9, compute_ns: 1, collective_ns: 2 });
        assert_eq!(slowest.latest, [0, 1]);
        assert_eq!((slowest.compute, slowest.collective, slowest.total), (vec![100, 1], vec![44, 2], vec![105, 3]));
    }

    proptest! {
        /// Compares with the plain method: all ranks of a phase side by side, in a list for each kind of time.
        #[test]
        fn maxima_and_figures_are_those_of_the_plain_way(
            ranks in (1_usize..300).prop_flat_map(|phases| {
                proptest::collection::vec(proptest::collection::vec((0_i64..1 << 40, 0_i64..1 << 40), phases), 1..5)
            })
        ) {
            let phases = ranks[0].len();
            let mut slowest = Slowest::default();
            for (number_of_rank, rank) in ranks.iter().enumerate().rev() {
                for (number, &(compute_ns, collective_ns)) in rank.iter().enumerate() {
                    slowest.add(number_of_rank as u32, number, &Phase { start_ns: 0, compute_ns, collective_ns });
                }
            }
            for number in 0..phases {
                let column: Vec<(i64, i64)> = ranks.iter().map(|rank| rank[number]).collect();
                prop_assert_eq!(slowest.compute[number], column.iter().map(|phase| phase.0).max().unwrap());
                let latest = column.iter().position(|phase| phase.0 == slowest.compute[number]).unwrap();
                prop_assert_eq!(slowest.latest[number] as usize, latest);
                prop_assert_eq!(slowest.collective[number], column.iter().map(|phase| phase.1).max().unwrap());
                prop_assert_eq!(slowest.total[number], column.iter().map(|phase| phase.0 + phase.1).max().unwrap());
            }
            let figures = PhaseFigures::from_durations(&slowest.total).unwrap();
            // The largest are removed one by one.
            let mut left = slowest.total.clone();
            let count = ((phases as f64 / 100.0).round() as usize).max(1);
            let mut worst = 0.0;
            for _ in 0..count {
                let at = (0..left.len()).max_by_key(|at| left[*at]).unwrap();
                worst += left.swap_remove(at) as f64;
            }
            prop_assert!((figures.worst_ns - worst / count as f64).abs() < 1.0);
            let mean = slowest.total.iter().map(|value| *value as f64).sum::<f64>() / phases as f64;
            prop_assert!((figures.mean_ns - mean).abs() < 1.0);
        }

        /// No phase is lost or counted twice.
        #[test]
        fn spans_cover_the_series(series in proptest::collection::vec(0_i64..1 << 40, 0..500), wanted in 0_usize..70) {
            let spans = spans(&series, wanted);
            prop_assert!(spans.len() <= wanted.max(1));
            let mut next = 0;
            for span in &spans {
                prop_assert_eq!(span.first, next);
                let part = &series[next as usize..(next + span.phases) as usize];
                prop_assert_eq!(span.max_ns, *part.iter().max().unwrap());
                prop_assert_eq!(span.min_ns, *part.iter().min().unwrap());
                let longest = next as usize + part.iter().position(|value| *value == span.max_ns).unwrap();
                prop_assert_eq!(span.longest as usize, longest);
                next += span.phases;
            }
            prop_assert_eq!(next, series.len() as u64);
        }

        /// Every duration is counted once, and at most 1 % are not drawn.
        #[test]
        fn histograms_count_every_duration_once(series in proptest::collection::vec(0_i64..1 << 40, 1..500), bins in 1_usize..70) {
            let found = histogram(&series, bins).unwrap();
            prop_assert!(found.bins.len() <= bins && found.beyond as usize * 100 <= series.len());
            let ends = found.bins.iter().skip(1).map(|bin| bin.0).chain([found.end_ns]);
            for ((from, count), end) in found.bins.iter().zip(ends) {
                prop_assert_eq!(series.iter().filter(|value| (*from..end).contains(*value)).count() as u64, *count);
            }
            prop_assert_eq!(series.iter().filter(|value| **value >= found.end_ns).count() as u64, found.beyond);
        }

        /// Each share equals that of the plain method, and the longest and the shortest duration are included.
        #[test]
        fn survival_is_that_of_the_plain_way(series in proptest::collection::vec(0_i64..200, 1..500), points in 1_usize..70) {
            let found = survival(&series, points);
            prop_assert!(found.len() <= points + 1 && found.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for (value, share) in &found {
                let longer = series.iter().filter(|other| *other >= value).count();
                prop_assert!((longer as f64 / series.len() as f64 - share).abs() < 1e-12);
            }
            let ends = (found[0].0, found[found.len() - 1].0);
            prop_assert_eq!(ends, (*series.iter().min().unwrap(), *series.iter().max().unwrap()));
        }

        /// No phase is lost or counted twice, and the latest ranks come first.
        #[test]
        fn each_phase_has_one_latest_rank(phases in proptest::collection::vec((0_i64..50, 0_u32..5), 0..500), parts in 1_usize..70) {
            let (total, latest): (Vec<i64>, Vec<u32>) = phases.iter().copied().unzip();
            let slowest = Slowest { total: total.clone(), latest: latest.clone(), ..Slowest::default() };
            let found = latest_in_parts(&slowest, 5, parts);
            prop_assert!(found.first.len() <= parts && found.ranks.len() == 5);
            let order: Vec<(u64, u64)> = found.ranks.iter().map(|latest_rank| (latest_rank.worst, latest_rank.phases())).collect();
            prop_assert!(order.windows(2).all(|pair| pair[0] >= pair[1]));
            prop_assert_eq!(found.ranks.iter().map(|latest_rank| latest_rank.worst).sum::<u64>(), found.worst);
            // The plain method: the longest are removed one by one.
            let mut left: Vec<(usize, i64)> = total.iter().copied().enumerate().collect();
            let mut worst = [0_u64; 5];
            for _ in 0..found.worst {
                let longest = (0..left.len()).rev().max_by_key(|at| left[*at].1).unwrap();
                worst[latest[left.remove(longest).0] as usize] += 1;
            }
            for latest_rank in &found.ranks {
                prop_assert_eq!(latest.iter().filter(|rank| **rank == latest_rank.rank).count() as u64, latest_rank.phases());
                prop_assert_eq!(worst[latest_rank.rank as usize], latest_rank.worst);
                prop_assert_eq!(latest_rank.parts.len(), found.first.len());
            }
        }
    }
}
