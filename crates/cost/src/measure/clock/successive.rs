//! Successive readings of the counter: the steps between them, and runs of equal steps (Tsafrir 2007, section 4: most steps were equal, in
//! runs of the same number).

use std::collections::HashMap;

use becalm_linux::clock::Counter;

use crate::documents::{StepDoc, SuccessiveDoc};

/// Number of readings: some ten milliseconds of them.
const READINGS: usize = 1 << 20;
/// Number of distinct step lengths kept.
const KEPT: usize = 32;

/// Reads the counter repeatedly and returns the steps. Between two readings, the first is only stored, in memory already touched.
pub(super) fn successive<C: Counter>(tick_ps: f64) -> SuccessiveDoc {
    let mut readings = vec![1_u64; READINGS];
    // The first pass loads the code.
    for _ in 0..2 {
        readings.iter_mut().for_each(|reading| *reading = C::read());
    }
    steps(&readings, tick_ps)
}

/// The steps between readings, by length.
fn steps(readings: &[u64], tick_ps: f64) -> SuccessiveDoc {
    let mut found: HashMap<u64, StepDoc> = HashMap::new();
    let (mut backwards, mut last, mut run) = (0, None, 0);
    for pair in readings.windows(2) {
        let Some(ticks) = pair[1].checked_sub(pair[0]) else {
            (backwards, last) = (backwards + 1, None);
            continue;
        };
        let goes_on = last == Some(ticks);
        run = if goes_on { run + 1 } else { 1 };
        last = Some(ticks);
        let step = found.entry(ticks).or_insert(StepDoc { ticks, count: 0, runs: 0, longest_run: 0 });
        step.count += 1;
        step.runs += u64::from(!goes_on);
        step.longest_run = step.longest_run.max(run);
    }
    let mut steps: Vec<StepDoc> = found.into_values().collect();
    steps.sort_unstable_by(|a, b| b.count.cmp(&a.count).then(a.ticks.cmp(&b.ticks)));
    let (distinct, max_ticks) = (steps.len() as u64, steps.iter().map(|step| step.ticks).max().unwrap_or(0));
    steps.truncate(KEPT);
    SuccessiveDoc {
        readings: readings.len() as u64,
        tick_ps: tick_ps.round() as i64,
        distinct,
        max_ticks,
        backwards,
        steps,
    }
}

#[cfg(test)]
mod tests {
    use becalm_linux::clock::MonotonicRaw;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steps_come_in_runs() {
        // 5 5 5 9 5 5, a leap back, 5.
        let found = steps(&[0, 5, 10, 15, 24, 29, 34, 3, 8], 250.4);
        assert_eq!(
            (found.readings, found.tick_ps, found.distinct, found.max_ticks, found.backwards),
            (9, 250, 2, 9, 1)
        );
        let five = StepDoc { ticks: 5, count: 6, runs: 3, longest_run: 3 };
        assert_eq!(found.steps, [five, StepDoc { ticks: 9, count: 1, runs: 1, longest_run: 1 }]);
        assert!(steps(&[], 1.0).steps.is_empty() && steps(&[7], 1.0).steps.is_empty());
    }

    #[test]
    fn a_real_counter_has_a_step_between_any_two_readings() {
        let found = successive::<MonotonicRaw>(1_000.0);
        let counted: u64 = found.steps.iter().map(|step| step.count).sum();
        assert!(found.readings == READINGS as u64 && found.backwards == 0, "{found:?}");
        assert!(counted < found.readings && counted > found.readings / 2, "{found:?}");
        assert!(found.steps.iter().all(|step| step.runs <= step.count && step.longest_run <= step.count), "{found:?}");
    }

    proptest! {
        #[test]
        fn all_steps_are_counted_once(deltas in proptest::collection::vec(0_u64..4, 0..200)) {
            let mut readings = vec![0];
            for delta in &deltas {
                readings.push(readings[readings.len() - 1] + delta);
            }
            let found = steps(&readings, 1.0);
            for ticks in 0..4 {
                // In plain words: cut the row of steps where the length changes.
                let runs: Vec<usize> = deltas.chunk_by(|a, b| a == b).filter(|run| run[0] == ticks).map(<[_]>::len).collect();
                let expected = runs.iter().max().map(|longest| StepDoc {
                    ticks,
                    count: runs.iter().sum::<usize>() as u64,
                    runs: runs.len() as u64,
                    longest_run: *longest as u64,
                });
                prop_assert_eq!(found.steps.iter().find(|step| step.ticks == ticks).copied(), expected);
            }
        }
    }
}
