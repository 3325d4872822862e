//! Stores the traced events before an alert as a bundle.

use std::path::Path;
use std::time::Duration;

use becalm_attribute::{Interruptions, Tally};
use becalm_bundle::BundleError;
use becalm_linux::alarm;
use becalm_measure::{Names, Unstored};
use becalm_model::node::{ClockDoc, CpuDoc, Ended, NodeDoc, Rung};
use becalm_model::{Activity, Detour, LoopThread, Pid, warning};
use becalm_record::{DetourStore, LanePart, Store};
use becalm_units::Nanos;

use crate::observe::RecentInterruptions;
use crate::trace::Trace;

/// The maximum number of stored interruptions over all CPUs, the newest first. This bounds the cost of storing, which is charged to the alert's
/// window.
pub const MOST: usize = 8 << 10;

/// Stores the remembered interruptions of each CPU up to an instant on the trace's axis. The machine is described as in `window`, which was recorded
/// right after them.
pub fn store<'a>(
    path: &Path,
    window: &NodeDoc,
    trace: &dyn Trace,
    remembered: impl Iterator<Item = RecentInterruptions<'a>>,
    until: Nanos,
) -> Result<(), BundleError> {
    let cpus: Vec<RecentInterruptions<'_>> = remembered.collect();
    let starts = cpus.iter().flat_map(|cpu| cpu.found).flat_map(|found| &found.detours).map(|detour| detour.start);
    let began = first_of_newest(starts.collect(), MOST).unwrap_or(until).min(until);
    // Later steps of the wall clock are not undone: only the distance to now is known.
    let ago = trace.now() - began;
    let wall_ns = i128::from(alarm::wall_ns()) - i128::from(ago.get());
    let lag = u64::try_from(window.origin_ns() - wall_ns).unwrap_or(0);
    let rows: Vec<(Vec<Detour>, Vec<Activity>)> = cpus.iter().map(|cpu| merge(cpu.found, began)).collect();
    let mut node = NodeDoc {
        origin: window.origin.and_then(|origin| origin.checked_sub(Duration::from_nanos(lag)).ok()).or(window.origin),
        ended: None,
        clock: ClockDoc {
            counter: "monotonic_raw".to_owned(),
            origin_ticks: trace.origin().raw_ns.saturating_add_signed(began.get()),
            rate_hz: 1e9,
            resolution_ns: Nanos::new(1),
            ..ClockDoc::default()
        },
        rung: Rung::Tracepoints,
        cpus: cpus.iter().zip(&rows).map(|(cpu, (detours, _))| document(cpu, detours, until - began)).collect(),
        tracing: Some(trace.doc().clone()),
        stored: None,
        counters: Vec::new(),
        warnings: vec![warning::no_loop()],
        ..window.clone()
    };
    node.settings.duration_ns = None;
    node.settings.threshold = "none".to_owned();
    let thread = |cpu| LoopThread { cpu, pid: Pid::IDLE, t_min: Nanos::ZERO, realtime: false };
    let threads: Vec<LoopThread> = cpus.iter().map(|cpu| thread(cpu.cpu)).collect();
    let mut store = DetourStore::new(path);
    let mut names = Names::new(Path::new("/"));
    names.labels = trace.names().labels.clone();
    store.begin(&node, &threads, &mut names)?;
    for (index, (detours, activities)) in rows.iter().enumerate() {
        let part = LanePart {
            index,
            thread: threads[index],
            steps: &[],
            work: &[],
            detours,
            activities,
            began: Some(Nanos::ZERO),
            complete_until: until - began,
            unstored: Unstored::default(),
        };
        store.take(part, &names, &mut || {})?;
    }
    store.end_segment(&names, &mut || {})?;
    let tallies = vec![Tally::default(); threads.len()];
    store.enter(&mut node.cpus, &tallies);
    node.ended = Some(Ended::Duration);
    store.close(&mut node)
}

/// The start of the oldest among at most `most` newest interruptions; `None` if there is none. If only some of those with equal start would fit, all
/// of them are left out.
fn first_of_newest(mut starts: Vec<Nanos>, most: usize) -> Option<Nanos> {
    if starts.len() <= most {
        return starts.into_iter().min();
    }
    starts.sort_unstable();
    let (older, newest) = starts.split_at(starts.len() - most);
    newest.iter().find(|start| older.last() != Some(*start)).copied()
}

