//! Interruptions on the command's CPUs while it runs: each one from the kernel's trace, or the total waiting time from its counters.
//!
//! Everything else on these CPUs interrupts the command: interrupts, softirqs, kernel threads and other programs. A program is another one if it was
//! there before the command started, or does not descend from becalm. A process that comes and goes within a repetition counts as the command's, like
//! its children: it can no longer be looked up.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use becalm_attribute::{Interruptions, Presence};
use becalm_linux::janitor::Janitor;
use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::procfs::namespace::has_own_numbers;
use becalm_linux::procfs::stat::Stat;
use becalm_linux::procfs::task::{Schedstat, TaskStat, all_threads};
use becalm_measure::{Disturbance, Names, RecordPlan, StandingTrace};
use becalm_model::{Event, Happening, Kind, Pid};
use becalm_units::fault::{Context, Result};
use becalm_units::{CpuId, CpuList, Nanos};

use crate::bench::repetitions::{LostTo, STEAL};
use crate::bench::report::SeenBy;

/// The largest size of the buffers of all CPUs together, and of one CPU, in bytes.
const BUFFERS: (usize, usize) = (64 << 20, 8 << 20);

/// The number of sources reported for a repetition.
const MOST_SOURCES: usize = 32;

/// No chain of parents is longer.
const GENERATIONS: usize = 64;

const ROOT: &str = "/";

/// The losses of a repetition.
pub struct Lost {
    /// The lost time; `None` if it is not observable.
    pub lost: Option<Nanos>,
    /// The number of interruptions.
    pub interruptions: Option<u64>,
    /// Kernel events dropped meanwhile.
    pub lost_events: u64,
    /// The sources, the largest first.
    pub sources: Vec<LostTo>,
}

impl Lost {
    /// Nothing was observable.
    const UNKNOWN: Self = Self { lost: None, interruptions: None, lost_events: 0, sources: Vec::new() };
}

/// An observer of the command's CPUs.
pub enum Observer {
    /// The kernel's trace of the CPUs.
    Trace(Box<Traced>),
    /// The kernel's counters.
    Counters(Counted),
}

impl Observer {
    /// By the kernel's trace, or why that is impossible.
    pub fn trace(cpus: &CpuList, janitor: &Result<Arc<Janitor>, String>) -> Result<Self, String> {
        let root = Path::new(ROOT);
        if has_own_numbers(root) {
            return Err("in a container the kernel's trace numbers threads otherwise than /proc does".to_owned());
        }
        let others = all_threads(root).map_err(|error| error.to_string())?;
        let (all, most) = BUFFERS;
        let plan = RecordPlan { trace_bytes: (all / cpus.len()).min(most), ..RecordPlan::new() };
        let mut warnings = Vec::new();
        let mut trace = StandingTrace::set_up(&plan, cpus, &[], janitor, &mut warnings).ok_or_else(|| {
            warnings.last().map_or_else(|| "the kernel cannot be traced".to_owned(), |warning| warning.message.clone())
        })?;
        trace.turn(true).map_err(|error| error.to_string())?;
        let now = trace.now();
        let of_cpu = |cpu: CpuId| {
            let mut presence = Presence::for_one_program(cpu);
            presence.begin(now);
            (presence, Interruptions::default())
        };
        let others: HashSet<Pid> = others.into_iter().map(|(_, tid)| Pid(tid)).collect();
        let known = others.clone();
        let cpus = cpus.iter().map(of_cpu).collect();
        Ok(Self::Trace(Box::new(Traced { trace, cpus, known, changed: None, begun: now, lost_events: 0 })))
    }

    /// By the kernel's counters.
    pub fn counters(cpus: &CpuList) -> Self {
        Self::Counters(Counted { cpus: cpus.clone(), before: None })
    }

    /// The method of observation.
    pub const fn seen_by(&self) -> SeenBy {
        match self {
            Self::Trace(_) => SeenBy::Trace,
            Self::Counters(_) => SeenBy::Counters,
        }
    }

    /// Starts a repetition.
    pub fn begin(&mut self) -> Result<()> {
        match self {
            Self::Trace(traced) => {
                traced.read()?;
                traced.cpus.iter_mut().for_each(|(_, found)| *found = Interruptions::default());
                (traced.begun, traced.lost_events) = (traced.trace.now(), 0);
            }
            Self::Counters(counted) => counted.before = Some(counted.look()?),
        }
        Ok(())
    }

    /// How the trace was changed; it is not read any more then.
    pub const fn changed(&self) -> Option<&Disturbance> {
        match self {
            Self::Trace(traced) => traced.changed.as_ref(),
            Self::Counters(_) => None,
        }
    }

    /// Descriptors that are ready once there is something to read.
    pub fn filling(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Trace(traced) if traced.changed.is_none() => traced.trace.filling().collect(),
            _ => Vec::new(),
        }
    }

    /// Reads the available data.
    pub fn read(&mut self) -> Result<()> {
        if let Self::Trace(traced) = self { traced.read() } else { Ok(()) }
    }

    /// Ends the repetition. Its process must not be reaped yet.
    pub fn end(&mut self, process: u32) -> Result<Lost> {
        match self {
            Self::Trace(traced) => {
                let ended = traced.trace.now();
                traced.read()?;
                Ok(traced.lost(ended))
            }
            Self::Counters(counted) => counted.lost(process),
        }
    }
}

