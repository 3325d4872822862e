//! Student's t, for the mean of a few rounds.

/// The 0.975 quantiles of Student's distribution with 1, 2, ... 30 degrees of freedom.
const T975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Half the width of the 95 % interval of the mean of these values, which are taken to be independent and about normally
/// distributed; nothing of fewer than two. Beyond 31 values the quantile of 31 is taken, which errs to the wide side.
pub(crate) fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len();
    let t = T975[n.checked_sub(2)?.min(T975.len() - 1)];
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    Some(t * (variance / n as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};

    #[test]
    fn the_table_is_that_of_another_library() {
        for (freedom, t) in (1..).zip(T975) {
            let exact = StudentsT::new(0.0, 1.0, f64::from(freedom)).unwrap().inverse_cdf(0.975);
            assert!((t - exact).abs() < 6e-4, "{freedom}: {t}, not {exact}");
        }
    }

    #[test]
    fn one_value_has_no_spread() {
        assert_eq!((half_width(&[]), half_width(&[1.0])), (None, None));
        let half = half_width(&[1.0, 3.0]).unwrap();
        assert!((half - 12.706).abs() < 1e-9, "{half}");
        assert_eq!(half_width(&[2.0; 99]), Some(0.0));
    }
}
