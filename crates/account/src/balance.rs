//! The check that the accounting is exact: in every detour the activities add up to its duration, to the nanosecond.

use becalm_stats::splitmix::nth;

/// The sum over the detours n of a CPU of w(n) * (duration - sum of self times), modulo 2^64, where w(n) is a fixed hash of n.
///
/// Detours and activities are stored separately and in large numbers; joining them would cost more than everything else in a report. This sum takes
/// rows in any order and in constant memory. It is 0 if every detour adds up. Otherwise it is 0 only if the errors cancel under these weights; for
/// random weights the probability is at most e / 2^64, where e is the smallest error in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Balance(u64);

impl Balance {
    /// Adds a detour, whose number is counted on its CPU.
    #[inline]
    pub fn detour(&mut self, number: u64, duration_ns: i64) {
        self.0 = self.0.wrapping_add(nth(number).wrapping_mul(duration_ns as u64));
    }

    /// Adds an activity of a detour.
    #[inline]
    pub fn activity(&mut self, number: u64, self_ns: i64) {
        self.0 = self.0.wrapping_sub(nth(number).wrapping_mul(self_ns as u64));
    }

    /// Whether every detour adds up.
    pub const fn is_closed(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_balance_is_what_adding_up_says(
            splits in proptest::collection::vec(proptest::collection::vec(0_i64..1 << 40, 0..5), 1..40),
            wrong in proptest::option::of((0_usize..40, 1_i64..1 << 40)),
        ) {
            let mut durations: Vec<i64> = splits.iter().map(|parts| parts.iter().sum()).collect();
            if let Some((at, error)) = wrong {
                let at = at % durations.len();
                durations[at] += error;
            }
            let mut balance = Balance::default();
            for (number, parts) in splits.iter().enumerate().rev() {
                parts.iter().for_each(|part| balance.activity(number as u64, *part));
            }
            for (number, duration) in durations.iter().enumerate() {
                balance.detour(number as u64, *duration);
            }
            prop_assert_eq!(balance.is_closed(), wrong.is_none());
        }

        #[test]
        fn errors_that_cancel_in_the_sum_do_not_cancel_here(error in 1_i64..1 << 40, one in 0_u64..1 << 30, gap in 1_u64..9) {
            let mut balance = Balance::default();
            balance.detour(one, error);
            balance.activity(one + gap, error);
            prop_assert!(!balance.is_closed());
        }

        /// Sums under weights that grow evenly, such as n + 1, would be 0 here.
        #[test]
        fn errors_that_cancel_under_evenly_growing_weights_do_not_cancel_here(error in 1_i64..1 << 40, one in 0_u64..1 << 30) {
            let mut balance = Balance::default();
            balance.detour(one, error);
            balance.activity(one + 1, 2 * error);
            balance.detour(one + 2, error);
            prop_assert!(!balance.is_closed());
        }
    }
}
