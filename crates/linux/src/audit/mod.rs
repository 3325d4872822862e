//! What becalm can see on this machine, and what it cannot: the plain `becalm` command.
//!
//! Everything is read below a root folder, also who the process is and what it may do, so that fake trees test every
//! kind of machine. Nothing is tried out by changing it.

mod cpus;
mod identity;
mod kernel;
mod machine;

use std::fmt;
use std::path::Path;

use becalm_units::CpuList;

pub use identity::Identity;

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Area {
    /// The hardware counter that the loops read.
    Counter,
    /// The CPUs that can be measured.
    Cpus,
    /// Real-time scheduling.
    Realtime,
    /// Locking memory.
    Memory,
    /// The kernel's tracing.
    Tracing,
    /// Single kinds of kernel events.
    Events,
    /// The clock of the kernel's trace.
    TraceClock,
    /// Names of kernel functions.
    Symbols,
    /// Counters in /proc.
    Counters,
    /// What lies below the kernel.
    Hypervisor,
    /// Frequency and sleep states.
    Power,
}

impl Area {
    /// The area's name in tables and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Cpus => "cpus",
            Self::Realtime => "realtime",
            Self::Memory => "memory",
            Self::Tracing => "tracing",
            Self::Events => "events",
            Self::TraceClock => "trace_clock",
            Self::Symbols => "symbols",
            Self::Counters => "counters",
            Self::Hypervisor => "hypervisor",
            Self::Power => "power",
        }
    }
}

/// How well something can be had.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// In full.
    Available,
    /// In part, or with something to know about.
    Limited,
    /// Not at all.
    Missing,
}

impl State {
    /// The state's name in tables and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

/// One thing that was found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is about.
    pub area: Area,
    /// How well it can be had.
    pub state: State,
    /// What was seen.
    pub what: String,
    /// What follows for a recording; empty if nothing.
    pub consequence: String,
    /// What can be done about it; empty if nothing.
    pub advice: String,
}

impl Finding {
    fn available(area: Area, what: impl Into<String>) -> Self {
        Self { area, state: State::Available, what: what.into(), consequence: String::new(), advice: String::new() }
    }

    fn limited(area: Area, what: impl Into<String>, consequence: impl Into<String>, advice: impl Into<String>) -> Self {
        let (what, consequence, advice) = (what.into(), consequence.into(), advice.into());
        Self { area, state: State::Limited, what, consequence, advice }
    }

    fn missing(area: Area, what: impl Into<String>, consequence: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Missing, ..Self::limited(area, what, consequence, advice) }
    }
}

/// How far up the ladder a recording can go here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rung {
    /// The loops alone: every detour, no names.
    Loop,
    /// The loops and the counters in /proc, which bound the sources.
    Proc,
    /// The loops and the kernel's tracepoints: every detour with its names.
    Tracepoints,
}

impl Rung {
    /// The rung's name in documents, as in a run's own.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Proc => "proc",
            Self::Tracepoints => "tracepoints",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Loop => "loop only: detours, without names",
            Self::Proc => "loop and /proc: detours, and counters that bound their sources",
            Self::Tracepoints => "loop and tracepoints: detours, and who took the time",
        })
    }
}

/// A command to begin with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What to type.
    pub command: String,
    /// What it brings.
    pub why: String,
}

/// Everything that was found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit {
    /// One or more findings an area, in the order of [`Area`].
    pub findings: Vec<Finding>,
    /// The CPUs that can be measured.
    pub measurable: CpuList,
    /// Those of them that are isolated from the scheduler.
    pub isolated: CpuList,
}

impl Audit {
    /// Looks at the machine whose files lie below `root`. Never fails: what cannot be read is a finding.
    #[must_use]
    pub fn gather(root: &Path) -> Self {
        let identity = Identity::read(root);
        let mut findings = vec![machine::counter(root)];
        let cpus::Reachable { measurable, isolated } = cpus::reachable(root, &identity, &mut findings);
        findings.extend(cpus::realtime(root, &identity));
        findings.push(cpus::memory(root, &identity));
        findings.extend(kernel::tracing(root, &identity));
        findings.push(kernel::symbols(root));
        findings.push(kernel::counters(root));
        findings.push(machine::hypervisor(root));
        findings.extend(machine::power(root, &measurable));
        Self { findings, measurable, isolated }
    }

    /// The worst that was found in an area; nothing if the area was not looked at, as an earlier one rules it out.
    #[must_use]
    pub fn state(&self, area: Area) -> Option<State> {
        self.findings.iter().filter(|finding| finding.area == area).map(|finding| finding.state).max()
    }

    /// How far up the ladder a recording can go.
    #[must_use]
    pub fn rung(&self) -> Rung {
        let there = |area| self.state(area).is_some_and(|state| state < State::Missing);
        if there(Area::Tracing) && there(Area::Events) && there(Area::TraceClock) {
            Rung::Tracepoints
        } else if there(Area::Counters) {
            Rung::Proc
        } else {
            Rung::Loop
        }
    }

    /// What to run first.
    #[must_use]
    pub fn first_steps(&self) -> Vec<Step> {
        let step = |command: String, why: &str| Step { command, why: why.to_owned() };
        let mut steps = Vec::new();
        if !self.measurable.is_empty() {
            let why = match self.rung() {
                Rung::Tracepoints => "every detour of every CPU, and who made it",
                Rung::Proc | Rung::Loop => "every detour of every CPU; sources only as far as listed above",
            };
            steps.push(step("becalm record -o first.becalm --duration 10s".to_owned(), why));
        }
        if !self.isolated.is_empty() {
            let realtime = self.state(Area::Realtime).is_some_and(|state| state < State::Missing);
            let sched = if realtime { " --sched fifo:80" } else { "" };
            let command = format!("becalm record -o isolated.becalm --cpus {}{sched}", self.isolated);
            steps.push(step(command, "what still reaches the isolated CPUs, until Ctrl-C"));
        }
        if !steps.is_empty() {
            steps.push(step("becalm sources first.becalm".to_owned(), "the sources of the noise, ranked"));
        }
        steps
    }
}

#[cfg(test)]
mod tests;
