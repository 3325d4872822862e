//! The longest detours of two runs against each other.
//!
//! The longest detour of a run is one value, and it grows with the run's length: two of them show nothing. So both runs
//! are cut into stretches of the same length, and the longest detours of these are compared by ranks: H. B. Mann, D. R.
//! Whitney, Annals of Mathematical Statistics 18 (1947), with the correction for ties; the shift and its interval after
//! J. L. Hodges, E. L. Lehmann, ibid. 34 (1963), from the differences of all pairs, and the ratio of all pairs by the same
//! ranks; the effect size is N. Cliff's delta, Psychological Bulletin 114 (1993): the share of pairs in which b is longer
//! less that in which a is.
//!
//! The medians of the two runs are not what these ranks compare: their ratio may lie on the other side of 1, and outside of
//! the interval. What is shown of each run is therefore where its stretches lie if the two differ by the ratio of the
//! pairs: the median of the stretches of both, brought to one scale by that ratio ([`typical`]).

use super::Doubt;
use super::between::RunFigure;
use becalm_stats::CONFIDENCE;
use becalm_stats::{median_mid, student_quantile, student_tail};

/// A run must have as many stretches.
const STRETCHES_MIN: usize = 12;

/// Stretches of equal length, each with its longest detour.
#[derive(Clone, Debug)]
pub(super) struct Stretches {
    start: i64,
    width: i64,
    longest: Vec<i64>,
}

impl Stretches {
    /// Of a run of `length` from `start` on, in nanoseconds; what is left after the last whole stretch is not counted.
    pub(super) fn new(start: i64, length: i64, width: i64) -> Self {
        let width = width.max(1);
        Self { start, width, longest: vec![0; (length.max(0) / width) as usize] }
    }

    #[inline]
    pub(super) fn add(&mut self, start: i64, duration: i64) {
        let at = start.saturating_sub(self.start) / self.width;
        if let Some(longest) = usize::try_from(at).ok().and_then(|at| self.longest.get_mut(at)) {
            *longest = duration.max(*longest);
        }
    }

    /// How long a stretch is, in nanoseconds.
    pub(super) const fn width(&self) -> i64 {
        self.width
    }

    /// The median of the stretches' longest detours, with its variance by the ranks about it; `None` of no stretches.
    ///
    /// How many of n values lie below the true median is binomial with the standard deviation sqrt(n)/2, so that the ranks
    /// n/2 -+ sqrt(n)/2 lie one standard error from it (W. J. Conover, *Practical Nonparametric Statistics*, 1999, section 3.2).
    pub(super) fn typical(&self) -> Option<RunFigure> {
        let mut longest: Vec<f64> = self.longest.iter().map(|ns| *ns as f64).collect();
        let value = median_mid(&mut longest)?;
        longest.sort_unstable_by(f64::total_cmp);
        let (middle, error) = (longest.len() as f64 / 2.0, (longest.len() as f64).sqrt() / 2.0);
        let at = |rank: f64| longest[(rank.max(0.0) as usize).min(longest.len() - 1)];
        Some(RunFigure::new(value, ((at(middle + error) - at(middle - error)) / 2.0).powi(2)))
    }

    /// As many neighbors together as it takes to hold `train`, so that the stretches do not depend on each other.
    fn holding(&self, train: i64) -> Self {
        let together = (train.max(1) - 1) / self.width + 1;
        let whole = self.longest.chunks_exact(together as usize);
        let longest = whole.map(|stretches| stretches.iter().copied().max().unwrap_or(0)).collect();
        Self { start: self.start, width: self.width.saturating_mul(together), longest }
    }
}

/// What the longest detours of two runs say of each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Ranked {
    /// How long the stretches are.
    pub(super) width_ns: i64,
    /// What is typical of each run's stretches, in nanoseconds; where there is a ratio, b is a times that.
    pub(super) a: f64,
    pub(super) b: f64,
    /// The interval of b - a: that of the median difference of a pair, and b - a itself.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The median ratio of a pair (of an even number the geometric mean of the two in the middle, so that an exchange of
    /// the runs turns it around), and its interval; `None` where that is infinite.
    pub(super) ratio: Option<f64>,
    pub(super) ratio_low: Option<f64>,
    pub(super) ratio_high: Option<f64>,
    /// Cliff's delta, from -1 to 1.
    pub(super) delta: f64,
    /// The two-sided p-value of no difference.
    pub(super) p_value: f64,
}

