//! Is the recorder quiet? What does tracing add to each kernel event, are events lost at a high rate, and do the loops fault or yield their
//! CPU?

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::figures::Repetitions;
use crate::interrupts::Interrupts;
use crate::programs;
use becalm_bundle::Bundle;
use becalm_linux::ftrace::{CARRIED, EventFilter, Tracefs};
use becalm_linux::sched;
use becalm_measure::{Batch, Names, RecordPlan, Sink, record};
use becalm_model::node::{CpuDoc, NodeDoc, Rung};
use becalm_model::{Kind, LoopThread, Step};
use becalm_record::Session;
use becalm_units::{CpuList, Nanos};

/// Pairs of recordings, with and without tracing.
const PAIRS: u64 = 12;
/// The length of each recording.
const RECORDING: Nanos = Nanos::from_secs(1);
/// Interrupts per second during the measurement of the tracing cost.
const INTERRUPTS_HZ: u32 = 10_000;
/// Kernel events per second on every CPU; none may be lost.
const EVENTS_PER_SECOND: f64 = 50_000.0;
/// Shorter steps come from the processor or the host, not from an interrupt.
const SHORTEST_INTERRUPT: Nanos = Nanos::from_micros(1);
/// The length of the storm, in seconds.
const STORM: u64 = 10;
/// The rates of interrupts to try until events are that frequent. Each interrupt makes at least two events.
const STORM_HZ: [u32; 5] = [27_000, 32_000, 38_000, 45_000, 55_000];

/// Each block has four recordings: without the events for the purpose of interrupts, with, with, and without.
const BLOCKS: u64 = 10;

/// The length of the recording of becalm's own time on all CPUs, in seconds.
const OWN: u64 = 20;
/// The maximum share of becalm's own time, in percent.
const MOST_OWN_PERCENT: f64 = 0.1;
/// The maximum time that becalm stays on a measured CPU.
const LONGEST_OWN: Nanos = Nanos::from_millis(1);

pub fn run() -> ExitCode {
    // Must run while the process has one thread.
    let session = Session::begin("/".as_ref(), true);
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("Quiet: what recording adds", effort);
    match session {
        Ok(session) => {
            if let Err(error) = tracing_cost(&mut claims, effort, &session) {
                claims.fail_as_root("what tracing adds to a kernel event", &error);
            }
            for (what, sleeper) in [("the tick alone", false), ("a sleeper each 1 ms", true)] {
                if let Err(error) = purpose_cost(&mut claims, effort, &session, (what, sleeper)) {
                    claims.fail_as_root("what the events of an interrupt's purpose add", &error);
                }
            }
        }
        Err(error) => claims.fail_as_root("what tracing adds to a kernel event", &error.to_string()),
    }
    if let Err(error) = own_time(&mut claims, effort) {
        claims.fail_as_root("becalm's own time where every CPU is measured", &error);
    }
    if let Err(error) = storm(&mut claims, effort) {
        claims.fail_as_root("no event lost at 50,000 a second", &error);
    }
    claims.end()
}

/// Keeps the recording, but only steps that may be interrupts.
#[derive(Default)]
struct KeptEvents {
    steps: Vec<Step>,
    events: Vec<Nanos>,
}

impl Sink for KeptEvents {
    type Error = Infallible;

    fn begin(&mut self, _: &NodeDoc, _: &[LoopThread], _: &mut Names) -> Result<(), Infallible> {
        Ok(())
    }

    fn batch(&mut self, batch: Batch<'_>, _: &mut Names, _: &mut dyn FnMut()) -> Result<(), Infallible> {
        self.steps.extend(batch.steps.iter().filter(|step| step.end - step.start >= SHORTEST_INTERRUPT));
        self.events.extend(batch.events.iter().map(|event| event.time));
        Ok(())
    }

    fn end_segment(&mut self, _: &Names, _: &mut dyn FnMut()) -> Result<(), Infallible> {
        Ok(())
    }
}

struct Figures {
    /// The median detour, in nanoseconds.
    median_ns: f64,
    /// The mean detour without the longest tenth, which contains other threads, in nanoseconds.
    mean_ns: f64,
    /// Kernel events in the median detour.
    events: f64,
}

impl KeptEvents {
    /// The number of events in each step.
    fn events_of_steps(&self) -> Vec<f64> {
        let mut next = 0;
        let count = |Step { start, end }: &Step| {
            next += self.events[next..].iter().take_while(|time| *time < start).count();
            let within = self.events[next..].iter().take_while(|time| *time < end).count();
            next += within;
            within as f64
        };
        self.steps.iter().map(count).collect()
    }

