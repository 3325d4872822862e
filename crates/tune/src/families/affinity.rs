//! Tasks and kernel threads: removes the CPUs from their affinities.
//!
//! It leaves alone threads bound to a CPU by the kernel, and threads with only these CPUs in their affinity, which are there on purpose.

use std::collections::BTreeSet;

use becalm_linux::procfs::names::stable_name;
use becalm_linux::procfs::placement::{Placed, PlacedTasks};

use crate::bystanders::ThreadKey;
use crate::draft::PlanDraft;
use crate::request::Division;
use crate::words::counted;
use crate::{Change, Family, Kind, Knob, NoiseSource};

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    let PlacedTasks { tasks, unread } = match draft.machine.tasks() {
        Ok(found) => found,
        Err(error) => {
            draft.note(format!("{error}; no task is moved"));
            return;
        }
    };
    for change in changes_of(&tasks, &draft.division, &BTreeSet::new()) {
        draft.push(change);
    }
    if let Some(first) = unread.first() {
        let are = if unread.len() == 1 { "is" } else { "are" };
        draft.note(format!("{} {are} not moved: {first}", counted(unread.len(), "thread")));
    }
    let cleared = draft.division.cleared();
    let here = |placed: &&Placed| !placed.cpus.intersection(&cleared).is_empty();
    let only_here = |placed: &&Placed| placed.cpus.intersection(&draft.division.housekeeping).is_empty();
    let bound = tasks.iter().filter(here).filter(|placed| placed.bound).count();
    let others: Vec<&Placed> = tasks.iter().filter(here).filter(only_here).filter(|placed| !placed.bound).collect();
    if bound > 0 {
        let (threads, belong) = (counted(bound, "kernel thread"), if bound == 1 { "belongs" } else { "belong" });
        draft.note(format!("{threads} {belong} to CPU {cleared} and cannot be moved"));
    }
    if !others.is_empty() {
        let names: BTreeSet<&str> = others.iter().map(|placed| placed.task.comm.as_str()).collect();
        let names = names.into_iter().take(8).collect::<Vec<_>>().join(", ");
        let threads = counted(others.len(), "thread");
        let (are, stay) = if others.len() == 1 { ("is", "stays") } else { ("are", "stay") };
        draft.note(format!("{threads} {are} bound to CPU {cleared} and no other, and {stay} there: {names}"));
    }
}

/// The changes that move these threads off the CPUs, except `known` ones.
pub(crate) fn changes_of(tasks: &[Placed], division: &Division, known: &BTreeSet<ThreadKey>) -> Vec<Change> {
    let movable = tasks.iter().filter(|placed| !placed.bound && !known.contains(&ThreadKey::new(placed)));
    let changes = movable.filter_map(|placed| {
        let to = division.moved(&placed.cpus)?;
        if placed.cpus.intersection(&division.housekeeping).is_empty() {
            return None;
        }
        let (name, _) = stable_name(&placed.task.comm, placed.task.kthread);
        let kind = if placed.task.kthread { Kind::Kthread } else { Kind::Task };
        Some(Change {
            family: Family::Affinity,
            knob: Knob::Affinity {
                tid: placed.task.pid,
                start_ticks: placed.start_ticks,
                comm: placed.task.comm.clone(),
            },
            from: placed.cpus.to_string(),
            to: to.to_string(),
            or_else: Vec::new(),
            after: false,
            reason: "it may run on any CPU".to_owned(),
            risk: None,
            removes: vec![NoiseSource::new(kind, name)],
        })
    });
    changes.collect()
}
