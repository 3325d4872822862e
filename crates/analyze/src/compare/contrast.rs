//! Several runs per side: each run contributes one value of a figure, and each side is a sample of such values.
//!
//! Two runs of the same machine, one after the other, differ by more than the scatter within either: a neighbor of the virtual machine, a daemon's
//! hourly job, the phase of a timer. The scatter between the runs of a side includes all of that. The test is B. L. Welch's (Biometrika 34, 1947) of
//! the two means, with equal weight for each run, so the sides need neither the same number of runs nor the same scatter. It compares the means of
//! the logarithms if the figure is above 0 in every run (`proportion`), otherwise the means of the figures themselves.
//!
//! - The scatter of three runs may by chance be far too small. The variance of one run's figure, from the blocks within the runs, is its lower bound,
//!   because runs cannot differ by less.
//! - A side with one run has no scatter of its own. It gets that of the other side, absolute or in proportion to the figure, whichever is larger,
//!   with the other side's degrees of freedom.
//! - For figures themselves, the interval of the ratio b / a is that of E. C. Fieller (Journal of the Royal Statistical Society B 16, 1954), with the
//!   t of the difference: it contains 1 exactly if the interval of the difference contains 0.

use super::series::RatioOfSums;
use super::tails::RunQuantile;
use super::{Doubt, proportion};
use becalm_stats::{CONFIDENCE, student_quantile, student_tail};

/// The comparison of a figure between two sides.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contrast {
    /// The lower end of the interval of b - a.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The lower end of the interval of b / a; `None` if a is 0.
    pub ratio_low: Option<f64>,
    /// The upper end; `None` if a does not differ significantly from 0.
    pub ratio_high: Option<f64>,
    /// The two-sided p-value of no difference.
    pub p_value: f64,
}

/// A figure of one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunFigure {
    /// The figure.
    pub value: f64,
    /// Its variance within the run; 0 if unknown.
    pub within: f64,
}

impl RunFigure {
    /// A value with its variance within the run, at least 0.
    pub const fn new(value: f64, within: f64) -> Self {
        Self { value, within }
    }

    pub(super) fn from_sums(series: &RatioOfSums) -> Self {
        // Drifts and long trains leave a run without a variance of its own; the scatter between runs includes them.
        Self::new(series.value, series.scatter().map_or(0.0, |scatter| scatter.variance))
    }

    pub(super) fn from_quantile(value: f64, tail: Option<Result<RunQuantile, Doubt>>) -> Self {
        let within = tail.and_then(Result::ok).map_or(0.0, |mut tail| tail.variance());
        Self::new(value, within)
    }
}

/// The mean of the runs' values, equally weighted; `None` without runs.
fn mean(runs: &[RunFigure]) -> Option<f64> {
    (!runs.is_empty()).then(|| runs.iter().map(|run| run.value).sum::<f64>() / runs.len() as f64)
}

/// From the means of this side and of the other: this side's scatter as a multiple of the other's, if both scatter in the same way.
type Scale = fn(f64, f64) -> f64;

/// The mean of the runs of a side.
#[derive(Clone, Copy, Debug)]
struct MeanOfRuns {
    runs: usize,
    mean: f64,
    /// The variance of one run's value about the mean; `None` for a single run.
    between: Option<f64>,
    /// The mean variance within the runs.
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

    /// The variance of the mean. A side without a variance between runs takes the other's, with the deviation multiplied by `scale`.
    fn variance(&self, other: &Self, scale: Scale) -> Option<f64> {
        let lent = || {
            let scale = scale(self.mean, other.mean);
            other.between.map(|between| between * scale * scale)
        };
        Some(self.between.or_else(lent)?.max(self.within) / self.runs as f64)
    }
}

/// The typical value of each side: the geometric mean if the figure is above 0 in all runs of both sides, else the mean. `None` without runs.
pub fn typical(sides: &[Vec<RunFigure>; 2]) -> [Option<f64>; 2] {
    let logarithms = sides.each_ref().map(|side| proportion::logarithms(side));
    match logarithms {
        [Some(a), Some(b)] => [a, b].map(|side| mean(&side).map(f64::exp)),
        _ => sides.each_ref().map(|side| mean(side)),
    }
}

