//! The document of a measurement of costs, `runs/node=HOST.json` of a bundle that `becalm cost` wrote: what was measured,
//! where and how. The samples of its probes are a table beside it; the crate `bundle` reads and writes both.
//!
//! What the samples come to is not stored: it is computed again from them, for whoever reads the bundle.

mod check;

use becalm_units::CpuId;
use serde::{Deserialize, Serialize};

pub use self::check::LONGEST_PS;
use crate::event_count::EventCount;
use crate::node::{Ended, Machine};

/// The version of the document's schema that this program writes and reads.
pub const SCHEMA: &str = "becalm.cost/1";

/// What follows the name of a clock in the name of the samples by its raw system call.
pub const BY_SYSCALL: &str = ":syscall";

/// One node's measurement of costs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CostDoc {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The host's name, as in the file's name.
    pub node: String,
    /// Who wrote it: `becalm 0.1.0`.
    pub program: String,
    /// When it began, as RFC 3339 in UTC.
    pub begun: jiff::Timestamp,
    /// How it ended; nothing while it is measured, and for ever if it was killed.
    pub ended: Option<Ended>,
    /// The machine.
    pub machine: Machine,
    /// The measured CPU.
    pub cpu: CpuId,
    /// Why this one, in words.
    pub cpu_reason: String,
    /// The CPU that took part in what needs two.
    pub other_cpu: Option<CpuId>,
    /// The scheduling class of what was measured: `other`, `fifo:80`.
    pub sched: String,
    /// What was measured.
    pub measured: Measured,
}

/// What was measured, by the command that did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Measured {
    /// `becalm cost clock`.
    Clock(ClockCosts),
    /// `becalm cost trap`.
    Trap(ProbeCosts),
    /// `becalm cost detours`.
    Detours(ProbeCosts),
    /// `becalm cost scheduler`.
    Scheduler(SchedulerCosts),
    /// `becalm cost placement`.
    Placement(PlacementCosts),
}

impl Measured {
    /// The command's name behind `becalm cost`.
    #[must_use]
    pub const fn command(&self) -> &'static str {
        match self {
            Self::Clock(_) => "clock",
            Self::Trap(_) => "trap",
            Self::Detours(_) => "detours",
            Self::Scheduler(_) => "scheduler",
            Self::Placement(_) => "placement",
        }
    }
}

/// What timed the samples.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct InstrumentDoc {
    /// `tsc`, `cntvct`, `timebase` or `monotonic_raw`.
    pub counter: String,
    /// Ticks a second.
    pub rate_hz: f64,
    /// Largest relative error of the rate, as parts of 1.
    pub rate_error_ratio: f64,
    /// What the two readings around a sample cost, in picoseconds; it is taken off each.
    pub overhead_ps: i64,
    /// Which events of the processor are not counted, and why, a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
}

/// The samples of a probe, but for their times, which stand in the table under the probe's name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeriesDoc {
    /// Repetitions in a sample, which is their mean; at least 1.
    pub batch: u32,
    /// How many samples, of all rounds together.
    pub samples: u64,
    /// Interrupts that the kernel counted on the CPU meanwhile; nothing where it does not tell.
    pub interrupts: Option<u64>,
    /// How often the measuring thread was pre-empted meanwhile.
    pub preempted: u64,
    /// Whether the samples are interruptions themselves, so that none is slow for having been interrupted.
    pub interruptions: bool,
    /// What the processor counted in further repetitions, without what comes between samples; often nothing on a virtual
    /// machine.
    #[serde(default)]
    pub counts: Vec<EventCount>,
    /// How many repetitions these were.
    #[serde(default)]
    pub counted: u64,
}

/// One probe: its samples, or the reason why there are none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeDoc {
    /// Its stable name, which no other probe of the document has.
    pub name: String,
    /// What it is, in a few words.
    pub what: String,
    /// How it was measured.
    pub method: String,
    /// Its samples.
    pub series: Option<SeriesDoc>,
    /// Why there are none.
    pub not_measured: Option<String>,
}

/// Probes of traps or detours.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProbeCosts {
    /// What timed them; nothing before they are measured.
    pub instrument: Option<InstrumentDoc>,
    /// The probes, in the order in which they are shown.
    pub probes: Vec<ProbeDoc>,
}

/// Ways to read the time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClockCosts {
    /// What timed them; nothing before they are measured.
    pub instrument: Option<InstrumentDoc>,
    /// Why system calls could not be counted, where they were told by their time.
    pub not_counted: Option<String>,
    /// One a way.
    pub clocks: Vec<ClockWayDoc>,
}

/// Where a clock is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadBy {
    /// By one instruction.
    Instruction,
    /// In user space, by the code that the kernel maps into every process.
    Vdso,
    /// In the kernel.
    Syscall,
}

impl ReadBy {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Vdso => "vdso",
            Self::Syscall => "syscall",
        }
    }
}

/// A way to read the time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClockWayDoc {
    /// Its name, under which its samples stand.
    pub name: String,
    /// Where it is read.
    pub path: ReadBy,
    /// Its samples.
    pub series: SeriesDoc,
    /// Those by a raw system call, where there is one; they stand under the name with [`BY_SYSCALL`] behind it.
    pub by_syscall: Option<SeriesDoc>,
    /// The resolution that the kernel states, in nanoseconds.
    pub stated_ns: Option<u64>,
    /// Readings back to back on the CPU.
    pub readings: u64,
    /// The smallest step between two of them that is not zero, in picoseconds.
    pub smallest_step_ps: Option<i64>,
    /// The median step that is not zero.
    pub median_step_ps: Option<i64>,
    /// How many of them were smaller than the one before.
    pub backwards: u64,
    /// How it agrees between CPUs; nothing where there is one CPU, or the clock is a thread's own.
    pub cross: Option<CrossDoc>,
}

