//! The cost of findings: the recorded time of the sources that they permit.
//!
//! Several findings may permit the same source (a missing parameter and the counted tick both permit the tick), so the costs do not add up.

use std::collections::BTreeMap;

use becalm_units::{CpuId, CpuList, Nanos};

use crate::document::{FindingCost, SourceCost};
use crate::{Kind, NoiseSource};

/// The parts of a recording needed for costs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RecordedNoise {
    /// The observed time of each CPU.
    pub observed: Vec<(CpuId, Nanos)>,
    /// The time of each source on each CPU.
    pub sources: Vec<RecordedSource>,
}

/// A source on one CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedSource {
    /// The CPU on which it ran.
    pub cpu: CpuId,
    /// The kind of the activity.
    pub kind: Kind,
    /// The stable name of the source.
    pub source: String,
    /// How often it ran within detours.
    pub count: u64,
    /// The time that it took.
    pub total: Nanos,
}

impl RecordedNoise {
    /// The cost of some sources; `None` if none of them was seen.
    pub fn cost_of(&self, noise: &[NoiseSource]) -> Option<FindingCost> {
        // Ordered by the names of kinds, then of sources: the order among equal costs.
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
        // Names break ties, because the sort is stable.
        sources.sort_by_key(|source| std::cmp::Reverse(source.total));
        let total = sources.iter().fold(0_i64, |sum, source| sum.saturating_add(source.total.get()));
        Some(FindingCost { sources, total: Nanos::new(total), ratio: ratio(total, self.observed(|_| true)) })
    }

    /// The time of one source on all CPUs that had it.
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

    /// The total observed time of the wanted CPUs, in nanoseconds.
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