/// Compares the typical values of two sides. Fails if both sides have a single run with this figure, or one has none.
pub fn contrast(a: &[RunFigure], b: &[RunFigure]) -> Result<Contrast, Doubt> {
    match (proportion::logarithms(a), proportion::logarithms(b)) {
        // Proportional scatter is the same on both sides.
        (Some(a), Some(b)) => Ok(proportion::turned_back(&Welch::new(&a, &b, |_, _| 1.0)?)),
        _ => contrast_means(a, b),
    }
}

/// Compares the means of two sides.
pub(super) fn contrast_means(a: &[RunFigure], b: &[RunFigure]) -> Result<Contrast, Doubt> {
    let in_proportion: Scale = |own, other| if other > 0.0 { (own / other).max(1.0) } else { 1.0 };
    let welch = Welch::new(a, b, in_proportion)?;
    if welch.means == [0.0; 2] { Err(Doubt::NoDetour) } else { Ok(contrast_welch(&welch)) }
}

/// Compares figures of two runs whose variances are known from elsewhere.
pub(super) fn contrast_known(a: KnownFigure, b: KnownFigure) -> Contrast {
    contrast_welch(&Welch::from_known(a, b))
}

fn contrast_welch(welch: &Welch) -> Contrast {
    let [a, b] = welch.means;
    let t = welch.critical([1.0; 2]);
    let (difference, error) = (b - a, welch.error());
    let (ratio_low, ratio_high) = if error == 0.0 {
        let ratio = (a > 0.0).then(|| b / a);
        (ratio, ratio)
    } else {
        ratios(a, b, t * t * welch.variances[0], t * t * welch.variances[1])
    };
    let (low, high) = (difference - t * error, difference + t * error);
    Contrast { low, high, ratio_low, ratio_high, p_value: welch.p_value() }
}

/// A figure whose variance does not come from the runs of a side.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownFigure {
    pub(super) value: f64,
    pub(super) variance: f64,
    /// The degrees of freedom of the variance.
    pub(super) freedom: f64,
}

/// Welch's test of the means of two sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Welch {
    pub(super) means: [f64; 2],
    /// The variances of the means.
    pub(super) variances: [f64; 2],
    freedoms: Freedoms,
}

/// The degrees of freedom of the variances.
#[derive(Clone, Copy, Debug)]
enum Freedoms {
    /// Each side has its own.
    Apart([f64; 2]),
    /// Both variances come from the runs of one side.
    Shared(f64),
}

impl Welch {
    /// Fails if both sides have a single run, or one has none.
    fn new(a: &[RunFigure], b: &[RunFigure], scale: Scale) -> Result<Self, Doubt> {
        let (Some(a), Some(b)) = (MeanOfRuns::new(a), MeanOfRuns::new(b)) else { return Err(Doubt::NoDetour) };
        let (Some(variance_a), Some(variance_b)) = (a.variance(&b, scale), b.variance(&a, scale)) else {
            return Err(Doubt::FewRuns);
        };
        let freedoms = match (a.runs, b.runs) {
            // Both scatters are one estimate.
            (1, n) | (n, 1) => Freedoms::Shared((n - 1) as f64),
            (m, n) => Freedoms::Apart([m, n].map(|runs| (runs - 1) as f64)),
        };
        Ok(Self { means: [a.mean, b.mean], variances: [variance_a, variance_b], freedoms })
    }

    pub(super) fn from_known(a: KnownFigure, b: KnownFigure) -> Self {
        Self {
            means: [a.value, b.value],
            variances: [a.variance, b.variance],
            freedoms: Freedoms::Apart([a.freedom, b.freedom]),
        }
    }

    /// Student's t at the confidence level of intervals, for the sum of both means' variances with these weights.
    pub(super) fn critical(&self, weights: [f64; 2]) -> f64 {
        student_quantile((1.0 - CONFIDENCE) / 2.0, self.freedom(weights))
    }

    /// The degrees of freedom of that sum.
    fn freedom(&self, weights: [f64; 2]) -> f64 {
        let [a, b] = [0, 1].map(|side| self.variances[side] * weights[side]);
        match self.freedoms {
            Freedoms::Shared(freedom) => freedom,
            // If all runs are equal (figures in whole nanoseconds), any value will do.
            Freedoms::Apart(_) if a + b == 0.0 => 1.0,
            Freedoms::Apart([freedom_a, freedom_b]) => (a + b).powi(2) / (a * a / freedom_a + b * b / freedom_b),
        }
    }

    /// The standard error of the difference.
    pub(super) fn error(&self) -> f64 {
        self.variances.iter().sum::<f64>().sqrt()
    }

