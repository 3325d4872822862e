//! Means over replicas with their intervals.

use becalm_model::Estimate;
use becalm_stats::mean_with_half_width;

/// The mean of independent replicas, with its interval; `None` without any.
pub fn from_replicas(values: &[f64]) -> Option<Estimate> {
    let (mean, half) = mean_with_half_width(values)?;
    let half = half.unwrap_or(0.0);
    Some(Estimate { mean, low: mean - half, high: mean + half })
}

/// A value without an interval.
pub const fn exactly(value: f64) -> Estimate {
    Estimate { mean: value, low: value, high: value }
}

/// Cuts the interval off below a value that the mean cannot be under.
pub fn not_below(estimate: Estimate, least: f64) -> Estimate {
    Estimate { low: estimate.low.max(least), ..estimate }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_known_samples() {
        let estimate = from_replicas(&[1.0, 2.0, 3.0]).unwrap();
        assert!((estimate.mean - 2.0).abs() < 1e-12);
        assert!((estimate.high - 2.0 - 4.302_65 / 3.0_f64.sqrt()).abs() < 1e-5);
        let cut = not_below(estimate, 1.0);
        assert_eq!((cut.mean, cut.low, cut.high), (estimate.mean, 1.0, estimate.high));
        assert_eq!(not_below(estimate, -1.0), estimate);
        assert_eq!(from_replicas(&[]), None);
        assert_eq!(from_replicas(&[1.5]), Some(Estimate { mean: 1.5, low: 1.5, high: 1.5 }));
    }
}
