//! Quantiles of any number of durations in bounded memory.

use hdrhistogram::Histogram;

use crate::order::nearest_rank;

/// The number of values kept individually before they go into a histogram: 128 KiB, less than the histogram takes.
const EXACT: usize = 16_384;

/// Quantiles by the nearest-rank definition: the smallest value that at least a share q of all values do not exceed.
///
/// Exact for up to 16,384 values; beyond, from a histogram of three significant digits, at most 0.1 % too high.
#[derive(Clone, Debug)]
pub struct Quantiles {
    state: State,
    max: i64,
}

#[derive(Clone, Debug)]
enum State {
    Exact(Values),
    // 32-bit counts: a CPU with four billion detours of one length has other problems.
    Rounded(Histogram<u32>),
}

/// Values in any order, sorted at the first query, because a caller asks for several quantiles, sometimes hundreds.
#[derive(Clone, Debug, Default)]
struct Values {
    values: Vec<i64>,
    sorted: bool,
}

impl Values {
    /// The value with this rank, counted from 0 and below their number.
    fn at(&mut self, rank: usize) -> i64 {
        if !self.sorted {
            self.values.sort_unstable();
            self.sorted = true;
        }
        self.values[rank]
    }
}

impl Default for Quantiles {
    fn default() -> Self {
        Self { state: State::Exact(Values::default()), max: 0 }
    }
}

impl Quantiles {
    /// Creates the quantiles from counts: how often each value occurred, and the largest. As exact as the values are; a count above four
    /// billion is reduced to that.
    pub fn from_counts(counts: impl IntoIterator<Item = (i64, u64)>, max: i64) -> Self {
        let mut histogram = Histogram::new(3).expect("three digits are allowed");
        for (value, count) in counts {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            histogram.record_n(value.max(0) as u64, count).expect("a histogram that grows takes every value");
        }
        if histogram.is_empty() { Self::default() } else { Self { state: State::Rounded(histogram), max } }
    }

    /// Adds a value; a negative one counts as 0.
    #[inline]
    pub fn add(&mut self, value: i64) {
        let value = value.max(0);
        self.max = self.max.max(value);
        match &mut self.state {
            State::Exact(exact) if exact.values.len() < EXACT => {
                exact.values.push(value);
                exact.sorted = false;
            }
            State::Exact(_) => record(self.histogram(), value),
            State::Rounded(histogram) => record(histogram, value),
        }
    }

    /// Adds all values of another set.
    pub fn merge(&mut self, other: &Self) {
        match &other.state {
            State::Exact(exact) => exact.values.iter().for_each(|value| self.add(*value)),
            State::Rounded(histogram) => {
                self.histogram().add(histogram).expect("a histogram that grows takes every other");
                self.max = self.max.max(other.max);
            }
        }
    }

    /// The smallest value that at least the share `quantile` of all values do not exceed, for shares above 0 and up to 1; `None` if there
    /// are no values. A high quantile of few values is their maximum: that of 0.999 of 500 values, for example.
    #[must_use]
    pub fn at(&mut self, quantile: f64) -> Option<i64> {
        match &mut self.state {
            State::Exact(exact) if exact.values.is_empty() => None,
            State::Exact(exact) => Some(exact.at(nearest_rank(quantile, exact.values.len()))),
            // The histogram returns the upper end of a bucket, which may exceed every value.
            State::Rounded(histogram) => Some((histogram.value_at_quantile(quantile) as i64).min(self.max)),
        }
    }

    /// The value of that rank, 1 for the smallest; `None` if there are fewer. Beyond 16,384 values it is rounded like [`Self::at`].
    #[must_use]
    pub fn ranked(&mut self, rank: u64) -> Option<i64> {
        let at = usize::try_from(rank).ok()?.checked_sub(1)?;
        match &mut self.state {
            State::Exact(exact) => (at < exact.values.len()).then(|| exact.at(at)),
            State::Rounded(histogram) if rank > histogram.len() => None,
            // Use the middle of that rank's share, so rounding cannot select its neighbor.
            State::Rounded(histogram) => {
                let share = (rank as f64 - 0.5) / histogram.len() as f64;
                Some((histogram.value_at_quantile(share) as i64).min(self.max))
            }
        }
    }