/// The kernel's trace of the command's CPUs.
pub struct Traced {
    trace: StandingTrace,
    /// The presence of threads on each CPU, and the interruptions of the command there in this repetition.
    cpus: Vec<(Presence, Interruptions)>,
    /// Threads already classified; those of the command are marked in the names.
    known: HashSet<Pid>,
    /// How the trace was changed. Nothing is known from then on.
    changed: Option<Disturbance>,
    /// The start of the repetition, on the trace's clock.
    begun: Nanos,
    lost_events: u64,
}

impl Traced {
    fn read(&mut self) -> Result<()> {
        if self.changed.is_some() {
            return Ok(());
        }
        let Self { trace, cpus, known, .. } = self;
        let drained = trace.drain(&mut |index, events: &[Event], names: &mut Names| {
            let (presence, found) = &mut cpus[index];
            for event in events {
                tell_apart(event, known, names);
            }
            let Names { tasks, labels, .. } = names;
            for event in events {
                presence.take(event, tasks, labels, found);
            }
        });
        // The data read so far may be affected by the change, and a failure its result.
        self.changed = self.trace.disturbance();
        if self.changed.is_some() {
            return Ok(());
        }
        let drained = drained.context("cannot read the kernel's trace")?;
        self.lost_events += drained.lost;
        Ok(())
    }

    /// The losses between the repetition's start and `ended`.
    fn lost(&self, ended: Nanos) -> Lost {
        if self.changed.is_some() {
            return Lost::UNKNOWN;
        }
        let within = |start: Nanos| (self.begun..ended).contains(&start);
        let labels = &self.trace.names().labels;
        let (mut lost, mut interruptions) = (Nanos::ZERO, 0);
        let mut sources: BTreeMap<(Kind, &str), Nanos> = BTreeMap::new();
        for (_, found) in &self.cpus {
            for detour in found.detours.iter().filter(|detour| within(detour.start)) {
                lost += detour.duration;
                interruptions += 1;
            }
            for row in found.activities.iter().filter(|row| within(row.start)) {
                *sources.entry((row.kind, labels.text(row.source))).or_default() += row.self_time;
            }
        }
        let mut sources: Vec<LostTo> = sources
            .into_iter()
            .map(|((kind, source), time)| LostTo { kind: Some(kind), source: source.to_owned(), ns: time.get() })
            .collect();
        sources.sort_by_key(|source| std::cmp::Reverse(source.ns));
        sources.truncate(MOST_SOURCES);
        Lost { lost: Some(lost), interruptions: Some(interruptions), lost_events: self.lost_events, sources }
    }
}

/// Marks the threads of an event that belong to the command. They do not interrupt it.
fn tell_apart(event: &Event, known: &mut HashSet<Pid>, names: &mut Names) {
    let next = if let Happening::Switch { next, .. } = event.what { Some(next) } else { None };
    for pid in std::iter::once(event.thread).chain(next) {
        if pid != Pid::IDLE && known.insert(pid) && is_of_command(pid) {
            names.set_own(pid);
        }
    }
}

/// Whether a thread that started after the command descends from becalm, like all processes of the command.
fn is_of_command(pid: Pid) -> bool {
    let becalm = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    let mut pid = pid.0;
    for _ in 0..GENERATIONS {
        match TaskStat::read(Path::new(ROOT), pid) {
            Ok(Some(stat)) if stat.kthread => return false,
            Ok(Some(stat)) if stat.ppid == becalm => return true,
            Ok(Some(stat)) if stat.ppid <= 1 => return false,
            Ok(Some(stat)) => pid = stat.ppid,
            // It has ended.
            _ => return true,
        }
    }
    false
}

/// The kernel's counters of the command and its CPUs.
pub struct Counted {
    cpus: CpuList,
    /// Interrupts and times before the repetition.
    before: Option<(Interrupts, Stat)>,
}

impl Counted {
    fn look(&self) -> Result<(Interrupts, Stat)> {
        Ok((Interrupts::read(Path::new(ROOT))?, Stat::read(Path::new(ROOT))?))
    }

    fn lost(&self, process: u32) -> Result<Lost> {
        let (interrupts, stat) = self.look()?;
        let Some((interrupts_before, stat_before)) = &self.before else { return Ok(Lost::UNKNOWN) };
        let grown = interrupts.since(interrupts_before);
        let of_cpu = |cpu: CpuId| grown.lines.iter().filter_map(|line| grown.count(&line.id, cpu)).sum::<u64>();
        let interruptions = self.cpus.iter().map(of_cpu).sum();
        let stolen = |cpu: CpuId| Some(stat.cpu(cpu)?.since(stat_before.cpu(cpu)?).steal);
        let stolen: Nanos = self.cpus.iter().filter_map(stolen).sum();
        let account = Schedstat::read(Path::new(ROOT), i32::try_from(process).unwrap_or(0));
        let waited = account.map(|account| account.waited);
        let parts = [("waiting for the CPU", waited), (STEAL, Some(stolen))];
        let told = parts.into_iter().filter_map(|(source, time)| Some((source, time?)));
        let mut sources: Vec<LostTo> = told
            .filter(|(_, time)| *time > Nanos::ZERO)
            .map(|(source, time)| LostTo { kind: None, source: source.to_owned(), ns: time.get() })
            .collect();
        sources.sort_by_key(|source| std::cmp::Reverse(source.ns));
        Ok(Lost {
            lost: waited.map(|waited| waited + stolen),
            interruptions: Some(interruptions),
            lost_events: 0,
            sources,
        })
    }
}
