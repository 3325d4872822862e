//! The contents of a recording: detours or samples, and the activities in them.

use std::fmt;
use std::str::FromStr;

use becalm_units::{CpuId, Nanos};
use serde::{Deserialize, Serialize};

use crate::Label;

/// An interval during which the measuring thread made no progress although it wanted the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detour {
    /// The CPU of the loop that caught it.
    pub cpu: CpuId,
    /// The start of the loop's step with the detour, since the run's origin.
    pub start: Nanos,
    /// The step's length minus `t_min`, the length of the shortest step.
    pub duration: Nanos,
    /// Whether kernel events were lost during it, so its activities may be wrong.
    pub incomplete: bool,
}

/// A sample of a loop that does work: a fixed amount with its duration, or a fixed duration with the work done. The samples of a CPU are contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The CPU of the loop that did the work.
    pub cpu: CpuId,
    /// Its start, since the run's origin.
    pub start: Nanos,
    /// Its duration, until the start of the next one.
    pub duration: Nanos,
    /// The iterations of the loop's body in it.
    pub work: u64,
    /// Whether kernel events were lost during it, so its activities may be wrong.
    pub incomplete: bool,
}

/// The share of one activity in one detour, or in one sample of a run of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity {
    /// The CPU of the interrupted loop, on which the activity ran.
    pub cpu: CpuId,
    /// The number of its detour (or sample) on that CPU, counted from 0 in order of time over the whole run.
    pub detour: u64,
    /// Its start within the detour, since the run's origin.
    pub start: Nanos,
    /// Its time in the detour, excluding nested interruptions. The self times in a detour add up to its duration exactly.
    pub self_time: Nanos,
    /// Its kind.
    pub kind: Kind,
    /// Its stable name: `timer`, `net_rx`, `virtio1-req.0`, `kworker:vmstat_update`, `sshd`.
    pub source: Label,
    /// The instance: a PID, a vector, a function.
    pub detail: Label,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// The kinds of activities.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
        pub enum Kind {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Kind {
            /// Every kind, in the order of DESIGN: from the most urgent interrupter to the rests.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The kind's name in files and tables.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

kinds! {
    /// A non-maskable interrupt: the lockup detector, a profiler, firmware.
    Nmi = "nmi",
    /// A device interrupt or one of the CPU's local vectors.
    Irq = "irq",
    /// A softirq, in interrupt context or in a thread.
    Softirq = "softirq",
    /// A work item run by a kworker.
    Workqueue = "workqueue",
    /// A kernel thread, outside of work items.
    Kthread = "kthread",
    /// A thread of a user process; its source is the name of the thread.
    Task = "task",
    /// A page fault of the measuring thread.
    Fault = "fault",
    /// The CPU was taken from the runnable measuring thread by a bandwidth limit and idled, or ran a thread that the
    /// limit let in.
    Throttling = "throttling",
    /// A thread of becalm itself, like its collector.
    Becalm = "self",
    /// The rest of a detour with kernel events: entry, exit, cache refill.
    Edge = "edge",
    /// A detour, or the part of one, with no kernel event at all: the hypervisor, firmware, hardware.
    Unseen = "unseen",
    /// Time that the kernel's trace cannot attribute: another program changed the trace, or events are not in it.
    NotTraced = "not_traced",
}

impl Kind {
    /// Whether this is time without an activity, so the name of its source is meaningless without the kind.
    pub const fn is_rest(self) -> bool {
        matches!(self, Self::Edge | Self::Unseen | Self::NotTraced)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a kind of activity")]
pub struct ParseKindError(String);

impl FromStr for Kind {
    type Err = ParseKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|kind| kind.name() == text).ok_or_else(|| ParseKindError(text.to_owned()))
    }
}
