//! What findings cost: the time that the sources which they let through took in a recording.
//!
//! One source may be let through by several findings (a tick by the parameter that is missing and by the tick that was
//! counted); costs of findings do therefore not add up.

use std::collections::BTreeMap;

use becalm_units::{CpuId, CpuList, Nanos};

use crate::document::{FindingCost, SourceCost};
use crate::{Kind, NoiseSource};

/// A recording, as far as costs need it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecordedNoise {
    /// How long each CPU was observed.
    pub observed: Vec<(CpuId, Nanos)>,
    /// What each source took on each CPU.
    pub sources: Vec<RecordedSource>,
}

/// A source on one CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedSource {
    /// The CPU on which it ran.
    pub cpu: CpuId,
    /// The kind of the activity.
    pub kind: Kind,
    /// The name of the source, which is the same in every recording.
    pub source: String,
    /// How often it ran inside of detours.
    pub count: u64,
    /// The time that it took.
    pub total: Nanos,
}

impl RecordedNoise {
    /// What some sources took; `None` if none of them was seen.
    pub fn cost_of(&self, noise: &[NoiseSource]) -> Option<FindingCost> {
        // By the names of kinds: the order in which sources of equal cost are shown.
        // In the order of the names of kinds, and then of sources.
        let mut found: BTreeMap<(&str, &str), Vec<&RecordedSource>> = BTreeMap::new();
        for source in &self.sources {
            if noise.iter().any(|noise| noise.matches(source.kind, &source.source)) {
                found.entry((source.kind.name(), &source.source)).or_default().push(source);
            }
        }
        if found.is_empty() {
            return None;
        }
        let mut sources: Vec<SourceCost> = found.into_values().map(|on_cpus| self.source_cost(&on_cpus)).collect();
        // The names break ties, as the sort is stable.
        sources.sort_by_key(|source| std::cmp::Reverse(source.total));
        let total = sources.iter().fold(0_i64, |sum, source| sum.saturating_add(source.total.get()));
        Some(FindingCost { sources, total: Nanos::new(total), ratio: ratio(total, self.observed(|_| true)) })
    }

    /// What one source took on all CPUs where it was seen.
    fn source_cost(&self, on_cpus: &[&RecordedSource]) -> SourceCost {
        let cpus: CpuList = on_cpus.iter().map(|source| source.cpu).collect();
        let total = on_cpus.iter().fold(0_i64, |sum, source| sum.saturating_add(source.total.get()));
        SourceCost {
            kind: on_cpus[0].kind,
            source: on_cpus[0].source.clone(),
            count: on_cpus.iter().map(|source| source.count).sum(),
            total: Nanos::new(total),
            ratio: ratio(total, self.observed(|cpu| cpus.contains(cpu))),
            cpus,
        }
    }

    /// The time in nanoseconds for which the wanted CPUs were observed, all together.
    fn observed(&self, wanted: impl Fn(CpuId) -> bool) -> i64 {
        let times = self.observed.iter().filter(|(cpu, _)| wanted(*cpu));
        times.fold(0_i64, |sum, (_, time)| sum.saturating_add(time.get()))
    }
}

fn ratio(part: i64, whole: i64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(cpu: u32, kind: Kind, name: &str, total: i64) -> RecordedSource {
        let source = name.to_owned();
        RecordedSource { cpu: CpuId::new(cpu), kind, source, count: 2, total: Nanos::new(total) }
    }

    #[test]
    fn sources_are_added_over_cpus_and_held_against_the_time_there() {
        let observed = [0, 1, 2].map(|cpu| (CpuId::new(cpu), Nanos::new(1_000))).to_vec();
        let sources = vec![
            source(0, Kind::Irq, "eth0", 10),
            source(1, Kind::Irq, "eth0", 30),
            source(1, Kind::Irq, "virtio1", 100),
            source(2, Kind::Task, "eth0", 500),
        ];
        let recorded = RecordedNoise { observed, sources };
        let cost = recorded.cost_of(&[NoiseSource::new(Kind::Irq, "*")]).unwrap();
        assert_eq!((cost.total.get(), cost.sources.len()), (140, 2));
        assert!((cost.ratio - 140.0 / 3_000.0).abs() < 1e-12);
        let first = &cost.sources[0];
        assert_eq!((first.source.as_str(), first.cpus.to_string(), first.count), ("virtio1", "1".into(), 2));
        assert!((first.ratio - 0.1).abs() < 1e-12 && (cost.sources[1].ratio - 0.02).abs() < 1e-12);
        assert_eq!(recorded.cost_of(&[NoiseSource::new(Kind::Irq, "eth")]), None);
        assert_eq!(recorded.cost_of(&[]), None);
    }
}
