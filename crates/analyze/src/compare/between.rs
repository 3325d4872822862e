//! Several runs a side: what each run has of a figure is one value, and the sides are samples of such values.
//!
//! Two runs of the same machine, one after the other, differ by more than either scatters within itself: a neighbor of the
//! virtual machine, a daemon's hour, where the kernel put a timer. The scatter between the runs of a side knows of that, whatever
//! it comes from. The test is B. L. Welch's (Biometrika 34, 1947) of the two means, with each run counting alike, so that the
//! sides need neither as many runs nor the same scatter.
//!
//! - Of three runs the scatter may by chance be far too small. What the blocks within the runs say of the variance of one run's
//!   figure is its floor, as runs cannot differ by less.
//! - A side with one run has no scatter of its own. It is taken to be that of the other side, absolute or in proportion to the
//!   figure, whichever is larger; then its degrees of freedom are the other side's.
//! - The interval of the ratio b / a is that of E. C. Fieller (Journal of the Royal Statistical Society B 16, 1954), with the t of the
//!   difference: it holds 1 exactly if the interval of the difference holds 0.

use super::Doubt;
use super::contrast::Contrast;
use super::series::RatioOfSums;
use super::tails::RunQuantile;
use becalm_stats::{CONFIDENCE, student_quantile, student_tail};

/// What one run has of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct RunFigure {
    value: f64,
    /// Its variance as seen from within the run; 0 where the run does not say.
    within: f64,
}

impl RunFigure {
    /// A value with its variance as seen from within the run, of at least 0.
    pub(super) const fn new(value: f64, within: f64) -> Self {
        Self { value, within }
    }

    /// Of a ratio of sums over time.
    pub(super) fn of_sums(series: &RatioOfSums) -> Self {
        // Drifts and long trains leave a run without a scatter of its own; the scatter between runs has them.
        Self::new(series.value, series.scatter(0).map_or(0.0, |scatter| scatter.variance))
    }

    /// Of a quantile.
    pub(super) fn of_quantile(value: f64, tail: Option<Result<RunQuantile, Doubt>>) -> Self {
        let within = tail.and_then(Result::ok).map_or(0.0, |mut tail| tail.variance());
        Self::new(value, within)
    }
}

/// The mean of the runs' values, each counting alike; `None` of no runs.
pub(super) fn mean(runs: &[RunFigure]) -> Option<f64> {
    (!runs.is_empty()).then(|| runs.iter().map(|run| run.value).sum::<f64>() / runs.len() as f64)
}

/// What the runs of a side say of their mean.
#[derive(Clone, Copy, Debug)]
struct MeanOfRuns {
    runs: usize,
    mean: f64,
    /// The variance of one run's value about that of the side; `None` of a single run.
    between: Option<f64>,
    /// The mean of what the runs say themselves.
    within: f64,
}

impl MeanOfRuns {
    fn new(runs: &[RunFigure]) -> Option<Self> {
        let mean = mean(runs)?;
        let n = runs.len();
        let squares: f64 = runs.iter().map(|run| (run.value - mean).powi(2)).sum();
        let within = runs.iter().map(|run| run.within).sum::<f64>() / n as f64;
        Some(Self { runs: n, mean, between: (n > 1).then(|| squares / (n - 1) as f64), within })
    }

    /// The variance of the mean, with that of one run's value taken from another side where this one has none.
    fn variance(&self, other: &Self) -> Option<f64> {
        let lent = || {
            let scale = if other.mean > 0.0 { (self.mean / other.mean).max(1.0) } else { 1.0 };
            other.between.map(|between| between * scale * scale)
        };
        Some(self.between.or_else(lent)?.max(self.within) / self.runs as f64)
    }
}

/// Holds the means of two sides against each other.
///
/// # Errors
/// If no side has a second run with this figure, or one has none.
pub(super) fn contrast(a: &[RunFigure], b: &[RunFigure]) -> Result<Contrast, Doubt> {
    let (Some(a), Some(b)) = (MeanOfRuns::new(a), MeanOfRuns::new(b)) else { return Err(Doubt::NoDetour) };
    if a.mean == 0.0 && b.mean == 0.0 {
        return Err(Doubt::NoDetour);
    }
    let (Some(variance_a), Some(variance_b)) = (a.variance(&b), b.variance(&a)) else { return Err(Doubt::FewRuns) };
    let freedom = match (a.runs, b.runs) {
        (1, n) | (n, 1) => (n - 1) as f64,
        (m, n) => {
            let part = |variance: f64, runs: usize| variance * variance / (runs - 1) as f64;
            (variance_a + variance_b).powi(2) / (part(variance_a, m) + part(variance_b, n))
        }
    };
    let difference = b.mean - a.mean;
    let error = (variance_a + variance_b).sqrt();
    if error == 0.0 {
        // Runs that are all alike, as of a figure that is counted in whole nanoseconds.
        let ratio = (a.mean > 0.0).then(|| b.mean / a.mean);
        let p_value = if difference == 0.0 { 1.0 } else { 0.0 };
        return Ok(Contrast { low: difference, high: difference, ratio_low: ratio, ratio_high: ratio, p_value });
    }
    let t = student_quantile((1.0 - CONFIDENCE) / 2.0, freedom);
    let (ratio_low, ratio_high) = ratios(a.mean, b.mean, t * t * variance_a, t * t * variance_b);
    Ok(Contrast {
        low: difference - t * error,
        high: difference + t * error,
        ratio_low,
        ratio_high,
        p_value: (2.0 * student_tail(difference.abs() / error, freedom)).min(1.0),
    })
}

