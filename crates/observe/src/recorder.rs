//! Records what the kernel's trace shows of all threads, and what `/proc` shows of the chosen ones.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use becalm_command::output::PROGRAM;
use becalm_command::progress::{Bar, Tail};
use becalm_linux::clock::{self, Anchor, Calibration, Counter, MonotonicRaw, thread_time};
use becalm_linux::ftrace::{
    CALLS, EventGroup, FUNCTIONS, Faults, HOST, LIVES, OWN_WORK, PageReader, REQUESTS, TraceClock, WANTED,
};
use becalm_linux::memory;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::procfs::status::Capability;
use becalm_linux::rights::{self, RemainingRights};
use becalm_linux::sched;
use becalm_linux::sockets::{Await, wait_ready};
use becalm_linux::sysfs::cgroup::ThrottleCounts;
use becalm_measure::machine::{self, Host};
use becalm_measure::{ClockLog, Companion, PlannedCommand, Spool, TraceRequest, Tracing, describe_machine};
use becalm_model::node::{CausesDoc, ClockDoc, Ended, MachineDoc, TracingDoc, Warning};
use becalm_model::warning;
use becalm_record::Session;
use becalm_units::fault::{self, Context};
use becalm_units::{CpuList, Nanos, TickRate, Ticks};

use crate::accounts;
use crate::choice::Choice;
use crate::document::ObservedDoc;
use crate::look::{Lookout, SeenAccount, SeenThread};
use crate::merge::{BufferEvents, TraceBuffer};

/// How often pages are taken while there is room: taking them disturbs those observed.
pub const INTERVAL: Duration = Duration::from_millis(500);
/// A buffer this full is emptied earlier, in percent.
const WAKE_PERCENT: u32 = 50;
/// How long the counter's rate is measured before the start.
pub const CALIBRATION: Nanos = Nanos::from_millis(100);
/// The buffer of each CPU for what threads do in their own context.
const OWN_BUFFER: usize = 4 << 20;
/// The buffer of each CPU for requests.
const REQUESTS_BUFFER: usize = 8 << 20;

/// An observation as requested.
#[derive(Debug)]
pub struct ObservePlan {
    /// The threads.
    pub choice: Choice,
    /// How long; `None` means until a signal or the end of the command.
    pub duration: Option<Nanos>,
    /// Whether to record system calls and page faults.
    pub calls: bool,
    /// Whether to record the causes of activities.
    pub causes: bool,
    /// The size of the kernel's trace buffer per CPU, in bytes.
    pub buffer_bytes: usize,
    /// The program to run and observe.
    pub command: Option<PlannedCommand>,
    /// The rights after setup.
    pub rights: RemainingRights,
    /// The directory for raw data while the observation runs.
    pub folder: PathBuf,
    /// The root of the file system: `/` outside of tests.
    pub root: PathBuf,
}

/// A control group with a limit on CPU time.
#[derive(Clone, Debug)]
pub struct ThrottledGroup {
    /// The path.
    pub group: String,
    /// The growth of the kernel's counts.
    pub grown: ThrottleCounts,
}

/// A finished observation, not yet worked out.
#[derive(Debug)]
pub struct Observation {
    /// The raw pages.
    pub spool: Spool,
    /// Their buffers, in the order of the spool.
    pub buffers: Vec<TraceBuffer>,
    /// The decoders of the events of all threads and of own contexts.
    pub traces: Vec<TraceParts>,
    /// The choice, with the number of the command.
    pub choice: Choice,
    /// Threads as seen.
    pub seen: Vec<SeenThread>,
    /// Accounts of chosen threads at the start and at the end.
    pub accounts: Vec<SeenAccount>,
    /// The same at the end.
    pub last_accounts: Vec<SeenAccount>,
    /// Start and end of the books, in ticks of the counter.
    pub books: (u64, u64),
    /// Groups with limits.
    pub throttled: Vec<ThrottledGroup>,
    /// The numbers of becalm's own threads.
    pub own: Vec<i32>,
    /// The clocks at the start and at the end.
    pub anchors: (Anchor, Anchor),
    /// Whether the counter is the processor's own.
    pub is_native: bool,
    /// The rate of the counter over the whole observation.
    pub rate: TickRate,
    /// The counter's part of the document.
    pub clock: ClockDoc,
    /// Readings of all clocks.
    pub clocks: ClockLog,
    /// The CPU time of becalm meanwhile.
    pub cpu_time: Nanos,
    /// The host.
    pub host: String,
    /// The machine.
    pub machine: MachineDoc,
    /// How it ended.
    pub ended: Ended,
    /// The trace's part of the document.
    pub tracing: TracingDoc,
    /// The command, which may still run.
    pub command: Companion,
    /// The warnings so far.
    pub warnings: Vec<Warning>,
}

