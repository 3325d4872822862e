//! Observed threads: the parts of their lives, and who had the CPU instead of them.

use becalm_units::{CpuId, Nanos};
use serde::{Deserialize, Serialize};

use crate::event::ThreadState;
use crate::{Kind, Label};

/// The number of an observed thread in its recording. A number of the kernel may be used by several threads in turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadId(pub u32);

/// The part of a thread's life to which a stay belongs.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LifePart {
    /// It had a CPU, with interrupts on top.
    Ran,
    /// It was woken, and is not on a run queue yet.
    OnTheWay,
    /// It waited for a CPU.
    Queued,
    /// It waited because its group had used up its CPU time.
    Quota,
    /// It slept.
    Asleep,
    /// A signal or a debugger stopped it.
    Stopped,
    /// The trace does not show it.
    Unknown,
}

/// The owner of CPU time, relative to the threads that were chosen.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Owner {
    /// Another thread of the same process.
    Process,
    /// Another chosen thread.
    Chosen,
    /// A thread of the same control group.
    Group,
    /// Another program.
    Others,
    /// A kernel thread, or the kernel itself.
    Kernel,
    /// An interrupt or a softirq.
    Interrupt,
    /// A limit on CPU time.
    Quota,
    /// The hypervisor.
    Host,
    /// becalm.
    Becalm,
    /// Not known: the trace has a gap.
    Unknown,
}

/// Why a stay started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StayReason {
    /// No particular reason.
    None,
    /// The thread was preempted or yielded.
    Preempted,
    /// The thread was woken.
    Woken,
    /// The thread is new.
    New,
    /// The thread left the CPU in this state.
    Left(ThreadState),
}

impl StayReason {
    /// The name of the reason, or the letter of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Preempted => "preempted",
            Self::Woken => "woken",
            Self::New => "new",
            Self::Left(ThreadState::UNKNOWN) => "?",
            Self::Left(state) => match state.letter() {
                'S' => "S",
                'D' => "D",
                'T' => "T",
                't' => "t",
                'I' => "I",
                'P' => "P",
                _ => "X",
            },
        }
    }
}

/// An unbroken part of the life of an observed thread. The stays of a thread follow each other without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    /// The thread.
    pub thread: ThreadId,
    /// The CPU on which it ran or waited, or last ran.
    pub cpu: CpuId,
    /// The start, since the run's origin.
    pub start: Nanos,
    /// The duration.
    pub duration: Nanos,
    /// The part of the life.
    pub part: LifePart,
    /// Why the stay started.
    pub reason: StayReason,
    /// The place where a thread sleeps or runs, if known: the system call, `page_fault`, [`own_work`]; otherwise empty.
    pub context: Label,
    /// The thread that woke it, for stays on the way and in the queue; `None` if it was not woken, or an interrupt did.
    pub by: Option<ThreadId>,
}

/// Work of the kernel on behalf of the thread that needs it.
pub mod own_work {
    /// Memory is freed, because none is left on the machine or in a zone.
    pub const RECLAIM: &str = "reclaim";
    /// Memory of a control group at its limit is freed.
    pub const GROUP_RECLAIM: &str = "group_reclaim";
    /// Memory is moved to make room for a large page.
    pub const COMPACTION: &str = "compaction";
    /// A lock of the kernel that another CPU holds is awaited.
    pub const KERNEL_LOCK: &str = "kernel_lock";
    /// A thread that writes faster than the disk is made to wait.
    pub const DIRTY_THROTTLING: &str = "dirty_throttling";

    /// All of it.
    pub const ALL: [&str; 5] = [RECLAIM, GROUP_RECLAIM, COMPACTION, KERNEL_LOCK, DIRTY_THROTTLING];
}

/// A stretch when an observed thread could have made progress, and something else had its CPU: a wait, or an interrupt on top of it. For the time
/// of the hypervisor, the stretch before the instant at which the kernel accounted for it, because its own place is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadDetour {
    /// The thread.
    pub thread: ThreadId,
    /// The CPU.
    pub cpu: CpuId,
    /// The start, since the run's origin.
    pub start: Nanos,
    /// The duration.
    pub duration: Nanos,
}

/// The share of one activity in such a stretch. The times of a stretch add up to its duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnedActivity {
    /// The owner, relative to the choice.
    pub owner: Owner,
    /// The kind.
    pub kind: Kind,
    /// The name.
    pub source: Label,
    /// The thread that had the CPU, if it was one.
    pub thread: Option<ThreadId>,
    /// Its time.
    pub time: Nanos,
    /// How often it came.
    pub visits: u64,
}

/// The rows of an observation's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ObservedRows {
    /// Threads: those observed, and those that had the CPU meanwhile.
    pub threads: u64,
    /// Parts of the lives of observed threads.
    pub stays: u64,
    /// Their waits and interruptions.
    pub detours: u64,
    /// The activities in these.
    pub activities: u64,
}
