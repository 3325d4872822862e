//! Count, extremes, sum, mean and standard deviation, from exact integer sums.

/// Summary of a set of values, in one pass.
///
/// The sums are 128-bit integers, so the result depends neither on the order of the values nor on how they are split, and two halves merge
/// exactly. They saturate instead of overflowing: a sum that does not fit comes from a damaged file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moments {
    count: u64,
    min: i64,
    max: i64,
    sum: i128,
    squares: u128,
}

impl Default for Moments {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Moments {
    /// Moments of no values.
    pub const EMPTY: Self = Self { count: 0, min: i64::MAX, max: i64::MIN, sum: 0, squares: 0 };

    /// Moments from existing sums: the number of values, their sum, the sum of their squares, and their minimum and maximum, which are
    /// ignored if there are no values.
    pub const fn from_parts(count: u64, sum: i128, squares: u128, (min, max): (i64, i64)) -> Self {
        if count == 0 { Self::EMPTY } else { Self { count, min, max, sum, squares } }
    }

    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: i64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += i128::from(value);
        let magnitude = u128::from(value.unsigned_abs());
        self.squares = self.squares.saturating_add(magnitude * magnitude);
    }

    /// Adds all values of another set.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value; `None` if there are no values.
    pub fn min(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value; `None` if there are no values.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }

    /// The sum of all values, saturated to `i64`: 292 years in nanoseconds.
    pub fn total(&self) -> i64 {
        i64::try_from(self.sum).unwrap_or(if self.sum < 0 { i64::MIN } else { i64::MAX })
    }

    /// The arithmetic mean; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The sample standard deviation, with divisor n - 1; `None` for fewer than two values.
    pub fn stddev(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        let n = u128::from(self.count);
        // n * sum(x^2) - (sum x)^2 cancels almost entirely for similar values, so compute it in integers. Only sums beyond any recording
        // overflow them.
        let magnitude = self.sum.unsigned_abs();
        let spread = match (n.checked_mul(self.squares), magnitude.checked_mul(magnitude)) {
            (Some(squares), Some(square)) => squares.saturating_sub(square) as f64,
            _ => (n as f64 * self.squares as f64 - (self.sum as f64).powi(2)).max(0.0),
        };
        Some((spread / n as f64 / (n - 1) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moments(values: &[i64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.add(*value));
        moments
    }

    #[test]
    fn what_does_not_exist_is_none() {
        let none = moments(&[]);
        assert_eq!((none.min(), none.max(), none.mean(), none.stddev(), none.total()), (None, None, None, None, 0));
        let one = moments(&[7]);
        assert_eq!((one.min(), one.max(), one.mean(), one.stddev()), (Some(7), Some(7), Some(7.0), None));
    }

    #[test]
    fn large_equal_values_do_not_cancel_into_noise() {
        let alike = moments(&[1_000_000_000_000, 1_000_000_000_001, 1_000_000_000_002]);
        assert_eq!(alike.stddev(), Some(1.0));
    }

    #[test]
    fn the_worst_of_files_only_saturates() {
        let worst = moments(&[i64::MAX; 9]);
        assert_eq!(worst.total(), i64::MAX);
        assert!(worst.stddev().is_some_and(f64::is_finite));
        assert!(moments(&[i64::MIN; 9]).stddev().is_some_and(f64::is_finite));
    }

    proptest! {
        #[test]
        fn equals_the_plain_two_pass_way(values in proptest::collection::vec(0_i64..1 << 40, 2..60), at in 0_usize..60) {
            let all = moments(&values);
            let (left, right) = values.split_at(at.min(values.len()));
            let mut merged = moments(left);
            merged.merge(&moments(right));
            prop_assert_eq!(all, merged);

            let n = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / n;
            let variance = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert_eq!(all.min(), values.iter().min().copied());
            prop_assert_eq!(all.max(), values.iter().max().copied());
            prop_assert_eq!(all.total(), values.iter().sum::<i64>());
            prop_assert!((all.mean().unwrap() - mean).abs() <= 1e-9 * mean);
            prop_assert!((all.stddev().unwrap() - variance.sqrt()).abs() <= 1e-6 * (1.0 + mean));
        }
    }
}
