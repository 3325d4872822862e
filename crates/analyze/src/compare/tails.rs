//! The high quantiles of a run, and their scatter.
//!
//! R. S. Woodruff, *Confidence intervals for medians and other position measures*, JASA 47 (1952). The share of detours above the quantile is a ratio
//! over the cells of time, with a scatter from blocks; that gives the effective number of independent detours (E. L. Korn, B. I. Graubard, Survey
//! Methodology 24, 1998). E. B. Wilson's score interval of the share (JASA 22, 1927) with that number is mapped to lengths by the run's quantiles.

use super::Doubt;
use super::series::Scatter;
use becalm_stats::{CONFIDENCE, Quantiles, student_quantile};

/// The minimum effective number of detours above a compared quantile in each run.
pub(super) const ABOVE_MIN: f64 = 10.0;

/// A quantile of the lengths of one run's detours.
#[derive(Clone, Debug)]
pub(super) struct RunQuantile {
    /// The share of detours above it.
    above: f64,
    /// The effective number of independent detours.
    effective: f64,
    /// Blocks of time, less one.
    df: f64,
    quantiles: Quantiles,
}

impl RunQuantile {
    /// The quantile that the share `above` of `detours` exceeds; `exceed` is the share counted over the cells, which is smaller if there are ties.
    /// Fails if too few detours are above it.
    pub(super) fn new(above: f64, detours: u64, exceed: &Scatter, quantiles: &Quantiles) -> Result<Self, Doubt> {
        let counted = exceed.value;
        let independent = counted * (1.0 - counted) / detours as f64;
        let effect = if independent > 0.0 { (exceed.variance / independent).max(1.0) } else { 1.0 };
        let effective = detours as f64 / effect;
        if effective * above < ABOVE_MIN {
            // Rounded up, because one detour less is too few.
            return Err(Doubt::FewDetours { needed: (ABOVE_MIN / above * effect).ceil() as u64 });
        }
        Ok(Self { above, effective, df: exceed.freedom(), quantiles: quantiles.clone() })
    }

    /// The variance of the quantile: the square of half its interval over t.
    pub(super) fn variance(&mut self) -> f64 {
        let t = student_quantile((1.0 - CONFIDENCE) / 2.0, self.df);
        let (low, high) = self.interval(t);
        ((high - low) / (2.0 * t)).powi(2)
    }

    /// The degrees of freedom of the variance.
    pub(super) const fn freedom(&self) -> f64 {
        self.df
    }

    /// The quantile, in nanoseconds.
    pub(super) fn value(&mut self) -> f64 {
        self.at(self.above)
    }

    fn at(&mut self, above: f64) -> f64 {
        self.quantiles.at(1.0 - above).unwrap_or(0) as f64
    }

    /// The interval of the quantile, with the critical value `t`.
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
