//! What findings cost: the time that the sources which they let through took in a recording.
//!
//! One source may be let through by several findings (a tick by the parameter that is missing and by the tick that was
//! counted); costs of findings do therefore not add up.

use std::collections::BTreeMap;

use becalm_units::{CpuId, CpuList, Nanos};

use crate::Noise;

/// A recording, as far as costs need it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recorded {
    /// How long each CPU was observed.
    pub observed: Vec<(CpuId, Nanos)>,
    /// What each source took on each CPU.
    pub sources: Vec<RecordedSource>,
}

/// A source on one CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedSource {
    /// Where.
    pub cpu: CpuId,
    /// The kind of the activity: `irq`.
    pub kind: String,
    /// Its stable name.
    pub source: String,
    /// How often it ran inside of detours.
    pub count: u64,
    /// The time that it took.
    pub total: Nanos,
}

/// What a finding cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    /// The sources that were seen, the dearest first.
    pub sources: Vec<SourceCost>,
    /// What they took together.
    pub total: Nanos,
    /// That by the time for which all CPUs of the recording were observed.
    pub ratio: f64,
}

/// What one source took.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceCost {
    /// The kind of the activity.
    pub kind: String,
    /// Its stable name.
    pub source: String,
    /// The CPUs on which it was seen.
    pub cpus: CpuList,
    /// How often it ran inside of detours.
    pub count: u64,
    /// What it took.
    pub total: Nanos,
    /// That by the time for which these CPUs were observed.
    pub ratio: f64,
}

impl Recorded {
    /// What some sources took; nothing if none of them was seen.
    #[must_use]
    pub fn cost_of(&self, noise: &[Noise]) -> Option<Cost> {
        let mut found: BTreeMap<(&str, &str), (Vec<CpuId>, u64, i64)> = BTreeMap::new();
        let matching = |source: &&RecordedSource| noise.iter().any(|it| it.matches(&source.kind, &source.source));
        for source in self.sources.iter().filter(matching) {
            let entry = found.entry((&source.kind, &source.source)).or_default();
            entry.0.push(source.cpu);
            entry.1 += source.count;
            entry.2 = entry.2.saturating_add(source.total.get());
        }
        if found.is_empty() {
            return None;
        }
        let mut sources: Vec<SourceCost> = found
            .into_iter()
            .map(|((kind, source), (cpus, count, total))| {
                let cpus: CpuList = cpus.into_iter().collect();
                let ratio = ratio(total, self.observed(|cpu| cpus.contains(cpu)));
                SourceCost { kind: kind.into(), source: source.into(), cpus, count, total: Nanos::new(total), ratio }
            })
            .collect();
        // The names break ties, as the sort is stable.
        sources.sort_by_key(|source| std::cmp::Reverse(source.total));
        let total = sources.iter().fold(0_i64, |sum, source| sum.saturating_add(source.total.get()));
        Some(Cost { sources, total: Nanos::new(total), ratio: ratio(total, self.observed(|_| true)) })
    }

    fn observed(&self, of: impl Fn(CpuId) -> bool) -> i64 {
        let times = self.observed.iter().filter(|(cpu, _)| of(*cpu));
        times.fold(0_i64, |sum, (_, time)| sum.saturating_add(time.get()))
    }
}

fn ratio(part: i64, whole: i64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(cpu: u32, kind: &str, name: &str, total: i64) -> RecordedSource {
        let (kind, source) = (kind.to_owned(), name.to_owned());
        RecordedSource { cpu: CpuId::new(cpu), kind, source, count: 2, total: Nanos::new(total) }
    }

    #[test]
    fn sources_are_added_over_cpus_and_held_against_the_time_there() {
        let observed = [0, 1, 2].map(|cpu| (CpuId::new(cpu), Nanos::new(1_000))).to_vec();
        let sources = vec![
            source(0, "irq", "eth0", 10),
            source(1, "irq", "eth0", 30),
            source(1, "irq", "virtio1", 100),
            source(2, "task", "eth0", 500),
        ];
        let recorded = Recorded { observed, sources };
        let cost = recorded.cost_of(&[Noise::new("irq", "*")]).unwrap();
        assert_eq!((cost.total.get(), cost.sources.len()), (140, 2));
        assert!((cost.ratio - 140.0 / 3_000.0).abs() < 1e-12);
        let first = &cost.sources[0];
        assert_eq!((first.source.as_str(), first.cpus.to_string(), first.count), ("virtio1", "1".into(), 2));
        assert!((first.ratio - 0.1).abs() < 1e-12 && (cost.sources[1].ratio - 0.02).abs() < 1e-12);
        assert_eq!(recorded.cost_of(&[Noise::new("irq", "eth")]), None);
        assert_eq!(recorded.cost_of(&[]), None);
    }
}
