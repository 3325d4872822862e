//! The third decile, used to calibrate work (Tsafrir 2007, section 3.3).

/// The mean of the durations from the 20th to the 30th percentile: of the sorted values whose index, counted from 0, is at least 20 % and below 30 %
/// of their number. With fewer than four values there may be none, and the value at 25 % is used. `None` without values.
///
/// The shortest durations are flukes of the clock, and the longer half contains the noise; values near the first quartile are the loop itself.
#[must_use]
pub fn third_decile_mean(durations: &mut [u64]) -> Option<f64> {
    durations.sort_unstable();
    let count = durations.len();
    let (from, to) = ((count * 2).div_ceil(10), (count * 3).div_ceil(10));
    let part = if from < to { &durations[from..to] } else { durations.get(count / 4..=count / 4)? };
    // In 128 bits, since a sum of ticks may not fit into 64.
    let sum: u128 = part.iter().map(|duration| u128::from(*duration)).sum();
    Some(sum as f64 / part.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_twenty_first_to_the_thirtieth_of_a_hundred_durations_count() {
        let mut durations: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(third_decile_mean(&mut durations), Some(25.5));
        // Neither flukes below nor noise above change it.
        for outlier in &mut durations[..20] {
            *outlier = 0;
        }
        for outlier in &mut durations[30..] {
            *outlier = u64::MAX;
        }
        durations.reverse();
        assert_eq!(third_decile_mean(&mut durations), Some(25.5));
    }

    #[test]
    fn one_of_few_durations_counts() {
        assert_eq!(third_decile_mean(&mut []), None);
        assert_eq!(third_decile_mean(&mut [7]), Some(7.0));
        assert_eq!(third_decile_mean(&mut [9, 7]), Some(7.0));
        assert_eq!(third_decile_mean(&mut [9, 7, 8]), Some(7.0));
        assert_eq!(third_decile_mean(&mut [5, 6, 7, 8, 9, 10, 1, 2, 3, 4]), Some(3.0));
    }

    proptest! {
        /// By definition, a value of rank r (from 0) is in the third decile if 0.2 <= r / n < 0.3.
        #[test]
        fn agrees_with_the_definition(mut durations in proptest::collection::vec(0_u64..1_000_000, 10..300)) {
            let found = third_decile_mean(&mut durations).unwrap();
            let n = durations.len();
            let part: Vec<u64> =
                (0..n).filter(|r| 10 * r >= 2 * n && 10 * r < 3 * n).map(|r| durations[r]).collect();
            let expected = part.iter().sum::<u64>() as f64 / part.len() as f64;
            prop_assert!((found - expected).abs() < 1e-6, "{} instead of {}", found, expected);
        }
    }
}
