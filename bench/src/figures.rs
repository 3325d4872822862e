//! Statistics of repetitions: extremes, median, and the interval of the median.

/// The values of repeated measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct Repetitions(Vec<f64>);

impl Repetitions {
    /// Panics without a repetition, or if a value is NaN.
    pub fn new(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty() && !values.iter().any(|value| value.is_nan()), "a repetition gives a number");
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// The smallest value of all repetitions.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest value of all repetitions.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The median, or the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let half = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[half] } else { f64::midpoint(self.0[half - 1], self.0[half]) }
    }

    /// The mean of the middle half, which disturbed repetitions do not affect.
    pub fn middle_mean(&self) -> f64 {
        let quarter = self.0.len() / 4;
        let middle = &self.0[quarter..self.0.len() - quarter];
        middle.iter().sum::<f64>() / middle.len() as f64
    }

    /// The narrowest pair of repetitions, counted inwards from both ends, that encloses the true median with a probability of at least 95 %
    /// (the sign test's interval); the smallest and the largest if there are too few.
    pub fn median_interval(&self) -> (f64, f64) {
        let n = self.0.len();
        // The probability that fewer than `k` of `n` are below the median, term by term of the binomial distribution.
        let (mut term, mut below, mut k) = (0.5_f64.powi(n as i32), 0.0, 0);
        while below + term <= 0.025 {
            below += term;
            term *= (n - k) as f64 / (k + 1) as f64;
            k += 1;
        }
        let inwards = k.saturating_sub(1);
        (self.0[inwards], self.0[n - 1 - inwards])
    }

    /// `min` to `max`, for a comment.
    pub fn range(&self, unit: &str) -> String {
        format!("{:.2} to {:.2}{unit} in {} repetitions", self.min(), self.max(), self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles() {
        let odd = Repetitions::new(vec![9.0, 1.0, 2.0]);
        assert_eq!((odd.min(), odd.median(), odd.max()), (1.0, 2.0, 9.0));
        let even = Repetitions::new(vec![4.0, 1.0, 100.0, 2.0]);
        assert_eq!((even.median(), even.middle_mean()), (3.0, 3.0));
        assert_eq!(Repetitions::new(vec![5.0]).middle_mean(), 5.0);
    }

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // Tables of the sign test give, for 95 %: n = 6 the extremes; n = 12 the 3rd from both ends; n = 20 the 6th.
        for (n, rank) in [(3, 1), (6, 1), (12, 3), (20, 6)] {
            let values = Repetitions::new((1..=n).map(f64::from).collect());
            assert_eq!(values.median_interval(), (f64::from(rank), f64::from(n + 1 - rank)), "{n}");
        }
    }
}
