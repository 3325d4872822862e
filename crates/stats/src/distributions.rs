//! The few distribution functions that intervals and tests need.

use std::f64::consts::FRAC_1_SQRT_2;

use statrs::function::beta::beta_reg;
use statrs::function::erf::erfc;

/// Above this many degrees of freedom, Student's distribution differs from the normal one by less than the rounding error of
/// `freedom / (freedom + t^2)`.
const NORMAL_FREEDOM: f64 = 1e9;

/// The probability that Student's t with `freedom` degrees of freedom, above 0, exceeds `t`: an incomplete beta function (*Handbook of
/// Mathematical Functions*, 26.7.1). Infinitely many give the normal distribution. NaN in `t` or `freedom` counts as a `t` of 0.
pub fn student_tail(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return 0.5;
    }
    if t < 0.0 {
        return 1.0 - student_tail(-t, freedom);
    }
    if t.is_infinite() {
        return 0.0;
    }
    if freedom > NORMAL_FREEDOM {
        return 0.5 * erfc(t * FRAC_1_SQRT_2);
    }
    0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The value that Student's t with `freedom` degrees of freedom exceeds with probability `tail`, above 0 and at most 1/2.
pub fn student_quantile(tail: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_tail(high, freedom) > tail && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if student_tail(middle, freedom) > tail { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The probability that Fisher's F with `upper` and `lower` degrees of freedom exceeds `x`, at least 0: the regularized incomplete beta
/// function at lower / (lower + upper x). A NaN `x`, and zero or infinite degrees of freedom, count as an `x` of 0.
pub fn fisher_tail(x: f64, upper: f64, lower: f64) -> f64 {
    let is_freedom = |freedom: f64| freedom.is_finite() && freedom > 0.0;
    if x.is_nan() || !is_freedom(upper) || !is_freedom(lower) {
        return 1.0;
    }
    incomplete_beta(lower / 2.0, upper / 2.0, lower / (lower + upper * x))
}

/// The regularized incomplete beta function I_x(a, b) for a and b above 0; 0 below x = 0, 1 above x = 1.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 { x.clamp(0.0, 1.0) } else { beta_reg(a, b, x) }
}

/// The natural logarithm of the probability that the sum of `n` standard exponential values exceeds `x`, which is e^-x (1 + x + x^2/2! +
/// ... + x^(n-1)/(n-1)!).
pub(super) fn ln_erlang_tail(n: usize, x: f64) -> f64 {
    // Divided by the largest term to avoid overflow and underflow.
    if x <= 0.0 {
        return 0.0;
    }
    let mut terms = vec![0.0; n.max(1)];
    for k in 1..n {
        terms[k] = terms[k - 1] + (x / k as f64).ln();
    }
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (largest - x + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()).min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Gamma};

    /// The integral of `density` from `low` to `high`, by Simpson's rule.
    fn integral(low: f64, high: f64, density: impl Fn(f64) -> f64) -> f64 {
        const PARTS: usize = 20_000;
        let step = (high - low) / PARTS as f64;
        let weight = |at: usize| if at == 0 || at == PARTS { 1.0 } else { [2.0, 4.0][at % 2] };
        (0..=PARTS).map(|at| weight(at) * density(low + at as f64 * step)).sum::<f64>() * step / 3.0
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn student_is_the_integral_of_its_density(t in 0.0..20.0_f64, freedom in 1.0..300.0_f64) {
            let density = |t: f64| (-(freedom + 1.0) / 2.0 * (t * t / freedom).ln_1p()).exp();
            // With t = tan(x) the whole axis is an interval, and the constant of the density need not be known.
            let over = |low: f64| integral(low.atan(), std::f64::consts::FRAC_PI_2 - 1e-9, |x| {
                density(x.tan()) / x.cos().powi(2)
            });
            let expected = 0.5 * over(t) / over(0.0);
            let ours = student_tail(t, freedom);
            prop_assert!((ours - expected).abs() <= 1e-6, "{} for {}", ours, expected);
            prop_assert!((student_tail(-t, freedom) + ours - 1.0).abs() < 1e-12);
        }

        #[test]
        fn the_quantile_inverts_the_tail(tail in 1e-6..0.5_f64, freedom in 1.0..300.0_f64) {
            let back = student_tail(student_quantile(tail, freedom), freedom);
            prop_assert!((back / tail - 1.0).abs() < 1e-9, "{} for {}", back, tail);
        }

        #[test]
        fn the_square_of_t_is_distributed_as_f(t in 0.01..12.0_f64, freedom in 1.0..300.0_f64) {
            let (f, t) = (fisher_tail(t * t, 1.0, freedom), 2.0 * student_tail(t, freedom));
            prop_assert!((f - t).abs() <= 1e-9 * t + 1e-14, "{} for {}", f, t);
        }

        #[test]
        fn fisher_is_its_closed_form_for_two_upper_degrees(x in 0.01..30.0_f64, lower in 1_u32..200) {
            let lower = f64::from(lower);
            let expected = (-lower / 2.0 * (2.0 * x / lower).ln_1p()).exp();
            prop_assert!((fisher_tail(x, 2.0, lower) - expected).abs() <= 1e-9 * expected + 1e-14);
        }

        #[test]
        fn erlang_is_that_of_another_library(n in 1_usize..20, x in 0.0..100.0_f64) {
            let oracle = Gamma::new(n as f64, 1.0).unwrap().sf(x);
            let ours = ln_erlang_tail(n, x).exp();
            prop_assert!((ours - oracle).abs() <= 1e-9 * oracle + 1e-13, "{} for {}", ours, oracle);
        }
    }

    #[test]
    fn far_tails_stay_finite() {
        let far = ln_erlang_tail(8, 16_000.0);
        assert!((-16_000.0..-15_900.0).contains(&far), "{far}");
        assert!((0.0..1e-200).contains(&student_tail(1e6, 255.0)));
        assert_eq!(student_tail(f64::INFINITY, 5.0), 0.0);
        assert_eq!(student_tail(f64::NEG_INFINITY, 5.0), 1.0);
        assert_eq!(student_tail(f64::NAN, 5.0), 0.5);
    }

    #[test]
    fn what_is_no_number_tells_nothing() {
        for (t, freedom) in [(f64::NAN, 5.0), (2.0, f64::NAN), (-2.0, f64::NAN), (0.0, 0.0), (2.0, -1.0)] {
            assert_eq!(student_tail(t, freedom), 0.5, "{t} {freedom}");
        }
        let fisher = [(f64::NAN, 2.0, 8.0), (3.0, f64::NAN, 8.0), (3.0, 2.0, f64::NAN), (3.0, f64::INFINITY, 8.0)];
        for (x, upper, lower) in fisher.into_iter().chain([(3.0, 2.0, f64::INFINITY), (0.0, 2.0, 8.0)]) {
            assert_eq!(fisher_tail(x, upper, lower), 1.0, "{x} {upper} {lower}");
        }
        assert_eq!(fisher_tail(f64::INFINITY, 2.0, 8.0), 0.0);
    }

    #[test]
    fn without_end_of_freedom_student_is_normal() {
        for freedom in [1e10, 1e17, 1e300, f64::INFINITY] {
            for (t, tail) in [(0.0, 0.5), (1.0, 0.158_655_254), (1.959_963_985, 0.025), (5.0, 2.866_516e-7)] {
                let (ours, below) = (student_tail(t, freedom), student_tail(-t, freedom));
                assert!((ours / tail - 1.0).abs() < 1e-6, "{ours} for {t} of {freedom}");
                assert!((below + ours - 1.0).abs() < 1e-12, "{below} for -{t} of {freedom}");
            }
        }
        assert_eq!(student_tail(f64::INFINITY, f64::INFINITY), 0.0);
        assert!((student_quantile(0.025, f64::INFINITY) - 1.959_964).abs() < 1e-6);
    }

    #[test]
    fn quantiles_are_those_of_textbooks() {
        let textbook =
            [(1.0, 12.706_2), (2.0, 4.302_7), (10.0, 2.228_1), (30.0, 2.042_3), (120.0, 1.979_9), (1e6, 1.960_0)];
        for (freedom, quantile) in textbook {
            assert!((student_quantile(0.025, freedom) - quantile).abs() < 1e-4);
        }
    }
}
