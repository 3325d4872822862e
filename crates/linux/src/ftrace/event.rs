//! Kernel events as they are decoded: still in the kernel's own numbers, names and clock.

/// One decoded event. What it borrows lies in the page that it was decoded from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawEvent<'a> {
    /// When, in units of the trace clock: counter ticks for `x86-tsc`, nanoseconds for most others.
    pub time: u64,
    /// The thread that was current on the CPU (`common_pid`); 0, as for the idle thread, for [`RawHappening::Lost`].
    pub pid: i32,
    /// What.
    pub what: RawHappening<'a>,
}

/// A local interrupt vector, by the stem of its events' names. A small number that [`Decoder::vector_name`] resolves and
/// that means something only for the decoder that gave it.
///
/// [`Decoder::vector_name`]: super::Decoder::vector_name
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VectorName(pub(super) u16);

/// What happened.
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
    /// It ended.
    IrqHandlerExit {
        /// The interrupt's number.
        irq: i32,
    },
    /// A local vector begins.
    VectorEntry {
        /// `local_timer`, `reschedule`, `call_function_single`.
        name: VectorName,
        /// The vector's number.
        vector: i32,
    },
    /// It ended.
    VectorExit {
        /// As at the entry.
        name: VectorName,
        /// As at the entry.
        vector: i32,
    },
    /// A softirq begins.
    SoftirqEntry {
        /// Its number, as the order of the lines of /proc/softirqs.
        vec: u32,
    },
    /// It ended.
    SoftirqExit {
        /// Its number.
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
    /// It ended.
    IpiExit {
        /// As at the entry.
        reason: u64,
    },
    /// The CPU goes from one thread to another.
    SchedSwitch {
        /// The name of who ran.
        prev_comm: &'a [u8],
        /// Its number.
        prev_pid: i32,
        /// Its priority, as the kernel counts: 0..=99 real time, 100..=139 others.
        prev_prio: i32,
        /// Its state, as the kernel's `TASK_` bits: 0 means runnable.
        prev_state: i64,
        /// The name of who runs now.
        next_comm: &'a [u8],
        /// Its number.
        next_pid: i32,
        /// Its priority.
        next_prio: i32,
    },
    /// A kworker begins a work item.
    WorkStart {
        /// The address of the work structure.
        work: u64,
        /// The address of its function.
        function: u64,
    },
    /// It ended.
    WorkEnd {
        /// The address of the work structure.
        work: u64,
        /// The address of its function; kernels before 5.6 do not say it.
        function: Option<u64>,
    },
    /// A page fault begins.
    PageFault {
        /// Whether in user space.
        user: bool,
        /// The address that was accessed.
        address: u64,
        /// The instruction that accessed it.
        ip: u64,
        /// The processor's error code.
        error_code: u64,
    },
}
