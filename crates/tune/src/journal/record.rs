//! The records of a journal, one a line.

use becalm_units::CpuList;
use serde::{Deserialize, Serialize};

use super::owner::Owner;
use crate::{Change, Plan};

/// The version of the lines below.
pub(crate) const VERSION: u32 = 1;

/// What one line of a journal says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub(crate) enum Record {
    /// The first line. The plan has no steps in it: each has a line of its own, so that a damaged one costs no other.
    Begin { version: u32, owner: Owner, plan: Box<Plan> },
    /// Another plan on top, without its steps.
    Extend { owner: Owner, plan: Box<Plan> },
    /// A change of the last plan, or one that came up while it was carried out. They are numbered from 0, across all plans.
    Step { step: usize, change: Box<Change> },
    /// The value before a change, as it was read. The change may have been made from here on.
    Original { step: usize, value: String },
    /// The change was made; the value as the kernel shows it now.
    Done { step: usize, value: String },
    /// The change was not made, and the value is as it was.
    Refused { step: usize, why: String },
    /// Where threads may run before control groups are changed, by which the kernel may give them other CPUs.
    Threads { threads: Vec<NotedThread> },
    /// These threads have their CPUs again.
    Settled,
    /// All changes were tried.
    Applied,
    /// The original is back, or there is nothing any more to bring it back to.
    Restored { step: usize, gone: bool },
}

impl Record {
    /// The lines of these changes, numbered from `first`.
    pub(crate) fn steps(first: usize, changes: Vec<Change>) -> impl Iterator<Item = Self> {
        (first..).zip(changes).map(|(step, change)| Self::Step { step, change: Box::new(change) })
    }

    /// Whether it has to be on disk before something is changed. What others say is only what came of that.
    pub(crate) const fn precedes_changes(&self) -> bool {
        !matches!(
            self,
            Self::Done { .. } | Self::Refused { .. } | Self::Settled | Self::Applied | Self::Restored { .. }
        )
    }

    /// The plan without its steps, and those.
    pub(crate) fn parts(mut plan: Plan) -> (Box<Plan>, Vec<Change>) {
        let steps = std::mem::take(&mut plan.steps);
        (Box::new(plan), steps)
    }
}

/// A thread and where it may run, as it was noted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotedThread {
    /// The number of the thread.
    pub tid: i32,
    /// When it was started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The CPUs on which it may run.
    pub cpus: CpuList,
}
