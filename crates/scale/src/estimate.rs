//! Means over replicas with their intervals.

use becalm_stats::mean_with_half_width;
use serde::Serialize;

/// A mean and the interval that holds the true one with 95 % confidence.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The mean over the replicas.
    pub mean: f64,
    /// Lower end; the mean itself with a single replica, which says nothing about its error.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Computes the mean of independent replicas and its interval; nothing without any.
    #[must_use]
    pub fn from_replicas(values: &[f64]) -> Option<Self> {
        let (mean, half) = mean_with_half_width(values)?;
        let half = half.unwrap_or(0.0);
        Some(Self { mean, low: mean - half, high: mean + half })
    }

    /// Cuts the interval off below a value that the mean cannot be under.
    #[must_use]
    pub fn not_below(self, least: f64) -> Self {
        Self { low: self.low.max(least), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_known_samples() {
        let estimate = Estimate::from_replicas(&[1.0, 2.0, 3.0]).unwrap();
        assert!((estimate.mean - 2.0).abs() < 1e-12);
        assert!((estimate.high - 2.0 - 4.302_65 / 3.0_f64.sqrt()).abs() < 1e-5);
        let cut = estimate.not_below(1.0);
        assert_eq!((cut.mean, cut.low, cut.high), (estimate.mean, 1.0, estimate.high));
        assert_eq!(estimate.not_below(-1.0), estimate);
        assert_eq!(Estimate::from_replicas(&[]), None);
        assert_eq!(Estimate::from_replicas(&[1.5]), Some(Estimate { mean: 1.5, low: 1.5, high: 1.5 }));
    }
}
