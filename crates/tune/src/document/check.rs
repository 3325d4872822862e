//! What a check of a machine found out about the CPUs that are to be quiet.

use becalm_units::{CpuId, CpuList, Nanos};
use serde::Serialize;

use super::{Finding, Severity};

/// Everything that was found out.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// The CPUs that are to be quiet, and why these.
    pub choice: CpuChoice,
    /// What was found: the gravest first, within that in the order of [`Area`](super::Area).
    pub findings: Vec<Finding>,
}

impl Check {
    /// How many findings have a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The gravest severity that was found; `None` where nothing was found.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// The CPUs that are to be quiet, and the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuChoice {
    /// The CPUs that are to be quiet: never empty, all online.
    pub cpus: CpuList,
    /// How they were chosen, which the report gives as the reason.
    pub chosen: Chosen,
    /// The CPUs that are online and left for everything else.
    pub others: CpuList,
}

/// How the CPUs were chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// The user named them.
    Named,
    /// The machine keeps them apart: `isolcpus`, `nohz_full` or an isolated cpuset partition.
    KeptApart,
    /// The machine keeps none apart, and these are all but the first.
    AllButFirst,
    /// The machine has no other.
    OnlyOne,
}

/// Where a count of timer interrupts is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TicksFrom {
    /// The kernel's count grew while a thread of becalm was busy on the CPU.
    Measured {
        /// How often other threads took the CPU from it meanwhile: with two threads the kernel needs the tick.
        preempted: u64,
    },
    /// A recording saw them inside of detours.
    Recorded,
}

/// How many ticks a CPU took, or how many timer interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TickCount {
    /// The CPU that was interrupted.
    pub cpu: CpuId,
    /// The number of ticks, or of all interrupts of the CPU's timer.
    pub interrupts: u64,
    /// Whether they are ticks alone.
    pub are_ticks: bool,
    /// The time in which they came.
    pub during: Nanos,
    /// Where the count is from.
    pub from: TicksFrom,
}

impl TickCount {
    /// How many interrupts came in a second, on average; 0 where no time was observed.
    pub fn rate_hz(&self) -> f64 {
        if self.during > Nanos::ZERO { self.interrupts as f64 / (self.during.get() as f64 / 1e9) } else { 0.0 }
    }
}
