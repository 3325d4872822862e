//! The costs of ticks and switches with a number of runnable threads.

use becalm_analyze::events::{EventRate, event_rates};

use crate::documents::{SchedulerDoc, TicksDoc};

/// A measurement with a number of runnable threads. Figures that need the kernel's trace are `None` without it.
#[derive(Clone, PartialEq, Debug)]
pub struct SchedulerCost {
    /// Threads that never sleep, all on the one CPU.
    pub runnable: u32,
    /// Ticks per second.
    pub ticks_hz: Option<f64>,
    /// The mean time of a tick's handler, in nanoseconds.
    pub tick_mean_ns: Option<f64>,
    /// The longest tick, in nanoseconds.
    pub tick_max_ns: Option<i64>,
    /// Switches per second between counting threads.
    pub preemptions_hz: Option<f64>,
    /// The time of a switch between yielding threads, in nanoseconds; `None` without switches.
    pub switch_ns: Option<f64>,
    /// The share of yield calls that led to a switch.
    pub switched_ratio: Option<f64>,
    /// The time of a yield call, in nanoseconds.
    pub yield_ns: Option<f64>,
    /// The share of the CPU that tick handlers took from counting threads.
    pub ticks_ratio: Option<f64>,
    /// The share that switches took meanwhile, at the time of a switch between yielding threads; 0 for one thread.
    pub switches_ratio: Option<f64>,
    /// Events that the kernel lost; ticks among them are not counted.
    pub lost_events: Option<u64>,
    /// Counts of the processor in a call to give way.
    pub events: Vec<EventRate>,
}

impl SchedulerCost {
    /// The figures of one number of runnable threads.
    pub fn new(doc: &SchedulerDoc) -> Self {
        let each = |total: f64, count: u64| (count > 0).then(|| total / count as f64);
        let ticks = doc.ticks.filter(|ticks| ticks.window_ns > 0);
        let rate = |count: fn(TicksDoc) -> u64| ticks.map(|ticks| count(ticks) as f64 * 1e9 / ticks.window_ns as f64);
        let elapsed = doc.elapsed_ns as f64;
        // With one thread, the few switches are to unrelated threads.
        let switch_ns = each(elapsed, doc.switches).filter(|_| doc.runnable > 1);
        let preemptions_hz = rate(|ticks| ticks.switches);
        let switches_ratio = match doc.runnable {
            1 => ticks.map(|_| 0.0),
            _ => preemptions_hz.zip(switch_ns).map(|(hz, ns)| hz * ns / 1e9),
        };
        Self {
            runnable: doc.runnable,
            ticks_hz: rate(|ticks| ticks.interrupts),
            tick_mean_ns: ticks.and_then(|ticks| each(ticks.handler_ns as f64, ticks.interrupts)),
            tick_max_ns: ticks.filter(|ticks| ticks.interrupts > 0).map(|ticks| ticks.handler_max_ns),
            preemptions_hz,
            switch_ns,
            switched_ratio: each(doc.switches as f64, doc.yields),
            yield_ns: each(elapsed, doc.yields),
            ticks_ratio: ticks.map(|ticks| ticks.handler_ns as f64 / ticks.window_ns as f64),
            switches_ratio,
            lost_events: ticks.map(|ticks| ticks.lost_events),
            events: event_rates(&doc.counts, doc.counted_yields),
        }
    }
}

impl SchedulerCost {
    /// The share of the CPU that the scheduler takes in total, ticks and switches (Tsafrir 2007, figure 3).
    pub fn overhead_ratio(&self) -> Option<f64> {
        self.ticks_ratio.zip(self.switches_ratio).map(|(ticks, switches)| ticks + switches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_time_by_switches_and_one_thread_has_none() {
        let ticks = TicksDoc {
            interrupts: 500,
            handler_ns: 1_500_000,
            handler_max_ns: 9_000,
            switches: 20,
            window_ns: 2_000_000_000,
            lost_events: 3,
        };
        let doc = SchedulerDoc {
            runnable: 4,
            ticks: Some(ticks),
            yields: 2_000,
            switches: 1_000,
            elapsed_ns: 2_000_000,
            ..SchedulerDoc::default()
        };
        let cost = SchedulerCost::new(&doc);
        assert_eq!((cost.ticks_hz, cost.preemptions_hz), (Some(250.0), Some(10.0)));
        assert_eq!((cost.tick_mean_ns, cost.tick_max_ns, cost.lost_events), (Some(3_000.0), Some(9_000), Some(3)));
        assert_eq!((cost.switch_ns, cost.yield_ns, cost.switched_ratio), (Some(2_000.0), Some(1_000.0), Some(0.5)));
        // 1.5 ms of ticks in 2 s, and 10 switches a second of 2 us each.
        assert_eq!((cost.ticks_ratio, cost.switches_ratio), (Some(0.000_75), Some(0.000_02)));
        assert!((cost.overhead_ratio().unwrap() - 0.000_77).abs() < 1e-12);
        let one = SchedulerCost::new(&SchedulerDoc { runnable: 1, ..doc.clone() });
        assert_eq!(one.overhead_ratio(), one.ticks_ratio);
        let alone = SchedulerCost::new(&SchedulerDoc { runnable: 1, ticks: None, ..doc.clone() });
        assert_eq!((alone.switch_ns, alone.ticks_hz, alone.lost_events), (None, None, None));
        assert_eq!(alone.overhead_ratio(), None);
        let nothing = SchedulerCost::new(&SchedulerDoc { yields: 0, switches: 0, ..doc.clone() });
        assert_eq!((nothing.switch_ns, nothing.yield_ns, nothing.switched_ratio), (None, None, None));
        let empty = TicksDoc { interrupts: 0, window_ns: 0, ..ticks };
        assert_eq!(SchedulerCost::new(&SchedulerDoc { ticks: Some(empty), ..doc }).tick_mean_ns, None);
    }
}
