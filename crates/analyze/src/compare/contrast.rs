//! Two runs' figures against each other: the difference, the ratio, their intervals and the test, all from the same
//! redraws, so that they never contradict each other.
//!
//! Of figures a and b and any ratio r the pivot is (b - r a) / sqrt(var b + r^2 var a), the studentized statistic of two
//! samples (B. Efron, R. Tibshirani, *An Introduction to the Bootstrap*, 1993, sections 12.5 and 16.2), and its
//! distribution is that over the redraws of both runs, or Student's t with Welch's degrees of freedom (B. L. Welch,
//! Biometrika 34, 1947) where that reaches further. Redraws know of skewness, which two runs of different lengths do not
//! share; of a few heavy detours they know too little, and t is the more careful one:
//!
//! - with r = 1 its quantiles give the interval of the difference b - a, and its tails the p-value of no difference;
//! - the ratios r at which b - r a is not shown to differ from 0 are the interval of the ratio b / a, after E. C. Fieller,
//!   *Some problems in interval estimation*, Journal of the Royal Statistical Society B 16 (1954). It holds 1 exactly if
//!   the interval of the difference holds 0.
//!
//! Redraws resolve p-values down to about their number's inverse, and many rows at once need smaller ones. Beyond the
//! tenth most extreme redraw the tail is taken to fall as that of the same t.

use super::series::Scatter;
use super::{Doubt, series};
use becalm_stats::{CONFIDENCE, nearest_rank, student_quantile, student_tail};

/// The figures of both runs must together rest on this many equal blocks, as those of one run for its interval.
const TRAINS_MIN: f64 = 10.0;

/// Tails are counted where at least this many redraws lie in them.
const COUNTED: usize = 10;

/// Beyond this a ratio is not looked for.
const RATIO_MAX: f64 = 1e9;

/// What two figures say of each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Contrast {
    /// The interval of b - a.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The interval of b / a; no upper end where a cannot be told from 0, nothing where a is 0.
    pub(crate) ratio_low: Option<f64>,
    pub(crate) ratio_high: Option<f64>,
    /// The two-sided p-value of no difference.
    pub(crate) p_value: f64,
}

/// Holds two figures against each other.
///
/// # Errors
/// If they rest on too little.
pub(super) fn contrast(a: &Scatter, b: &Scatter) -> Result<Contrast, Doubt> {
    let trains = series::trains(a, b);
    if trains < TRAINS_MIN {
        return Err(Doubt::FewTrains { trains });
    }
    let pair = PairOfRuns::new(a, b);
    let mut pivots = Vec::with_capacity(a.redraws.len());
    let (low, high) = pair.interval(1.0, &mut pivots);
    let p_value = pair.p_value(&mut pivots);
    let (ratio_low, ratio_high) = if a.value > 0.0 { pair.ratios() } else { (None, None) };
    Ok(Contrast { low, high, ratio_low, ratio_high, p_value })
}

struct PairOfRuns<'a> {
    a: &'a Scatter,
    b: &'a Scatter,
    /// Welch's degrees of freedom.
    df: f64,
    /// The t that is exceeded at the interval's level.
    critical: f64,
}

impl<'a> PairOfRuns<'a> {
    fn new(a: &'a Scatter, b: &'a Scatter) -> Self {
        let part = |side: &Scatter| side.variance * side.variance / (side.draws - 1) as f64;
        let df = (a.variance + b.variance).powi(2) / (part(a) + part(b));
        // Without any scatter the degrees of freedom do not matter.
        let df = if df.is_finite() { df } else { 1.0 };
        Self { a, b, df, critical: student_quantile((1.0 - CONFIDENCE) / 2.0, df) }
    }

    /// The standard error of b - r a.
    fn error(&self, r: f64) -> f64 {
        (self.b.variance + r * r * self.a.variance).sqrt()
    }

    /// The interval of b - r a.
    fn interval(&self, r: f64, pivots: &mut Vec<f64>) -> (f64, f64) {
        let (difference, error) = (self.b.value - r * self.a.value, self.error(r));
        if error == 0.0 {
            return (difference, difference);
        }
        pivots.clear();
        pivots.extend(self.pivots(r));
        let (low, high) = tail_ranks(pivots.len());
        let (below, upper, _) = pivots.select_nth_unstable_by(high, f64::total_cmp);
        let upper = upper.max(self.critical);
        let lower = below.select_nth_unstable_by(low, f64::total_cmp).1.min(-self.critical);
        (difference - upper * error, difference - lower * error)
    }