    /// The two-sided p-value of no difference.
    pub(super) fn p_value(&self) -> f64 {
        let (difference, error) = ((self.means[1] - self.means[0]).abs(), self.error());
        match (error == 0.0, difference == 0.0) {
            (true, true) => 1.0,
            (true, false) => 0.0,
            _ => (2.0 * student_tail(difference / error, self.freedom([1.0; 2]))).min(1.0),
        }
    }
}

/// The ratios r >= 0 with (b - r a)^2 at most `spread_b` + r^2 `spread_a`. No upper end if a is not significantly above 0, neither if a is 0.
fn ratios(a: f64, b: f64, spread_a: f64, spread_b: f64) -> (Option<f64>, Option<f64>) {
    if a <= 0.0 {
        return (None, None);
    }
    // square r^2 - 2 a b r + constant <= 0; the roots without subtracting nearly equal numbers.
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

    /// By hand: means 10 and 13, variances 1 and 4 of three runs each, t = 3 / sqrt(5 / 3), (5/3)^2 / ((1/9 + 16/9) / 2) degrees of freedom.
    #[test]
    fn three_runs_a_side_are_welchs_test() {
        let found = contrast_means(&runs(&[9.0, 10.0, 11.0]), &runs(&[11.0, 13.0, 15.0])).unwrap();
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
        let found = contrast_means(&runs(&[10.0]), &runs(&[11.0, 13.0, 15.0])).unwrap();
        let half = student_quantile(0.025, 2.0) * (4.0_f64 + 4.0 / 3.0).sqrt();
        assert!((found.high - found.low - 2.0 * half).abs() < 1e-9, "{found:?}");
        // Powers of two, whose logarithms scatter by ln 2.
        let found = contrast(&runs(&[2.0]), &runs(&[4.0, 8.0, 16.0])).unwrap();
        let half = student_quantile(0.025, 2.0) * 2.0_f64.ln() * (1.0 + 1.0_f64 / 3.0).sqrt();
        let ratio = found.ratio_high.unwrap() / found.ratio_low.unwrap();
        assert!((ratio.ln() - 2.0 * half).abs() < 1e-9, "{found:?}");
        assert_eq!(contrast(&runs(&[10.0]), &runs(&[11.0])), Err(Doubt::FewRuns));
        assert_eq!(contrast(&runs(&[10.0, 9.0]), &[]), Err(Doubt::NoDetour));
        assert_eq!(contrast(&runs(&[0.0, 0.0]), &runs(&[0.0, 0.0])), Err(Doubt::NoDetour));
    }

    #[test]
    fn runs_that_are_all_alike_are_told_apart_exactly() {
        let found = contrast(&runs(&[120.0; 3]), &runs(&[121.0; 3])).unwrap();
        assert!((found.low - 1.0).abs() < 1e-9 && (found.high - 1.0).abs() < 1e-9 && found.p_value == 0.0, "{found:?}");
        assert_eq!(contrast(&runs(&[120.0; 3]), &runs(&[120.0; 3])).unwrap().p_value, 1.0);
        let found = contrast(&runs(&[0.0; 3]), &runs(&[121.0; 3])).unwrap();
        assert_eq!((found.low, found.ratio_low, found.p_value), (121.0, None, 0.0));
    }

    proptest! {
        /// Differences, ratios and the test never contradict each other, and swapping the sides inverts them.
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
            if let Some(low) = there.ratio_low.filter(|low| (low - 1.0).abs() > 1e-9) {
                prop_assert_eq!(there.low > 0.0, low > 1.0, "{:?}", there);
            }
            if let Some(high) = there.ratio_high.filter(|high| (high - 1.0).abs() > 1e-9) {
                prop_assert_eq!(there.high < 0.0, high < 1.0, "{:?}", there);
            }
            prop_assert!(there.low <= there.high, "{:?}", there);
            let [typical_a, typical_b] = typical(&[runs(&a), runs(&b)]).map(Option::unwrap);
            let (ratio, difference) = (typical_b / typical_a, typical_b - typical_a);
            prop_assert!(there.low <= difference + 1e-9 && difference <= there.high + 1e-9, "{:?}", there);
            prop_assert!(there.ratio_low.is_none_or(|low| low <= ratio + 1e-9), "{:?}", there);
            prop_assert!(there.ratio_high.is_none_or(|high| ratio <= high + 1e-9), "{:?}", there);
        }
    }
}
