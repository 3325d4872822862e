//! Turns a trace into a stored run.

use becalm_attribute::{Interruptions, Presence, Tally};
use becalm_measure::{Names, Unstored};
use becalm_model::node::{CpuDoc, NodeDoc};
use becalm_model::{Event, LoopThread, Pid, Step, Tasks};
use becalm_record::{LanePart, Store};
use becalm_units::{CpuId, Nanos};

use super::gaps::Gaps;
use super::{CpuSpan, DetourSearch, KernelTrace, TraceError};

/// The number of detours of a CPU that are stored at once.
const PORTION: usize = 1 << 13;

/// Facts about a trace besides its detours.
#[derive(Clone, Debug, Default)]
pub struct TraceFindings {
    /// The span of each CPU that has events.
    pub spans: Vec<(CpuId, CpuSpan)>,
}

/// Follows one CPU.
enum Follower {
    Interruptions { presence: Box<Presence>, tasks: Option<Tasks>, begun: bool },
    Gaps(Box<Gaps>),
}

impl Follower {
    fn new(wanted: &DetourSearch, index: usize, cpu: CpuId, names: &mut Names) -> Self {
        match wanted {
            DetourSearch::Interruptions { has_switches, .. } => {
                let tasks = (!has_switches).then(Tasks::new);
                Self::Interruptions { presence: Box::new(Presence::new(cpu)), tasks, begun: false }
            }
            DetourSearch::Gaps { loops, .. } => Self::Gaps(Box::new(Gaps::new(&loops[index], cpu, names))),
        }
    }

    /// The time that the loop is known to have run, if there was one.
    fn looked(&self) -> Option<Step> {
        if let Self::Gaps(gaps) = self { gaps.looked } else { None }
    }

    fn take(&mut self, event: &Event, names: &mut Names, found: &mut Interruptions) {
        match self {
            Self::Interruptions { presence, tasks, begun } => {
                if !std::mem::replace(begun, true) {
                    presence.begin(event.time);
                }
                let Names { tasks: named, labels, .. } = names;
                presence.take(event, tasks.as_ref().unwrap_or(named), labels, found);
            }
            Self::Gaps(gaps) => gaps.take(event, names, found),
        }
    }

    fn end(&mut self, names: &mut Names, found: &mut Interruptions) -> Tally {
        match self {
            Self::Interruptions { presence, .. } => {
                presence.end(found);
                Tally::default()
            }
            Self::Gaps(gaps) => gaps.end(names, found),
        }
    }
}

/// Stores the detours found in a trace. `node` is the document of the run without its CPUs, which are added; the caller completes it and
/// closes the store. Fails if the trace is damaged, or the run cannot be stored.
pub fn store<S: Store>(
    trace: &mut dyn KernelTrace,
    names: &mut Names,
    wanted: &DetourSearch,
    store: &mut S,
    node: &mut NodeDoc,
) -> Result<TraceFindings, TraceError>
where
    TraceError: From<S::Error>,
{
    let numbers = trace.cpus();
    let cpus: Vec<(usize, CpuId)> = wanted.cpus().iter().map(|index| (*index, numbers[*index])).collect();
    let thread = |cpu| LoopThread { cpu, pid: Pid::IDLE, t_min: Nanos::ZERO, realtime: false };
    let threads: Vec<LoopThread> = cpus.iter().map(|(_, cpu)| thread(*cpu)).collect();
    node.cpus = cpus.iter().map(|(_, cpu)| CpuDoc::new(*cpu)).collect();
    store.begin(node, &threads, names)?;
    let (mut result, mut tallies) = (TraceFindings::default(), Vec::new());
    for (lane, (index, cpu)) in cpus.iter().enumerate() {
        let mut follower = Follower::new(wanted, *index, *cpu, names);
        let (mut found, mut span) = (Interruptions::default(), CpuSpan::default());
        if let Some(looked) = follower.looked() {
            span.first = Some(looked.start);
        }
        let (mut detours, mut total) = (0, Nanos::ZERO);
        let mut put = |found: &mut Interruptions, span: &CpuSpan, names: &Names| {
            detours += found.detours.len() as u64;
            total += found.detours.iter().map(|detour| detour.duration).sum();
            let part = part(lane, threads[lane], span, found);
            let stored = store.take(part, names, &mut || {});
            found.detours.clear();
            found.activities.clear();
            stored
        };
        trace.each(*index, names, &mut |event, names| {
            span.take(event);
            follower.take(event, names, &mut found);
            if found.detours.len() >= PORTION {
                put(&mut found, &span, names)?;
            }
            Ok(())
        })?;
        let tally = follower.end(names, &mut found);
        span.last = follower.looked().map_or(span.last, |looked| looked.end.max(span.last));
        put(&mut found, &span, names)?;
        tallies.push(tally);
        let doc = &mut node.cpus[lane];
        doc.start_ns = span.first.unwrap_or(Nanos::ZERO);
        doc.duration_ns = span.length();
        doc.detours = detours;
        doc.events = span.events;
        doc.lost_events = span.lost;
        doc.total_ns = total;
        result.spans.push((*cpu, span));
    }
    store.end_segment(names, &mut || {})?;
    store.enter(&mut node.cpus, &tallies);
    for doc in &mut node.cpus {
        doc.below_threshold_ns = (doc.duration_ns - doc.total_ns).max(Nanos::ZERO);
    }
    Ok(result)
}

fn part<'a>(index: usize, thread: LoopThread, span: &CpuSpan, found: &'a Interruptions) -> LanePart<'a> {
    LanePart {
        index,
        thread,
        steps: &[],
        work: &[],
        detours: &found.detours,
        activities: &found.activities,
        began: span.first,
        complete_until: span.last,
        unstored: Unstored::default(),
    }
}
