//! The plan of a recording.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;

use becalm_linux::perf::PerfEvent;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::rights::{RemainingRights, User};
use becalm_linux::sched::Policy;
use becalm_model::node::Fixed;
use becalm_units::{CpuId, CpuList, Nanos, ParseNanosError};

use crate::machine;
use crate::work::Body;

/// The least length of steps that are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Threshold {
    /// Just above the loop's own variation, see [`crate::StepProfile::auto_threshold`].
    #[default]
    Auto,
    /// A length that the user chose.
    Length(Nanos),
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Length(length) => length.fmt(f),
        }
    }
}

impl FromStr for Threshold {
    type Err = ParseNanosError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Length) }
    }
}

/// The task of the loops: watch the counter, or work.
#[derive(Clone, PartialEq, Debug)]
pub enum LoopTask {
    /// They watch the counter, and keep steps of at least this threshold.
    Watch(Threshold),
    /// They work and keep every sample.
    Work(WorkPlan),
}

/// The work of the loops.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkPlan {
    /// The kind of work.
    pub body: Body,
    /// The kind of work per CPU, if it differs; empty if all do the same.
    pub bodies: BTreeMap<CpuId, Body>,
    /// The intended (fixed work) or actual (fixed time) length of a sample.
    pub grain: Nanos,
    /// The quantity that is constant from sample to sample.
    pub fixed: Fixed,
    /// The number of samples per loop; `None` means until the recording ends for another reason.
    pub samples: Option<u64>,
    /// The maximum allowable variation, a fraction of 1. The loops end when their mean varies less.
    pub maiv: Option<f64>,
    /// How many copies of the loop run on each CPU, at least 1. One of them is measured.
    pub copies: u32,
    /// Timer interrupts per second that the caller adds on each CPU meanwhile; stored in the run's document.
    pub added_hz: u32,
    /// Hardware or kernel events counted in the measured loops, in user space and in the kernel separately.
    pub counters: Vec<PerfEvent>,
    /// The iterations per CPU, for a resumed run; otherwise calibrated.
    pub iterations: BTreeMap<CpuId, u64>,
}

impl WorkPlan {
    /// The work of the loop on a CPU.
    pub fn body_on(&self, cpu: CpuId) -> Body {
        self.bodies.get(&cpu).copied().unwrap_or(self.body)
    }

    /// The name of the work; if CPUs have different bodies, all names in the order of the CPUs.
    pub fn body_name(&self) -> String {
        match self.bodies.values().map(|body| body.name()).collect::<Vec<_>>() {
            names if names.is_empty() => self.body.name().to_owned(),
            names => names.join(","),
        }
    }
}

/// A program that runs during a recording.
#[derive(Debug)]
pub struct PlannedCommand {
    /// The program, ready to be started.
    pub command: Command,
    /// The program and its arguments as they are stored.
    pub written: Vec<String>,
}

/// A recording as requested.
#[derive(Debug)]
pub struct RecordPlan {
    /// The CPUs to measure; `None` means every online CPU that the process may use, including isolated ones.
    pub cpus: Option<CpuList>,
    /// How long to measure; `None` means until a signal or the end of the command.
    pub duration: Option<Nanos>,
    /// The number of detours to catch on each CPU, whose loop ends with the last; the recording ends with the last loop. `None` means no limit. For
    /// watching loops only; working loops have [`WorkPlan::samples`].
    pub detours: Option<NonZeroU64>,
    /// Wall-clock start time in nanoseconds since 1970; `None` or a past time starts at once.
    pub at_ns: Option<i64>,
    /// The name of the node in the bundle, valid according to [`becalm_model::check_node_name`]. `None` takes the host's name, which several nodes on
    /// one host share; in a container it is the container's.
    pub node: Option<String>,
    /// Whether the loops watch the counter or do work.
    pub task: LoopTask,
    /// The scheduling class of the loops.
    pub policy: Policy,
    /// Whether to trace kernel activity.
    pub sources: bool,
    /// Whether to record the causes of activities: the directory that keeps raw pages of the trace until the recording ends. Needs `sources`.
    pub causes: Option<PathBuf>,
    /// The program to run during the recording.
    pub command: Option<PlannedCommand>,
    /// The longest time span of a segment of the bundle. A killed process loses its current segment. `None` means 10 s, or 60 s or 64 MiB of waiting
    /// data if no CPU is free of loops, because attributing and storing takes time from them.
    pub segment: Option<Nanos>,
    /// The size of the ring between each loop and the collector, in bytes; 16 per detour.
    pub ring_bytes: usize,
    /// The size of the kernel's trace buffer per measured CPU, in bytes.
    pub trace_bytes: usize,
    /// The bytes of raw trace that may wait for the end of their segment; more end the segment early.
    pub backlog_bytes: usize,
    /// How long real-time loops on every CPU continue while nothing is collected from them. Without this limit, a starved collector would leave the
    /// machine to the loops.
    pub unattended: Nanos,
    /// Names of the kernel's functions, if they have been read already, which takes some tens of milliseconds.
    pub symbols: Option<Arc<Kallsyms>>,
    /// What happens to the process's privileges once everything that needs them is open, before the loops start.
    pub rights: AfterSetUp,
    /// The root of the file system: `/` outside of tests.
    pub root: PathBuf,
}

/// What happens to the process's privileges after a recording is set up. The measuring threads always drop theirs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum AfterSetUp {
    /// The recorder is part of a process that still needs them.
    #[default]
    Keep,
    /// They are lowered until the recording has ended, because another one will be set up then; meanwhile the process acts as this user.
    Lower(Option<User>),
    /// They are dropped permanently, except for these.
    GiveUp(RemainingRights),
}

impl RecordPlan {
    /// The plan of `becalm record` without arguments.
    pub fn new() -> Self {
        Self {
            cpus: None,
            duration: Some(Nanos::from_secs(10)),
            detours: None,
            at_ns: None,
            node: None,
            task: LoopTask::Watch(Threshold::Auto),
            policy: Policy::Other,
            sources: true,
            causes: None,
            command: None,
            segment: None,
            ring_bytes: 4 << 20,
            trace_bytes: 16 << 20,
            backlog_bytes: 256 << 20,
            unattended: Nanos::from_secs(30),
            symbols: None,
            rights: AfterSetUp::Keep,
            root: PathBuf::from("/"),
        }
    }

    /// Limits the trace buffers to a sixteenth of the machine's memory in total, but at least 1 MiB each, which holds about 40,000 events.
    pub fn limit_trace_buffers(&mut self) {
        let cpus = self.cpus.as_ref().map_or_else(|| machine::cpu_list(&self.root, "online").len(), CpuList::len);
        let memory = becalm_linux::memory::total_bytes();
        let share = memory / 16 / cpus.max(1);
        self.trace_bytes = self.trace_bytes.min(share).max(1 << 20);
    }
}

impl Default for RecordPlan {
    fn default() -> Self {
        Self::new()
    }
}