    /// Keeps as many steps as there were interrupts, the longest: a host may take the CPU as often, for shorter times.
    fn keep_interrupts(&mut self) {
        let length = |step: &Step| step.end - step.start;
        let interrupts = (f64::from(INTERRUPTS_HZ) * RECORDING.as_secs_f64()) as usize;
        let mut lengths: Vec<Nanos> = self.steps.iter().map(length).collect();
        lengths.sort_unstable_by(|one, other| other.cmp(one));
        if let Some(shortest) = lengths.get(interrupts) {
            self.steps.retain(|step| length(step) > *shortest);
        }
    }

    fn figures(&mut self) -> Result<Figures, String> {
        self.keep_interrupts();
        // Other threads on the CPU reduce the number; the median must still be an interrupt.
        if self.steps.len() < INTERRUPTS_HZ as usize / 10 {
            return Err(format!("only {} detours under {INTERRUPTS_HZ} interrupts a second", self.steps.len()));
        }
        let mut lengths: Vec<f64> = self.steps.iter().map(|step| (step.end - step.start).get() as f64).collect();
        lengths.sort_unstable_by(f64::total_cmp);
        let median_ns = lengths[lengths.len() / 2];
        lengths.truncate(lengths.len() * 9 / 10);
        let mean_ns = lengths.iter().sum::<f64>() / lengths.len() as f64;
        Ok(Figures { median_ns, mean_ns, events: Repetitions::new(self.events_of_steps()).median() })
    }
}

fn tracing_cost(claims: &mut Claims, effort: Effort, session: &Session) -> Result<(), String> {
    let allowed = sched::allowed_cpus().map_err(|error| error.to_string())?;
    let cpu = allowed.iter().last().ok_or("there is no CPU to run on")?;
    let _interrupts = Interrupts::start(cpu, INTERRUPTS_HZ).map_err(|error| format!("no perf event: {error}"))?;
    let once = |sources: bool| -> Result<Figures, String> {
        let mut plan = RecordPlan::new();
        (plan.cpus, plan.duration, plan.sources) = (Some(CpuList::from_iter([cpu])), Some(RECORDING), sources);
        let mut kept = KeptEvents::default();
        let recorded = record(plan, session.guard().clone(), session.signals(), &mut kept, &mut |_| {});
        let node = recorded.map_err(|error| error.to_string())?.node;
        if sources && node.rung != Rung::Tracepoints {
            return Err("the kernel's tracepoints cannot be used here; run as root".to_owned());
        }
        kept.figures()
    };
    let (mut traced, mut untraced) = (Vec::new(), Vec::new());
    let pairs = effort.share(PAIRS).max(2);
    for pair in 0..pairs {
        // Alternately, with each one first in half of the pairs.
        for sources in [pair % 2 == 0, pair % 2 == 1] {
            let figures = once(sources)?;
            if sources { traced.push(figures) } else { untraced.push(figures) }
        }
    }
    let events = Repetitions::new(traced.iter().map(|figures| figures.events).collect()).median();
    if events < 1.0 {
        return Err("the interrupts' detours hold no kernel event".to_owned());
    }
    let each = |figure: fn(&Figures) -> f64| {
        let column = |side: &[Figures]| Repetitions::new(side.iter().map(figure).collect());
        let differences =
            traced.iter().zip(&untraced).map(|(traced, untraced)| (figure(traced) - figure(untraced)) / events);
        (column(&traced), column(&untraced), Repetitions::new(differences.collect()))
    };
    for (name, figure) in [
        ("median detour of an interrupt, traced and not", (|figures| figures.median_ns) as fn(&Figures) -> f64),
        ("mean detour but for the longest tenth, traced and not", |figures| figures.mean_ns),
    ] {
        let (traced, untraced, added) = each(figure);
        let remark = format!("{events} kernel events each; CPU {cpu}, {INTERRUPTS_HZ} interrupts/s");
        claims.state_beside(name, Figure::ns(traced.median()), Figure::ns(untraced.median()), &remark);
        let (low, high) = added.median_interval();
        let remark = format!("95 % interval {low:.0} to {high:.0}ns, {pairs} pairs of {RECORDING}");
        claims.state("  tracing adds to each kernel event", Figure::ns(added.median()), &remark);
    }
    Ok(())
}

