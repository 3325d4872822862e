//! Kernel events as they are decoded: still in the kernel's own numbers, names and clock.

/// One decoded event. What it borrows lies in the page that it was decoded from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawEvent<'a> {
    /// When, in units of the trace clock: counter ticks for `x86-tsc`, nanoseconds for most others.
    pub time: u64,
    /// The thread that was current on the CPU (`common_pid`); 0, as for the idle thread, for [`RawHappening::Lost`].
    pub pid: i32,
    /// What happened at that time.
    pub what: RawHappening<'a>,
}

/// A local interrupt vector, by the stem of its events' names. A small number that [`Decoder::vector_name`] resolves and
/// that means something only for the decoder that gave it.
///
/// [`Decoder::vector_name`]: super::Decoder::vector_name
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VectorName(pub(super) u16);

/// What has an interrupt or a softirq run a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Callback {
    /// A high-resolution timer: in the interrupt of the CPU's timer, or in the softirq `hrtimer`.
    HighResolutionTimer,
    /// A timer of the timer wheel: in the softirq `timer`.
    Timer,
    /// A tasklet: in the softirqs `tasklet` and `hi`.
    Tasklet,
    /// A call from another CPU, in an interrupt; or from a thread of the CPU itself.
    Call,
}

/// What happened, with the fields of the kernel's event. The start and the end of an interrupt or a work item are two
/// happenings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RawHappening<'a> {
    /// Events were lost between the event before and this instant.
    Lost {
        /// How many, where the kernel says so.
        count: Option<u64>,
    },
    /// A device interrupt's handler begins. A shared interrupt has several.
    IrqHandlerEntry {
        /// The interrupt's number, as in /proc/interrupts.
        irq: i32,
        /// The handler's name, as in /proc/interrupts.
        name: &'a [u8],
    },
    /// The device interrupt's handler ended.
    IrqHandlerExit {
        /// The interrupt's number, as in /proc/interrupts.
        irq: i32,
    },
    /// The handler of a local interrupt vector begins.
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
    /// A softirq handler begins.
    SoftirqEntry {
        /// Its number, as the order of the lines of /proc/softirqs.
        vec: u32,
    },
    /// The softirq handler ended.
    SoftirqExit {
        /// Its number, as the order of the lines of /proc/softirqs.
        vec: u32,
    },
    /// A handler of a non-maskable interrupt ended.
    NmiHandler {
        /// The address of its function.
        handler: u64,
        /// How long it ran, in nanoseconds.
        delta_ns: i64,
    },
    /// An inter-processor interrupt begins (arm64, arm).
    IpiEntry {
        /// The address of the kernel's string that names the reason, see `printk_formats`.
        reason: u64,
    },
    /// The inter-processor interrupt ended.
    IpiExit {
        /// The same address as at the entry.
        reason: u64,
    },
    /// The CPU goes from one thread to another.
    SchedSwitch {
        /// The name of who ran.
        prev_comm: &'a [u8],
        /// The number of the thread that ran.
        prev_pid: i32,
        /// Its priority, as the kernel counts: 0..=99 real time, 100..=139 others.
        prev_prio: i32,
        /// Its state, as the kernel's `TASK_` bits: 0 means runnable.
        prev_state: i64,
        /// The name of who runs now.
        next_comm: &'a [u8],
        /// The number of the thread that runs now; 0 is the idle thread.
        next_pid: i32,
        /// The priority of the thread that runs now, as in `prev_prio`.
        next_prio: i32,
    },
    /// A kworker begins a work item.
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
        /// The address of its function; kernels before 5.6 do not say it.
        function: Option<u64>,
    },
    /// A function begins that an interrupt or a softirq was asked to run.
    FunctionEntry {
        /// By what it was asked for.
        callback: Callback,
        /// The address of the function.
        function: u64,
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
    /// A page fault begins. The kernel reports no end of it.
    PageFault {
        /// Whether the access was made in user mode.
        user: bool,
        /// The address that was accessed.
        address: u64,
        /// The instruction that accessed it.
        ip: u64,
        /// The error code that the processor gave the kernel's handler: which bits mean what depends on the
        /// architecture.
        error_code: u64,
    },
}
