//! Medians and the rank of a quantile. An even number of values has three medians; each function name says which one it returns.

use std::cmp::Ordering;

/// Numbers with a total order.
pub trait Ordered: Copy {
    /// Compares two numbers; NaN has a place as well.
    fn order(&self, other: &Self) -> Ordering;
}

impl Ordered for i64 {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

impl Ordered for u64 {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

impl Ordered for f64 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

/// The lower of the two middle values, or the middle one of an odd number; `None` for no values. Reorders the values.
pub fn median_low<T: Ordered>(values: &mut [T]) -> Option<T> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, T::order).1)
}

/// The upper of the two middle values, or the middle one of an odd number; `None` for no values. Reorders the values.
pub fn median_high<T: Ordered>(values: &mut [T]) -> Option<T> {
    let middle = values.len() / 2;
    if values.is_empty() { None } else { Some(*values.select_nth_unstable_by(middle, T::order).1) }
}

/// The midpoint of the two middle values, or the middle one of an odd number; `None` for no values. Reorders the values.
pub fn median_mid(values: &mut [f64]) -> Option<f64> {
    let high = median_high(values)?;
    let below = &values[..values.len() / 2];
    let low = if values.len() % 2 == 1 { high } else { below.iter().copied().fold(f64::NEG_INFINITY, f64::max) };
    Some(f64::midpoint(low, high))
}

/// The mean without this share of the values at either end (rounded to whole values): outliers do not move it. `None` for no values
/// and for a share of a half or more. Reorders the values.
pub fn trimmed_mean(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let out = (share * values.len() as f64).round() as usize;
    let kept = values.get(out..values.len().checked_sub(out)?)?;
    if kept.is_empty() { None } else { Some(kept.iter().sum::<f64>() / kept.len() as f64) }
}

/// The index of a quantile among `count` sorted values by nearest rank: the first value that at least this share of all do not exceed; 0
/// for no values.
pub fn nearest_rank(share: f64, count: usize) -> usize {
    ((share * count as f64).ceil() as usize).clamp(1, count.max(1)) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn medians_are_those_of_the_sorted_values(mut values in prop::collection::vec(-50_i64..50, 1..40)) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
            prop_assert_eq!(median_low(&mut values), Some(low));
            prop_assert_eq!(median_high(&mut values), Some(high));
            let mut numbers: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            prop_assert_eq!(median_mid(&mut numbers), Some((low + high) as f64 / 2.0));
        }
    }

    #[test]
    fn a_trimmed_mean_does_not_follow_wild_values() {
        let mut values = [3.0, -1e9, 2.0, 1.0, 4.0, 1e12, 5.0, 3.0, 2.0, 4.0];
        assert_eq!(trimmed_mean(&mut values, 0.1), Some(3.0));
        assert_eq!(trimmed_mean(&mut [1.0, 2.0, 6.0], 0.0), Some(3.0));
        // A tenth of less than five values is none.
        assert_eq!(trimmed_mean(&mut [1.0, 2.0, 6.0, 7.0], 0.1), Some(4.0));
        assert_eq!((trimmed_mean(&mut [], 0.1), trimmed_mean(&mut [1.0, 2.0], 0.5)), (None, None));
    }

    proptest! {
        #[test]
        fn the_nearest_rank_is_the_first_that_enough_values_do_not_exceed(count in 1_usize..5_000, share in 0.0_f64..=1.0) {
            let enough = |place: usize| (place + 1) as f64 >= share * count as f64;
            prop_assert_eq!(nearest_rank(share, count), (0..count).find(|place| enough(*place)).unwrap());
        }
    }

    #[test]
    fn nothing_has_no_median() {
        assert_eq!((median_low::<i64>(&mut []), median_high::<f64>(&mut []), median_mid(&mut [])), (None, None, None));
    }
}
