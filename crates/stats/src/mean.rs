//! The mean of a few independent values, with its confidence interval.

use crate::distributions::student_quantile;
use crate::interval::CONFIDENCE;

/// The mean of these values and the half width of its interval at the level [`CONFIDENCE`], for independent, roughly normal values
/// (Student's t). `None` for no values; no width for a single one.
pub fn mean_with_half_width(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    if values.len() == 1 {
        return Some((mean, None));
    }
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    let t = student_quantile((1.0 - CONFIDENCE) / 2.0, count - 1.0);
    Some((mean, Some(t * (variance / count).sqrt())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_value_has_no_spread() {
        assert_eq!((mean_with_half_width(&[]), mean_with_half_width(&[1.5])), (None, Some((1.5, None))));
        assert_eq!(mean_with_half_width(&[2.0; 99]), Some((2.0, Some(0.0))));
    }

    #[test]
    fn the_means_of_known_samples_are_right() {
        let (mean, half) = mean_with_half_width(&[1.0, 3.0]).unwrap();
        assert!(mean == 2.0 && (half.unwrap() - 12.706_2).abs() < 1e-4);
        let (mean, half) = mean_with_half_width(&[1.0, 2.0, 3.0]).unwrap();
        assert!((mean - 2.0).abs() < 1e-12 && (half.unwrap() - 4.302_65 / 3.0_f64.sqrt()).abs() < 1e-5);
        // t with 120 degrees of freedom is 1.97993.
        let many: Vec<f64> = (0..121).map(f64::from).collect();
        let variance = (121.0 * 121.0 - 1.0) / 12.0 * 121.0 / 120.0;
        let t = mean_with_half_width(&many).unwrap().1.unwrap() / (variance / 121.0_f64).sqrt();
        assert!((t - 1.97993).abs() < 1e-5, "{t}");
    }
}
