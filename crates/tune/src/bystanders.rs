//! Threads that no change names, and whose CPUs the kernel changes all the same.
//!
//! Before Linux 6.2, making or removing a partition, or changing the CPUs of a group, gives every thread of the groups concerned all
//! CPUs that are left to its group, whatever narrower set it had been given. So where every thread may run is noted
//! beforehand. After applying, those that the kernel changed get back what they had, but for the quiet CPUs; after restoring, all of
//! it. Workers of the kernel that nobody may move cannot be given anything; they end when they idle. Later kernels remember what
//! a thread was given, and nothing is left to do.
//!
//! That it was the kernel is told by the set: all CPUs that are left to everybody. Who gave a thread just these meanwhile cannot be
//! told from the kernel.

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

/// Where each thread may run that is not noted yet, if any change may make the kernel give it other CPUs. Where threads cannot be
/// listed the plan has said so. Of a thread that was moved already, as it began after the others had been noted, its change says where
/// it might run, and where it is now would be taken for that.
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

/// Where threads might run before any change, if that was noted: what a later change found may have been the kernel's doing.
pub(crate) fn noted(state: &State) -> BTreeMap<ThreadKey, CpuList> {
    state
        .threads
        .iter()
        .map(|noted| (ThreadKey { tid: noted.tid, start_ticks: noted.start_ticks }, noted.cpus.clone()))
        .collect()
}

/// After applying: threads that the kernel gave the CPUs of everybody get those that they had, but for the quiet ones, or to
/// which they were moved.
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

/// When groups are as before: threads that the kernel gave the CPUs of everybody get those that they had. As long as one is not as
/// before, this is not the last time. Fails if the journal cannot be written.
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
    // Before they had everything back: without CPUs that were offline, or that a partition had.
    let away = state.plans.iter().flat_map(|plan| plan.cpus.iter().chain(plan.siblings.iter())).collect();
    let least = online.without(&away);
    let moved = moved(state);
    give(machine, state, observer, |placed, noted| {
        let is_where_moved =
            moved.get(&ThreadKey::new(placed)).is_some_and(|(open, done)| *open && done.as_ref() == Some(&placed.cpus));
        // Such a thread is put back as a change like others.
        (!is_where_moved && least.without(&placed.cpus).is_empty()).then(|| noted.clone())
    });
    if !state.steps.iter().any(|step| step.is_open() && gives_cpus(&step.change)) {
        journal.write_if_possible(Record::Settled)?;
        observer(Moment::Recorded);
    }
    Ok(())
}

/// Gives noted threads the CPUs that are wanted for them, if others.
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
            // One that has ended needs nothing; one whose group has none of these CPUs cannot have them.
            let _ = machine.set_affinity(placed.task.pid, &wanted);
            observer(Moment::Written);
        }
    }
}

/// The threads that changes moved: whether that is not undone yet, and where to.
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
