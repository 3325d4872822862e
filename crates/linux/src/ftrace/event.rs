//! Decoded kernel events, still in the kernel's own numbers, names and clock.

/// One decoded event. It borrows from the page that it was decoded from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawEvent<'a> {
    /// The time, in units of the trace clock: counter ticks for `x86-tsc`, nanoseconds for most others.
    pub time: u64,
    /// The thread that was current on the CPU (`common_pid`); 0 for the idle thread and for [`RawHappening::Lost`].
    pub pid: i32,
    /// Whether an interrupt handler or a softirq wrote it, on top of that thread (`common_flags`).
    pub in_interrupt: bool,
    /// The event at that time.
    pub what: RawHappening<'a>,
}

/// A local interrupt vector, identified by the stem of its events' names. A small number that [`Decoder::vector_name`] resolves, valid only for the
/// decoder that gave it.
///
/// [`Decoder::vector_name`]: super::Decoder::vector_name
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VectorName(pub(super) u16);

/// The mechanism that made an interrupt or a softirq run a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Callback {
    /// A high-resolution timer: in the CPU's timer interrupt, or in the softirq `hrtimer`.
    HighResolutionTimer,
    /// A timer of the timer wheel: in the softirq `timer`.
    Timer,
    /// A tasklet: in the softirqs `tasklet` and `hi`.
    Tasklet,
    /// A call from another CPU, in an interrupt; or from a thread on the same CPU.
    Call,
}

/// Work that the kernel does in the context of a thread, on behalf of that thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum OwnWork {
    /// Memory is freed, because none is left on the machine or in a zone.
    Reclaim,
    /// Memory of a control group at its limit is freed.
    GroupReclaim,
    /// Memory is moved to make room for a large page.
    Compaction,
    /// A lock of the kernel that another CPU holds is awaited.
    KernelLock,
}

