//! Kernel events as input of attribution: decoded, timed on the run's axis, with interned names.

use becalm_units::{CpuId, Nanos};

use crate::Label;
use crate::carried::Carrier;

/// The kernel's number of a thread (TID).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pid(pub i32);

impl Pid {
    /// The idle thread, number 0 on every CPU.
    pub const IDLE: Self = Self(0);
}

/// The state of a thread that leaves the CPU: the low eight bits of the kernel's `TASK_` flags. Higher bits only say how a runnable thread left.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ThreadState(pub u8);

impl ThreadState {
    /// It was preempted or yielded.
    pub const RUNNABLE: Self = Self(0);
    /// It sleeps until an event or a signal.
    pub const SLEEPING: Self = Self(1);
    /// It sleeps until an event, mostly of a device or of memory.
    pub const UNINTERRUPTIBLE: Self = Self(2);
    /// It is stopped by a signal.
    pub const STOPPED: Self = Self(4);
    /// It is stopped by a debugger.
    pub const TRACED: Self = Self(8);
    /// It has ended.
    pub const DEAD: Self = Self(0x10);

    /// It is not known why it left: the switch is not in the trace.
    pub const UNKNOWN: Self = Self(0xff);

    /// The state with a letter of `/proc/PID/stat` or of a trace's text, such as `D` in `D|W`; `None` for an unknown letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::LETTERS.iter().find(|(_, known)| *known == letter).map(|(state, _)| *state)
    }

    /// Whether it could have continued.
    pub const fn is_runnable(self) -> bool {
        self.0 == 0
    }

    /// Whether a signal or a debugger stopped it.
    pub const fn is_stopped(self) -> bool {
        self.0 & (Self::STOPPED.0 | Self::TRACED.0) != 0
    }

    /// Whether it has ended.
    pub const fn is_dead(self) -> bool {
        self.0 & (Self::DEAD.0 | 0x20) != 0
    }

    /// Its letter, as printed by the kernel; of several bits that of the lowest.
    pub fn letter(self) -> char {
        Self::LETTERS.iter().find(|(state, _)| state.0 & self.0 != 0).map_or('R', |(_, letter)| *letter)
    }

    /// `task_index_to_char` in `include/linux/sched.h`.
    const LETTERS: [(Self, char); 9] = [
        (Self::RUNNABLE, 'R'),
        (Self::SLEEPING, 'S'),
        (Self::UNINTERRUPTIBLE, 'D'),
        (Self::STOPPED, 'T'),
        (Self::TRACED, 't'),
        (Self::DEAD, 'X'),
        (Self(0x20), 'Z'),
        (Self(0x40), 'P'),
        (Self(0x80), 'I'),
    ];
}

/// One kernel event on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its time, since the run's origin.
    pub time: Nanos,
    /// The thread on the CPU when the kernel wrote the event: for a switch, the thread that leaves; meaningless for lost events.
    pub thread: Pid,
    /// Whether an interrupt handler or a softirq wrote it, on top of that thread. `false` if the trace does not show that.
    pub in_interrupt: bool,
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
        /// Its state when it leaves.
        prev_state: ThreadState,
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
        /// Identifies the request of a call from another CPU; 0 for all other functions, and if it is unknown.
        request: u64,
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
    /// A woken thread is on a run queue.
    Woken {
        /// The woken thread.
        thread: Pid,
        /// The CPU whose run queue it is on.
        cpu: CpuId,
        /// Whether this is its first wake-up.
        is_new: bool,
    },
    /// An event in the life of a thread, which says nothing about the time on the CPU.
    Life(Life),
    /// A call of a function on another CPU is requested.
    CallQueued {
        /// The CPU that will call it.
        cpu: CpuId,
        /// The name of the function as a source.
        function: Label,
        /// The code that requests it.
        site: Label,
        /// As in [`Self::FunctionEntry`].
        request: u64,
    },
    /// An interrupt is sent to another CPU.
    InterruptSent {
        /// The CPU that receives it.
        cpu: CpuId,
        /// The code that sends it.
        site: Label,
        /// Whether it makes that CPU call functions, whose requests are events of their own. Otherwise that CPU looks for a thread to run.
        is_call: bool,
    },
    /// A work item is queued.
    WorkQueued {
        /// The name of its function, as in [`Self::WorkStart`].
        source: Label,
        /// The address of the work structure.
        work: u64,
    },
    /// A softirq is requested on this CPU.
    SoftirqRaised {
        /// Its name, as in [`Self::SoftirqEntry`].
        source: Label,
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

/// Events are copied by the million: what is rare must not make all of them larger.
const _: () = assert!(size_of::<Event>() == 40);

/// Events in the lives of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// A thread that waits for a CPU was moved to another one.
    Moved {
        /// The thread.
        thread: Pid,
        /// The CPU on whose run queue it waits from now on.
        cpu: CpuId,
    },
    /// The current thread created another one.
    Created {
        /// The new thread.
        thread: Pid,
        /// Its name, which is that of its creator.
        name: Label,
        /// Whether it belongs to the process of its creator.
        in_process: bool,
    },
    /// A thread has another name from now on.
    Renamed {
        /// The thread.
        thread: Pid,
        /// Its new name.
        name: Label,
    },
    /// The kernel accounted run time to a thread.
    Accounted {
        /// The thread.
        thread: Pid,
        /// Its time on the CPU since the kernel last accounted to it, without the time of the hypervisor.
        ran: Nanos,
    },
    /// The current thread starts work of the kernel on its own behalf.
    WorkBegan {
        /// The name of the work: `reclaim`, `kernel_lock`.
        work: Label,
    },
    /// The current thread ends such work.
    WorkEnded {
        /// As at its start.
        work: Label,
    },
    /// The current thread starts a system call.
    CallBegan {
        /// The name of the call.
        call: Label,
    },
    /// The current thread returns from its system call.
    CallEnded,
    /// The current thread wrote to a disk.
    Dirtied {
        /// Whether it is made to wait, because the disk is behind.
        is_paused: bool,
    },
}
