//! What runs on a CPU above its thread: one frame for each interrupt, softirq, work item or fault under way.

use becalm_model::{Kind, Label};
use becalm_units::Nanos;

use super::ledger::LedgerRow;

/// The type of a frame: decides which exit ends it and how a switch affects it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// An interrupt; ends at the latest when its thread leaves the CPU.
    Irq,
    /// A further function of an interrupt. The first function has no frame: it gives the interrupt its name.
    IrqFunction,
    /// A softirq. With `PREEMPT_RT` it runs in a thread and can be switched away; otherwise it cannot.
    Softirq,
    /// A further timer of a softirq, likewise. Only the softirq `hrtimer` has an event for its end.
    SoftirqFunction,
    /// A work item, by the address of its work structure; switched away when its kworker sleeps or is preempted.
    Work(u64),
    /// A page fault of the measuring thread.
    Fault,
}

/// Source and detail of an activity.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceName {
    pub source: Label,
    pub detail: Label,
}

impl SourceName {
    /// Creates a name without detail.
    pub const fn plain(source: Label) -> Self {
        Self { source, detail: Label::EMPTY }
    }
}

/// The end of an activity on top of the current thread; softirqs may follow before the thread resumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ending {
    /// The root of the ended activity.
    pub cause: Label,
    pub at: Nanos,
}

/// The name of an activity in its rows, and its root.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameName {
    pub source: Label,
    pub detail: Label,
    /// Its root, as `kind:source`.
    pub cause: Label,
    /// The root of the softirqs that it raises.
    pub raises: Label,
}

/// An instance of an activity, from start to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub what: What,
    /// Together with `detail`, identifies the event of its end.
    pub source: Label,
    pub detail: Label,
    pub named: FrameName,
    /// Whether it has run a function.
    pub ran: bool,
    /// Its row in the current detour, once it has one.
    pub row: Option<LedgerRow>,
    /// Whether it ever had a row, in this detour or an earlier one.
    pub in_detour: bool,
    /// The start of its current time on the CPU: its entry, or the last switch to its thread.
    pub since: Nanos,
    /// Its time on the CPU before `since`.
    pub before: Nanos,
}

impl Frame {
    /// Whether an exit with these names ends this frame. Work items are identified by address, because the kernel's end event need not
    /// contain the function.
    pub fn ends_with(&self, what: What, source: Label, detail: Label) -> bool {
        self.what == what
            && match what {
                What::Irq => self.source == source && self.detail == detail,
                What::Softirq => self.source == source,
                What::Work(_) | What::Fault | What::IrqFunction | What::SoftirqFunction => true,
            }
    }

    /// Entry to `at`, without the time switched away.
    pub fn extent(&self, at: Nanos) -> Nanos {
        saturating_add(self.before, saturating_sub(at, self.since))
    }
}

impl What {
    pub const fn kind(self) -> Kind {
        match self {
            Self::Irq | Self::IrqFunction => Kind::Irq,
            Self::Softirq | Self::SoftirqFunction => Kind::Softirq,
            Self::Work(_) => Kind::Workqueue,
            Self::Fault => Kind::Fault,
        }
    }
}

/// The saturating difference: outside steps, event times are arbitrary.
pub(super) const fn saturating_sub(a: Nanos, b: Nanos) -> Nanos {
    Nanos::new(a.get().saturating_sub(b.get()))
}

const fn saturating_add(a: Nanos, b: Nanos) -> Nanos {
    Nanos::new(a.get().saturating_add(b.get()))
}