/// An event, with the fields of the kernel's event. The start and the end of an interrupt or a work item are two events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RawHappening<'a> {
    /// Events were lost between the previous event and this instant.
    Lost {
        /// Their number, if the kernel reports it.
        count: Option<u64>,
    },
    /// The handler of a device interrupt starts. A shared interrupt has several.
    IrqHandlerEntry {
        /// The interrupt's number, as in /proc/interrupts.
        irq: i32,
        /// The handler's name, as in /proc/interrupts.
        name: &'a [u8],
    },
    /// The handler of the device interrupt ended.
    IrqHandlerExit {
        /// The interrupt's number, as in /proc/interrupts.
        irq: i32,
    },
    /// The handler of a local interrupt vector starts.
    VectorEntry {
        /// Which vector: `local_timer`, `reschedule`, `call_function_single`.
        name: VectorName,
        /// The vector's number in the processor's table of interrupts.
        vector: i32,
    },
    /// The handler of the vector ended.
    VectorExit {
        /// The same as at the entry.
        name: VectorName,
        /// The same as at the entry.
        vector: i32,
    },
    /// A softirq handler starts.
    SoftirqEntry {
        /// Its number: the position of its line in /proc/softirqs.
        vec: u32,
    },
    /// The softirq handler ended.
    SoftirqExit {
        /// Its number: the position of its line in /proc/softirqs.
        vec: u32,
    },
    /// A handler of a non-maskable interrupt ended.
    NmiHandler {
        /// The address of its function.
        handler: u64,
        /// How long it ran, in nanoseconds.
        delta_ns: i64,
    },
    /// An inter-processor interrupt starts (arm64, arm).
    IpiEntry {
        /// The address of the kernel's string that names the reason, see `printk_formats`.
        reason: u64,
    },
    /// The inter-processor interrupt ended.
    IpiExit {
        /// The same address as at the entry.
        reason: u64,
    },
    /// The CPU switches from one thread to another.
    SchedSwitch {
        /// The name of the thread that ran.
        prev_comm: &'a [u8],
        /// The number of the thread that ran.
        prev_pid: i32,
        /// Its priority in the kernel's scale: 0..=99 real time, 100..=139 others.
        prev_prio: i32,
        /// Its state, in the kernel's `TASK_` bits: 0 means runnable.
        prev_state: i64,
        /// The name of the thread that runs now.
        next_comm: &'a [u8],
        /// The number of the thread that runs now; 0 is the idle thread.
        next_pid: i32,
        /// The priority of the thread that runs now, as in `prev_prio`.
        next_prio: i32,
    },
    /// A kworker starts a work item.
    WorkStart {
        /// The address of the work structure.
        work: u64,
        /// The address of its function.
        function: u64,
    },
    /// The kworker ended the work item.
    WorkEnd {
        /// The address of the work structure.
        work: u64,
        /// The address of its function; not reported by kernels before 5.6.
        function: Option<u64>,
    },
    /// A function requested to run in an interrupt or a softirq starts.
    FunctionEntry {
        /// The mechanism that requested it.
        callback: Callback,
        /// The address of the function.
        function: u64,
        /// The address of a call's data, as in its request; 0 for a call from the same CPU, and for all other functions.
        request: u64,
    },
    /// The function of a high-resolution timer or of a call ended.
    FunctionExit {
        /// As at its entry.
        callback: Callback,
    },
    /// A thread is woken.
    Waking {
        /// Its name.
        comm: &'a [u8],
        /// Its number.
        pid: i32,
    },
    /// A woken thread is on a run queue.
    Woken {
        /// Its name.
        comm: &'a [u8],
        /// Its number.
        pid: i32,
        /// The CPU of the run queue.
        cpu: i32,
        /// Whether it is woken for the first time.
        is_new: bool,
    },
    /// A thread was moved to the run queue of another CPU.
    Moved {
        /// Its number.
        pid: i32,
        /// The CPU of the new run queue.
        cpu: i32,
    },
    /// The current thread created another one.
    Created {
        /// The name of the new thread.
        comm: &'a [u8],
        /// Its number.
        pid: i32,
        /// Whether it belongs to the process of its creator.
        in_process: bool,
    },
    /// The current thread created another one, of its own process or a new one. The kernel writes it after [`Self::Created`].
    Forked {
        /// The name of the new thread.
        comm: &'a [u8],
        /// Its number.
        pid: i32,
    },
    /// A thread has another name from now on.
    Renamed {
        /// The new name.
        comm: &'a [u8],
        /// Its number.
        pid: i32,
    },
    /// The kernel accounted run time to a thread.
    Accounted {
        /// Its number.
        pid: i32,
        /// The run time since the kernel last accounted to it, in nanoseconds.
        runtime_ns: u64,
    },
    /// The current thread starts work of the kernel on its own behalf.
    WorkBegan(OwnWork),
    /// The current thread ends such work.
    WorkEnded(OwnWork),
    /// The current thread starts a system call.
    CallBegan {
        /// Its number.
        number: i64,
    },
    /// The current thread returns from its system call.
    CallEnded,
    /// The current thread wrote to a disk that is behind.
    Dirtied {
        /// How long it is made to wait, in ticks of the kernel; at most 0 if it is not.
        pause: i64,
    },
    /// A function call on another CPU is requested.
    CallQueued {
        /// The CPU that will call it.
        cpu: u32,
        /// The address of the code that requests it.
        site: u64,
        /// The address of the function.
        function: u64,
        /// The address of the call's data.
        request: u64,
    },
    /// An interrupt is sent to another CPU.
    InterruptSent {
        /// The CPU that receives it.
        cpu: u32,
        /// The address of the code that sends it.
        site: u64,
        /// The address of the function that handles calls; 0 for an interrupt that makes the CPU look for another thread.
        callback: u64,
    },
    /// A work item is queued.
    WorkQueued {
        /// The address of the work structure.
        work: u64,
        /// The address of its function.
        function: u64,
    },
    /// A softirq is requested on this CPU.
    SoftirqRaised {
        /// Its number: the position of its line in /proc/softirqs.
        vec: u32,
    },
    /// A page fault starts. The kernel does not report its end.
    PageFault {
        /// Whether the access was made in user mode.
        user: bool,
        /// The address that was accessed.
        address: u64,
        /// The instruction that accessed it.
        ip: u64,
        /// The error code that the processor gave the kernel's handler; the meaning of its bits depends on the architecture.
        error_code: u64,
    },
}