/// The ratios r of at least 0 for which (b - r a)^2 is at most `spread_b` + r^2 `spread_a`; no upper end where a cannot be told from
/// 0, nothing where a is 0.
fn ratios(a: f64, b: f64, spread_a: f64, spread_b: f64) -> (Option<f64>, Option<f64>) {
    if a <= 0.0 {
        return (None, None);
    }
    // square r^2 - 2 a b r + constant <= 0, and its roots without the difference of like numbers.
    let (square, constant) = (a * a - spread_a, b * b - spread_b);
    let root = (a * a * b * b - square * constant).max(0.0).sqrt();
    let low = if constant > 0.0 { constant / (a * b + root) } else { 0.0 };
    let high = (square > 0.0).then(|| (a * b + root) / square);
    (Some(low), high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs(values: &[f64]) -> Vec<RunFigure> {
        values.iter().map(|value| RunFigure::new(*value, 0.0)).collect()
    }

    /// By hand: means 10 and 13, variances 1 and 4 of three runs each, t = 3 / sqrt(5 / 3), (5/3)^2 / ((1/9 + 16/9) / 2) degrees of
    /// freedom.
    #[test]
    fn three_runs_a_side_are_welchs_test() {
        let found = contrast(&runs(&[9.0, 10.0, 11.0]), &runs(&[11.0, 13.0, 15.0])).unwrap();
        let freedom = 25.0 / 9.0 / (17.0 / 18.0);
        let error = (5.0_f64 / 3.0).sqrt();
        let half = student_quantile(0.025, freedom) * error;
        assert!((found.low - (3.0 - half)).abs() < 1e-9 && (found.high - (3.0 + half)).abs() < 1e-9, "{found:?}");
        assert!((found.p_value - 2.0 * student_tail(3.0 / error, freedom)).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn what_runs_say_of_themselves_is_the_floor() {
        let near = [10.0, 10.001, 10.002];
        let far = [10.1, 10.101, 10.102];
        assert!(contrast(&runs(&near), &runs(&far)).unwrap().p_value < 0.001);
        let wide = |values: [f64; 3]| values.map(|value| RunFigure::new(value, 1.0));
        assert!(contrast(&wide(near), &wide(far)).unwrap().p_value > 0.5);
    }

    #[test]
    fn a_single_run_takes_the_scatter_of_the_other_side() {
        let found = contrast(&runs(&[10.0]), &runs(&[11.0, 13.0, 15.0])).unwrap();
        let half = student_quantile(0.025, 2.0) * (4.0_f64 + 4.0 / 3.0).sqrt();
        assert!((found.high - found.low - 2.0 * half).abs() < 1e-9, "{found:?}");
        assert_eq!(contrast(&runs(&[10.0]), &runs(&[11.0])), Err(Doubt::FewRuns));
        assert_eq!(contrast(&runs(&[10.0, 9.0]), &[]), Err(Doubt::NoDetour));
        assert_eq!(contrast(&runs(&[0.0, 0.0]), &runs(&[0.0, 0.0])), Err(Doubt::NoDetour));
    }

    #[test]
    fn runs_that_are_all_alike_are_told_apart_exactly() {
        let found = contrast(&runs(&[120.0; 3]), &runs(&[121.0; 3])).unwrap();
        assert_eq!((found.low, found.high, found.p_value), (1.0, 1.0, 0.0));
        assert_eq!(contrast(&runs(&[120.0; 3]), &runs(&[120.0; 3])).unwrap().p_value, 1.0);
    }

    proptest! {
        /// Differences, ratios and the test never contradict each other, and an exchange of the sides turns them around.
        #[test]
        fn all_that_is_shown_agrees(
            a in proptest::collection::vec(0.0_f64..10.0, 2..6), b in proptest::collection::vec(0.0_f64..10.0, 1..6),
        ) {
            let there = contrast(&runs(&a), &runs(&b)).unwrap();
            let back = contrast(&runs(&b), &runs(&a)).unwrap();
            prop_assert!((there.low + back.high).abs() < 1e-9 && (there.high + back.low).abs() < 1e-9);
            prop_assert!((there.p_value - back.p_value).abs() < 1e-12);
            let beyond = there.low > 1e-9 || there.high < -1e-9;
            prop_assert!(!beyond || there.p_value <= 0.05 + 1e-9, "{:?}", there);
            prop_assert_eq!(there.low > 1e-9, there.ratio_low.is_some_and(|low| low > 1.0 + 1e-9), "{:?}", there);
            prop_assert_eq!(
                there.high < -1e-9, there.ratio_high.is_some_and(|high| high < 1.0 - 1e-9), "{:?}", there
            );
            let ratio = mean(&runs(&b)).unwrap() / mean(&runs(&a)).unwrap();
            prop_assert!(there.ratio_low.is_none_or(|low| low <= ratio + 1e-9), "{:?}", there);
            prop_assert!(there.ratio_high.is_none_or(|high| ratio <= high + 1e-9), "{:?}", there);
        }
    }
}
