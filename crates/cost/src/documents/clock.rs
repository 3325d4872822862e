//! Ways to read the time, and what each costs.

use serde::{Deserialize, Serialize};

use super::check::{check_count, check_picos};
use super::probe::{InstrumentDoc, SeriesDoc};

/// What follows the name of a clock in the name of the samples by its raw system call.
pub const BY_SYSCALL: &str = ":syscall";

/// Ways to read the time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ClockCosts {
    /// What timed them; `None` before anything is measured.
    pub instrument: Option<InstrumentDoc>,
    /// Why system calls could not be counted, where they were told by their time.
    pub not_counted: Option<String>,
    /// The ways, in the order in which they are shown.
    pub clocks: Vec<ClockWayDoc>,
    /// Readings of the measuring counter back to back; `None` before they are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successive: Option<SuccessiveDoc>,
}

/// Readings of the measuring counter back to back, and by how much each exceeds the one before (Tsafrir 2007, section 4).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SuccessiveDoc {
    /// How many readings were taken.
    pub readings: u64,
    /// The length of one of the counter's ticks, in picoseconds.
    pub tick_ps: i64,
    /// How many different steps there were.
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
    /// How many steps had it.
    pub count: u64,
    /// In how many runs they came: steps of the same length one after the other.
    pub runs: u64,
    /// How many steps the longest run had.
    pub longest_run: u64,
}

/// Where a clock is read: in user space or in the kernel.
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
    /// Its name, under which its samples stand.
    pub name: String,
    /// Where it is read: by an instruction, in user space or in the kernel.
    pub path: ReadBy,
    /// What is told of its samples.
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
    /// How it agrees between CPUs; `None` where there is one CPU, or the clock is a thread's own.
    pub cross: Option<CrossDoc>,
}

/// How a clock agrees between CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CrossDoc {
    /// Readings that were compared with one of another CPU.
    pub compared: u64,
    /// How many were smaller although they were taken later.
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
