//! Student's t distribution: the upper tail, and the critical value of a two-sided test.
//!
//! The tail is an incomplete beta function, evaluated by its continued fraction with Lentz's method: M. Abramowitz,
//! I. Stegun, *Handbook of Mathematical Functions*, 26.5.8 and 26.7.1; W. Lentz, Applied Optics 15 (1976).

/// The probability that a t of `df` degrees of freedom is above `t`; `df` is above 0.
///
/// Good to about ten digits, also far out, where it is tiny.
pub(super) fn upper_tail(t: f64, df: f64) -> f64 {
    if t.is_nan() || t <= 0.0 {
        return if t < 0.0 { 1.0 - upper_tail(-t, df) } else { 0.5 };
    }
    if t.is_infinite() {
        return 0.0;
    }
    0.5 * incomplete_beta(df / (df + t * t), df / 2.0, 0.5)
}

/// The t that is exceeded with the probability `tail`, which lies between 0 and 1/2.
pub(super) fn critical(tail: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while upper_tail(high, df) > tail && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if upper_tail(middle, df) > tail { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The regularized incomplete beta function of x between 0 and 1.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp();
    // The fraction converges fast on this side of the mean, and the function is symmetric.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..1_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = result;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            result *= c * d;
        }
        if (result / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function of x above 0: Stirling's series, shifted up to where six terms of it give full
/// precision (*Handbook*, 6.1.41).
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let terms = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1_260.0, -1.0 / 1_680.0, 1.0 / 1_188.0, -691.0 / 360_360.0];
    let series = terms.iter().rev().fold(0.0, |sum, term| sum * inverse + term) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};

    #[test]
    fn equals_another_librarys() {
        for df in [1.0, 2.5, 19.0, 40.0, 255.0, 5_000.0] {
            let other = StudentsT::new(0.0, 1.0, df).unwrap();
            for t in [-3.0, -0.1, 0.0, 0.3, 1.0, 1.96, 3.3, 6.0, 12.0] {
                let (ours, theirs) = (upper_tail(t, df), other.sf(t));
                assert!((ours - theirs).abs() <= 1e-9 * theirs, "{t} of {df}: {ours}, not {theirs}");
            }
            assert!((upper_tail(critical(0.025, df), df) - 0.025).abs() < 1e-9, "{df}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_taken() {
        assert_eq!(upper_tail(f64::INFINITY, 5.0), 0.0);
        assert_eq!(upper_tail(f64::NEG_INFINITY, 5.0), 1.0);
        assert!(upper_tail(1e6, 255.0) < 1e-200);
    }
}
