//! Means over replicas with their intervals.

use serde::Serialize;

/// A mean and the interval that holds the true one with 95 % confidence.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower end; the mean itself with a single replica, which says nothing about its error.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// 97.5 % points of Student's t distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Estimate {
    /// From independent replicas; nothing from none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let half = if values.len() > 1 {
            let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
            // Beyond the table, the first terms of Fisher's expansion around the normal point.
            let point = STUDENT.get(values.len() - 2).copied().unwrap_or_else(|| {
                let (z, freedom) = (1.959_964_f64, count - 1.0);
                let (z3, z5) = (z * z * z, z * z * z * z * z);
                z + (z3 + z) / (4.0 * freedom) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom * freedom)
            });
            point * (variance / count).sqrt()
        } else {
            0.0
        };
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
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((estimate.mean - 2.0).abs() < 1e-12);
        assert!((estimate.high - 2.0 - 4.303 / 3.0_f64.sqrt()).abs() < 1e-12);
        let cut = estimate.not_below(1.0);
        assert_eq!((cut.mean, cut.low, cut.high), (estimate.mean, 1.0, estimate.high));
        assert_eq!(estimate.not_below(-1.0), estimate);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.5]), Some(Estimate { mean: 1.5, low: 1.5, high: 1.5 }));
        // t with 120 degrees of freedom is 1.97993.
        let many: Vec<f64> = (0..121).map(f64::from).collect();
        let variance = (121.0 * 121.0 - 1.0) / 12.0 * 121.0 / 120.0;
        let point = (Estimate::of(&many).unwrap().high - 60.0) / (variance / 121.0_f64).sqrt();
        assert!((point - 1.97993).abs() < 1e-4, "{point}");
    }
}
