//! Comparison of the trace with the kernel's own counters.

use std::collections::BTreeMap;

use becalm_linux::clock::Counter;
use becalm_model::Platform;
use becalm_model::node::{CounterGrowth, NodeDoc, Warning};
use becalm_model::warning::{self, Untraced};
use becalm_units::{CpuId, CpuList};

use super::collector::Collector;
use super::prepared::Prepared;
use crate::loops::Loop;
use crate::machine::{CounterKind, KernelCounters};
use crate::trace::{EventNames, is_much};

impl<C: Counter, L: Loop> Prepared<C, L> {
    /// Stores the growth of the kernel's counters and the part of it that the trace contains. Warns of interrupts that the trace lacks.
    pub(super) fn check_counters(
        &self,
        node: &mut NodeDoc,
        before: &KernelCounters,
        after: &KernelCounters,
        collector: &Collector<L::Ring>,
    ) {
        // A trace that ended early cannot be compared with counts of the whole recording.
        let tracing = self.tracing.as_ref().filter(|_| self.unchanged.change().is_none());
        let names = tracing.zip(collector.decoder());
        let names = names.map(|(tracing, decoder)| EventNames { decoder, strings: &tracing.strings });
        let occurrences: BTreeMap<CpuId, _> = collector.occurrences().collect();
        node.counters = after.since(before, &self.cpus, |cpu, counted| {
            let (names, on_cpu) = (names.as_ref()?, occurrences.get(&cpu)?);
            match counted {
                CounterKind::Interrupt(line) => on_cpu.interrupt_count(line, names),
                CounterKind::Softirq(name) => on_cpu.softirq_count(name),
            }
        });
        let lost: BTreeMap<CpuId, u64> =
            node.cpus.iter().zip(collector.counts()).map(|(cpu, counts)| (cpu.cpu, counts.lost_events)).collect();
        let descriptions: BTreeMap<String, &str> = after.descriptions().collect();
        let traces =
            |event: &str| node.tracing.iter().any(|tracing| tracing.events.iter().any(|traced| traced == event));
        let warnings = untraced(&node.counters, &lost, &descriptions, traces("timer/hrtimer_expire_entry"));
        node.warnings.extend(warnings);
        let stat_unread = before.stat_unread().or(after.stat_unread());
        if let Some(why) = stat_unread.filter(|_| node.machine.platform() == Platform::Guest) {
            node.warnings.push(warning::steal_unknown(why));
        }
        if node.tracing.is_some() {
            let unread: BTreeMap<&str, &str> = after.unread().chain(before.unread()).collect();
            node.warnings.extend(unread.into_iter().map(|(what, why)| warning::not_compared(what, why)));
        }
    }
}

/// Counts of a line on CPUs where the trace lacks its interrupts.
#[derive(Default)]
struct LineCounts {
    cpus: Vec<CpuId>,
    counted: u64,
    found: u64,
}

/// Warns of each interrupt that the kernel counted much more often than the trace contains, beyond the events lost on its CPU. `functions` says
/// whether the functions of timers are traced.
fn untraced(
    counters: &[CounterGrowth],
    lost: &BTreeMap<CpuId, u64>,
    descriptions: &BTreeMap<String, &str>,
    functions: bool,
) -> Vec<Warning> {
    let mut lines: BTreeMap<&str, LineCounts> = BTreeMap::new();
    for counter in counters {
        let (Some(line), Some(traced)) = (counter.name.strip_prefix("interrupts/"), counter.traced) else { continue };
        let found = traced.found(counter.growth);
        if counter.growth - found <= lost.get(&counter.cpu).copied().unwrap_or(0) {
            continue;
        }
        let counts = lines.entry(line).or_default();
        counts.cpus.push(counter.cpu);
        counts.counted += counter.growth;
        counts.found += found;
    }
    let many = |counts: &LineCounts| is_much(counts.counted - counts.found, counts.counted);
    let warn = |(line, counts): (&str, LineCounts)| {
        let description = descriptions.get(line).copied().unwrap_or_default();
        let cpus: CpuList = counts.cpus.iter().copied().collect();
        // `HVS` is the only line of timer interrupts without events.
        let named = line == "HVS" && functions;
        let (counted, found) = (counts.counted, counts.found);
        warning::untraced_interrupts(&Untraced { line, description, cpus: &cpus, counted, found, named })
    };
    lines.into_iter().filter(|(_, counts)| many(counts)).map(warn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::node::TracedCount;

    #[test]
    fn only_what_the_trace_lacks_by_far_is_warned_of() {
        let counter = |cpu, name: &str, growth, traced: Option<u64>| CounterGrowth {
            cpu: CpuId::new(cpu),
            name: name.to_owned(),
            growth,
            traced: traced.map(|most| TracedCount { least: most, most }),
        };
        let counters = vec![
            counter(0, "interrupts/LOC", 5_000, Some(4_999)),
            counter(1, "interrupts/LOC", 5_000, Some(5_100)),
            counter(0, "interrupts/HVS", 2_500, Some(0)),
            counter(1, "interrupts/HVS", 2_400, Some(0)),
            counter(0, "interrupts/HYP", 10, Some(0)),
            counter(0, "interrupts/RTR", 900, None),
            counter(0, "interrupts/eth0", 900, Some(880)),
            counter(0, "softirqs/NET_RX", 900, Some(0)),
        ];
        let descriptions = BTreeMap::from([("HVS".to_owned(), "Hyper-V stimer0 interrupts")]);
        let texts = |lost: &[(u32, u64)]| -> Vec<String> {
            let lost = lost.iter().map(|(cpu, lost)| (CpuId::new(*cpu), *lost)).collect();
            untraced(&counters, &lost, &descriptions, true).into_iter().map(|warning| warning.message).collect()
        };
        let hyper_v = "the kernel counted 4900 interrupts of HVS (Hyper-V stimer0 interrupts) on CPUs 0-1, and its trace \
                       holds 0 of them";
        let network = "the kernel counted 900 interrupts of eth0 on CPU 0, and its trace holds 880 of them";
        assert_eq!(texts(&[]), [hyper_v, network]);
        // The lost events may have been these.
        assert_eq!(texts(&[(0, 20)]), [hyper_v]);
    }
}
