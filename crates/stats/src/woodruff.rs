//! Confidence intervals of quantiles, for detours that come in trains.
//!
//! Order statistics give an interval for independent values only: they would count a train of 50 detours of 100 us as 50 observations,
//! although it is one event. The method of R. S. Woodruff, *Confidence intervals for medians and other position measures*, J. Am. Stat.
//! Assoc. 47 (1952), instead takes the interval of the share p of detours above the quantile, and reads the lengths off at its ends:
//!
//! - The run is divided into equal time cells. For cell k, with n(k) detours and e(k) above the quantile, the residual is r(k) = e(k) - p
//!   n(k), the linearized ratio (W. G. Cochran, *Sampling Techniques*, 1977, section 6.3).
//! - The variance of their sum allows for dependence like that of the [noise ratio](super::Interval). Its ratio to the variance of
//!   independent values is the design effect, at least 1; the number of detours over that is the effective number of independent ones.
//! - With that number the interval of p is E. B. Wilson's, J. Am. Stat. Assoc. 22 (1927), which is valid even if few values are above the
//!   quantile (design effect and score interval together: P. S. Kott, D. A. Carr, *Developing an estimation strategy for a pesticide data
//!   program*, J. Official Statistics 13 (1997)), with Student's t for the number of blocks.
//!
//! The counts per cell are grouped by length class ([`LengthCells`]). The class with the quantile is divided in proportion, and the
//! sampling error of that division is added to the variance.

use super::distributions::student_quantile;
use super::interval::{CONFIDENCE, blocks, rough_blocks, trains};
use super::{LengthCells, Quantiles};

/// Detours above the quantile must come from at least this many blocks, counted by weight, for their spread to be known. Below 10 the
/// blocks are still few, which Student's t allows for.
const TRAINS_MIN: f64 = 4.0;

/// The 95 % interval of a quantile, in nanoseconds. An end that the run does not bound is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QuantileBounds {
    /// The lower end; `None` if there are too few values.
    pub low: Option<i64>,
    /// The upper end; `None` if there are too few values.
    pub high: Option<i64>,
    /// Whether there are so few blocks that the coverage is only approximate.
    pub rough: bool,
}

impl QuantileBounds {
    /// An interval without ends.
    pub const UNKNOWN: Self = Self { low: None, high: None, rough: false };

    /// Computes the bounds of the quantile for this share, which is above 0 and below 1.
    #[must_use]
    pub fn for_quantile(quantiles: &mut Quantiles, lengths: &LengthCells, share: f64) -> Self {
        let Some(tail) = QuantileTail::from_lengths(lengths, 1.0 - share) else { return Self::UNKNOWN };
        let Some(ShareBounds { low, high, rough }) = tail.interval() else { return Self::UNKNOWN };
        Self {
            // The largest possible share above the quantile gives the shortest length. With less than one detour above, the true quantile
            // may exceed all lengths seen; likewise below.
            low: if (1.0 - high) * tail.detours >= 1.0 { quantiles.at(1.0 - high) } else { None },
            high: if low * tail.detours >= 1.0 { quantiles.at(1.0 - low) } else { None },
            rough,
        }
    }
}

/// The detours above a quantile.
struct QuantileTail {
    share: f64,
    detours: f64,
    /// The number in each cell; fractional if the quantile divides a class.
    counts: Vec<f64>,
    /// The number in each cell above the number expected from its detours.
    residuals: Vec<f64>,
    /// The variance of the number of detours in the divided class above the quantile.
    divided: f64,
}

#[derive(Clone, Copy, Debug)]
struct ShareBounds {
    low: f64,
    high: f64,
    rough: bool,
}

impl QuantileTail {
    fn from_lengths(lengths: &LengthCells, share: f64) -> Option<Self> {
        let all = lengths.counts();
        let detours = all.iter().sum::<i64>() as f64;
        if detours < 1.0 {
            return None;
        }
        let mut counts = vec![0.0; all.len()];
        let (mut missing, mut divided) = (share * detours, 0.0);
        for class in lengths.classes() {
            let size: f64 = class.iter().map(|count| f64::from(*count)).sum();
            let part = (missing / size).min(1.0);
            counts.iter_mut().zip(class).for_each(|(sum, count)| *sum += part * f64::from(*count));
            divided = part * (1.0 - part) * size;
            missing -= size;
            if missing <= 0.0 {
                break;
            }
        }
        let residuals = counts.iter().zip(&all).map(|(count, all)| count - share * *all as f64).collect();
        Some(Self { share, detours, counts, residuals, divided })
    }

    /// The interval of the share; `None` if the run does not hold enough blocks.
    fn interval(&self) -> Option<ShareBounds> {
        let n = self.residuals.len();
        let (dependence, rough) = match blocks(&self.residuals) {
            Ok(dependence) => (dependence, false),
            Err(needed) => (rough_blocks(&self.residuals, needed)?, true),
        };
        let blocks = n as f64 / dependence.length as f64;
        let trains = trains(&self.counts, dependence.length).min(blocks);
        if blocks < 4.0 || trains < TRAINS_MIN {
            return None;
        }
        let variance = dependence.variance * n as f64 + self.divided;
        let p = self.share;
        let effect = (variance / (self.detours * p * (1.0 - p))).max(1.0);
        let size = self.detours / effect;
        let t = student_quantile((1.0 - CONFIDENCE) / 2.0, trains - 1.0);
        // Wilson 1927.
        let middle = (p + t * t / (2.0 * size)) / (1.0 + t * t / size);
        let half = t / (1.0 + t * t / size) * (p * (1.0 - p) / size + t * t / (4.0 * size * size)).sqrt();
        Some(ShareBounds { low: middle - half, high: middle + half, rough })
    }
}

#[cfg(test)]
mod tests;
