//! Decides which detours a trace is searched for, and on which CPUs.

use becalm_measure::Names;
use becalm_model::Event;
use becalm_units::fault::{self, UsageError, Wording};
use becalm_units::{CpuId, CpuList, Nanos};

use super::facts::{OpenTrace, TraceFacts};
use super::{CpuSpan, KernelTrace, TraceError, TraceRequest, TracerLoop};

/// A search for detours in a trace. CPUs are numbers among those of the trace.
#[derive(Clone, Debug)]
pub enum DetourSearch {
    /// Interruptions that would have hit any program.
    Interruptions {
        /// The CPUs.
        cpus: Vec<usize>,
        /// True if the trace has switches. Without them, the time of a kernel thread on its CPU is unknown.
        has_switches: bool,
    },
    /// The gaps of a tracer's loop.
    Gaps {
        /// The CPUs.
        cpus: Vec<usize>,
        /// The loop of each CPU of the trace.
        loops: Vec<TracerLoop>,
    },
}

impl DetourSearch {
    pub(super) fn cpus(&self) -> &[usize] {
        match self {
            Self::Interruptions { cpus, .. } | Self::Gaps { cpus, .. } => cpus,
        }
    }
}

/// A CPU of a trace, and how much the trace holds of it.
pub(super) type CpuPart = (CpuId, CpuSpan);

/// Reads all events once before anything is stored, because the trace may be damaged.
pub(super) fn survey(
    trace: &mut dyn KernelTrace,
    names: &mut Names,
    see: &mut dyn FnMut(CpuId, &Event),
) -> Result<Vec<CpuPart>, TraceError> {
    let mut parts = Vec::new();
    for (index, cpu) in trace.cpus().into_iter().enumerate() {
        let mut span = CpuSpan::default();
        trace.each(index, names, &mut |event, _| {
            span.take(event);
            see(cpu, event);
            Ok(())
        })?;
        parts.push((cpu, span));
    }
    Ok(parts)
}

/// Plans the requested search. Fails if the trace lacks what it needs.
pub(super) fn plan(
    request: &TraceRequest<'_>,
    opened: &OpenTrace<'_>,
    parts: &[CpuPart],
) -> fault::Result<DetourSearch> {
    let there: CpuList = parts.iter().map(|(cpu, _)| *cpu).collect();
    if let Some(chosen) = request.cpus.filter(|chosen| !chosen.without(&there).is_empty()) {
        let text = Wording::new("the trace holds {}, and not all of {cpus=}");
        return Err(UsageError::new(text.with(becalm_units::cpus(&there)).with(chosen)).into());
    }
    let numbers = |is_wanted: &dyn Fn(usize, &CpuPart) -> bool| -> Vec<usize> {
        let is_chosen = |part: &CpuPart| request.cpus.is_none_or(|chosen| chosen.contains(part.0));
        let wanted = parts.iter().enumerate().filter(|(index, part)| is_chosen(part) && is_wanted(*index, part));
        wanted.map(|(index, _)| index).collect()
    };
    let has_time = |(_, span): &CpuPart| span.length() > Nanos::ZERO;
    if let Some(loops) = opened.facts.loops_with_gaps() {
        let cpus = numbers(&|index, _| !loops[index].steps.is_empty());
        fault::ensure!(!cpus.is_empty(), "the tracer's loop has a gap on none of the chosen CPUs");
        return Ok(DetourSearch::Gaps { cpus, loops: loops.to_vec() });
    }
    let has_switches = opened.facts.has_switches();
    let cpus = numbers(&|_, part| has_time(part));
    fault::ensure!(!cpus.is_empty(), "{}", nothing_found(&opened.facts));
    Ok(DetourSearch::Interruptions { cpus, has_switches })
}

fn nothing_found(facts: &TraceFacts) -> String {
    let nothing = match facts.others {
        0 => "no CPU has two events that tell what had it".to_owned(),
        others => format!("none of its {others} events tells what had a CPU"),
    };
    format!(
        "{nothing}: record interrupts, softirqs and switches: irq, irq_vectors, nmi, sched:sched_switch and workqueue"
    )
}
