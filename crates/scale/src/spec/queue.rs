//! Detours of several causes on one CPU: one that comes during another one follows it.

use becalm_units::Nanos;

use crate::noise::{NoiseTrace, TraceError};

/// A circle of detours with these arrivals and durations, in nanoseconds; in any order, and each arrival on the circle. Fails for negative lengths,
/// or detours that leave no time between them.
pub(crate) fn circle(length: Nanos, mut arrivals: Vec<(i64, i64)>) -> Result<NoiseTrace, TraceError> {
    if let Some((index, (start, duration))) = arrivals.iter().enumerate().find(|(_, (_, duration))| *duration < 0) {
        return Err(TraceError::Negative { index, start: Nanos::new(*start), duration: Nanos::new(*duration) });
    }
    let noise = arrivals.iter().fold(0_i64, |sum, (_, duration)| sum.saturating_add(*duration));
    if noise >= length.get() {
        return Err(TraceError::Full(Nanos::new(noise), length));
    }
    arrivals.sort_unstable();
    // A first lap finds how far the queue at its end extends into the next one. A second lap does not extend it, because there is time between the
    // detours.
    let last = arrivals.iter().fold(0, |end, (start, duration)| end.max(*start) + duration);
    let mut end = (last - length.get()).max(0);
    let mut detours: Vec<(Nanos, Nanos)> = Vec::with_capacity(arrivals.len());
    for (arrival, duration) in arrivals {
        let start = end.max(arrival);
        end = start + duration;
        if duration > 0 {
            detours.push((Nanos::new(start % length.get()), Nanos::new(duration)));
        }
    }
    // Those that had to wait beyond the end of the circle come first in it.
    detours.sort_unstable();
    NoiseTrace::new(length, detours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        /// Compared with a CPU simulated nanosecond by nanosecond, over laps until the state repeats.
        #[test]
        fn queues_are_as_if_each_nanosecond_were_served(
            length in 1_i64..40, arrivals in proptest::collection::vec((0_i64..40, 0_i64..6), 0..10),
        ) {
            let arrivals: Vec<(i64, i64)> = arrivals.into_iter().map(|(at, duration)| (at % length, duration)).collect();
            let noise: i64 = arrivals.iter().map(|(_, duration)| duration).sum();
            let made = circle(Nanos::new(length), arrivals.clone());
            if noise >= length {
                let full = matches!(made, Err(TraceError::Full(..)));
                prop_assert!(full);
                return Ok(());
            }
            let mut busy = vec![false; length as usize];
            let mut waiting = 0;
            for _ in 0..3 {
                for (at, busy) in busy.iter_mut().enumerate() {
                    waiting += arrivals.iter().filter(|(start, _)| *start == at as i64).map(|(_, duration)| duration).sum::<i64>();
                    *busy = waiting > 0;
                    waiting -= i64::from(*busy);
                }
            }
            let made = made.unwrap();
            let mut found = vec![false; length as usize];
            for (start, duration) in made.detours() {
                for at in start.get()..(start + duration).get() {
                    found[(at % length) as usize] = true;
                }
            }
            prop_assert_eq!(found, busy);
            prop_assert_eq!(made.noise().get(), noise);
        }
    }
}
