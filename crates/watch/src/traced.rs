//! All results of the standing trace since the start, and their publication.

use std::collections::{BTreeMap, HashMap};

use becalm_attribute::Interruptions;
use becalm_measure::Drained;
use becalm_model::{Kind, Label, Labels, root};
use becalm_units::{CpuId, CpuList, Nanos};

use crate::exposition::{Exposition, Type, Value};
use crate::histogram::Lengths;
use crate::sources::Sources;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TraceState {
    /// It is disabled or impossible.
    #[default]
    Off,
    /// It is on.
    On,
    /// The events cost more than the budget allows; it resumes when that is paid off.
    Resting,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuTraced {
    observed: Nanos,
    interrupted: Nanos,
    /// In the last traced interval.
    longest: Option<Nanos>,
}

/// All totals since the start.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    /// Whether it is on.
    pub state: TraceState,
    /// How often it rested.
    pub rests: u64,
    /// How often it was found changed by another program.
    pub disturbed: u64,
    /// Reads with an interruption that raised an alert.
    pub alerts: u64,
    /// The cost of an event for the thread that it interrupts.
    pub event_cost: Nanos,
    cpus: BTreeMap<CpuId, CpuTraced>,
    lengths: Lengths,
    pub sources: Sources,
    drained: Drained,
    /// By kind, source and detail, which may name another source that it is charged to.
    ids: HashMap<(Kind, Label, Label), Nanos>,
}

impl Traced {
    /// The total cost of all events for the threads that they interrupted, as far as known.
    pub fn cost(&self) -> Nanos {
        cost_of(self.drained.events + self.drained.lost, self.event_cost)
    }

    /// Counts the events read from the buffers, and returns their cost.
    pub fn count(&mut self, drained: Drained) -> Nanos {
        self.drained.events += drained.events;
        self.drained.lost += drained.lost;
        self.drained.broken += drained.broken;
        cost_of(drained.events + drained.lost, self.event_cost)
    }

    /// Adds the results on a CPU since the last call, with the observed time. After all CPUs, the caller must settle the sources.
    pub fn add(&mut self, cpu: CpuId, observed: Nanos, found: &Interruptions, labels: &Labels) {
        let sums = self.cpus.entry(cpu).or_default();
        sums.observed += observed;
        sums.longest = Some(found.detours.iter().map(|detour| detour.duration).max().unwrap_or(Nanos::ZERO));
        for detour in &found.detours {
            self.lengths.add(detour.duration);
            sums.interrupted += detour.duration;
        }
        for row in &found.activities {
            *self.ids.entry((row.kind, row.source, row.detail)).or_default() += row.self_time;
        }
        for ((kind, source, detail), time) in self.ids.drain() {
            let (kind, source) = root::row_root(kind, labels.text(source), labels.text(detail));
            self.sources.add(kind, source, time);
        }
    }

    /// Marks the last interval as unknown.
    pub fn end_interval(&mut self) {
        self.cpus.values_mut().for_each(|sums| sums.longest = None);
    }

    /// Only these CPUs exist and are wanted: drops the last interval of others, and of all if nothing is traced.
    pub fn keep_cpus(&mut self, cpus: &CpuList) {
        for (cpu, sums) in &mut self.cpus {
            sums.longest = sums.longest.filter(|_| self.state != TraceState::Off && cpus.contains(*cpu));
        }
    }

