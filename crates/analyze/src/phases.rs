//! What the phases of a parallel benchmark come to (De et al. 2009): in every phase the slowest rank, and of those the
//! average and the worst.
//!
//! Of each rank and phase, qt is the time of the compute phase, bt that of the collective, and qtbt both together. A job
//! waits for its slowest rank, so each is reduced to its maximum over the ranks first, each by itself: the rank that computes
//! longest is the one that waits least in the collective.

use becalm_bundle::Phase;

/// The share of the phases that the worst case is the mean of (De et al. 2009).
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
}

impl Slowest {
    /// Takes in a phase of a rank. The phases of a rank come in their order, so that no more room is taken than there are phases.
    ///
    /// # Panics
    /// If there is neither such a phase nor one before it.
    pub fn add(&mut self, number: usize, phase: &Phase) {
        if number == self.total.len() {
            [&mut self.compute, &mut self.collective, &mut self.total].into_iter().for_each(|series| series.push(0));
        }
        let Phase { compute_ns, collective_ns, .. } = *phase;
        let largest = |value: &mut i64, new: i64| *value = (*value).max(new);
        largest(&mut self.compute[number], compute_ns);
        largest(&mut self.collective[number], collective_ns);
        largest(&mut self.total[number], compute_ns + collective_ns);
    }
}

/// What a series of durations comes to, in nanoseconds.
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
    /// Computes the figures of a series of durations in nanoseconds; `None` of an empty series.
    #[must_use]
    pub fn from_durations(durations: &[i64]) -> Option<Self> {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        let (&min_ns, &max_ns) = (sorted.first()?, sorted.last()?);
        let worst = ((sorted.len() as f64 * WORST).round() as usize).max(1);
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
    /// The longest of these phases, in nanoseconds.
    pub max_ns: i64,
}

/// The time series in at most `spans` equal parts, or one a phase where there are not so many.
#[must_use]
pub fn spans(durations: &[i64], spans: usize) -> Vec<PhaseSpan> {
    let each = durations.len().div_ceil(spans.max(1)).max(1);
    let span = |(at, part): (usize, &[i64])| PhaseSpan {
        first: (at * each) as u64,
        phases: part.len() as u64,
        mean_ns: part.iter().map(|value| i128::from(*value)).sum::<i128>() as f64 / part.len() as f64,
        max_ns: part.iter().copied().max().unwrap_or(0),
    };
    durations.chunks(each).enumerate().map(span).collect()
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
        slowest.add(0, &Phase { start_ns: 0, compute_ns: 100, collective_ns: 5 });
        slowest.add(0, &Phase { start_ns: 9, compute_ns: 60, collective_ns: 44 });
        assert_eq!((slowest.compute[0], slowest.collective[0], slowest.total[0]), (100, 44, 105));
        slowest.add(1, &Phase { start_ns: 9, compute_ns: 1, collective_ns: 2 });
        assert_eq!((slowest.compute, slowest.collective, slowest.total), (vec![100, 1], vec![44, 2], vec![105, 3]));
    }

    proptest! {
        /// Compares with the plain way: all ranks of a phase side by side, in a list for each kind of time.
        #[test]
        fn maxima_and_figures_are_those_of_the_plain_way(
            ranks in (1_usize..300).prop_flat_map(|phases| {
                proptest::collection::vec(proptest::collection::vec((0_i64..1 << 40, 0_i64..1 << 40), phases), 1..5)
            })
        ) {
            let phases = ranks[0].len();
            let mut slowest = Slowest::default();
            for rank in &ranks {
                for (number, &(compute_ns, collective_ns)) in rank.iter().enumerate() {
                    slowest.add(number, &Phase { start_ns: 0, compute_ns, collective_ns });
                }
            }
            for number in 0..phases {
                let column: Vec<(i64, i64)> = ranks.iter().map(|rank| rank[number]).collect();
                prop_assert_eq!(slowest.compute[number], column.iter().map(|phase| phase.0).max().unwrap());
                prop_assert_eq!(slowest.collective[number], column.iter().map(|phase| phase.1).max().unwrap());
                prop_assert_eq!(slowest.total[number], column.iter().map(|phase| phase.0 + phase.1).max().unwrap());
            }
            let figures = PhaseFigures::from_durations(&slowest.total).unwrap();
            // The largest are taken out one by one.
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
                next += span.phases;
            }
            prop_assert_eq!(next, series.len() as u64);
        }
    }
}
