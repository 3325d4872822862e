//! A recording as it is planned.

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

/// From which length on a step is kept.
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

/// What the loops do: watch the counter, or work.
#[derive(Clone, PartialEq, Debug)]
pub enum LoopTask {
    /// They watch the counter, and keep the steps from this threshold on.
    Watch(Threshold),
    /// They work, and keep every sample.
    Work(WorkPlan),
}

/// Work for the loops to do.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkPlan {
    /// The kind of work that the loops do.
    pub body: Body,
    /// The kind of work of each CPU, where each has one of its own; empty where all do the same.
    pub bodies: BTreeMap<CpuId, Body>,
    /// How long a sample is to take, or takes.
    pub grain: Nanos,
    /// What stays the same from sample to sample.
    pub fixed: Fixed,
    /// How many samples each loop takes; `None` means until the recording ends for another reason.
    pub samples: Option<u64>,
    /// The maximum allowable variation, as parts of 1, by which the loops end when they have repeated enough.
    pub maiv: Option<f64>,
    /// How many loops do the same on each CPU, at least 1. One of them is measured.
    pub copies: u32,
    /// Timer interrupts a second that the caller adds to those of each CPU meanwhile; the run's document says so.
    pub added_hz: u32,
    /// What the processor or the kernel counts in the measured loops, in user space and in the kernel apart.
    pub counters: Vec<PerfEvent>,
    /// The iterations of each CPU, of a run that is resumed; calibrated otherwise.
    pub iterations: BTreeMap<CpuId, u64>,
}

impl WorkPlan {
    /// What the loop on a CPU does.
    pub fn body_on(&self, cpu: CpuId) -> Body {
        self.bodies.get(&cpu).copied().unwrap_or(self.body)
    }

    /// The name of what the loops do: of CPUs with bodies of their own the names of all, in the order of the CPUs.
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
    /// The program and its arguments, as they are stored.
    pub written: Vec<String>,
}

/// A recording as it was asked for.
#[derive(Debug)]
pub struct RecordPlan {
    /// The CPUs to measure; `None` means every online CPU on which the process may run, isolated ones included.
    pub cpus: Option<CpuList>,
    /// How long to measure; `None` means until a signal or the end of the command.
    pub duration: Option<Nanos>,
    /// How many detours to catch on each CPU, whose loop ends with the last of them; the recording ends with the last loop. `None` without
    /// such an end. It is for loops that watch: those that work have [`WorkPlan::samples`].
    pub detours: Option<NonZeroU64>,
    /// When to begin, in nanoseconds since 1970 by the wall clock; at once where it is `None`, or over.
    pub at_ns: Option<i64>,
    /// The name of the node in the bundle, of the kind that [`becalm_model::check_node_name`] lets pass. `None` takes the host's, which several
    /// nodes have in common where they share a host, and which in a container is that of the container.
    pub node: Option<String>,
    /// Whether the loops watch the counter or do work.
    pub task: LoopTask,
    /// The scheduling class of the loops.
    pub policy: Policy,
    /// Whether the kernel's activity is traced.
    pub sources: bool,
    /// The program that runs meanwhile.
    pub command: Option<PlannedCommand>,
    /// How much time a segment of the bundle holds at most. What a segment holds is lost if the process is killed. `None` means 10 s;
    /// where no CPU is free of loops, 60 s or 64 MiB of what waits, as attributing and storing it takes time from the loops.
    pub segment: Option<Nanos>,
    /// The size of the ring between each loop and the collector, in bytes; 16 a detour.
    pub ring_bytes: usize,
    /// The size of the kernel's trace buffer of each measured CPU, in bytes.
    pub trace_bytes: usize,
    /// The bytes of raw trace that may wait for the end of their segment; with more, the segment ends early.
    pub backlog_bytes: usize,
    /// How long real-time loops on every CPU go on while nothing is collected from them. Without such an end a collector that
    /// the kernel no longer lets run would leave the machine to them.
    pub unattended: Nanos,
    /// The names of the kernel's functions, where they have been read already; that takes some ten milliseconds.
    pub symbols: Option<Arc<Kallsyms>>,
    /// What becomes of the process's rights once everything that needs them is open, before the loops begin.
    pub rights: AfterSetUp,
    /// The root of the file system: `/` outside of tests.
    pub root: PathBuf,
}

/// What becomes of the process's rights once a recording is set up. Those of the measuring threads go in any case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum AfterSetUp {
    /// The recorder is a part of a process that has more to do with them.
    #[default]
    Keep,
    /// They are put down until the recording has ended, as another one is to be set up then; it acts as this user meanwhile.
    Lower(Option<User>),
    /// They are given up for good, but for what is left.
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

    /// Cuts the trace buffers so that those of all CPUs together take a sixteenth of the machine's memory at most, but
    /// leaves each 1 MiB, which holds about 40,000 events.
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
