//! What runs on a CPU above its thread: one frame for each interrupt, softirq, work item or fault under way.

use becalm_model::{Kind, Label};
use becalm_units::Nanos;

use super::ledger::LedgerRow;

/// What a frame is, as far as it decides which exit ends it and what a switch does to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// An interrupt; never outlives the thread's time on the CPU.
    Irq,
    /// A further function of an interrupt. The first function has no frame: it gives the interrupt its name.
    IrqFunction,
    /// A softirq. With `PREEMPT_RT` it runs in a thread and can be switched away, else no switch meets it.
    Softirq,
    /// A further timer of a softirq, likewise. Only those of the softirq `hrtimer` have an event at their end.
    SoftirqFunction,
    /// A work item, by the address of its work structure; switched away when its kworker sleeps or is pre-empted.
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

/// The end of an activity on top of the current thread, on whose way out softirqs may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ending {
    /// The root of what ended.
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

/// One instance of an activity, from its begin to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub what: What,
    /// Together with `detail`, identifies the event of its end.
    pub source: Label,
    pub detail: Label,
    pub named: FrameName,
    /// Whether it has run a function.
    pub ran: bool,
    /// Its row in the detour that is open, once it has one.
    pub row: Option<LedgerRow>,
    /// Whether it ever had a row, in this detour or an earlier one.
    pub in_detour: bool,
    /// Since when it has been on the CPU: its entry, or the last time that its thread was switched in.
    pub since: Nanos,
    /// The time that it had been on the CPU before `since`.
    pub before: Nanos,
}

impl Frame {
    /// Whether an exit with these names ends this frame. Work items are told apart by address, since the kernel's
    /// event of their end need not name the function.
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

/// The difference, bounded by the range: outside of steps the instants of events are nobody's promise.
pub(super) const fn saturating_sub(a: Nanos, b: Nanos) -> Nanos {
    Nanos::new(a.get().saturating_sub(b.get()))
}

const fn saturating_add(a: Nanos, b: Nanos) -> Nanos {
    Nanos::new(a.get().saturating_add(b.get()))
}