/// The parts of a trace that interpret its pages.
#[derive(Debug)]
pub struct TraceParts {
    /// The decoder.
    pub decoder: becalm_linux::ftrace::Decoder,
    /// The clock of its stamps.
    pub clock: TraceClock,
    /// The names of the kernel's functions.
    pub symbols: Option<Arc<Kallsyms>>,
    /// The kernel's strings by address.
    pub strings: std::collections::BTreeMap<u64, String>,
    /// The name of a timer interrupt without events.
    pub untraced_timer: &'static str,
    /// Whether it has the events of calls from other CPUs.
    pub has_calls: bool,
}

/// Events of all threads. On a guest also the run time without that of the hypervisor.
const ALL_ON_METAL: &[&[EventGroup]] = &[NO_FAULTS, FUNCTIONS, LIVES];
const ALL_ON_GUEST: &[&[EventGroup]] = &[NO_FAULTS, FUNCTIONS, LIVES, HOST];
/// Page faults are of interest in a thread's own context only.
const NO_FAULTS: &[EventGroup] = WANTED.split_at(WANTED.len() - 1).0;
/// Events of the chosen threads' own context.
const OWN: &[&[EventGroup]] = &[OWN_WORK];
const OWN_WITH_CALLS: &[&[EventGroup]] = &[OWN_WORK, CALLS];

/// The result of an observation.
pub enum Observed {
    /// The kernel's trace, not yet worked out.
    Traced(Box<Observation>),
    /// The kernel's accounts alone, because it cannot be traced.
    Accounts(Box<ObservedDoc>, Companion),
}

/// Observes as planned. Fails if the command cannot be started, or the trace cannot be kept.
pub fn observe(plan: ObservePlan, session: &Session, quiet: bool) -> fault::Result<Observed> {
    let choice = clock::choose(&plan.root);
    let mut warnings = Vec::new();
    warnings.extend(choice.why_not_native.as_deref().map(warning::slow_clock));
    match choice.source {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        clock::Source::Native => run::<clock::Native>(plan, session, warnings, quiet),
        _ => run::<MonotonicRaw>(plan, session, warnings, quiet),
    }
}

/// The two traces of an observation, and their readers.
pub struct Traces {
    /// Closed before the instances are removed.
    readers: Vec<(usize, PageReader)>,
    traces: Vec<Tracing>,
    /// Whether a buffer wakes its reader only when it is half full.
    wakes: bool,
}

impl Traces {
    /// Takes the pages of all buffers.
    pub fn take(&mut self, spool: &mut Spool, everything: bool) -> io::Result<()> {
        for (buffer, (trace, reader)) in self.readers.iter_mut().enumerate() {
            spool.take(buffer, reader, self.traces[*trace].instance.decoder(), everything)?;
        }
        Ok(())
    }

    /// Starts or stops recording.
    pub fn turn(&self, is_on: bool) -> fault::Result<()> {
        for trace in &self.traces {
            if is_on { trace.instance.start()? } else { trace.instance.stop()? }
        }
        Ok(())
    }

