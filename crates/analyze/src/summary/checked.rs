//! The trace compared with the kernel's own counts, and the cost of writing it.

use std::collections::BTreeMap;

use becalm_model::node::{CounterGrowth, NodeDoc, Rung, TracedCount};

/// How often something happened, and how much of that is in the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// The kernel's own count.
    pub counted: u64,
    /// The part of it that the trace contains.
    pub found: u64,
}

impl Found {
    const fn add(&mut self, counted: u64, found: u64) {
        self.counted = self.counted.saturating_add(counted);
        self.found = self.found.saturating_add(found);
    }
}

/// The kernel's own counts of a run, and the part of them in its trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Interrupts of the CPUs' own timers.
    pub timers: Found,
    /// All other interrupts.
    pub others: Found,
    /// All softirqs.
    pub softirqs: Found,
    /// The lines of `/proc/interrupts` that are incomplete in the trace, the most incomplete first.
    pub lacking: Vec<(String, Found)>,
}

impl Checked {
    /// Sums over the nodes. `None` if nothing was traced, or nothing compared with the kernel's counts.
    pub(crate) fn from_nodes<'a>(nodes: impl Iterator<Item = &'a NodeDoc>) -> Option<Self> {
        let (mut checked, mut is_compared) = (Self::default(), false);
        let mut lines: BTreeMap<&str, Found> = BTreeMap::new();
        for counter in nodes.flat_map(|doc| &doc.counters) {
            let Some(found) = counter.traced.map(|traced: TracedCount| traced.found(counter.growth)) else { continue };
            is_compared = true;
            match counter.name.strip_prefix("interrupts/") {
                Some(line) => {
                    let timer = CounterGrowth::is_of_timer(&counter.name);
                    let sum = if timer { &mut checked.timers } else { &mut checked.others };
                    sum.add(counter.growth, found);
                    lines.entry(line).or_default().add(counter.growth, found);
                }
                None => checked.softirqs.add(counter.growth, found),
            }
        }
        let lacks = |coverage: &Found| coverage.counted - coverage.found;
        let lacking = lines.into_iter().filter(|(_, coverage)| lacks(coverage) > 0);
        checked.lacking = lacking.map(|(line, coverage)| (line.to_owned(), coverage)).collect();
        checked.lacking.sort_by_key(|(_, coverage)| std::cmp::Reverse(lacks(coverage)));
        is_compared.then_some(checked)
    }
}

/// The cost of writing the trace, on the measured CPUs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measuring {
    /// The kernel's events on all measured CPUs.
    pub events: u64,
    /// The cost of one event, on the average of the nodes.
    pub event_cost_ns: f64,
    /// The cost of all events.
    pub cost_ns: i64,
    /// The same as a share of the loops' run time; `None` if that is unknown.
    pub time_ratio: Option<f64>,
}

impl Measuring {
    /// Sums over the nodes; `None` if nothing was traced, or the cost of an event is unknown on some node.
    pub(crate) fn from_nodes<'a>(nodes: impl Iterator<Item = &'a NodeDoc>, observed_ns: Option<i64>) -> Option<Self> {
        let (mut events, mut cost_ns) = (0_u64, 0_i64);
        for doc in nodes.filter(|doc| doc.rung == Rung::Tracepoints) {
            let cost = doc.tracing.as_ref()?.event_cost_ns?;
            let more = doc.cpus.iter().fold(0, |sum: u64, cpu| sum.saturating_add(cpu.events));
            events = events.saturating_add(more);
            cost_ns = cost_ns.saturating_add(i64::try_from(more).unwrap_or(i64::MAX).saturating_mul(cost.get()));
        }
        let time_ratio = observed_ns.filter(|ns| *ns > 0).map(|ns| cost_ns as f64 / ns as f64);
        (events > 0).then(|| Self { events, event_cost_ns: cost_ns as f64 / events as f64, cost_ns, time_ratio })
    }
}

#[cfg(test)]
mod tests {
    use becalm_units::CpuId;

    use super::*;

    #[test]
    fn a_cpu_where_the_kernel_counted_nothing_was_compared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("busy.becalm");
        becalm_fixtures::write_named(&path, "busy");
        let mut doc = becalm_bundle::Bundle::open(&path).unwrap().nodes()[0].clone();
        let counter =
            |name: &str, growth, traced| CounterGrowth { cpu: CpuId::new(1), name: name.to_owned(), growth, traced };
        doc.counters = vec![counter("stat/user", 5_000_000_000, None)];
        assert_eq!(Checked::from_nodes([&doc].into_iter()), None);
        doc.counters.push(counter("interrupts/LOC", 0, Some(TracedCount::default())));
        assert_eq!(Checked::from_nodes([&doc].into_iter()), Some(Checked::default()));
    }
}