/// Merges the two reads. Omits interruptions that start before `began`; times are relative to it, and numbers start at 0.
fn merge(found: [&Interruptions; 2], began: Nanos) -> (Vec<Detour>, Vec<Activity>) {
    let (mut detours, mut activities) = (Vec::new(), Vec::new());
    for found in found {
        let older = found.detours.partition_point(|detour| detour.start < began);
        detours.extend(found.detours[older..].iter().map(|detour| Detour { start: detour.start - began, ..*detour }));
        let first = found.activities.first().map_or(0, |row| row.detour) + older as u64;
        activities.extend(&found.activities[found.activities.partition_point(|row| row.detour < first)..]);
    }
    let (mut number, mut last) = (0, None);
    let activities = activities.into_iter().map(|row: Activity| {
        number += u64::from(last.is_some_and(|last| last != row.detour));
        last = Some(row.detour);
        Activity { start: row.start - began, detour: number, ..row }
    });
    (detours, activities.collect())
}

fn document(cpu: &RecentInterruptions<'_>, detours: &[Detour], duration: Nanos) -> CpuDoc {
    let total: Nanos = detours.iter().map(|detour| detour.duration).sum();
    CpuDoc {
        duration_ns: duration,
        detours: detours.len() as u64,
        below_threshold_ns: (duration - total).max(Nanos::ZERO),
        ..CpuDoc::new(cpu.cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::{Kind, Label};
    use becalm_units::CpuId;

    #[test]
    fn two_looks_become_one_run_of_interruptions() {
        let cpu = CpuId::new(1);
        let detour = |start| Detour { cpu, start: Nanos::new(start), duration: Nanos::new(2), incomplete: false };
        let row = |start, detour| Activity {
            cpu,
            detour,
            start: Nanos::new(start),
            self_time: Nanos::new(1),
            kind: Kind::Irq,
            source: Label::EMPTY,
            detail: Label::EMPTY,
        };
        let older = Interruptions { detours: vec![detour(100)], activities: vec![row(100, 41), row(101, 41)] };
        let newer = Interruptions {
            detours: vec![detour(200), detour(300)],
            activities: vec![row(200, 42), row(300, 43), row(301, 43)],
        };
        let (detours, activities) = merge([&older, &newer], Nanos::new(90));
        assert_eq!(detours.iter().map(|detour| detour.start.get()).collect::<Vec<_>>(), [10, 110, 210]);
        assert_eq!(
            activities.iter().map(|row| (row.start.get(), row.detour)).collect::<Vec<_>>(),
            [(10, 0), (11, 0), (110, 1), (210, 2), (211, 2)]
        );
    }

    #[test]
    fn only_the_newest_of_very_many_are_stored() {
        let starts = |list: &[i64]| list.iter().map(|start| Nanos::new(*start)).collect::<Vec<_>>();
        assert_eq!(first_of_newest(starts(&[5, 3, 4]), 3), Some(Nanos::new(3)));
        assert_eq!(first_of_newest(starts(&[5, 1, 3, 4]), 3), Some(Nanos::new(3)));
        // There is no rule for which of those at 3 to leave out.
        assert_eq!(first_of_newest(starts(&[5, 3, 3, 4]), 3), Some(Nanos::new(4)));
        assert_eq!((first_of_newest(starts(&[]), 3), first_of_newest(starts(&[7, 7]), 1)), (None, None));
        // Two CPUs; each alone would be stored completely.
        let (cpus, each) = ([CpuId::new(0), CpuId::new(1)], MOST as i64);
        let found = cpus.map(|cpu| {
            let at = |number: i64| Nanos::new(1_000 * number + i64::from(cpu.get()));
            let row = |number: i64| Activity {
                cpu,
                detour: 40 + number as u64,
                start: at(number),
                self_time: Nanos::new(9),
                kind: Kind::Irq,
                source: Label::EMPTY,
                detail: Label::EMPTY,
            };
            Interruptions {
                detours: (0..each)
                    .map(|number| Detour { cpu, start: at(number), duration: Nanos::new(9), incomplete: false })
                    .collect(),
                activities: (0..each).flat_map(|number| [row(number), row(number)]).collect(),
            }
        });
        let starts = found.iter().flat_map(|found| &found.detours).map(|detour| detour.start);
        let began = first_of_newest(starts.collect(), MOST).unwrap();
        assert_eq!(began, Nanos::new(1_000 * each / 2));
        for (cpu, found) in found.iter().enumerate() {
            let (detours, activities) = merge([&Interruptions::default(), found], began);
            assert_eq!((detours.len(), activities.len()), (MOST / 2, MOST));
            assert_eq!((detours[0].start.get(), activities[0].detour), (cpu as i64, 0));
            assert_eq!(activities.last().unwrap().detour, MOST as u64 / 2 - 1);
        }
    }
}
