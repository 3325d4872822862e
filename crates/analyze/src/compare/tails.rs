//! The high quantiles of two runs against each other.
//!
//! - One run: R. S. Woodruff, *Confidence intervals for medians and other position measures*, JASA 47 (1952). The share of
//!   detours above the quantile is a ratio over the cells of time, whose scatter the blocks give; that says how many
//!   independent detours the run's are worth (E. L. Korn, B. I. Graubard, Survey Methodology 24, 1998). E. B. Wilson's
//!   score interval of the share (JASA 22, 1927) with so many detours is carried over to lengths by the run's quantiles.
//! - Two runs: the interval of the difference of two estimates from that of each (method of variance estimates recovery:
//!   G. Y. Zou, A. Donner, *Construction of confidence limits about effect measures*, Statistics in Medicine 27, 2008);
//!   that of their ratio by the same on logarithms.
//! - The test turns the interval around: the p-value is the level at which the interval of the difference ends at 0.

use super::series::Scatter;
use super::{Doubt, contrast};
use becalm_stats::{CONFIDENCE, Quantiles};
use becalm_stats::{student_quantile, student_tail};

/// A quantile is compared if at least this many detours, counted by their effective number, lie above it in each run.
pub(super) const ABOVE_MIN: f64 = 10.0;

/// A quantile of the lengths of one run's detours.
#[derive(Clone, Debug)]
pub(super) struct RunQuantile {
    /// The share of detours above it.
    above: f64,
    /// How many independent detours the run's are worth.
    effective: f64,
    /// Blocks of time, less one.
    df: f64,
    quantiles: Quantiles,
}

impl RunQuantile {
    /// The quantile that the share `above` of `detours` exceeds; `exceed` is that share as it was counted over the cells,
    /// which ties may make smaller.
    ///
    /// # Errors
    /// If too few detours lie above it.
    pub(super) fn new(above: f64, detours: u64, exceed: &Scatter, quantiles: &Quantiles) -> Result<Self, Doubt> {
        let counted = exceed.value;
        let independent = counted * (1.0 - counted) / detours as f64;
        let effect = if independent > 0.0 { (exceed.variance / independent).max(1.0) } else { 1.0 };
        let effective = detours as f64 / effect;
        if effective * above < ABOVE_MIN {
            // Rounded up, as one detour less is too few.
            return Err(Doubt::FewDetours { needed: (ABOVE_MIN / above * effect).ceil() as u64 });
        }
        Ok(Self { above, effective, df: (exceed.draws - 1) as f64, quantiles: quantiles.clone() })
    }

    /// The variance of the quantile: the square of half its interval over the t of that.
    pub(super) fn variance(&mut self) -> f64 {
        let t = student_quantile((1.0 - CONFIDENCE) / 2.0, self.df);
        let (low, high) = self.interval(t);
        ((high - low) / (2.0 * t)).powi(2)
    }

    fn value(&mut self) -> f64 {
        self.at(self.above)
    }

    fn at(&mut self, above: f64) -> f64 {
        self.quantiles.at(1.0 - above).unwrap_or(0) as f64
    }

    /// Where the quantile lies, with the critical value `t`.
    fn interval(&mut self, t: f64) -> (f64, f64) {
        let (n, share, square) = (self.effective, self.above, t * t);
        let center = (share + square / (2.0 * n)) / (1.0 + square / n);
        let half = t * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt() / (1.0 + square / n);
        let (most, least) = (self.at((center + half).min(1.0)), self.at((center - half).max(0.0)));
        // Ties and rounding must not put the quantile outside.
        let value = self.value();
        (most.min(value), least.max(value))
    }
}

/// Holds the same quantile of two runs against each other.
pub(super) fn contrast_tails(a: &mut RunQuantile, b: &mut RunQuantile) -> contrast::Contrast {
    let df = a.df.min(b.df);
    let (value_a, value_b) = (a.value(), b.value());
    let mut difference = |t: f64| {
        let ((low_a, high_a), (low_b, high_b)) = (a.interval(t), b.interval(t));
        let down = libm::hypot(value_b - low_b, high_a - value_a);
        let up = libm::hypot(high_b - value_b, value_a - low_a);
        (value_b - value_a - down, value_b - value_a + up)
    };
    let critical = student_quantile((1.0 - CONFIDENCE) / 2.0, df);
    let (low, high) = difference(critical);
    // The interval grows with t; where does it reach 0?
    let holds_zero = |(low, high): (f64, f64)| low <= 0.0 && 0.0 <= high;
    let (mut outside, mut inside) = (0.0, 64.0);
    let p_value = if value_a == value_b {
        1.0
    } else {
        for _ in 0..30 {
            let middle = f64::midpoint(outside, inside);
            if holds_zero(difference(middle)) { inside = middle } else { outside = middle }
        }
        2.0 * student_tail(inside, df)
    };
    let (ratio_low, ratio_high) = ratio(a.interval(critical), value_a, b.interval(critical), value_b);
    contrast::Contrast { low, high, ratio_low, ratio_high, p_value }
}

/// The interval of b / a on logarithms; only of lengths above 0.
fn ratio((low_a, high_a): (f64, f64), a: f64, (low_b, high_b): (f64, f64), b: f64) -> (Option<f64>, Option<f64>) {
    if a <= 0.0 {
        return (None, None);
    }
    let down = libm::hypot((b / low_b).ln(), (high_a / a).ln());
    let up = libm::hypot((high_b / b).ln(), (a / low_a).ln());
    let finite = |ratio: f64| Some(ratio).filter(|ratio| ratio.is_finite());
    (finite(b / a * (-down).exp()), finite(b / a * up.exp()))
}
