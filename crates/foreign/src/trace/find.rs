//! Turns the file of a trace into the document and the detours of a recording.

use becalm_measure::Names;
use becalm_model::node::{CpuDoc, Ended, NodeDoc, Rung, Warning};
use becalm_model::{Event, warning};
use becalm_record::Store;
use becalm_units::{CpuId, CpuList, Nanos, fault};

use super::facts::{OpenTrace, open};
use super::search::{CpuPart, plan, survey};
use super::{CpuSpan, DetourSearch, ThreadTimes, TraceError, TraceFindings, TracerLoop, Wholeness, store};
use crate::read::{Format, Progress, Source};

/// A request for the detours of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceRequest<'a> {
    /// The CPUs of interest; `None` for all.
    pub cpus: Option<&'a CpuList>,
    /// Ticks per second of the trace's clock, for files that do not contain them.
    pub rate_hz: Option<f64>,
}

/// A trace that was read once, and is whole.
pub(super) struct WholeTrace<'a> {
    pub trace: OpenTrace<'a>,
    pub names: Names,
    /// Its CPUs, and how much it holds of each.
    parts: Vec<CpuPart>,
    /// CPUs without their switches away from the idle task.
    without_idle: CpuList,
    times: ThreadTimes,
}

impl<'a> WholeTrace<'a> {
    /// Reads a trace. Fails if the file is no complete trace.
    pub fn read(format: Format, source: Source<'a>, rate_hz: Option<f64>, told: Progress<'_>) -> fault::Result<Self> {
        let mut names = Names::for_file();
        let mut trace = open(format, source, rate_hz, &mut names, told)?;
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
        Ok(Self { trace, names, parts, without_idle, times })
    }

    /// Warns about events that the trace lost, if it becomes no detours.
    pub fn lost_events(&self) -> Option<Warning> {
        lost_events(|| self.parts.iter().map(|(_, span)| span), None, self.trace.facts.counted_lost)
    }

    /// Faults of the trace that concern all of its uses.
    pub fn faults(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let backwards = self.trace.events.backwards();
        if backwards > 0 {
            warnings.push(warning::stamps_backwards(backwards));
        }
        if !self.without_idle.is_empty() {
            warnings.push(warning::idle_not_in_trace(&self.without_idle));
        }
        warnings
    }
}

/// A whole trace with the search that it allows.
pub struct FoundDetours<'a> {
    whole: WholeTrace<'a>,
    search: DetourSearch,
}

/// Reads a trace and plans the search for its detours. Fails if the file is no complete trace or lacks something that was requested.
pub fn find<'a>(
    format: Format,
    source: Source<'a>,
    request: &TraceRequest<'_>,
    told: Progress<'_>,
) -> fault::Result<FoundDetours<'a>> {
    let whole = WholeTrace::read(format, source, request.rate_hz, told)?;
    let search = plan(request, &whole.trace, &whole.parts)?;
    Ok(FoundDetours { whole, search })
}

impl FoundDetours<'_> {
    /// The name of the traced host, if the file has it.
    pub fn host(&self) -> Option<&str> {
        self.whole.trace.facts.host.as_deref()
    }

    /// Stores the detours. `node` has the fields that the caller knows, and is returned complete.
    pub fn store<S: Store>(mut self, mut node: NodeDoc, into: &mut S) -> Result<NodeDoc, TraceError>
    where
        TraceError: From<S::Error>,
    {
        self.describe(&mut node);
        let WholeTrace { trace, names, .. } = &mut self.whole;
        let found = store(&mut *trace.events, names, &self.search, into, &mut node)?;
        if let DetourSearch::Gaps { loops, .. } = &self.search {
            enter_thresholds(&mut node.cpus, &trace.events.cpus(), loops);
        }
        node.warnings.extend(self.warnings(&node.cpus, &found));
        node.ended = Some(Ended::Unknown);
        into.close(&mut node)?;
        Ok(node)
    }

    /// Enters the facts that are known before the detours.
    fn describe(&self, node: &mut NodeDoc) {
        let OpenTrace { events, facts } = &self.whole.trace;
        node.ended = None;
        node.origin = facts.began;
        node.rung = Rung::Tracepoints;
        node.clock = facts.clock.clone();
        let (threshold, warnings) = match self.search {
            DetourSearch::Interruptions { .. } => ("none", vec![warning::no_loop()]),
            DetourSearch::Gaps { .. } => ("the tracer's", vec![warning::imported()]),
        };
        node.settings.threshold = threshold.to_owned();
        node.warnings = warnings;
        facts.describe(&mut node.machine, events.cpus());
        node.tracing = Some(facts.tracing());
    }

    /// Gaps and faults of the trace.
    fn warnings(&self, cpus: &[CpuDoc], found: &TraceFindings) -> Vec<Warning> {
        let facts = &self.whole.trace.facts;
        let mut warnings = facts.warnings.clone();
        warnings.extend(self.tracer_paused(found));
        let kinds = facts.missing_kinds();
        if !kinds.is_empty() {
            warnings.push(warning::not_in_trace(&kinds, facts.lists_recorded));
        }
        let spans = || found.spans.iter().map(|(_, span)| span);
        let incomplete = cpus.iter().map(|cpu| cpu.incomplete).sum();
        warnings.extend(lost_events(spans, Some(incomplete), facts.counted_lost));
        // One or two were under way when the trace started.
        warnings.extend(cpus.iter().filter(|cpu| cpu.unmatched_events > 2).map(warning::unmatched_events));
        warnings.extend(self.whole.faults());
        let programs = self.whole.times.programs(&self.whole.names);
        if matches!(self.search, DetourSearch::Interruptions { .. }) && !programs.is_empty() {
            warnings.push(warning::taken_for_programs(&programs));
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

/// Warns about lost events; `incomplete` is the number of detours that this touches.
fn lost_events<'s, S: Iterator<Item = &'s CpuSpan>>(
    spans: impl Fn() -> S,
    incomplete: Option<u64>,
    counted_lost: u64,
) -> Option<Warning> {
    let gaps: u64 = spans().map(|span| span.gaps).sum();
    if gaps == 0 {
        return (counted_lost > 0).then(|| warning::lost_untold_in_trace(counted_lost));
    }
    // A file may contain any number.
    let lost = spans().map(|span| span.lost).fold(0, u64::saturating_add);
    let gap_time = spans().map(|span| span.gap_time).fold(Nanos::ZERO, Nanos::saturating_add);
    Some(warning::lost_in_trace(lost, gaps, gap_time, incomplete))
}
