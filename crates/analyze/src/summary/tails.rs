//! The tails of a run's CPUs and of all of them together, held against what else is known: who made the longest detours, and
//! that a whole has none that are shorter than its parts'.

use std::collections::HashMap;

use becalm_stats::NoTail;
use becalm_stats::tail::CAUSE_EVENTS_MIN;
use becalm_units::CpuId;

use super::{CpuSummary, Figures, SourceSummary};

/// Takes back what the causes or the parts contradict.
pub(super) fn hold_together(
    total: &mut Figures,
    sources: &[SourceSummary],
    cpus: &mut [CpuSummary],
    cpu_sources: &[SourceSummary],
) {
    let mut places: HashMap<(&str, CpuId), Vec<&SourceSummary>> = HashMap::new();
    for source in cpu_sources {
        if let Some((node, cpu)) = &source.place {
            places.entry((node, *cpu)).or_default().push(source);
        }
    }
    for cpu in cpus.iter_mut() {
        let of_cpu = places.get(&(cpu.node.as_str(), cpu.cpu)).into_iter().flatten().copied();
        refuse_a_rare_cause(&mut cpu.figures, events_of_longest(of_cpu));
    }
    refuse_a_rare_cause(total, events_of_longest(sources.iter()));
    let Some(Ok(together)) = &total.tail else { return };
    let levels = cpus.iter().filter_map(|cpu| {
        let part = cpu.figures.tail.as_ref()?.as_ref().ok()?;
        part.tail.return_level(together.level.period_ns).ok()
    });
    let part_ns = levels.map(|level| level.level_ns).max().unwrap_or(0);
    if part_ns > together.level.level_ns {
        total.tail = Some(Err(NoTail::BelowPart { part_ns }));
    }
}

fn refuse_a_rare_cause(figures: &mut Figures, events: Option<u64>) {
    if let (Some(Ok(_)), Some(events)) = (&figures.tail, events)
        && events < CAUSE_EVENTS_MIN
    {
        figures.tail = Some(Err(NoTail::RareCause { events }));
    }
}

/// How often the source came that has the longest single activity; `None` where no source is known.
fn events_of_longest<'a>(sources: impl Iterator<Item = &'a SourceSummary>) -> Option<u64> {
    sources.max_by_key(|source| source.times.max()).map(|source| source.times.count())
}
