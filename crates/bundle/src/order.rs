//! The order of rows: within a segment, the rows of one CPU are consecutive, and over all segments, a CPU's rows are in order of time.
//!
//! Readers rely on it: they match activities with detours by merging, without an index.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use becalm_model::NodeDoc;
use becalm_model::node::{CpuDoc, FARTHEST};
use becalm_units::CpuId;

/// The last row of a CPU.
#[derive(Clone, Copy)]
struct Last {
    segment: u32,
    key: i64,
}

/// The last row of each CPU, across batches and segments.
#[derive(Clone, Default)]
pub(super) struct RowOrder {
    last: HashMap<i32, Last>,
    /// The CPU of the previous row.
    current: Option<i32>,
}

impl RowOrder {
    /// Starts a segment; CPUs may appear again.
    pub(super) fn begin_segment(&mut self) {
        self.current = None;
    }

    /// Checks a batch's rows, given by CPU and by the value that must not decrease within a CPU, and advances past them. The error names the CPU and
    /// the problem.
    pub(super) fn check(&mut self, segment: u32, cpus: &[i32], keys: &[i64]) -> Result<(), String> {
        for (cpu, keys) in runs(cpus, keys) {
            self.check_run(segment, cpu, keys)?;
            self.pass_run(segment, cpu, keys);
        }
        Ok(())
    }

    /// Advances past a batch's rows, which were checked before.
    pub(super) fn pass(&mut self, segment: u32, cpus: &[i32], keys: &[i64]) {
        runs(cpus, keys).for_each(|(cpu, keys)| self.pass_run(segment, cpu, keys));
    }

    fn check_run(&self, segment: u32, cpu: i32, keys: &[i64]) -> Result<(), String> {
        if u32::try_from(cpu).map_or(true, |id| id >= CpuId::LIMIT) {
            return Err(format!("CPU {cpu} is outside of 0 to {}", CpuId::LIMIT - 1));
        }
        let last = self.last.get(&cpu);
        if last.is_some_and(|last| last.segment == segment) && self.current != Some(cpu) {
            return Err(format!("the rows of CPU {cpu} are not consecutive"));
        }
        if last.is_some_and(|last| keys[0] < last.key) || !keys.is_sorted() {
            return Err(format!("the rows of CPU {cpu} are not in order"));
        }
        Ok(())
    }

    fn pass_run(&mut self, segment: u32, cpu: i32, keys: &[i64]) {
        self.last.insert(cpu, Last { segment, key: keys[keys.len() - 1] });
        self.current = Some(cpu);
    }
}

/// The run time of each CPU's loop: its detours start within.
#[derive(Default)]
pub(super) struct LoopTimes(HashMap<i32, RangeInclusive<i64>>);

impl LoopTimes {
    /// Takes the times from a recording's document. They are final only after its end.
    pub(super) fn from_document(doc: &NodeDoc) -> Self {
        let times = |cpu: &CpuDoc| {
            let (start, duration) = (cpu.start_ns.get(), cpu.duration_ns.get());
            Some((i32::try_from(cpu.cpu.get()).ok()?, start..=start.saturating_add(duration)))
        };
        Self(doc.cpus.iter().filter(|_| doc.is_complete()).filter_map(times).collect())
    }

    /// Checks rows in order of time. The error names the CPU and the time of a row outside of its loop.
    pub(super) fn check(&self, cpus: &[i32], starts: &[i64]) -> Result<(), String> {
        for (cpu, starts) in runs(cpus, starts) {
            let Some(times) = self.0.get(&cpu) else { continue };
            let both = [starts[0], starts[starts.len() - 1]];
            if let Some(start) = both.into_iter().find(|start| !times.contains(start)) {
                let (begin, end) = (times.start(), times.end());
                return Err(format!(
                    "a detour of CPU {cpu} starts at {start} ns, but its loop ran from {begin} ns to {end} ns"
                ));
            }
        }
        Ok(())
    }
}

/// The consecutive rows of each CPU with their keys, at least one per run.
fn runs<'a>(cpus: &'a [i32], mut keys: &'a [i64]) -> impl Iterator<Item = (i32, &'a [i64])> {
    cpus.chunk_by(|a, b| a == b).map(move |run| {
        let (head, tail) = keys.split_at(run.len());
        keys = tail;
        (run[0], head)
    })
}

