//! The interval of a median from the order of the values alone, by the sign test.
//!
//! Of n independent values the number below the true median is binomial with p = 1/2, whatever their distribution; so
//! the k-th smallest and the k-th largest enclose it with probability 1 - 2 P(B < k) (W. R. Thompson, Annals of
//! Mathematical Statistics 7, 1936).

use super::CONFIDENCE;

/// The median of these values (of an even number the lower one of the two in the middle) and the ends of an interval
/// that holds the true one with at least [`CONFIDENCE`]; no interval for fewer than 6 values, and nothing without values.
///
/// Of 20 values, the ends are the 6th and the 15th in order.
#[must_use]
pub fn median_with_interval(values: &[i64]) -> Option<(i64, Option<(i64, i64)>)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let median = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    let interval = rank(sorted.len()).map(|k| (sorted[k - 1], sorted[sorted.len() - k]));
    Some((median, interval))
}

/// The largest k with P(B < k) <= (1 - confidence) / 2 for B binomial of n and 1/2.
fn rank(n: usize) -> Option<usize> {
    // P(B = i), from one to the next. Underflows to 0 beyond a thousand values, where it starts from too little to matter.
    let mut term = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let (mut below, mut k) = (0.0, 0);
    while k < n {
        below += term;
        if below > (1.0 - CONFIDENCE) / 2.0 {
            break;
        }
        term *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    (k > 0 && term > 0.0).then_some(k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use statrs::distribution::{Binomial, DiscreteCDF};

    #[test]
    fn the_ranks_are_those_of_the_tables() {
        // Conover, Practical Nonparametric Statistics, table of the sign test.
        for (n, k) in [(5, None), (6, Some(1)), (8, Some(1)), (9, Some(2)), (20, Some(6)), (100, Some(40))] {
            assert_eq!(rank(n), k, "{n}");
        }
    }

    #[test]
    fn few_values_have_a_median_and_no_interval() {
        assert_eq!(median_with_interval(&[]), None);
        assert_eq!(median_with_interval(&[7]), Some((7, None)));
        assert_eq!(median_with_interval(&[9, 1, 5, 2]), Some((2, None)));
    }

    proptest! {
        #[test]
        fn the_rank_is_the_last_that_the_binomial_allows(n in 6_usize..400) {
            let k = rank(n).unwrap();
            let half = (1.0 - CONFIDENCE) / 2.0;
            let binomial = Binomial::new(0.5, n as u64).unwrap();
            prop_assert!(binomial.cdf(k as u64 - 1) <= half + 1e-9);
            prop_assert!(binomial.cdf(k as u64) > half - 1e-9);
        }

        #[test]
        fn the_interval_holds_the_median_of_the_values(values in proptest::collection::vec(any::<i64>(), 1..80)) {
            let (median, interval) = median_with_interval(&values).unwrap();
            let below = values.iter().filter(|value| **value < median).count();
            let above = values.iter().filter(|value| **value > median).count();
            prop_assert!(below * 2 <= values.len() && above * 2 <= values.len() + 1);
            if let Some((low, high)) = interval {
                prop_assert!(low <= median && median <= high);
            }
        }
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_true_median() {
        // Skewed: the square of a uniform number; its median is a quarter of the square of its range.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let truth = (1_i64 << 30) / 4;
        let mut held = 0;
        for _ in 0..2_000 {
            let values: Vec<i64> = (0..20).map(|_| (random.next_u64() >> 49) as i64).map(|x| x * x).collect();
            let (low, high) = median_with_interval(&values).unwrap().1.unwrap();
            held += usize::from(low <= truth && truth <= high);
        }
        // 95.9 % are to be expected, with a standard deviation of 0.45 %.
        assert!((1_890..=1_945).contains(&held), "{held}");
    }
}