/// Compares runs whose stretches are equally long, with trains of detours up to `train` nanoseconds long.
///
/// # Errors
/// If one of them has too few stretches.
pub(super) fn rank(a: &Stretches, b: &Stretches, train: i64) -> Result<Ranked, Doubt> {
    let (a, b) = (a.holding(train), b.holding(train));
    let (m, n) = (a.longest.len(), b.longest.len());
    if m < STRETCHES_MIN || n < STRETCHES_MIN {
        return Err(Doubt::FewStretches { stretches: m.min(n), width_ns: a.width });
    }
    let pairs = (m * n) as f64;
    let each = || a.longest.iter().flat_map(|a| b.longest.iter().map(move |b| (*a, *b)));
    let longer: i64 = each().map(|(a, b)| (b > a) as i64 - (b < a) as i64).sum();
    let delta = longer as f64 / pairs;
    let variance = variance(&a.longest, &b.longest);

    let mut differences: Vec<f64> = each().map(|(a, b)| (b - a) as f64).collect();
    let mut ratios: Vec<f64> = each().map(|(a, b)| if a == b { 1.0 } else { b as f64 / a as f64 }).collect();
    // The rank at which the test over the shifts turns: U = pairs / 2 - t * its standard deviation. Its variance without
    // ties, which is the larger one.
    let df = (m + n - 2) as f64;
    let half = student_quantile((1.0 - CONFIDENCE) / 2.0, df) * (pairs * (m + n + 1) as f64 / 12.0).sqrt();
    let first = ((pairs / 2.0 - half).floor().max(0.0) as usize).min(m * n - 1);
    // Of all pairs there are many, and only those at a few ranks are asked for.
    let at = |values: &mut [f64], rank: usize| *values.select_nth_unstable_by(rank, f64::total_cmp).1;
    let ends = |values: &mut [f64]| (at(values, first), at(values, m * n - 1 - first));
    let ((low, high), (ratio_low, ratio_high)) = (ends(&mut differences), ends(&mut ratios));
    let finite = |ratio: f64| Some(ratio).filter(|ratio| ratio.is_finite());
    let ratio = finite((at(&mut ratios, (m * n - 1) / 2) * at(&mut ratios, m * n / 2)).sqrt());
    let (typical_a, typical_b) = typical(&a.longest, &b.longest, ratio);
    let difference = typical_b - typical_a;
    // U is delta scaled, so its z is delta over delta's standard deviation; half a pair off for continuity.
    let z = ((longer.abs() as f64 - 1.0).max(0.0) / 2.0) / variance.sqrt();
    let p_value = if variance > 0.0 { (2.0 * student_tail(z, df)).min(1.0) } else { 1.0 };
    Ok(Ranked {
        width_ns: a.width,
        a: typical_a,
        b: typical_b,
        // Differences and ratios are two models; where the lengths scatter much, the one may put b - a just outside.
        low: low.min(difference),
        high: high.max(difference),
        ratio,
        ratio_low: finite(ratio_low),
        ratio_high: finite(ratio_high),
        delta,
        p_value,
    })
}

/// What is typical of each run's stretches if they differ by this ratio: the median of all of them, brought to the scale of
/// the one run and of the other. An exchange of the runs exchanges the two.
fn typical(a: &[i64], b: &[i64], ratio: Option<f64>) -> (f64, f64) {
    let [a, b] = [a, b].map(|longest| longest.iter().map(|ns| *ns as f64));
    match ratio.filter(|ratio| *ratio > 0.0) {
        Some(ratio) => {
            let a = median(a.chain(b.map(|ns| ns / ratio)).collect());
            (a, ratio * a)
        }
        // In half of the pairs or more only one of the runs has a detour.
        None => (median(a.collect()), median(b.collect())),
    }
}

/// The median of the longest detours, of which there are some on both sides.
fn median(mut values: Vec<f64>) -> f64 {
    median_mid(&mut values).unwrap_or(f64::NAN)
}