/// Checks that no interval is negative, and that none starts or ends too far from the run's origin. The error names the interval.
pub(super) fn check_intervals(starts: &[i64], durations: &[i64]) -> Result<(), String> {
    // A first pass without branches, because nearly all are valid: the sign bit of `signs` collects errors. A time that is too far away becomes
    // negative, and so does the end if the sum overflowed.
    let signs = starts.iter().zip(durations).fold(0, |signs, (&start, &duration)| {
        signs | duration | start.wrapping_add(FARTHEST) | start.wrapping_add(duration).wrapping_add(FARTHEST)
    });
    if signs >= 0 {
        return Ok(());
    }
    let (start, duration) = starts
        .iter()
        .zip(durations)
        .find(|&(&start, &duration)| !is_possible(start, duration))
        .expect("one of them is wrong");
    Err(format!("an interval that starts at {start} ns cannot be {duration} ns long"))
}

fn is_possible(start: i64, duration: i64) -> bool {
    let times = -FARTHEST..FARTHEST;
    duration >= 0 && times.contains(&start) && start.checked_add(duration).is_some_and(|end| times.contains(&end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same rule, checked naively over all rows at once.
    fn plain(segments: &[Vec<(i32, i64)>]) -> bool {
        let mut last: HashMap<i32, i64> = HashMap::new();
        segments.iter().all(|rows| {
            let together = rows.iter().enumerate().all(|(at, (cpu, _))| {
                let first = rows.iter().position(|(other, _)| other == cpu).unwrap();
                rows[first..at].iter().all(|(other, _)| other == cpu)
            });
            together && rows.iter().all(|&(cpu, key)| cpu >= 0 && last.insert(cpu, key).is_none_or(|last| last <= key))
        })
    }

    fn batched(segments: &[Vec<(i32, i64)>], batch: usize) -> bool {
        let mut order = RowOrder::default();
        (0..).zip(segments).all(|(number, rows)| {
            order.begin_segment();
            rows.chunks(batch).all(|rows| {
                let (cpus, keys): (Vec<i32>, Vec<i64>) = rows.iter().copied().unzip();
                order.check(number, &cpus, &keys).is_ok()
            })
        })
    }

    #[test]
    fn says_which_cpu() {
        let mut order = RowOrder::default();
        assert!(order.check(0, &[3, -1], &[0, 0]).unwrap_err().contains("CPU -1 is outside"));
        let mut order = RowOrder::default();
        assert!(order.check(0, &[7, 8, 7], &[0, 0, 1]).unwrap_err().contains("CPU 7 are not consecutive"));
        let mut order = RowOrder::default();
        assert!(order.check(0, &[7, 7], &[1, 0]).unwrap_err().contains("CPU 7 are not in order"));
    }

    #[test]
    fn rows_that_were_checked_before_are_gone_on_behind() {
        let mut order = RowOrder::default();
        order.pass(0, &[7, 7, 8], &[1, 5, 0]);
        assert!(order.check(0, &[7], &[9]).unwrap_err().contains("CPU 7 are not consecutive"));
        order.begin_segment();
        assert!(order.check(1, &[7], &[4]).unwrap_err().contains("CPU 7 are not in order"));
        order.check(1, &[7, 8], &[5, 0]).unwrap();
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_rule(
            segments in proptest::collection::vec(proptest::collection::vec((-1_i32..3, 0_i64..4), 0..5), 0..4),
            sorted: bool,
            batch in 1_usize..4,
        ) {
            let mut segments = segments;
            if sorted {
                segments.iter_mut().for_each(|rows| rows.sort_unstable());
            }
            prop_assert_eq!(batched(&segments, batch), plain(&segments));
        }

        #[test]
        fn intervals_agree_with_the_plain_rule(rows in proptest::collection::vec(
            prop_oneof![
                (0_i64..9, 0_i64..9),
                (FARTHEST - 9..=FARTHEST, 0_i64..20),
                (-FARTHEST - 9..=9 - FARTHEST, prop_oneof![0_i64..20, i64::MAX - 20..=i64::MAX]),
                (any::<i64>(), any::<i64>()),
            ],
            0..4,
        )) {
            let good = rows.iter().all(|(start, duration)| is_possible(*start, *duration));
            let (starts, durations): (Vec<i64>, Vec<i64>) = rows.into_iter().unzip();
            prop_assert_eq!(check_intervals(&starts, &durations).is_ok(), good);
        }
    }
}
