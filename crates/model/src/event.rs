//! Kernel events as input of attribution: decoded, timed on the run's axis, with interned names.

use becalm_units::Nanos;

use crate::Label;
use crate::carried::Carrier;

/// The kernel's number of a thread (TID).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pid(pub i32);

impl Pid {
    /// The idle thread, number 0 on every CPU.
    pub const IDLE: Self = Self(0);
}

/// One kernel event on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its time, since the run's origin.
    pub time: Nanos,
    /// The thread on the CPU when the kernel wrote the event: for a switch, the thread that leaves; meaningless for lost events.
    pub thread: Pid,
    /// The kind of event, with the kernel's details.
    pub what: Happening,
}

/// The kinds of events. Labels name the source as in tables (`timer`, `net_rx`, `virtio1-req.0`); entry and exit have the same label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happening {
    /// A device interrupt's handler or a local vector started.
    IrqEntry {
        /// The name of the interrupt's source: `virtio1-req.0`, `local_timer`, `reschedule`.
        source: Label,
        /// The interrupt's number, or the vector's name.
        detail: Label,
    },
    /// The handler of an interrupt returned.
    IrqExit {
        /// As in the entry.
        source: Label,
        /// As in the entry.
        detail: Label,
    },
    /// The handler of a softirq started.
    SoftirqEntry {
        /// The name of the softirq: `net_rx`, `timer`, `rcu`.
        source: Label,
    },
    /// The handler of a softirq returned.
    SoftirqExit {
        /// As in the entry.
        source: Label,
    },
    /// A handler of a non-maskable interrupt just ended after running for `delta`.
    Nmi {
        /// The handler's function, if it could be resolved.
        source: Label,
        /// Its duration.
        delta: Nanos,
    },
    /// The CPU switched threads.
    Switch {
        /// The thread that ran until now.
        prev: Pid,
        /// Whether it could have continued: it was preempted or yielded, but does not sleep.
        prev_runnable: bool,
        /// The thread that runs from now on.
        next: Pid,
    },
    /// A kworker started a work item.
    WorkStart {
        /// The name of its function: `kworker:vmstat_update`.
        source: Label,
        /// The address of the work structure, which pairs start and end.
        work: u64,
    },
    /// The function of a work item returned.
    WorkEnd {
        /// As in the start event; empty if the kernel's end event does not name the function.
        source: Label,
        /// As in the start event.
        work: u64,
    },
    /// A function of an interrupt or a softirq started.
    FunctionEntry {
        /// Its name as a source: `tick`, `timer:hrtimer_wakeup`, `timer:process_timeout`; for a tasklet, its function. Empty if the kernel hides the
        /// name.
        source: Label,
        /// Its fixed root as `kind:source`, or empty; see [`root`](crate::carried::root).
        root: Label,
        /// The runner of the function.
        carrier: Carrier,
        /// The name of a timer interrupt without events of its own.
        interrupt: Label,
    },
    /// The last function of an interrupt, or of the softirq `hrtimer`, returned. Other softirqs have no such event.
    FunctionExit {
        /// As in the entry.
        carrier: Carrier,
        /// As in the entry.
        interrupt: Label,
    },
    /// A thread is woken.
    Waking {
        /// The woken thread.
        thread: Pid,
    },
    /// A page fault started. The kernel does not report its end: the fault lasts until the thread makes progress.
    Fault {
        /// The code that faulted: `page_fault_user` or `page_fault_kernel`.
        source: Label,
        /// The address of the instruction or of the data, if it is informative.
        detail: Label,
    },
    /// The kernel lost events between the previous event and this instant.
    Lost {
        /// Their number, if the kernel reports it.
        count: Option<u64>,
    },
}
