//! Kernel events that come as text: with names instead of addresses.

use becalm_units::{CpuId, Nanos};

/// One kernel event that was read from a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextEvent<'a> {
    /// Where it happened.
    pub cpu: CpuId,
    /// When, by the clock of the recording.
    pub time: Nanos,
    /// The thread that had the CPU; `None` where the program that printed it did not know.
    pub thread: Option<i32>,
    /// The name of that thread.
    pub name: &'a str,
    /// What happened.
    pub what: TextHappening<'a>,
}

/// What happened, as far as it tells who had a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextHappening<'a> {
    /// The handler of a device interrupt began.
    IrqEntry {
        /// Its number.
        irq: i32,
        /// The name of its handler.
        name: &'a str,
    },
    /// The handler of a device interrupt ended.
    IrqExit {
        /// Its number.
        irq: i32,
    },
    /// An interrupt that is known by its name alone began: a local vector, an inter-processor interrupt.
    VectorEntry {
        /// Its name: `local_timer`.
        name: &'a str,
        /// The vector's number, or the reason: what the detail of its source says.
        detail: VectorDetail<'a>,
    },
    /// Such an interrupt ended.
    VectorExit {
        /// As at the entry.
        name: &'a str,
        /// As at the entry.
        detail: VectorDetail<'a>,
    },
    /// A softirq began.
    SoftirqEntry {
        /// Its number.
        vec: u32,
    },
    /// A softirq ended.
    SoftirqExit {
        /// Its number.
        vec: u32,
    },
    /// A handler of non-maskable interrupts ended.
    Nmi {
        /// The name of its function.
        handler: &'a str,
        /// How long it ran.
        delta: Nanos,
    },
    /// The CPU went from one thread to another.
    Switch {
        /// Who ran: number and name.
        prev: (i32, &'a str),
        /// Whether it could have gone on.
        prev_runnable: bool,
        /// Who runs: number and name.
        next: (i32, &'a str),
    },
    /// A work item began.
    WorkStart {
        /// The address of its structure.
        work: u64,
        /// The name of its function.
        function: &'a str,
    },
    /// A work item ended.
    WorkEnd {
        /// The address of its structure.
        work: u64,
        /// The name of its function, which old kernels do not tell.
        function: Option<&'a str>,
    },
    /// Events were lost before this one.
    Lost {
        /// How many, if it is said.
        count: Option<u64>,
    },
}

/// What is known of an interrupt beside its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VectorDetail<'a> {
    /// The number of its vector.
    Number(i32),
    /// Why it was sent, or nothing.
    Reason(&'a str),
}

/// A time in seconds with 6 or 9 decimals, and how many it has.
pub(super) fn seconds(text: &str) -> Option<(Nanos, usize)> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let scale = 10_i64.pow(9 - fraction.len() as u32);
    let fraction_ns = fraction.parse::<i64>().ok()? * scale;
    let nanos = whole.checked_mul(1_000_000_000)?.checked_add(fraction_ns)?;
    // Sums of two fit.
    (nanos < i64::MAX / 4).then_some((Nanos::new(nanos), fraction.len()))
}