/// How a clock agrees between CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CrossDoc {
    /// Readings that were compared with one of another CPU.
    pub compared: u64,
    /// How many were smaller although they were taken later.
    pub backwards: u64,
    /// By how much at most, in picoseconds.
    pub largest_ps: i64,
}

/// Ticks and switches by the number of runnable threads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SchedulerCosts {
    /// How long each of the two measurements of a number was to take.
    pub window_ns: i64,
    /// The numbers of runnable threads that were asked for, in rising order.
    pub runnable: Vec<u32>,
    /// Why the kernel's trace could not be had, if it could not.
    pub no_trace: Option<String>,
    /// Which events of the processor are not counted, and why, a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
    /// One a number that was measured.
    pub rows: Vec<SchedulerDoc>,
}

/// What was measured with a number of runnable threads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SchedulerDoc {
    /// Threads that never sleep, all on the one CPU.
    pub runnable: u32,
    /// The kernel's record of the ticks while they only counted; nothing where there was no trace.
    pub ticks: Option<TicksDoc>,
    /// Calls to give way, of all threads.
    pub yields: u64,
    /// How often a thread was switched out meanwhile.
    pub switches: u64,
    /// For how long they gave way.
    pub elapsed_ns: i64,
    /// What the processor counted in all threads while they gave way once more; often nothing on a virtual machine.
    #[serde(default)]
    pub counts: Vec<EventCount>,
    /// Their calls to give way meanwhile.
    #[serde(default)]
    pub counted_yields: u64,
}

/// The kernel's record of a CPU's ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TicksDoc {
    /// Ticks from entry to exit.
    pub interrupts: u64,
    /// The time of all of them.
    pub handler_ns: i64,
    /// The longest.
    pub handler_max_ns: i64,
    /// Switches from one thread to another.
    pub switches: u64,
    /// For how long it was recorded.
    pub window_ns: i64,
    /// Events that the kernel lost.
    pub lost_events: u64,
}

/// The cost of an interrupt by placement.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PlacementCosts {
    /// Interrupts a second that were added to those of the measured CPU.
    pub added_hz: u32,
    /// How long one measurement was to take.
    pub cell_ns: i64,
    /// How often everything was to be measured.
    pub rounds: u32,
    /// Gave the order.
    pub seed: u64,
    /// The kinds of work.
    pub bodies: Vec<String>,
    /// Where the work ran.
    pub places: Vec<PlaceDoc>,
    /// Which places there are not, and why.
    pub missing: Vec<String>,
    /// Which events of the processor are not counted, and why, a line for each reason.
    #[serde(default)]
    pub not_counted: Vec<String>,
    /// What was measured, in that order.
    pub results: Vec<PlacementDoc>,
}

/// Where work runs, as seen from the interrupts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placed {
    /// On the interrupted hardware thread.
    Same,
    /// On another hardware thread of its core.
    Sibling,
    /// On another core.
    Other,
}

impl Placed {
    /// Its name in documents and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Sibling => "sibling",
            Self::Other => "other",
        }
    }
}

/// A place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlaceDoc {
    /// Where.
    pub place: Placed,
    /// That CPU.
    pub cpu: CpuId,
}

/// The same work without and with added interrupts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlacementDoc {
    /// Where it ran.
    pub place: Placed,
    /// What it was.
    pub body: String,
    /// Without added interrupts.
    pub quiet: TimedDoc,
    /// With them.
    pub raised: TimedDoc,
    /// What the processor counted in the work once more, without and with them; often nothing on a virtual machine.
    #[serde(default)]
    pub counted: Option<CountedPairDoc>,
}

/// The same amount of work, counted without and with added interrupts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CountedPairDoc {
    /// Without.
    pub quiet: CountedDoc,
    /// With them.
    pub raised: CountedDoc,
}

/// Work beside which the processor counted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CountedDoc {
    /// Timer interrupts that the measured CPU took meanwhile.
    pub interrupts: u64,
    /// What was counted, in the work (user) and in the kernel meanwhile.
    pub counts: Vec<EventCount>,
}

/// Work that was timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TimedDoc {
    /// How long it took; above 0.
    pub elapsed_ns: i64,
    /// Timer interrupts that the measured CPU took in `window_ns`.
    pub interrupts: u64,
    /// From one reading of the count of interrupts to the other; above 0.
    pub window_ns: i64,
}

impl CostDoc {
    /// The series of samples that the document tells of, in its order, each with the name under which they stand.
    #[must_use]
    pub fn series(&self) -> Vec<(String, SeriesDoc)> {
        let mut all = Vec::new();
        match &self.measured {
            Measured::Trap(costs) | Measured::Detours(costs) => {
                let with_samples = |probe: &ProbeDoc| Some((probe.name.clone(), probe.series.clone()?));
                all.extend(costs.probes.iter().filter_map(with_samples));
            }
            Measured::Clock(costs) => {
                for clock in &costs.clocks {
                    all.push((clock.name.clone(), clock.series.clone()));
                    all.extend(clock.by_syscall.clone().map(|series| (format!("{}{BY_SYSCALL}", clock.name), series)));
                }
            }
            Measured::Scheduler(_) | Measured::Placement(_) => {}
        }
        all
    }

    /// Whether nothing was measured yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.measured {
            Measured::Clock(costs) => costs.clocks.is_empty(),
            Measured::Trap(costs) | Measured::Detours(costs) => costs.probes.is_empty(),
            Measured::Scheduler(costs) => costs.rows.is_empty(),
            Measured::Placement(costs) => costs.results.is_empty(),
        }
    }
}
