//! Observes threads in a trace that another program recorded: the books of their lives, as `becalm observe` makes them.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use becalm_attribute::books::{Books, Choose, ThreadIdentity};
use becalm_bundle::ObservedWriter;
use becalm_measure::Names;
use becalm_model::node::{Ended, Warning};
use becalm_model::{Event, Kind, Label, Labels, Pid, Tasks, warning};
use becalm_observe::document::ObservedDoc;
use becalm_observe::merge::{BufferEvents, EventSource, Interjection, TraceBuffer, WorkedOut, feed};
use becalm_observe::{Choice, summing};
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{CpuId, Nanos};

use super::facts::{OpenTrace, TraceFacts};
use super::find::WholeTrace;
use super::{Entrance, KernelTrace, ThreadLog, TraceError, TraceRequest};
use crate::read::{Format, Progress, Source};

/// A whole trace with the threads that are observed in it.
pub struct FoundThreads<'a> {
    whole: WholeTrace<'a>,
    choice: Choice,
    log: ThreadLog,
}

/// A fact about a thread that no event has.
enum Fact {
    Met(ThreadIdentity),
    Named(Pid, Label),
}

/// The events of a trace as those of an observation.
struct TraceEvents<'t> {
    trace: &'t mut dyn KernelTrace,
    names: &'t mut Names,
}

impl EventSource for TraceEvents<'_> {
    fn more(&mut self, buffer: usize, pass: &mut impl FnMut(Event)) -> fault::Result<bool> {
        Ok(self.trace.more(buffer, self.names, pass)?)
    }

    fn labels(&mut self) -> &mut Labels {
        &mut self.names.labels
    }

    fn names(&mut self) -> (&Tasks, &mut Labels) {
        (&self.names.tasks, &mut self.names.labels)
    }
}

/// Reads a trace and finds the chosen threads in it. Fails if the file is no complete trace, does not show which thread ran, or has none of
/// the chosen threads.
pub fn observe<'a>(
    format: Format,
    source: Source<'a>,
    request: &TraceRequest<'_>,
    choice: Choice,
    told: Progress<'_>,
) -> fault::Result<FoundThreads<'a>> {
    if format == Format::Osnoise {
        return Err(UsageError::new(Wording::new(
            "{pid} and {comm} are not for traces of osnoise and timerlat, which do not show when threads wait",
        ))
        .into());
    }
    if request.cpus.is_some() {
        return Err(UsageError::new(Wording::new(
            "{cpus} is for interruptions of CPUs; with {pid} or {comm}, threads are followed on all CPUs",
        ))
        .into());
    }
    let mut whole = WholeTrace::read(format, source, request.rate_hz, told)?;
    if !whole.trace.facts.has_switches() {
        return Err(TraceError::NoSwitches.into());
    }
    let log = whole.trace.events.threads(&mut whole.names)?;
    refuse_unknown(&choice, &log, &whole.names)?;
    Ok(FoundThreads { whole, choice, log })
}

/// Fails if the trace has no thread with one of the chosen numbers and names.
fn refuse_unknown(choice: &Choice, log: &ThreadLog, names: &Names) -> Result<(), UsageError> {
    if let Some(number) = choice.processes.iter().find(|number| !log.has_number(**number)) {
        return Err(UsageError::new(format!("no thread or process of the trace has the number {number}")));
    }
    let known = log.labels();
    let has = |name: &str| {
        known.iter().any(|label| names.labels.text(*label) == name)
            || log.threads().any(|(pid, _)| names.name_of(pid).is_some_and(|known| known == name))
    };
    match choice.names.iter().find(|name| !has(name)) {
        Some(name) => Err(UsageError::new(format!(
            "no thread of the trace is called '{name}' (names have 15 characters at most)"
        ))),
        None => Ok(()),
    }
}

impl FoundThreads<'_> {
    /// The name of the traced host, if the file has it.
    pub fn host(&self) -> Option<&str> {
        self.whole.trace.facts.host.as_deref()
    }

    /// Stores the books. `doc` has the fields that the caller knows, and is returned complete. Fails if the trace is damaged, no chosen thread
    /// was there for any time, or the run cannot be stored.
    pub fn store(mut self, mut doc: ObservedDoc, path: &Path) -> fault::Result<ObservedDoc> {
        self.describe(&mut doc);
        let mut writer = ObservedWriter::create(path, &doc)?;
        let worked = self.work_out(Some(&mut writer))?;
        summing::enter(&mut doc, &worked);
        doc.warnings.extend(self.whole.lost_events());
        doc.warnings.extend(self.whole.faults());
        doc.ended = Some(Ended::Unknown);
        // Dropping the writer removes what it has written.
        fault::ensure!(!doc.threads.is_empty(), "the trace is over as soon as the first chosen thread comes");
        summing::finish(&mut doc, &worked, &mut writer)?;
        Ok(doc)
    }

    /// Enters the facts that are known before the books.
    fn describe(&self, doc: &mut ObservedDoc) {
        let OpenTrace { events, facts } = &self.whole.trace;
        doc.origin = facts.began;
        doc.clock = facts.clock.clone();
        doc.choice = self.choice.doc(&[], facts.has("raw_syscalls", "sys_enter"));
        doc.tracing = Some(facts.tracing());
        facts.describe(&mut doc.machine, events.cpus());
        doc.warnings.extend(facts.warnings.iter().cloned());
        doc.warnings.extend(lacking(facts, self.log.has_processes()));
        if !self.choice.processes.is_empty() && !self.log.has_processes() {
            doc.warnings.push(warning::no_processes_in_trace());
        }
    }

    fn work_out(&mut self, writer: Option<&mut ObservedWriter>) -> fault::Result<WorkedOut> {
        let Self { whole: WholeTrace { trace, names, .. }, choice, log } = self;
        keep_books(&mut *trace.events, names, log, Box::new(choice.clone().function()), writer)
    }
}