    /// Those that wait for a buffer that is half full.
    pub fn full_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.readers.iter().filter(|_| self.wakes).map(|(_, reader)| reader.as_fd())
    }

    /// The size of the largest page, and the number of buffers.
    pub fn pages(&self) -> (usize, usize) {
        let size = self.traces.iter().map(|trace| trace.instance.page_size()).max().unwrap_or(0);
        (self.readers.len(), size)
    }

    /// Fails if another program has changed the traces.
    pub fn refuse_changed(&self) -> fault::Result<()> {
        let changed: Vec<String> = self.traces.iter().flat_map(|trace| trace.instance.changed()).collect();
        fault::ensure!(
            changed.is_empty(),
            "another program changed becalm's trace while it observed ({}); observe again without it",
            warning::changed_files(&changed)
        );
        Ok(())
    }

    /// Removes the traces.
    pub fn remove(self) -> fault::Result<()> {
        let Self { readers, traces, .. } = self;
        drop(readers);
        for trace in traces {
            trace.instance.remove().context("cannot remove the trace instance")?;
        }
        Ok(())
    }
}

fn run<C: Counter>(
    mut plan: ObservePlan,
    session: &Session,
    mut warnings: Vec<Warning>,
    quiet: bool,
) -> fault::Result<Observed> {
    let root = plan.root.clone();
    let calibration = clock::calibrate::<C>(CALIBRATION)?;
    let machine = describe_machine(&root);
    let cpus = machine.online.clone();
    let mut lookout = Lookout::new(&root);
    let first = lookout.look(C::read)?;
    let own = own_numbers(session);
    let mut followed = plan.choice.among(&first);
    // The command is a child of this thread.
    followed.extend(plan.command.is_some().then(sched::current_tid));
    let is_guest = machine.hypervisor.is_some();
    let traces = set_up(&plan, &cpus, is_guest, C::NAME, followed, session, &mut warnings)?;
    let Some(mut traces) = traces else {
        let (doc, command) = accounts::observe(plan, session, warnings, PROGRAM.to_owned())?;
        return Ok(Observed::Accounts(Box::new(doc), command));
    };
    let (readers, page_size) = traces.pages();
    let mut spool = Spool::new(&plan.folder, readers, page_size)
        .with_context(|| format!("cannot keep the trace in {}", plan.folder.display()))?;
    let buffers = buffers(&traces);
    let tracing = tracing_doc(&traces);
    let parts = parts(&mut traces);
    let start = Anchor::take::<C>();
    leave_rights(&plan.rights, session)?;

    traces.turn(true)?;
    let cpu_before = thread_time();
    // A look at every thread while the trace runs, so each one's state is known from its look or from its first event.
    let mut lookout = Lookout::new(&root);
    let mut seen = lookout.look(C::read)?;
    let tids = plan.choice.among(&seen);
    let mut groups: Vec<String> = seen.iter().map(|thread| thread.group.clone()).collect();
    groups.sort_unstable();
    groups.dedup();
    let before: Vec<(String, ThrottleCounts)> = with_ancestors(&groups)
        .into_iter()
        .filter_map(|group| Some((group.clone(), lookout.groups.throttling(&group)?)))
        .collect();
    let opened = C::read();
    let accounts = lookout.accounts(&tids, C::read);
    let mut command = Companion::start(plan.command.take(), &sched::allowed_cpus()?, session.signals())
        .map_err(|(name, error)| fault::Error::new(format!("cannot start '{name}': {error}")))?;
    let mut choice = plan.choice.clone();
    choice.processes.extend(command.number());

    let mut clocks = ClockLog::start::<C>();
    let ended = collect::<C>(
        &plan,
        session,
        &mut traces,
        &mut spool,
        &mut command,
        &mut lookout,
        &mut seen,
        &mut clocks,
        (opened, calibration.rate),
        quiet,
    )?;
    let last_accounts = lookout.accounts(&tids, C::read);
    let closed = C::read();
    clocks.take::<C>();
    traces.turn(false)?;
    let cpu_time = thread_time() - cpu_before;
    traces.take(&mut spool, true).context("cannot keep the trace")?;
    let throttled = before.into_iter().filter_map(|(group, before)| {
        let grown = lookout.groups.throttling(&group)?.since(&before);
        Some(ThrottledGroup { group, grown })
    });
    let throttled = throttled.collect();
    let end = Anchor::take::<C>();
    traces.refuse_changed()?;
    traces.remove()?;
    let whole = Calibration::from_anchors::<C>(&start, &end).unwrap_or(calibration);
    let host = Host::read(&root);
    warnings.extend(host.warning);
    let clock = ClockDoc {
        counter: C::NAME.to_owned(),
        origin_ticks: start.ticks.get(),
        rate_hz: whole.rate.hz(),
        rate_error_ratio: whole.error_ratio,
        resolution_ns: clock::resolution::<C>(whole.rate),
        ..ClockDoc::default()
    };
    Ok(Observed::Traced(Box::new(Observation {
        spool,
        buffers,
        traces: parts,
        choice,
        seen,
        accounts,
        last_accounts,
        books: (opened, closed),
        throttled,
        own,
        anchors: (start, end),
        is_native: C::NAME != MonotonicRaw::NAME,
        rate: whole.rate,
        clock,
        clocks,
        cpu_time,
        host: host.node,
        machine,
        ended,
        tracing,
        command,
        warnings,
    })))
}

