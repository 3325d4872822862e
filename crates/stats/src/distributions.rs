//! The few distribution functions that intervals and tests need. Checked against another library in tests.

/// The natural logarithm of the gamma function for `x` above 0, to about 14 digits.
///
/// C. Lanczos, *A precision approximation of the gamma function*, SIAM J. Numer. Anal. B 1 (1964), with g = 7 and nine
/// terms; below 1/2 by reflection.
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum: f64 = TERMS[0] + TERMS[1..].iter().zip(1..).map(|(term, k)| term / (x + f64::from(k))).sum::<f64>();
    let t = x + G + 0.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularized incomplete beta function I_x(a, b), for a and b above 0 and x from 0 to 1.
///
/// The continued fraction 8.17.22 of the NIST Digital Library of Mathematical Functions, evaluated from the front (the
/// method of Lentz and Thompson), on the side where it converges fast.
fn beta_share(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_share(b, a, 1.0 - x);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let nonzero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / nonzero(1.0 + term * d);
            c = nonzero(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// The probability that Student's t with `freedom` degrees of freedom exceeds `t`, for `t` of at least 0.
pub(super) fn student_tail(t: f64, freedom: f64) -> f64 {
    0.5 * beta_share(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The value that Student's t with `freedom` degrees of freedom exceeds with the probability `tail`, which is above 0
/// and at most 1/2.
pub(super) fn student_quantile(tail: f64, freedom: f64) -> f64 {
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

/// The probability that Fisher's F with `upper` and `lower` degrees of freedom exceeds `x`, for `x` of at least 0: the
/// regularized incomplete beta function at lower / (lower + upper x).
pub fn fisher_tail(x: f64, upper: f64, lower: f64) -> f64 {
    beta_share(lower / 2.0, upper / 2.0, lower / (lower + upper * x))
}

/// The natural logarithm of the probability that the sum of `n` standard exponential values exceeds `x`: that of
/// e^-x (1 + x + x^2/2! + ... + x^(n-1)/(n-1)!).
pub(super) fn ln_erlang_tail(n: usize, x: f64) -> f64 {
    // Divided by the largest term, so that neither a large nor a small x leaves the range of numbers.
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
    use statrs::distribution::{ContinuousCDF, FisherSnedecor, Gamma, StudentsT};

    proptest! {
        #[test]
        fn student_is_that_of_another_library(t in 0.0..40.0_f64, freedom in 1.0..300.0_f64) {
            let oracle = StudentsT::new(0.0, 1.0, freedom).unwrap().sf(t);
            let ours = student_tail(t, freedom);
            prop_assert!((ours - oracle).abs() <= 1e-7 * oracle + 1e-14, "{} for {}", ours, oracle);
        }

        #[test]
        fn the_quantile_inverts_the_tail(tail in 1e-6..0.5_f64, freedom in 1.0..300.0_f64) {
            let back = student_tail(student_quantile(tail, freedom), freedom);
            prop_assert!((back / tail - 1.0).abs() < 1e-9, "{} for {}", back, tail);
        }

        #[test]
        fn fisher_is_that_of_another_library(x in 0.01..30.0_f64, upper in 1_u32..60, lower in 1_u32..200) {
            let (upper, lower) = (f64::from(upper), f64::from(lower));
            let oracle = FisherSnedecor::new(upper, lower).unwrap().sf(x);
            let ours = fisher_tail(x, upper, lower);
            prop_assert!((ours - oracle).abs() <= 1e-6 * oracle + 1e-12, "{} for {}", ours, oracle);
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
    }

    #[test]
    fn textbook_quantiles() {
        for (freedom, quantile) in [(1.0, 12.706_2), (10.0, 2.228_1), (1e6, 1.960_0)] {
            assert!((student_quantile(0.025, freedom) - quantile).abs() < 1e-4);
        }
    }
}
