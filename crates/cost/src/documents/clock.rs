//! Ways to read the time, and their costs.

use serde::{Deserialize, Serialize};

use super::check::{check_count, check_picos};
use super::probe::{InstrumentDoc, SeriesDoc};

/// The suffix of samples by a clock's raw system call.
pub const BY_SYSCALL: &str = ":syscall";

/// Ways to read the time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ClockCosts {
    /// The instrument; `None` before anything is measured.
    pub instrument: Option<InstrumentDoc>,
    /// The reason if system calls could not be counted and were found by their time.
    pub not_counted: Option<String>,
    /// The ways, in display order.
    pub clocks: Vec<ClockWayDoc>,
    /// Readings of the measuring counter back to back; `None` before they are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successive: Option<SuccessiveDoc>,
}

/// Readings of the measuring counter back to back, and by how much each exceeds the one before (Tsafrir 2007, section 4).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SuccessiveDoc {
    /// Number of readings.
    pub readings: u64,
    /// The length of one of the counter's ticks, in picoseconds.
    pub tick_ps: i64,
    /// Number of different steps.
    pub distinct: u64,
    /// The longest step, in ticks.
    pub max_ticks: u64,
    /// Readings that were smaller than the one before; they are no steps.
    pub backwards: u64,
    /// The most frequent steps, the most frequent one first.
    pub steps: Vec<StepDoc>,
}

/// Steps of one length between readings back to back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct StepDoc {
    /// The length, in ticks of the counter.
    pub ticks: u64,
    /// Number of steps of this length.
    pub count: u64,
    /// In how many runs they came: steps of the same length one after the other.
    pub runs: u64,
    /// Steps in the longest run.
    pub longest_run: u64,
}

/// The place where a clock is read: in user space or in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReadBy {
    /// One instruction of the processor reads it.
    Instruction,
    /// Code in user space reads it, which the kernel maps into every process.
    Vdso,
    /// A system call reads it.
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
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ClockWayDoc {
    /// Its name, which its samples have too.
    pub name: String,
    /// Place where it is read: by an instruction, in user space or in the kernel.
    pub path: ReadBy,
    /// Description of its samples.
    pub series: SeriesDoc,
    /// Those by a raw system call, if there is one; their name is that of the clock with the suffix [`BY_SYSCALL`].
    pub by_syscall: Option<SeriesDoc>,
    /// The resolution that the kernel states, in nanoseconds.
    pub stated_ns: Option<u64>,
    /// Readings back to back on the CPU.
    pub readings: u64,
    /// The smallest step between two of them that is not zero, in picoseconds.
    pub smallest_step_ps: Option<i64>,
    /// The median step that is not zero.
    pub median_step_ps: Option<i64>,
    /// Readings that were smaller than the one before.
    pub backwards: u64,
    /// Agreement between CPUs; `None` if there is one CPU, or the clock is a thread's own.
    pub cross: Option<CrossDoc>,
}

/// The agreement of a clock between CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CrossDoc {
    /// Readings that were compared with one of another CPU.
    pub compared: u64,
    /// Readings that were smaller although they were taken later.
    pub backwards: u64,
    /// By how much at most, in picoseconds.
    pub largest_ps: i64,
}

impl SuccessiveDoc {
    pub(super) fn check(&self) -> Result<(), String> {
        check_count("readings", self.readings)?;
        if self.backwards > self.readings {
            return Err(format!("{} of {} readings cannot have been smaller", self.backwards, self.readings));
        }
        check_picos("tick_ps", "successive", self.tick_ps)
    }
}

impl ClockWayDoc {
    pub(super) fn check(&self) -> Result<(), String> {
        let steps = [("smallest_step_ps", self.smallest_step_ps), ("median_step_ps", self.median_step_ps)];
        let cross = [("largest_ps", self.cross.map(|cross| cross.largest_ps))];
        let mut all = steps.into_iter().chain(cross);
        all.try_for_each(|(name, ps)| check_picos(name, &self.name, ps.unwrap_or(0)))
    }
}
