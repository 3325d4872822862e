//! Kernel events as attribution takes them: already decoded, timed on the run's axis, with names interned.

use becalm_units::Nanos;

use crate::Label;
use crate::carried::Carrier;

/// The kernel's number of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pid(pub i32);

impl Pid {
    /// The idle thread, which has the number 0 on every CPU.
    pub const IDLE: Self = Self(0);
}

/// One kernel event on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, since the run's origin.
    pub time: Nanos,
    /// The thread that was on the CPU when the kernel wrote it; of no meaning for lost events, and the one that leaves for a
    /// switch.
    pub thread: Pid,
    /// Which kind of event it is, with what the kernel said of it.
    pub what: Happening,
}

/// What happened. The labels name the source as tables show it (`timer`, `net_rx`, `virtio1-req.0`);
/// entry and exit of one thing carry the same label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happening {
    /// A device interrupt's handler or a local vector began.
    IrqEntry {
        /// The name of the interrupt's source: `virtio1-req.0`, `local_timer`, `reschedule`.
        source: Label,
        /// The interrupt's number, or the vector's name.
        detail: Label,
    },
    /// The handler of an interrupt returned.
    IrqExit {
        /// As at the entry.
        source: Label,
        /// As at the entry.
        detail: Label,
    },
    /// The handler of a softirq began.
    SoftirqEntry {
        /// The name of the softirq: `net_rx`, `timer`, `rcu`.
        source: Label,
    },
    /// The handler of a softirq returned.
    SoftirqExit {
        /// As at the entry.
        source: Label,
    },
    /// A handler of a non-maskable interrupt ended just now, and had run for `delta`.
    Nmi {
        /// The handler's function, as far as it could be resolved.
        source: Label,
        /// How long it ran.
        delta: Nanos,
    },
    /// The CPU went from one thread to another.
    Switch {
        /// The thread that ran until now.
        prev: Pid,
        /// Whether it could have gone on: it was pre-empted, or gave way, but does not sleep.
        prev_runnable: bool,
        /// The thread that runs from now on.
        next: Pid,
    },
    /// A kworker began a work item.
    WorkStart {
        /// The name of the function that it runs: `kworker:vmstat_update`.
        source: Label,
        /// The address of the work structure, which pairs start and end.
        work: u64,
    },
    /// The function of a work item returned.
    WorkEnd {
        /// As at the start; empty where the kernel's event does not name the function.
        source: Label,
        /// As at the start.
        work: u64,
    },
    /// A function of an interrupt or a softirq started.
    FunctionEntry {
        /// Its name as a source: `tick`, `timer:hrtimer_wakeup`, `timer:process_timeout`; of a tasklet, its function. Empty if the
        /// kernel hides the name.
        source: Label,
        /// Its fixed root as `kind:source`, or empty. See [`root`](crate::carried::root).
        root: Label,
        /// What runs it.
        carrier: Carrier,
        /// The name of a timer interrupt without events of its own.
        interrupt: Label,
    },
    /// The last function of an interrupt, or of the softirq `hrtimer`, returned. Those of other softirqs have no such event.
    FunctionExit {
        /// As at the entry.
        carrier: Carrier,
        /// As at the entry.
        interrupt: Label,
    },
    /// A thread is woken.
    Waking {
        /// The woken thread.
        thread: Pid,
    },
    /// A page fault began. The kernel does not say when it ends: the fault lasts until the thread makes progress.
    Fault {
        /// Whose code faulted: `page_fault_user` or `page_fault_kernel`.
        source: Label,
        /// The instruction's or the data's address, as far as it says something.
        detail: Label,
    },
    /// Between the event before and this instant the kernel lost events.
    Lost {
        /// How many, where the kernel says so.
        count: Option<u64>,
    },
}