    /// How far each pair of redraws is off, in units of its own error.
    fn pivots(&self, r: f64) -> impl Iterator<Item = f64> + '_ {
        self.a.redraws.iter().zip(&self.b.redraws).map(move |(a, b)| {
            let shift = b.shift - r * a.shift;
            let spread = b.variance + r * r * a.variance;
            // Of redraws without any spread only the sign is known.
            match (spread > 0.0, shift == 0.0) {
                (true, _) => shift / spread.sqrt(),
                (false, true) => 0.0,
                (false, false) => f64::INFINITY.copysign(shift),
            }
        })
    }

    /// Whether the lower end of [`Self::interval`] is at most 0. Counting does, where that sorts.
    fn reaches_down(&self, r: f64) -> bool {
        let (difference, error) = (self.b.value - r * self.a.value, self.error(r));
        if error == 0.0 || difference - self.critical * error <= 0.0 {
            return difference <= 0.0 || error > 0.0;
        }
        let short = self.pivots(r).filter(|pivot| difference - pivot * error > 0.0).count();
        short <= tail_ranks(self.a.redraws.len()).1
    }

    /// Whether its upper end is at least 0.
    fn reaches_up(&self, r: f64) -> bool {
        let (difference, error) = (self.b.value - r * self.a.value, self.error(r));
        if error == 0.0 || difference + self.critical * error >= 0.0 {
            return difference >= 0.0 || error > 0.0;
        }
        let enough = self.pivots(r).filter(|pivot| difference - pivot * error >= 0.0).count();
        enough > tail_ranks(self.a.redraws.len()).0
    }

    /// Of no difference, from the pivots, which change their places.
    fn p_value(&self, pivots: &mut [f64]) -> f64 {
        let difference = self.b.value - self.a.value;
        let error = self.error(1.0);
        if error == 0.0 {
            // Two runs in which every cell is like every other.
            return if difference == 0.0 { 1.0 } else { 0.0 };
        }
        let (t, n) = (difference / error, pivots.len());
        let tenth = COUNTED.min(n) - 1;
        let largest = *pivots.select_nth_unstable_by(n - 1 - tenth, f64::total_cmp).1;
        let smallest = *pivots.select_nth_unstable_by(tenth, f64::total_cmp).1;
        let share = |reached: usize, anchor, t| tail(reached, n, anchor, t, self.df);
        let above = share(pivots.iter().filter(|pivot| **pivot >= t).count(), largest, t);
        let under = share(pivots.iter().filter(|pivot| **pivot <= t).count(), -smallest, -t);
        (2.0 * above.min(under).max(student_tail(t.abs(), self.df))).min(1.0)
    }

    /// The ratios that the runs allow.
    fn ratios(&self) -> (Option<f64>, Option<f64>) {
        let estimate = self.b.value / self.a.value;
        let search = |mut inside: f64, mut outside: f64, allowed: &dyn Fn(f64) -> bool| {
            for _ in 0..32 {
                let middle = f64::midpoint(inside, outside);
                if allowed(middle) { inside = middle } else { outside = middle }
            }
            f64::midpoint(inside, outside)
        };
        let low = if estimate > 0.0 { search(estimate, 0.0, &|r| self.reaches_down(r)) } else { 0.0 };
        let mut beyond = estimate.max(1e-9);
        loop {
            beyond *= 2.0;
            if beyond > RATIO_MAX {
                return (Some(low), None);
            }
            if !self.reaches_up(beyond) {
                break;
            }
        }
        (Some(low), Some(search(estimate, beyond, &|r| self.reaches_up(r))))
    }
}

/// Where the quantiles that end the interval stand among `n` sorted pivots.
fn tail_ranks(n: usize) -> (usize, usize) {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    (nearest_rank(tail, n), nearest_rank(1.0 - tail, n))
}

/// The share of `n` pivots that are at least `t`, which `reached` of them are; the tenth largest is `anchor`.
fn tail(reached: usize, n: usize, anchor: f64, t: f64, df: f64) -> f64 {
    if reached >= COUNTED || anchor <= 0.0 || !anchor.is_finite() {
        return reached.max(1) as f64 / n as f64;
    }
    COUNTED as f64 / n as f64 * student_tail(t, df) / student_tail(anchor, df)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::compare::series::Redraw;

    fn scatter() -> impl Strategy<Value = Scatter> {
        // Few values, so that pivots are equal to each other and to the ends.
        let redraw = (-3_i32..4, 0_i32..3)
            .prop_map(|(shift, variance)| Redraw { shift: shift.into(), variance: variance.into() });
        (0_i32..5, 0_i32..3, prop::collection::vec(redraw, 200))
            .prop_map(|(value, variance, redraws)| Scatter::made_up(value.into(), variance.into(), redraws))
    }

    /// Pivots that differ from each other, and figures that are so far apart that few of them reach there, or all.
    fn smooth() -> impl Strategy<Value = Scatter> {
        let redraw = (-2.0..2.0, 0.5..1.5).prop_map(|(shift, variance)| Redraw { shift, variance });
        (0.0..5.0, 0.5..1.5, prop::collection::vec(redraw, 200))
            .prop_map(|(value, variance, redraws)| Scatter::made_up(value, variance, redraws))
    }

    proptest! {
        #[test]
        fn counting_says_what_the_interval_says(a in scatter(), b in scatter(), r in prop::sample::select(&[0.0, 0.25, 0.5, 1.0, 1.5, 3.0][..])) {
            let pair = PairOfRuns::new(&a, &b);
            let (low, high) = pair.interval(r, &mut Vec::new());
            prop_assert_eq!(pair.reaches_down(r), low <= 0.0, "{}", low);
            prop_assert_eq!(pair.reaches_up(r), high >= 0.0, "{}", high);
        }

        /// As of pivots that are sorted.
        #[test]
        fn the_test_is_that_of_sorted_pivots(a in smooth(), b in smooth()) {
            let pair = PairOfRuns::new(&a, &b);
            let mut pivots: Vec<f64> = pair.pivots(1.0).collect();
            let found = pair.p_value(&mut pivots);
            pivots.sort_unstable_by(f64::total_cmp);
            let (n, error) = (pivots.len(), pair.error(1.0));
            if error > 0.0 {
                let t = (b.value - a.value) / error;
                let share = |falling: &[f64], t: f64| {
                    let reached = falling.iter().take_while(|pivot| **pivot >= t).count();
                    tail(reached, n, falling[COUNTED - 1], t, pair.df)
                };
                let falling: Vec<f64> = pivots.iter().rev().copied().collect();
                let rising: Vec<f64> = pivots.iter().map(|pivot| -pivot).collect();
                let each = share(&falling, t).min(share(&rising, -t));
                prop_assert_eq!(found, (2.0 * each.max(student_tail(t.abs(), pair.df))).min(1.0));
            }
        }
    }
}