/// The variance of Mann and Whitney's U without a difference, corrected for ties.
fn variance(a: &[i64], b: &[i64]) -> f64 {
    let mut all: Vec<i64> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let n = all.len() as f64;
    let ties: f64 = all.chunk_by(|a, b| a == b).map(|tied| (tied.len() as f64).powi(3) - tied.len() as f64).sum();
    (a.len() * b.len()) as f64 / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretches(longest: &[i64]) -> Stretches {
        Stretches { start: 0, width: 1_000, longest: longest.to_vec() }
    }

    #[test]
    fn detours_are_kept_by_stretch() {
        let mut found = Stretches::new(500, 3_400, 1_000);
        for (start, duration) in [(500, 7), (1_499, 9), (1_500, 3), (3_500, 99), (i64::MIN, 5), (i64::MAX, 5)] {
            found.add(start, duration);
        }
        assert_eq!(found.longest, [9, 3, 0]);
        assert_eq!(found.holding(1_001).longest, [9]);
        assert_eq!(found.holding(1_000).longest, [9, 3, 0]);
    }

    /// The example of Hollander, Wolfe, *Nonparametric statistical methods*, in small: fifteen of each, b ten longer.
    #[test]
    fn a_shift_is_found_exactly() {
        let a: Vec<i64> = (0..15).map(|k| 100 + 7 * k % 15).collect();
        let b: Vec<i64> = a.iter().map(|a| a + 20).collect();
        let found = rank(&stretches(&a), &stretches(&b), 1).unwrap();
        assert_eq!(found.delta, 1.0);
        assert!((found.b - found.a - 20.0).abs() < 1.0, "{found:?}");
        assert!(found.low > 10.0 && found.high < 30.0 && found.p_value < 1e-4, "{found:?}");
        assert_eq!(rank(&stretches(&a), &stretches(&a), 1).unwrap().p_value, 1.0);
    }

    #[test]
    fn runs_without_detours_are_equal() {
        let none = rank(&stretches(&[0; 20]), &stretches(&[0; 30]), 1).unwrap();
        assert_eq!((none.p_value, none.a, none.b, none.ratio, none.delta), (1.0, 0.0, 0.0, Some(1.0), 0.0));
        assert!(matches!(
            rank(&stretches(&[0; 20]), &stretches(&[0; 30]), 2_000),
            Err(Doubt::FewStretches { stretches: 10, width_ns: 2_000 })
        ));
    }

    /// The medians say that b is a little shorter, the pairs that it is longer.
    #[test]
    fn what_is_shown_goes_the_way_of_the_ranks() {
        let a: Vec<i64> = [10; 6].into_iter().chain([100; 7]).collect();
        let b: Vec<i64> = [60; 3].into_iter().chain([99; 4]).chain([200; 6]).collect();
        let found = rank(&stretches(&a), &stretches(&b), 1).unwrap();
        let medians = [&a, &b].map(|longest| median(longest.iter().map(|ns| *ns as f64).collect()));
        assert_eq!(medians, [100.0, 99.0]);
        assert!(found.delta > 0.0 && found.ratio > Some(1.0) && found.b > found.a, "{found:?}");
    }

    proptest! {
        #[test]
        fn exchanging_the_runs_turns_the_signs(
            a in proptest::collection::vec(0_i64..50, 12..30), b in proptest::collection::vec(0_i64..60, 12..30),
        ) {
            let there = rank(&stretches(&a), &stretches(&b), 1).unwrap();
            let back = rank(&stretches(&b), &stretches(&a), 1).unwrap();
            let near = |x: f64, y: f64| (x - y).abs() <= 1e-9 * x.abs().max(1.0);
            prop_assert!(near(there.low, -back.high) && near(there.high, -back.low), "{:?} {:?}", there, back);
            prop_assert!(near(there.a, back.b) && near(there.b, back.a), "{:?} {:?}", there, back);
            prop_assert_eq!(there.delta, -back.delta);
            prop_assert!((there.p_value - back.p_value).abs() < 1e-12);
        }

        /// The intervals end at the ranks of all pairs in order.
        #[test]
        fn ranks_are_those_of_sorted_pairs(
            a in proptest::collection::vec(1_i64..50, 12..30), b in proptest::collection::vec(1_i64..90, 12..30),
        ) {
            let found = rank(&stretches(&a), &stretches(&b), 1).unwrap();
            let (m, n) = (a.len() as f64, b.len() as f64);
            let mut ratios: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| *b as f64 / *a as f64)).collect();
            ratios.sort_unstable_by(f64::total_cmp);
            let half = student_quantile((1.0 - CONFIDENCE) / 2.0, m + n - 2.0) * (m * n * (m + n + 1.0) / 12.0).sqrt();
            let (first, last) = ((m * n / 2.0 - half).floor().max(0.0) as usize, ratios.len() - 1);
            prop_assert_eq!((found.ratio_low, found.ratio_high), (Some(ratios[first]), Some(ratios[last - first])));
            prop_assert_eq!(found.ratio, Some((ratios[last / 2] * ratios[last.div_ceil(2)]).sqrt()));
        }

        /// Whatever is shown of one comparison says the same: the two figures, the change, both intervals, the ranks.
        #[test]
        fn nothing_that_is_shown_contradicts_the_rest(
            a in proptest::collection::vec(0_i64..50, 12..30), b in proptest::collection::vec(0_i64..90, 12..30),
        ) {
            let found = rank(&stretches(&a), &stretches(&b), 1).unwrap();
            let difference = found.b - found.a;
            prop_assert!(found.low <= difference && difference <= found.high, "{:?}", found);
            // An interval on one side of no difference has everything else on that side.
            prop_assert!(found.low <= 0.0 || found.delta > 0.0, "{:?}", found);
            prop_assert!(found.high >= 0.0 || found.delta < 0.0, "{:?}", found);
            if let Some(ratio) = found.ratio {
                prop_assert!((found.b - ratio * found.a).abs() <= 1e-9 * found.b.max(1.0), "{:?}", found);
                prop_assert!(found.ratio_low.is_some_and(|low| low <= ratio), "{:?}", found);
                prop_assert!(found.ratio_high.is_none_or(|high| ratio <= high), "{:?}", found);
                prop_assert_eq!(found.low > 0.0, found.ratio_low > Some(1.0), "{:?}", found);
                prop_assert_eq!(found.high < 0.0, found.ratio_high.is_some_and(|high| high < 1.0), "{:?}", found);
            }
        }
    }
}
