//! Turns the file of a trace into the document and the detours of a recording.

use becalm_measure::Names;
use becalm_model::node::{CpuDoc, Ended, NodeDoc, Rung, TracingDoc, Warning};
use becalm_model::{Event, warning};
use becalm_record::Store;
use becalm_units::{CpuId, CpuList, Nanos, fault, printable};

use super::facts::{OpenTrace, TraceFacts, is_carried, open};
use super::search::{plan, survey};
use super::{DetourSearch, ThreadTime, ThreadTimes, TraceError, TraceFindings, TracerLoop, Wholeness, store};
use crate::read::{Format, Progress, Source};

/// A request for the detours of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceRequest<'a> {
    /// The CPUs of interest; `None` for all.
    pub cpus: Option<&'a CpuList>,
    /// The interrupted thread, by name or number; `None` for any program.
    pub thread: Option<&'a str>,
    /// Ticks per second of the trace's clock, for files that do not contain them.
    pub rate_hz: Option<f64>,
}

/// A whole trace with the search that it allows.
pub struct FoundDetours<'a> {
    trace: OpenTrace<'a>,
    names: Names,
    search: DetourSearch,
    /// CPUs without their switches away from the idle task.
    without_idle: CpuList,
    times: ThreadTimes,
}

/// Reads a trace and plans the search for its detours. Fails if the file is no complete trace or lacks something that was requested.
pub fn find<'a>(
    format: Format,
    source: Source<'a>,
    request: &TraceRequest<'_>,
    told: Progress<'_>,
) -> fault::Result<FoundDetours<'a>> {
    let mut names = Names::for_file();
    let mut trace = open(format, source, request, &mut names, told)?;
    let (mut times, mut whole) = (ThreadTimes::default(), Wholeness::default());
    let mut see = |cpu, event: &Event| {
        times.take(cpu, event);
        whole.take(cpu, event);
    };
    let parts = survey(&mut *trace.events, &mut names, &mut see)?;
    let mut without_idle = CpuList::default();
    if trace.facts.loops.is_none() {
        whole.check(trace.events.backwards())?;
        without_idle = whole.without_idle();
    }
    let search = plan(request, &mut trace, &mut names, &parts)?;
    Ok(FoundDetours { trace, names, search, without_idle, times })
}

