//! Threads that no change names, but whose CPUs the kernel changes nevertheless.
//!
//! Before Linux 6.2, creating or removing a partition, or changing the CPUs of a group, gives every thread in the affected groups all CPUs left to
//! its group, even if its affinity was narrower. So the CPUs of all threads are noted beforehand. After applying, threads changed by the kernel get
//! their previous CPUs back, except the quiet ones; after restoring, they get all of them. Kernel workers with a fixed affinity cannot be given
//! anything; they end when idle. Later kernels remember affinities, so nothing is left to do.
//!
//! A change by the kernel is recognized by the resulting set: all CPUs left to everybody. A thread that was meanwhile given exactly these by another
//! program cannot be distinguished.

use std::collections::{BTreeMap, BTreeSet};

use becalm_linux::procfs::placement::Placed;
use becalm_units::CpuList;

use crate::journal::{Journal, NotedThread, Record, State, gives_cpus};
use crate::machine::{Machine, online};
use crate::moment::{Moment, Observer};
use crate::{Knob, TuneError};

/// A thread, identified by its number and its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ThreadKey {
    pub tid: i32,
    pub start_ticks: u64,
}

impl ThreadKey {
    pub(crate) const fn new(placed: &Placed) -> Self {
        Self { tid: placed.task.pid, start_ticks: placed.start_ticks }
    }
}

/// The CPUs of all threads not noted yet, if any change may make the kernel give them others. If threads cannot be listed, the plan has reported
/// that. Excludes threads already moved, which started after the others were noted: their changes have their previous CPUs, and the present ones
/// would be taken for those.
pub(crate) fn unnoted(machine: &dyn Machine, state: &State) -> Option<Record> {
    if !state.steps.iter().any(|step| gives_cpus(&step.change)) {
        return None;
    }
    let noted = state.threads.iter().map(|noted| ThreadKey { tid: noted.tid, start_ticks: noted.start_ticks });
    let moved = moved(state).into_iter().filter_map(|(thread, (is_open, _))| is_open.then_some(thread));
    let known: BTreeSet<ThreadKey> = noted.chain(moved).collect();
    let tasks = machine.tasks().unwrap_or_default().tasks;
    let new = tasks.into_iter().filter(|placed| !placed.bound && !known.contains(&ThreadKey::new(placed)));
    let threads: Vec<NotedThread> = new
        .map(|placed| NotedThread { tid: placed.task.pid, start_ticks: placed.start_ticks, cpus: placed.cpus })
        .collect();
    (!threads.is_empty()).then_some(Record::Threads { threads })
}

/// The noted CPUs of threads before any change: a later change may have found those set by the kernel.
pub(crate) fn noted(state: &State) -> BTreeMap<ThreadKey, CpuList> {
    state
        .threads
        .iter()
        .map(|noted| (ThreadKey { tid: noted.tid, start_ticks: noted.start_ticks }, noted.cpus.clone()))
        .collect()
}

/// After applying: threads with everybody's CPUs from the kernel get their previous ones except quiet ones, or those to which they were moved.
pub(crate) fn keep(machine: &dyn Machine, state: &State, observer: &mut Observer<'_>) {
    if !state.is_unsettled() {
        return;
    }
    let online = online(machine);
    let quiet = state.quiet();
    let everybodys = online.without(&quiet);
    let moved = moved(state);
    give(machine, state, observer, |placed, noted| {
        let wanted = match moved.get(&ThreadKey::new(placed)) {
            Some((_, Some(done))) => done.clone(),
            _ => noted.without(&quiet),
        };
        (placed.cpus.intersection(&online) == everybodys).then_some(wanted)
    });
}

/// Once groups are restored: threads with everybody's CPUs from the kernel get their previous ones. To be repeated until all groups are restored.
/// Fails if the journal cannot be written.
pub(crate) fn settle(
    machine: &dyn Machine,
    journal: &mut Journal,
    observer: &mut Observer<'_>,
) -> Result<(), TuneError> {
    let state = journal.state();
    if !state.is_unsettled() {
        return Ok(());
    }
    let online = online(machine);
    // The CPUs left to everybody before the restoration: without those offline or in a partition.
    let away = state.plans.iter().flat_map(|plan| plan.cpus.iter().chain(plan.siblings.iter())).collect();
    let least = online.without(&away);
    let moved = moved(state);
    give(machine, state, observer, |placed, noted| {
        let is_where_moved =
            moved.get(&ThreadKey::new(placed)).is_some_and(|(open, done)| *open && done.as_ref() == Some(&placed.cpus));
        // A thread that is still where it was moved is restored like any other change.
        (!is_where_moved && least.without(&placed.cpus).is_empty()).then(|| noted.clone())
    });
    if !state.steps.iter().any(|step| step.is_open() && gives_cpus(&step.change)) {
        journal.write_if_possible(Record::Settled)?;
        observer(Moment::Recorded);
    }
    Ok(())
}

/// Gives noted threads their wanted CPUs, if they have others.
fn give(
    machine: &dyn Machine,
    state: &State,
    observer: &mut Observer<'_>,
    wanted: impl Fn(&Placed, &CpuList) -> Option<CpuList>,
) {
    let noted = noted(state);
    for placed in machine.tasks().unwrap_or_default().tasks.iter().filter(|placed| !placed.bound) {
        let Some(noted) = noted.get(&ThreadKey::new(placed)) else { continue };
        let Some(wanted) = wanted(placed, noted) else { continue };
        if wanted != placed.cpus && !wanted.is_empty() {
            // A thread that has ended needs nothing; one whose group has none of these CPUs cannot have them.
            let _ = machine.set_affinity(placed.task.pid, &wanted);
            observer(Moment::Written);
        }
    }
}

/// The threads moved by changes: whether the change is still open, and the new CPUs.
fn moved(state: &State) -> BTreeMap<ThreadKey, (bool, Option<CpuList>)> {
    let moved = state.steps.iter().filter_map(|step| match step.change.knob {
        Knob::Affinity { tid, start_ticks, .. } => {
            let done = step.done.as_ref().and_then(|text| text.parse().ok());
            Some((ThreadKey { tid, start_ticks }, (step.is_open(), done)))
        }
        _ => None,
    });
    moved.collect()
}
