//! The result of checking a machine for the CPUs that should be quiet.

use becalm_units::{CpuId, CpuList, Nanos};
use serde::Serialize;

use super::{Finding, Severity};

/// The result of a check.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// The CPUs that should be quiet, and the reason for the choice.
    pub choice: CpuChoice,
    /// The findings: the most severe first, then in the order of [`Area`](super::Area).
    pub findings: Vec<Finding>,
}

impl Check {
    /// The number of findings with a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The highest severity; `None` without findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// The CPUs that should be quiet, and the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuChoice {
    /// The CPUs that should be quiet: never empty, all online.
    pub cpus: CpuList,
    /// How they were chosen; the report gives this as the reason.
    pub chosen: Chosen,
    /// The housekeeping CPUs.
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

/// The origin of a count of timer interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TicksFrom {
    /// The kernel's counter while a thread of becalm was busy on the CPU.
    Measured {
        /// How often other threads preempted it meanwhile: with two threads the kernel needs the tick.
        preempted: u64,
    },
    /// A recording saw them within detours.
    Recorded,
}

/// The number of ticks, or of timer interrupts, on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TickCount {
    /// The CPU that was interrupted.
    pub cpu: CpuId,
    /// The number of ticks, or of all interrupts of the CPU's timer.
    pub interrupts: u64,
    /// Whether all of them are ticks.
    pub are_ticks: bool,
    /// The observed time.
    pub during: Nanos,
    /// The origin of the count.
    pub from: TicksFrom,
}

impl TickCount {
    /// The average number of interrupts per second; 0 without any observed time.
    pub fn rate_hz(&self) -> f64 {
        if self.during > Nanos::ZERO { self.interrupts as f64 / (self.during.get() as f64 / 1e9) } else { 0.0 }
    }
}