impl FoundDetours<'_> {
    /// The name of the traced host, if the file has it.
    pub fn host(&self) -> Option<&str> {
        self.trace.facts.host.as_deref()
    }

    /// Stores the detours. `node` has the fields that the caller knows, and is returned complete.
    pub fn store<S: Store>(mut self, mut node: NodeDoc, into: &mut S) -> Result<NodeDoc, TraceError>
    where
        TraceError: From<S::Error>,
    {
        self.describe(&mut node);
        let found = store(&mut *self.trace.events, &mut self.names, &self.search, into, &mut node)?;
        if let DetourSearch::Gaps { loops, .. } = &self.search {
            enter_thresholds(&mut node.cpus, &self.trace.events.cpus(), loops);
        }
        node.warnings.extend(self.warnings(&node.cpus, &found));
        node.ended = Some(Ended::Unknown);
        into.close(&mut node)?;
        Ok(node)
    }

    /// Enters the facts that are known before the detours.
    fn describe(&self, node: &mut NodeDoc) {
        let facts = &self.trace.facts;
        node.ended = None;
        node.origin = facts.began;
        node.rung = Rung::Tracepoints;
        node.clock = facts.clock.clone();
        let (threshold, warnings) = match self.search {
            DetourSearch::Interruptions { .. } => ("none", vec![warning::no_loop()]),
            // The thread's time is known at the end.
            DetourSearch::Thread { .. } => ("none", Vec::new()),
            DetourSearch::Gaps { .. } => ("the tracer's", vec![warning::imported()]),
        };
        node.settings.threshold = threshold.to_owned();
        node.warnings = warnings;
        node.machine.online = self.trace.events.cpus().into_iter().collect();
        if let Some(kernel) = &facts.kernel {
            node.machine.kernel.clone_from(kernel);
            node.machine.architecture = facts.architecture();
        }
        node.tracing = Some(TracingDoc {
            clock: facts.clock.counter.clone(),
            events: facts.paths.iter().map(ToString::to_string).collect(),
            missing: missing(facts),
            ..TracingDoc::default()
        });
    }

    /// Gaps and faults of the trace.
    fn warnings(&self, cpus: &[CpuDoc], found: &TraceFindings) -> Vec<Warning> {
        let OpenTrace { events, facts } = &self.trace;
        let mut warnings = self.thread_warnings(cpus, found.thread);
        warnings.extend(facts.warnings.iter().cloned());
        warnings.extend(self.tracer_paused(found));
        let kinds = missing_kinds(facts);
        if !kinds.is_empty() {
            warnings.push(warning::not_in_trace(&kinds, facts.lists_recorded));
        }
        warnings.extend(lost_events(cpus, found, facts.counted_lost));
        // One or two were under way when the trace started.
        warnings.extend(cpus.iter().filter(|cpu| cpu.unmatched_events > 2).map(warning::unmatched_events));
        if events.backwards() > 0 {
            warnings.push(warning::stamps_backwards(events.backwards()));
        }
        if !self.without_idle.is_empty() {
            warnings.push(warning::idle_not_in_trace(&self.without_idle));
        }
        let programs = self.times.programs(&self.names);
        if matches!(self.search, DetourSearch::Interruptions { .. }) && !programs.is_empty() {
            warnings.push(warning::taken_for_programs(&programs));
        }
        warnings
    }

    /// The thread's time on its CPUs, and its moves between them.
    fn thread_warnings(&self, cpus: &[CpuDoc], time: ThreadTime) -> Vec<Warning> {
        let DetourSearch::Thread { thread, .. } = self.search else { return Vec::new() };
        let name = self.names.name_of(thread).map_or_else(String::new, |name| format!("{name}, "));
        let name = format!("{}thread {}", printable(&name), thread.0);
        let whole = cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or_default();
        let mut warnings = vec![warning::thread_of_trace(&name, time.had, time.waited, whole)];
        if time.moved > 0 {
            let cpus: CpuList = cpus.iter().map(|cpu| cpu.cpu).collect();
            warnings.push(warning::thread_moved(time.moved, &cpus));
        }
        warnings
    }

    /// Warns if the tracer's loop ran for only a part of the time.
    fn tracer_paused(&self, found: &TraceFindings) -> Option<Warning> {
        let DetourSearch::Gaps { cpus, loops } = &self.search else { return None };
        let sum = |times: &mut dyn Iterator<Item = Nanos>| times.fold(Nanos::ZERO, Nanos::saturating_add);
        let spans = sum(&mut found.spans.iter().map(|(_, span)| span.length()));
        let runtime = sum(&mut cpus.iter().map(|index| loops[*index].runtime));
        // The last period of each CPU has not ended, so a little is always missing.
        let is_short = runtime > Nanos::ZERO && runtime < Nanos::new(spans.get() / 5 * 4);
        is_short.then(|| warning::tracer_paused(runtime, spans))
    }
}

/// The tracer does not report its threshold; the shortest gap bounds it.
fn enter_thresholds(docs: &mut [CpuDoc], cpus: &[CpuId], loops: &[TracerLoop]) {
    for doc in docs {
        let tracer = cpus.iter().zip(loops).find(|(cpu, _)| **cpu == doc.cpu).map(|(_, tracer)| tracer);
        let shortest = tracer.and_then(|tracer| tracer.steps.iter().map(|step| step.end - step.start).min());
        doc.threshold_ns = shortest.unwrap_or(Nanos::ZERO);
    }
}

/// The events that are not in the trace, with the noise that they would have shown.
fn missing(facts: &TraceFacts) -> Vec<String> {
    let mut found = facts.missing();
    // Several events show the same purpose of interrupts.
    found.dedup_by(|missing, before| is_carried(before) && missing.unseen == before.unseen);
    found.iter().map(|missing| format!("{} ({}): {}", missing.event, missing.why, kind(missing.unseen))).collect()
}

fn missing_kinds(facts: &TraceFacts) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for missing in facts.missing().iter().filter(|missing| !is_carried(missing)) {
        let kind = kind(missing.unseen).to_owned();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The kind of noise that stays unseen, without the kind that a recording of a loop would charge it to.
fn kind(unseen: &str) -> &str {
    unseen.split(':').next().unwrap_or(unseen)
}

fn lost_events(cpus: &[CpuDoc], found: &TraceFindings, counted_lost: u64) -> Option<Warning> {
    let spans = || found.spans.iter().map(|(_, span)| span);
    let gaps: u64 = spans().map(|span| span.gaps).sum();
    if gaps == 0 {
        return (counted_lost > 0).then(|| warning::lost_untold_in_trace(counted_lost));
    }
    // A file may contain any number.
    let lost = spans().map(|span| span.lost).fold(0, u64::saturating_add);
    let gap_time = spans().map(|span| span.gap_time).fold(Nanos::ZERO, Nanos::saturating_add);
    Some(warning::lost_in_trace(lost, gaps, gap_time, cpus.iter().map(|cpu| cpu.incomplete).sum()))
}