    pub fn tell(&mut self, out: &mut Exposition) {
        let state = match self.state {
            TraceState::Off => -1.0,
            TraceState::On => 1.0,
            TraceState::Resting => 0.0,
        };
        out.gauge("becalm_trace_state", "1 while the kernel is traced, 0 while tracing rests because the events exceed the budget, -1 if it is not traced.", Value::Number(state));
        out.counter("becalm_trace_rests", "How often tracing went to rest.", Value::Count(self.rests));
        out.counter("becalm_trace_disturbed", "How often another program changed becalm's trace, or the trace lacked what the kernel counted; the interval counts as not traced, and the trace is set up again.", Value::Count(self.disturbed));
        let alerts = Value::Count(self.alerts);
        out.counter("becalm_trace_alerts", "Intervals with an interruption that raised an alert.", alerts);
        out.family("becalm_trace_events", Type::Counter, "Kernel events that were traced between the windows.");
        for (result, count) in [("read", self.drained.events), ("lost", self.drained.lost)] {
            out.sample(&[("result", result)], Value::Count(count));
        }
        out.counter(
            "becalm_trace_broken_pages",
            "Pages of the trace with an invalid format.",
            Value::Count(self.drained.broken),
        );
        self.tell_cpus(out);
        out.single(
            "becalm_interruption_duration_seconds",
            Type::Histogram,
            "Interruptions of all traced CPUs by length.",
            Value::Lengths(Box::new(self.lengths.clone())),
        );
        out.sources(
            "becalm_traced_source_seconds",
            "Time charged to a source while the CPU was traced; sources without a series of their own are source other.",
            &mut self.sources,
        );
    }

    fn tell_cpus(&self, out: &mut Exposition) {
        let cpus: Vec<(String, &CpuTraced)> = self.cpus.iter().map(|(cpu, sums)| (cpu.to_string(), sums)).collect();
        let mut each = |name, kind, help, value: &dyn Fn(&CpuTraced) -> Option<Nanos>| {
            out.family(name, kind, help);
            for (cpu, sums) in &cpus {
                value(sums).into_iter().for_each(|time| out.sample(&[("cpu", cpu)], Value::Time(time)));
            }
        };
        each(
            "becalm_traced_seconds",
            Type::Counter,
            "Traced time of the CPU, without gaps of dropped events.",
            &|sums| Some(sums.observed),
        );
        each(
            "becalm_interrupted_seconds",
            Type::Counter,
            "Time that interrupts, softirqs and kernel threads took of the CPU while it was traced.",
            &|sums| Some(sums.interrupted),
        );
        each(
            "becalm_longest_interruption_seconds",
            Type::Gauge,
            "Longest time without a break that they took of the CPU in its last traced interval.",
            &|sums| sums.longest,
        );
    }
}

fn cost_of(events: u64, each: Nanos) -> Nanos {
    Nanos::new(i64::try_from(events).unwrap_or(i64::MAX).saturating_mul(each.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_model::{Activity, Detour};

    use crate::exposition::text;
    use crate::request::Format;

    #[test]
    fn what_was_traced_is_told() {
        let mut labels = Labels::new();
        let (cpu, start) = (CpuId::new(3), Nanos::ZERO);
        let source = labels.intern("timer");
        let (softirq, tick) = (labels.intern("rcu"), labels.intern("irq:timer"));
        let row =
            |self_time| Activity { cpu, detour: 7, start, self_time, kind: Kind::Irq, source, detail: Label::EMPTY };
        let found = Interruptions {
            detours: vec![Detour { cpu, start, duration: Nanos::from_micros(5), incomplete: false }],
            activities: vec![
                row(Nanos::from_micros(1)),
                row(Nanos::from_micros(3)),
                Activity { kind: Kind::Softirq, source: softirq, detail: tick, ..row(Nanos::from_micros(1)) },
            ],
        };
        let mut traced = Traced { state: TraceState::On, event_cost: Nanos::new(250), ..Traced::default() };
        traced.add(cpu, Nanos::from_secs(2), &found, &labels);
        traced.sources.settle(5);
        assert_eq!(traced.count(Drained { events: 4, lost: 2, broken: 0 }), Nanos::new(1_500));
        let mut out = Exposition::default();
        traced.tell(&mut out);
        let text = text(&out.end(), Format::OpenMetrics);
        for line in [
            "becalm_trace_state 1",
            "becalm_trace_events_total{result=\"lost\"} 2",
            "becalm_traced_seconds_total{cpu=\"3\"} 2.000000000",
            "becalm_interrupted_seconds_total{cpu=\"3\"} 0.000005000",
            "becalm_longest_interruption_seconds{cpu=\"3\"} 0.000005000",
            "becalm_interruption_duration_seconds_bucket{le=\"5e-06\"} 1",
            "becalm_traced_source_seconds_total{kind=\"irq\",source=\"timer\"} 0.000005000",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
        }
    }
}
