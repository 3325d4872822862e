//! The causes of activities: who requested an interrupt, a softirq or a work item, and who woke a thread.

use becalm_units::{CpuId, Nanos};
use serde::{Deserialize, Serialize};

use crate::{Kind, Label, Pid};

/// The end of a chain of requests.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Requester {
    /// A program's thread.
    Program,
    /// A kernel thread.
    Kernel,
    /// A thread of becalm.
    Becalm,
    /// A device, by its interrupt.
    Device,
    /// A timer, by its function. Who set it is not known.
    Timer,
    /// Not known.
    #[default]
    Unknown,
}

/// The cause of one activity. An activity in a detour has the cause with its CPU and kind whose time contains the activity's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The CPU on which the activity ran.
    pub cpu: CpuId,
    /// The start of the activity, since the run's origin.
    pub start: Nanos,
    /// How long it lasted, with everything that interrupted it.
    pub duration: Nanos,
    /// The kind of the activity.
    pub kind: Kind,
    /// The name of the activity as a source: `ipi:flush_tlb_func`, `kworker:vmstat_update`, `block`, `sshd`.
    pub source: Label,
    /// The thread, if the activity is one; otherwise [`Pid::IDLE`].
    pub task: Pid,
    /// The end of the chain of requests.
    pub requester: Requester,
    /// Its name: that of the thread, the device or the timer's function. Empty if it is not known.
    pub by: Label,
    /// The thread that made the request; [`Pid::IDLE`] if it was none.
    pub thread: Pid,
    /// The links between the activity and the end of the chain, the nearest one first: `softirq block`. Empty if there are none.
    pub context: Label,
    /// The code that made the request; empty if the kernel does not report it.
    pub site: Label,
    /// The time from the request to the start; `None` if it is not known, and for a thread that continues.
    pub delay: Option<Nanos>,
}