/// The books of all threads of a trace, for tests. Fails if the trace is damaged.
pub fn books_of_all_threads(trace: &mut dyn KernelTrace, names: &mut Names) -> fault::Result<Books> {
    let log = trace.threads(names)?;
    Ok(keep_books(trace, names, &log, Box::new(|_, _| true), None)?.books)
}

/// Keeps the books of chosen threads. They start with the first event of the trace, and end with the last one.
fn keep_books(
    trace: &mut dyn KernelTrace,
    names: &mut Names,
    log: &ThreadLog,
    choose: Choose,
    writer: Option<&mut ObservedWriter>,
) -> fault::Result<WorkedOut> {
    let interjections = interjections(log, names);
    let buffer = |cpu: CpuId| TraceBuffer { cpu, holds: BufferEvents::All };
    let buffers: Vec<TraceBuffer> = trace.cpus().into_iter().map(buffer).collect();
    (0..buffers.len()).for_each(|index| trace.rewind(index));
    // No trace contains the kernel's counts of quotas, which decide about them.
    let mut books = Books::new(choose, &[], false, &mut names.labels);
    let enter = |fact, at, books: &mut Books, labels: &mut Labels| match fact {
        Fact::Met(identity) => books.meet(identity.pid, &identity, None, at, labels),
        Fact::Named(pid, name) => books.rename(pid, name, at, labels),
    };
    let source = &mut TraceEvents { trace, names };
    let missing = feed(source, &buffers, interjections, enter, &mut books, writer)?;
    Ok(WorkedOut { books, labels: std::mem::take(&mut names.labels), missing, span: (Nanos::ZERO, log.end()) })
}

/// The start and the end of the books, and what is known of threads: those that were there before the trace are met at its start.
fn interjections(log: &ThreadLog, names: &mut Names) -> VecDeque<(Nanos, Interjection<Fact>)> {
    let named = log.names();
    let mut first = HashMap::new();
    for (_, pid, name) in &named {
        first.entry(*pid).or_insert(*name);
    }
    let mut all = Vec::new();
    for (pid, entrance) in log.threads() {
        let at = match entrance {
            Entrance::Created => continue,
            Entrance::Started(at) => at,
            Entrance::Before => Nanos::ZERO,
        };
        let name = match first.get(&pid) {
            Some(name) => *name,
            None => {
                let name = names.name_of(pid).unwrap_or_default();
                names.labels.intern(&name)
            }
        };
        let identity = ThreadIdentity {
            process: log.process(pid).unwrap_or(pid),
            name,
            is_kernel: names.tasks.get(pid).is_some_and(|task| task.kind == Kind::Kthread),
            ..ThreadIdentity::unknown(pid)
        };
        all.push((at, Interjection::Fact(Fact::Met(identity))));
    }
    all.push((Nanos::ZERO, Interjection::Open));
    all.extend(named.into_iter().map(|(at, pid, name)| (at, Interjection::Fact(Fact::Named(pid, name)))));
    all.push((log.end(), Interjection::Close));
    all.sort_by_key(|(at, _)| *at);
    all.into()
}

/// Warns about events that the trace lacks, with the consequence for the books.
fn lacking(facts: &TraceFacts, has_processes: bool) -> Option<Warning> {
    let has = |name: &str| facts.has("sched", name);
    let mut lacking = Vec::new();
    let mut miss = |events: &str, consequence: &str| lacking.push(format!("{events} ({consequence})"));
    match (has("sched_waking"), has("sched_wakeup")) {
        (true, true) => {}
        (true, false) => miss("sched_wakeup", "the way of a woken thread to a run queue counts as queued"),
        (false, true) => miss("sched_waking", "the way of a woken thread to a run queue counts as asleep"),
        (false, false) => miss(
            "sched_waking and sched_wakeup",
            "a woken thread counts as asleep until it runs, so its waits are not visible",
        ),
    }
    if !has("sched_migrate_task") {
        miss("sched_migrate_task", "all of a wait counts for the CPU on which it started");
    }
    if !has("sched_stat_runtime") {
        miss("sched_stat_runtime", "time of a hypervisor counts as run time");
    }
    let shows_creations = facts.has("task", "task_newtask") || has("sched_process_fork") && has_processes;
    if !shows_creations {
        let consequence = if has("sched_process_fork") {
            "a new thread counts as a process of its own"
        } else {
            "new threads are not chosen with their creators"
        };
        miss("task_newtask", consequence);
    }
    for kind in facts.missing_kinds() {
        miss(&kind, "they count for the thread below");
    }
    (!lacking.is_empty()).then(|| warning::not_in_books(&lacking))
}

#[cfg(test)]
mod tests;
