//! The check that the books close: in every detour the activities add up to its duration, to the nanosecond.
//!
//! Detours and activities are stored apart and in large numbers. To join them would cost more than everything else in
//! a report; instead each CPU keeps one number, the sum over its detours n of w(n) * (duration - sum of self times),
//! modulo 2^64, with w(n) a fixed scramble of n. It takes rows in any order and without memory. If all books close it
//! is 0; if some do not, errors would have to cancel under weights that have nothing to do with them, which for a given
//! error of e nanoseconds happens with a probability of about e / 2^64. Only then the files are read again to say which
//! detour it is.

use becalm_bundle::{Bundle, BundleError};
use becalm_stats::splitmix::nth;
use becalm_units::CpuId;

/// Whether the activities add up to the detours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Books {
    /// The books close in every detour.
    Closed,
    /// They do not. The first detour of each CPU in which that is so.
    Open(Vec<OpenBook>),
    /// There are no activities: nothing of the kernel was seen, or nothing was asked for.
    NoActivities,
}

/// A detour whose activities do not add up to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenBook {
    /// The host on which it was recorded.
    pub node: String,
    /// The CPU on which it was recorded.
    pub cpu: CpuId,
    /// The detour's number on that CPU.
    pub detour: u64,
    /// How long it is, in nanoseconds; `None` if the number lies beyond the last detour.
    pub duration_ns: Option<i64>,
    /// What its activities add up to, in nanoseconds.
    pub activities_ns: i64,
}

/// The running sum of one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Balance(u64);

impl Balance {
    #[inline]
    pub(super) fn detour(&mut self, number: u64, duration: i64) {
        self.0 = self.0.wrapping_add(nth(number).wrapping_mul(duration as u64));
    }

    #[inline]
    pub(super) fn activity(&mut self, number: u64, self_time: i64) {
        self.0 = self.0.wrapping_sub(nth(number).wrapping_mul(self_time as u64));
    }

    pub(super) const fn is_closed(self) -> bool {
        self.0 == 0
    }
}

/// The first detour of a CPU whose activities do not add up to it, found by reading the CPU's rows again.
pub(super) fn first_open(bundle: &Bundle, node: &str, cpu: CpuId) -> Result<Option<OpenBook>, BundleError> {
    let mut activities = BookRows::new(bundle.activities(node)?, |batch, rows: &mut Vec<(u64, i64)>| {
        for row in rows_of(batch.cpus(), cpu) {
            rows.push((batch.detours()[row] as u64, batch.self_times()[row]));
        }
    });
    let mut detours = BookRows::new(bundle.detours(node)?, |batch, rows: &mut Vec<i64>| {
        rows.extend(rows_of(batch.cpus(), cpu).map(|row| batch.durations()[row]));
    });
    let open = |detour, duration_ns, activities_ns| {
        Ok(Some(OpenBook { node: node.to_owned(), cpu, detour, duration_ns, activities_ns }))
    };
    let mut next = activities.next()?;
    let mut number = 0;
    while let Some(duration) = detours.next()? {
        let mut sum = 0_i64;
        while let Some((detour, self_time)) = next
            && detour <= number
        {
            if detour < number {
                return open(detour, None, self_time);
            }
            sum = sum.saturating_add(self_time);
            next = activities.next()?;
        }
        if sum != duration {
            return open(number, Some(duration), sum);
        }
        number += 1;
    }
    match next {
        Some((detour, self_time)) => open(detour, None, self_time),
        None => Ok(None),
    }
}

fn rows_of(cpus: &[i32], cpu: CpuId) -> impl Iterator<Item = usize> {
    cpus.iter().enumerate().filter(move |(_, at)| **at as u32 == cpu.get()).map(|(row, _)| row)
}

/// The rows of one CPU, one by one, out of batches of all.
struct BookRows<B, T, F> {
    batches: B,
    take: F,
    rows: std::vec::IntoIter<T>,
}

impl<T, I, B: Iterator<Item = Result<I, BundleError>>, F: Fn(&I, &mut Vec<T>)> BookRows<B, T, F> {
    fn new(batches: B, take: F) -> Self {
        Self { batches, take, rows: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<T>, BundleError> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
            let mut rows = Vec::new();
            (self.take)(&batch, &mut rows);
            self.rows = rows.into_iter();
        }
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
            if let Some((at, by)) = wrong {
                let at = at % durations.len();
                durations[at] += by;
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
        fn errors_that_cancel_in_the_sum_do_not_cancel_here(by in 1_i64..1 << 40, one in 0_u64..1 << 30, gap in 1_u64..9) {
            let mut balance = Balance::default();
            balance.detour(one, by);
            balance.activity(one + gap, by);
            prop_assert!(!balance.is_closed());
        }
    }
}
