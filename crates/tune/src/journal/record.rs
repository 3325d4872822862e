//! The records of a journal, one per line.

use becalm_units::CpuList;
use serde::{Deserialize, Serialize};

use super::owner::Owner;
use crate::{Change, Plan};

/// The version of the lines below.
pub(crate) const VERSION: u32 = 1;

/// The record of one line of a journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub(crate) enum Record {
    /// The first line. The plan has no steps: each has its own line, so damage to one affects no other.
    Begin { version: u32, owner: Owner, plan: Box<Plan> },
    /// An additional plan, without its steps.
    Extend { owner: Owner, plan: Box<Plan> },
    /// A change of the last plan, or one added while it was applied. Steps are numbered from 0, across all plans.
    Step { step: usize, change: Box<Change> },
    /// The value before a change, as read. From here on the change may have been made.
    Original { step: usize, value: String },
    /// The change was made; the value as the kernel shows it now.
    Done { step: usize, value: String },
    /// The change was not made, and the value is unchanged.
    Refused { step: usize, why: String },
    /// The CPUs of threads before changes of control groups, which may make the kernel give them others.
    Threads { threads: Vec<NotedThread> },
    /// These threads have their CPUs again.
    Settled,
    /// All changes were tried.
    Applied,
    /// The original is back, or the knob no longer exists.
    Restored { step: usize, gone: bool },
}

impl Record {
    /// The records of these changes, numbered from `first`.
    pub(crate) fn steps(first: usize, changes: Vec<Change>) -> impl Iterator<Item = Self> {
        (first..).zip(changes).map(|(step, change)| Self::Step { step, change: Box::new(change) })
    }

    /// Whether it must be on disk before something is changed. The other records only describe results.
    pub(crate) const fn precedes_changes(&self) -> bool {
        !matches!(
            self,
            Self::Done { .. } | Self::Refused { .. } | Self::Settled | Self::Applied | Self::Restored { .. }
        )
    }

    /// The plan without its steps, and the steps.
    pub(crate) fn parts(mut plan: Plan) -> (Box<Plan>, Vec<Change>) {
        let steps = std::mem::take(&mut plan.steps);
        (Box::new(plan), steps)
    }
}

/// A thread and its CPUs, as noted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotedThread {
    /// The number of the thread.
    pub tid: i32,
    /// Its start, in clock ticks since boot.
    pub start_ticks: u64,
    /// The CPUs on which it may run.
    pub cpus: CpuList,
}