/// The numbers of becalm's own threads.
pub fn own_numbers(session: &Session) -> Vec<i32> {
    let janitor = session.guard().as_ref().ok().map(|janitor| janitor.pid());
    [sched::current_tid()].into_iter().chain(janitor).collect()
}

/// These groups and those above them, once each.
pub fn with_ancestors(groups: &[String]) -> Vec<String> {
    let mut all: Vec<String> = groups
        .iter()
        .flat_map(|group| Path::new(group).ancestors().map(|path| path.to_string_lossy().into_owned()))
        .filter(|group| !group.is_empty() && group != "/")
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

pub fn set_up(
    plan: &ObservePlan,
    cpus: &CpuList,
    is_guest: bool,
    counter: &str,
    followed: Vec<i32>,
    session: &Session,
    warnings: &mut Vec<Warning>,
) -> fault::Result<Option<Traces>> {
    let all = TraceRequest {
        root: &plan.root,
        cpus,
        buffer_bytes: plan.buffer_bytes,
        counter,
        events: if is_guest { ALL_ON_GUEST } else { ALL_ON_METAL },
        faults: Faults::None,
        concerned: None,
        threads: None,
        symbols: None,
    };
    let Some(first) = Tracing::set_up(&all, session.guard(), warnings) else { return Ok(None) };
    let own = TraceRequest {
        buffer_bytes: OWN_BUFFER.min(plan.buffer_bytes),
        events: if plan.calls { OWN_WITH_CALLS } else { OWN },
        faults: if plan.calls { Faults::All } else { Faults::None },
        threads: Some(followed),
        symbols: first.symbols.clone(),
        ..all
    };
    let Some(second) = Tracing::set_up(&own, session.guard(), warnings) else { return Ok(None) };
    let requests = TraceRequest {
        buffer_bytes: REQUESTS_BUFFER.min(plan.buffer_bytes),
        events: &[REQUESTS],
        faults: Faults::None,
        threads: None,
        symbols: first.symbols.clone(),
        ..own
    };
    let third = if plan.causes { Tracing::for_requests(&requests, session.guard(), warnings) } else { None };
    let all = [first, second].into_iter().chain(third).collect();
    let mut traces = Traces { readers: Vec::new(), traces: all, wakes: true };
    for (number, trace) in traces.traces.iter_mut().enumerate() {
        for cpu in cpus.iter() {
            traces.readers.push((number, trace.instance.reader(cpu)?));
        }
        traces.wakes &= trace.instance.wake_when_full(WAKE_PERCENT);
        trace.instance.watch_changes(cpus);
    }
    Ok(Some(traces))
}

pub fn buffers(traces: &Traces) -> Vec<TraceBuffer> {
    traces
        .readers
        .iter()
        .map(|(trace, reader)| TraceBuffer { cpu: reader.cpu(), holds: BufferEvents::ALL[*trace] })
        .collect()
}

pub fn parts(traces: &mut Traces) -> Vec<TraceParts> {
    let parts = |trace: &mut Tracing| TraceParts {
        decoder: trace.instance.decoder().clone(),
        clock: trace.clock,
        symbols: trace.symbols.take(),
        strings: std::mem::take(&mut trace.strings),
        untraced_timer: trace.untraced_timer,
        has_calls: trace.doc.events.iter().any(|event| event == "csd/csd_function_entry"),
    };
    traces.traces.iter_mut().map(parts).collect()
}

fn tracing_doc(traces: &Traces) -> TracingDoc {
    let mut doc = TracingDoc::default();
    for (trace, holds) in traces.traces.iter().zip(BufferEvents::ALL) {
        if holds == BufferEvents::Requests {
            let TracingDoc { events, missing, .. } = trace.doc.clone();
            doc.causes = Some(CausesDoc { events, missing, ..CausesDoc::default() });
            continue;
        }
        doc.clock.clone_from(&trace.doc.clock);
        doc.events.extend(trace.doc.events.iter().cloned());
        doc.missing.extend(trace.doc.missing.iter().cloned());
        doc.buffer_bytes += trace.doc.buffer_bytes;
        doc.event_cost_ns = doc.event_cost_ns.or(trace.doc.event_cost_ns);
    }
    doc
}

/// Gives up the rights that are no longer needed. The janitor removes the traces.
pub fn leave_rights(left: &RemainingRights, session: &Session) -> fault::Result<()> {
    let mut left = left.clone();
    match session.guard() {
        Ok(janitor) if janitor.seal().is_ok() => {}
        // Without it, nothing would remove the trace instances at the end.
        _ => left.kept = left.kept.with_capability(Capability::DacOverride),
    }
    Ok(rights::give_up(&left)?)
}

/// Takes pages until the observation ends, and looks at new processes.
#[expect(clippy::too_many_arguments, reason = "the state of one loop")]
fn collect<C: Counter>(
    plan: &ObservePlan,
    session: &Session,
    traces: &mut Traces,
    spool: &mut Spool,
    command: &mut Companion,
    lookout: &mut Lookout,
    seen: &mut Vec<SeenThread>,
    clocks: &mut ClockLog,
    (opened, rate): (u64, TickRate),
    quiet: bool,
) -> fault::Result<Ended> {
    let bar = if quiet { Bar::hidden() } else { Bar::new("observing", 100, Tail::Percent) };
    let elapsed = || Nanos::new((Ticks::new(C::read() - opened).get() as f64 * rate.tick_ns()) as i64);
    loop {
        let left = plan.duration.map_or(Nanos::MAX, |duration| duration - elapsed());
        if left <= Nanos::ZERO {
            return Ok(Ended::Duration);
        }
        let patience = INTERVAL.min(left.to_std());
        let waited_for: Vec<_> = [Some(session.signals().as_fd()), command.end_fd()]
            .into_iter()
            .flatten()
            .chain(traces.full_fds())
            .map(|fd| (fd, Await::Readable))
            .collect();
        wait_ready(&waited_for, Some(patience)).context("cannot wait for the trace")?;
        if session.signals().take().is_some() {
            return Ok(Ended::Signal);
        }
        if command.has_ended() {
            return Ok(Ended::Command);
        }
        traces.take(spool, false).context("cannot keep the trace")?;
        seen.extend(lookout.look(C::read)?);
        let now = elapsed();
        clocks.look::<C>(now);
        if let Some(duration) = plan.duration {
            bar.reach((now.get() * 100 / duration.get().max(1)) as u64);
        }
    }
}

/// Limits the trace buffers to an eighth of the machine's memory in total, at least 1 MiB each.
pub fn buffer_bytes(root: &Path) -> usize {
    let cpus = machine::cpu_list(root, "online").len().max(1);
    (memory::total_bytes() / 8 / cpus).clamp(1 << 20, 32 << 20)
}