/// The events that show the purpose of interrupts, in their own instance.
struct PurposeEvents {
    folder: PathBuf,
    events: Vec<PathBuf>,
    /// Mounted for the lifetime of the instance, if necessary.
    _tracefs: Tracefs,
}

impl PurposeEvents {
    fn new(session: &Session) -> Result<Self, String> {
        let mount_point = Path::new(Tracefs::MOUNT_POINT);
        let tracefs = Tracefs::find_or_mount("/".as_ref(), mount_point, session.guard().as_ref().ok());
        let tracefs = tracefs.map_err(|error| error.to_string())?;
        let folder = tracefs.root().join(format!("instances/becalm-bench-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        let mut purpose = Self { folder, events: Vec::new(), _tracefs: tracefs };
        for group in CARRIED {
            for name in group.events {
                let event = purpose.folder.join("events").join(group.system).join(name);
                if event.exists() {
                    if let EventFilter::Expression(expression) = group.filter {
                        set(&event.join("filter"), expression)?;
                    }
                    purpose.events.push(event.join("enable"));
                }
            }
        }
        Ok(purpose)
    }

    fn enable(&self, enabled: bool) -> Result<(), String> {
        let value = if enabled { "1" } else { "0" };
        self.events.iter().try_for_each(|event| set(event, value))
    }
}

/// Writes a file of the trace; skips empty values.
fn set(file: &Path, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Ok(());
    }
    fs::write(file, value).map_err(|error| format!("{}: {error}", file.display()))
}

impl Drop for PurposeEvents {
    fn drop(&mut self) {
        // On failure, the kernel removes it at the next boot.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Compares the noise of a CPU with and without the events for the purpose of interrupts, in ABBA blocks.
fn purpose_cost(
    claims: &mut Claims,
    effort: Effort,
    session: &Session,
    (what, sleeper): (&str, bool),
) -> Result<(), String> {
    let allowed = sched::allowed_cpus().map_err(|error| error.to_string())?;
    let cpu = allowed.iter().last().ok_or("there is no CPU to run on")?;
    let events = PurposeEvents::new(session)?;
    if events.events.is_empty() {
        return Err("this kernel does not have them".to_owned());
    }
    let ends = Arc::new(AtomicBool::new(false));
    let asleep = sleeper.then(|| {
        let ends = Arc::clone(&ends);
        std::thread::spawn(move || {
            let pinned = sched::pin_current_thread(cpu);
            while pinned.is_ok() && !ends.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    });
    let noise = |is_on: bool| -> Result<f64, String> {
        events.enable(is_on)?;
        let mut plan = RecordPlan::new();
        (plan.cpus, plan.duration, plan.sources) = (Some(CpuList::from_iter([cpu])), Some(RECORDING), false);
        let mut kept = KeptEvents::default();
        let recorded = record(plan, session.guard().clone(), session.signals(), &mut kept, &mut |_| {});
        let node = recorded.map_err(|error| error.to_string())?.node;
        let lost: Nanos = kept.steps.iter().map(|step| step.end - step.start).sum();
        let watched: Nanos = node.cpus.iter().map(|cpu| cpu.duration_ns).sum();
        Ok(100.0 * lost.as_secs_f64() / watched.as_secs_f64())
    };
    let blocks = effort.share(BLOCKS).max(2);
    let added: Result<Vec<f64>, String> = (0..blocks)
        .map(|_| {
            let (first, enabled, again, last) = (noise(false)?, noise(true)?, noise(true)?, noise(false)?);
            Ok((enabled + again - first - last) / 2.0)
        })
        .collect();
    ends.store(true, Ordering::Relaxed);
    if let Some(asleep) = asleep {
        let _ = asleep.join();
    }
    events.enable(false)?;
    let added = Repetitions::new(added?);
    let (low, high) = added.median_interval();
    let remark = format!("95 % interval {low:.3} to {high:.3}%; {blocks} blocks of 4 x {RECORDING}, CPU {cpu}");
    claims.state(&format!("events of interrupts' purpose, {what}"), Figure::percent(added.median()), &remark);
    Ok(())
}

/// Records all CPUs with the program itself, which then has no CPU for its collector, and measures the share of their time that it takes.
fn own_time(claims: &mut Claims, effort: Effort) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("own.becalm");
    let duration = format!("{}s", effort.share(OWN).max(2));
    let mut command = Command::new(programs::becalm());
    command.args(["record", "--duration", &duration, "--quiet", "--output"]).arg(&path);
    let cost = programs::cost(&mut command, None).map_err(|error| format!("cannot run becalm: {error}"))?;
    if !cost.success {
        return Err("becalm record failed".to_owned());
    }
    let bundle = Bundle::open(&path).map_err(|error| error.to_string())?;
    let node = &bundle.nodes()[0];
    if node.rung != Rung::Tracepoints {
        return Err("the kernel's tracepoints cannot be used here; run as root".to_owned());
    }
    let mut stays = Vec::new();
    for batch in bundle.activities(&node.node).map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        for row in (0..batch.len()).filter(|row| batch.kind(*row) == Kind::Becalm) {
            stays.push(batch.self_times()[row]);
        }
    }
    let watched: Nanos = node.cpus.iter().map(|cpu| cpu.duration_ns).sum();
    stays.sort_unstable();
    let longest = stays.last().copied().unwrap_or(0);
    let share = stays.iter().sum::<i64>() as f64 / watched.get() as f64 * 100.0;
    claims.at_most("becalm's own time, all CPUs measured", Figure::percent(share), MOST_OWN_PERCENT);
    claims.remark(&format!("{duration} of {} CPUs", node.cpus.len()));
    claims.at_most("  its longest stay on a measured CPU", Figure::ns(longest as f64), LONGEST_OWN.get() as f64);
    let p99 = stays.get(stays.len() * 99 / 100).copied().unwrap_or(0);
    claims.state("  99 % of its stays are shorter than", Figure::ns(p99 as f64), &format!("{} stays", stays.len()));
    claims.none("  events lost", node.cpus.iter().map(|cpu| cpu.lost_events).sum());
    claims.none("  detours only counted", node.cpus.iter().map(|cpu| cpu.unstored).sum());
    Ok(())
}

/// Records all CPUs with the program itself, under interrupts that cause frequent kernel events.
fn storm(claims: &mut Claims, effort: Effort) -> Result<(), String> {
    let allowed = sched::allowed_cpus().map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let duration = format!("{}s", effort.share(STORM));
    for (attempt, rate) in STORM_HZ.into_iter().enumerate() {
        let path = folder.path().join(format!("{rate}.becalm"));
        let interrupts: Result<Vec<_>, _> = allowed.iter().map(|cpu| Interrupts::start(cpu, rate)).collect();
        let interrupts = interrupts.map_err(|error| format!("no perf event: {error}"))?;
        let mut command = Command::new(programs::becalm());
        command.args(["record", "--duration", &duration, "--quiet", "--output"]).arg(&path);
        let cost = programs::cost(&mut command, None).map_err(|error| format!("cannot run becalm: {error}"))?;
        drop(interrupts);
        if !cost.success {
            return Err("becalm record failed".to_owned());
        }
        let bundle = Bundle::open(&path).map_err(|error| error.to_string())?;
        let node = &bundle.nodes()[0];
        if node.rung != Rung::Tracepoints {
            return Err("the kernel's tracepoints cannot be used here; run as root".to_owned());
        }
        let slowest = node.cpus.iter().map(events_per_second).fold(f64::INFINITY, f64::min);
        if effort == Effort::Quick || slowest >= EVENTS_PER_SECOND || attempt + 1 == STORM_HZ.len() {
            report_storm(claims, node, rate, &duration, cost);
            return Ok(());
        }
    }
    Ok(())
}

fn events_per_second(cpu: &CpuDoc) -> f64 {
    (cpu.events + cpu.lost_events) as f64 / cpu.duration_ns.as_secs_f64()
}

fn report_storm(claims: &mut Claims, node: &NodeDoc, rate: u32, duration: &str, cost: programs::Cost) {
    let sum = |counter: fn(&CpuDoc) -> u64| Figure::count(node.cpus.iter().map(counter).sum());
    for cpu in &node.cpus {
        let what = format!("kernel events recorded on CPU {} for {duration}", cpu.cpu);
        claims.at_least(&what, Figure::a_second(events_per_second(cpu).floor()), EVENTS_PER_SECOND);
    }
    claims.remark(&format!("{rate} interrupts/s on each of {} CPUs, all of them measured", node.cpus.len()));
    claims.at_most("  events lost", sum(|cpu| cpu.lost_events), 0.0);
    claims.at_most("  detours incomplete", sum(|cpu| cpu.incomplete), 0.0);
    claims.at_most("  page faults of the loops while they measured", sum(|cpu| cpu.faults), 0.0);
    claims.at_most("  voluntary switches of the loops", sum(|cpu| cpu.voluntary_switches), 0.0);
    claims.state("  peak memory of the recorder", Figure::megabytes(cost.peak_bytes), "");
}