    /// The histogram; moves the values into it first if necessary.
    fn histogram(&mut self) -> &mut Histogram<u32> {
        if let State::Exact(exact) = &self.state {
            let mut histogram = Histogram::new(3).expect("three digits are allowed");
            exact.values.iter().for_each(|value| record(&mut histogram, *value));
            self.state = State::Rounded(histogram);
        }
        match &mut self.state {
            State::Rounded(histogram) => histogram,
            State::Exact(_) => unreachable!("it was replaced just now"),
        }
    }
}

#[inline]
fn record(histogram: &mut Histogram<u32>, value: i64) {
    histogram.record(value as u64).expect("a histogram that grows takes every value");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(values: &[i64], quantile: f64) -> i64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted[((quantile * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
    }

    fn quantiles(values: &[i64]) -> Quantiles {
        let mut quantiles = Quantiles::default();
        values.iter().for_each(|value| quantiles.add(*value));
        quantiles
    }

    const SHARES: [f64; 5] = [0.001, 0.5, 0.99, 0.999, 1.0];

    #[test]
    fn there_are_none_without_values() {
        assert_eq!(Quantiles::default().at(0.5), None);
    }

    #[test]
    fn extremes_of_the_range_are_taken() {
        let mut quantiles = quantiles(&[i64::MIN, 0, i64::MAX]);
        assert_eq!((quantiles.at(0.1), quantiles.at(1.0)), (Some(0), Some(i64::MAX)));
        quantiles.histogram();
        assert_eq!((quantiles.at(0.1), quantiles.at(1.0)), (Some(0), Some(i64::MAX)));
    }

    #[test]
    fn ranks_are_places_in_order() {
        for count in [1_i64, 7, 1_000, 40_000] {
            let mut quantiles = Quantiles::default();
            (0..count).rev().for_each(|value| quantiles.add(value));
            for rank in [1, count / 3, count / 2, count - 1, count].into_iter().filter(|rank| *rank > 0) {
                let found = quantiles.ranked(rank as u64).unwrap();
                assert!(
                    (rank - 1..=(rank - 1) * 1_001 / 1_000 + 1).contains(&found),
                    "{found} for rank {rank} of {count}"
                );
            }
            assert_eq!((quantiles.ranked(0), quantiles.ranked(count as u64 + 1)), (None, None));
        }
    }

    #[test]
    fn counts_are_as_good_as_values() {
        let mut quantiles = Quantiles::from_counts([(10, 98), (500, 1), (70_000, 1)], 70_000);
        assert_eq!(
            (quantiles.at(0.5), quantiles.at(0.99), quantiles.at(1.0), quantiles.ranked(99)),
            (Some(10), Some(500), Some(70_000), Some(500))
        );
        assert_eq!(Quantiles::from_counts([], 0).at(0.5), None);
    }

    proptest! {
        #[test]
        fn few_values_are_ranked_exactly(values in proptest::collection::vec(0_i64..1 << 40, 1..200)) {
            let mut quantiles = quantiles(&values);
            for share in SHARES {
                prop_assert_eq!(quantiles.at(share), Some(plain(&values, share)));
            }
            // What comes after a question counts in the next answer.
            quantiles.add(0);
            let more = [&values[..], &[0]].concat();
            prop_assert_eq!(quantiles.at(0.5), Some(plain(&more, 0.5)));
        }

        #[test]
        fn many_values_are_ranked_to_a_thousandth(
            values in proptest::collection::vec(0_i64..1 << 40, EXACT + 1..EXACT + 50), at in 0_usize..EXACT,
        ) {
            let mut all = quantiles(&values);
            let (left, right) = values.split_at(at);
            let mut merged = quantiles(left);
            merged.merge(&quantiles(right));
            for share in SHARES {
                let exact = plain(&values, share);
                let found = all.at(share).unwrap();
                prop_assert!(found >= exact && found as f64 <= exact as f64 * 1.001, "{} for {}", found, exact);
                prop_assert_eq!(merged.at(share), Some(found));
            }
        }
    }
}
