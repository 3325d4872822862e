//! Checks the tails of a run's CPUs, and of all of them together, against other facts: the sources of the longest detours, and that the total has no
//! smaller return level than its parts.

use std::collections::HashMap;

use becalm_stats::NoTail;
use becalm_stats::tail::CAUSE_EVENTS_MIN;
use becalm_units::CpuId;

use super::{CpuSummary, Figures, SourceSummary};

/// Removes tails that the causes or the parts contradict.
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
        let own = places.get(&(cpu.node.as_str(), cpu.cpu)).into_iter().flatten().copied();
        refuse_a_rare_cause(&mut cpu.figures, events_of_longest(own));
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

/// The number of activities of the source with the longest single activity; `None` if no source is known.
fn events_of_longest<'a>(sources: impl Iterator<Item = &'a SourceSummary>) -> Option<u64> {
    sources.max_by_key(|source| source.times.max()).map(|source| source.times.count())
}

#[cfg(test)]
mod tests {
    use becalm_model::Kind;
    use becalm_stats::{Longest, Moments, Tail};
    use becalm_testing::noise::Source;

    use super::super::LongTail;
    use super::*;

    const LENGTH: i64 = 20_000_000_000;

    /// Figures of which only the tail matters, for detours of one law.
    fn figures(scale: f64, shape: f64) -> Figures {
        let mut source = Source::seeded(3);
        let mut longest = Longest::default();
        for time in source.poisson(100.0, LENGTH as f64) {
            longest.add(time as i64, source.pareto(scale, shape) as i64);
        }
        let tail = Tail::fit(longest, LENGTH).unwrap();
        let level = tail.longest_return_level().unwrap();
        Figures { duration_ns: Some(LENGTH), tail: Some(Ok(LongTail { tail, level })), ..Figures::default() }
    }

    fn cpu(number: u32, figures: Figures) -> CpuSummary {
        CpuSummary { node: "node1".to_owned(), cpu: CpuId::new(number), figures }
    }

    /// A source with `events` activities of this length on a CPU.
    fn source(name: &str, number: u32, events: u64, length: i64) -> SourceSummary {
        let mut times = Moments::default();
        (0..events).for_each(|_| times.add(length));
        SourceSummary {
            place: Some(("node1".to_owned(), CpuId::new(number))),
            kind: Kind::Task,
            source: name.to_owned(),
            times,
            whole_ns: events as i64 * length,
            share: None,
            time_ratio: None,
            run_at_least_ns: None,
        }
    }

    #[test]
    fn a_whole_is_never_below_its_parts() {
        let (short, long) = (figures(10_000.0, 0.0), figures(10_000.0, 0.3));
        let level = |figures: &Figures| figures.tail.clone().unwrap().unwrap().level.level_ns;
        assert!(level(&short) < level(&long));
        for (total, refused) in [(short.clone(), true), (long.clone(), false)] {
            let mut total = total;
            let mut cpus = [cpu(0, long.clone()), cpu(1, short.clone())];
            hold_together(&mut total, &[], &mut cpus, &[]);
            let expected = Err(NoTail::BelowPart { part_ns: level(&long) });
            assert_eq!(total.tail.unwrap().map(|_| ()) == expected, refused);
            assert!(cpus.iter().all(|cpu| cpu.figures.tail.as_ref().unwrap().is_ok()));
        }
    }

    #[test]
    fn a_rare_cause_of_the_longest_leaves_no_tail() {
        for (events, refused) in [(9, true), (10, false)] {
            let mut total = figures(10_000.0, 0.0);
            let mut cpus = [cpu(0, total.clone()), cpu(1, total.clone())];
            let often = |number| source("often", number, 1_000, 50_000);
            let sources = [often(0), often(1), source("daemon", 1, events, 5_000_000)];
            hold_together(&mut total, &sources, &mut cpus, &sources);
            let found = [&total, &cpus[0].figures, &cpus[1].figures]
                .map(|figures| matches!(figures.tail, Some(Err(NoTail::RareCause { events: seen })) if seen == events));
            assert_eq!(found, [refused, false, refused]);
        }
    }
}
