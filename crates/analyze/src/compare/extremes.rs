//! The longest detours of two runs against each other.
//!
//! The longest detour of a run is one value, and it grows with the run's length: two of them show nothing. So both runs
//! are cut into stretches of the same length, and the longest detours of these are compared by ranks: H. B. Mann, D. R.
//! Whitney, Annals of Mathematical Statistics 18 (1947), with the correction for ties; the shift and its interval after
//! J. L. Hodges, E. L. Lehmann, ibid. 34 (1963), from the differences of all pairs, and the ratio of all pairs by the same
//! ranks; the effect size is N. Cliff's delta, Psychological Bulletin 114 (1993): the share of pairs in which b is longer
//! less that in which a is.

use super::Doubt;
use super::student;
use crate::stats::CONFIDENCE;

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

    /// As many neighbors together as it takes to hold `train`, so that the stretches do not depend on each other.
    fn holding(&self, train: i64) -> Self {
        let together = (train.max(1) - 1) / self.width + 1;
        let whole = self.longest.chunks_exact(together as usize);
        let longest = whole.map(|stretches| stretches.iter().copied().max().unwrap_or(0)).collect();
        Self { start: self.start, width: self.width.saturating_mul(together), longest }
    }

    /// The median of the longest detours.
    fn median(&self) -> f64 {
        let mut sorted = self.longest.clone();
        sorted.sort_unstable();
        let n = sorted.len();
        f64::midpoint(sorted[(n - 1) / 2] as f64, sorted[n / 2] as f64)
    }
}

/// What the longest detours of two runs say of each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Ranked {
    /// How long the stretches are.
    pub(super) width_ns: i64,
    /// The median of each run's stretches.
    pub(super) a: f64,
    pub(super) b: f64,
    /// The shift from a to b: the median difference of a pair.
    pub(super) shift: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The median ratio of a pair, and its interval; none where that is infinite.
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
    differences.sort_unstable_by(f64::total_cmp);
    ratios.sort_unstable_by(f64::total_cmp);
    // The rank at which the test over the shifts turns: U = pairs / 2 - t * its standard deviation. Its variance without
    // ties, which is the larger one.
    let df = (m + n - 2) as f64;
    let half = student::critical((1.0 - CONFIDENCE) / 2.0, df) * (pairs * (m + n + 1) as f64 / 12.0).sqrt();
    let first = ((pairs / 2.0 - half).floor().max(0.0) as usize).min(m * n - 1);
    let of = |sorted: &[f64]| {
        let middle = f64::midpoint(sorted[(m * n - 1) / 2], sorted[m * n / 2]);
        (middle, sorted[first], sorted[m * n - 1 - first])
    };
    let finite = |ratio: f64| Some(ratio).filter(|ratio| ratio.is_finite());
    let ((shift, low, high), (ratio, ratio_low, ratio_high)) = (of(&differences), of(&ratios));
    // U is delta scaled, so its z is delta over delta's standard deviation; half a pair off for continuity.
    let z = ((longer.abs() as f64 - 1.0).max(0.0) / 2.0) / variance.sqrt();
    let p_value = if variance > 0.0 { (2.0 * student::upper_tail(z, df)).min(1.0) } else { 1.0 };
    Ok(Ranked {
        width_ns: a.width,
        a: a.median(),
        b: b.median(),
        shift,
        low,
        high,
        ratio: finite(ratio),
        ratio_low: finite(ratio_low),
        ratio_high: finite(ratio_high),
        delta,
        p_value,
    })
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
        assert_eq!((found.shift, found.delta), (20.0, 1.0));
        assert!(found.low > 10.0 && found.high < 30.0 && found.p_value < 1e-4, "{found:?}");
        assert_eq!(rank(&stretches(&a), &stretches(&a), 1).unwrap().p_value, 1.0);
    }

    #[test]
    fn runs_without_detours_are_equal() {
        let none = rank(&stretches(&[0; 20]), &stretches(&[0; 30]), 1).unwrap();
        assert_eq!((none.p_value, none.shift, none.ratio, none.delta), (1.0, 0.0, Some(1.0), 0.0));
        assert!(matches!(
            rank(&stretches(&[0; 20]), &stretches(&[0; 30]), 2_000),
            Err(Doubt::FewStretches { stretches: 10, width_ns: 2_000 })
        ));
    }

    proptest! {
        #[test]
        fn exchanging_the_runs_turns_the_signs(
            a in proptest::collection::vec(0_i64..50, 12..30), b in proptest::collection::vec(0_i64..60, 12..30),
        ) {
            let there = rank(&stretches(&a), &stretches(&b), 1).unwrap();
            let back = rank(&stretches(&b), &stretches(&a), 1).unwrap();
            prop_assert_eq!((there.low, there.high, there.delta), (-back.high, -back.low, -back.delta));
            prop_assert!((there.p_value - back.p_value).abs() < 1e-12);
            prop_assert!(there.low <= there.shift && there.shift <= there.high);
        }
    }
}
