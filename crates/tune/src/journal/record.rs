//! The lines of a journal.

use becalm_units::CpuList;
use serde::{Deserialize, Serialize};

use super::owner::Owner;
use crate::{Change, Plan};

/// The version of the lines below.
pub(crate) const VERSION: u32 = 1;

/// One line of a journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub(crate) enum Record {
    /// The first line. The steps of the plan are numbered from 0.
    Begin { version: u32, owner: Owner, plan: Box<Plan> },
    /// Another plan on top; its steps are numbered on, from `first`.
    Extend {
        owner: Owner,
        plan: Box<Plan>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<usize>,
    },
    /// Changes that came up while a plan was carried out; numbered on, from `first`.
    More {
        steps: Vec<Change>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<usize>,
    },
    /// The value before a change, as it was read. The change may have been made from here on.
    Original { step: usize, value: String },
    /// The change was made; the value as the kernel shows it now.
    Done { step: usize, value: String },
    /// The change was not made, and the value is as it was.
    Refused { step: usize, why: String },
    /// Where threads may run before control groups are changed, by which the kernel may give them other CPUs.
    Threads { threads: Vec<Noted> },
    /// These threads have their CPUs again.
    Settled,
    /// All changes were tried.
    Applied,
    /// The original is back, or there is nothing any more to bring it back to.
    Restored { step: usize, gone: bool },
}

/// A thread and where it may run, as it was noted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Noted {
    /// The number of the thread.
    pub tid: i32,
    /// When it was started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The CPUs on which it may run.
    pub cpus: CpuList,
}
