//! Hardware and kernel counters of a loop, started just before and stopped just after it, so the loop makes no system call.

use std::fmt::Write;

use becalm_linux::clock::Counter;
use becalm_linux::perf::{CountedEvent, Counters, CountersError, PerfEvent, Space, UncountedEvent};
use becalm_model::event_count::{CountedIn, EventCount};
use becalm_model::node::WorkCount;
use becalm_units::{CpuId, Named};

/// Counted events, and those that could not be counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventTotals {
    /// The counted events and their values.
    pub counts: Vec<CountedEvent>,
    /// The events that were not counted, with the reason in words; one line per reason.
    pub not_counted: Vec<String>,
}

impl EventTotals {
    /// The counts as rows of the document.
    pub fn rows(&self, cpu: CpuId) -> Vec<WorkCount> {
        self.counts.iter().map(|count| WorkCount { cpu, count: event_count(count) }).collect()
    }
}

/// Runs a loop with the calling thread's counters enabled. They start when the counter reads `from`, shortly before the loop.
pub fn run_counted<C: Counter, R>(counters: Option<Counters>, from: u64, run: impl FnOnce() -> R) -> (R, EventTotals) {
    let Some(mut counters) = counters else { return (run(), EventTotals::default()) };
    while C::read() < from {
        std::hint::spin_loop();
    }
    let started = counters.start();
    let ran = run();
    let counts = started.and_then(|()| counters.stop()).and_then(|()| counters.read());
    let mut not_counted = reasons(counters.missing());
    let counts = counts.unwrap_or_else(|error: CountersError| {
        not_counted.push(error.to_string());
        Vec::new()
    });
    (ran, EventTotals { counts, not_counted })
}

/// The events that this machine can count in user space or in the kernel, and one line per reason why others cannot be counted.
pub fn countable(events: &[PerfEvent]) -> (Vec<PerfEvent>, Vec<String>) {
    let counters = Counters::for_current_thread(events, &Space::APART);
    let missing = counters.missing();
    let is_counted = |event: &PerfEvent| missing.iter().filter(|one| one.event == *event).count() < Space::APART.len();
    (events.iter().copied().filter(is_counted).collect(), reasons(missing))
}

/// The stored form of a count.
pub fn event_count(count: &CountedEvent) -> EventCount {
    EventCount {
        event: count.event.name().to_owned(),
        space: match count.space {
            Space::User => CountedIn::User,
            Space::Kernel => CountedIn::Kernel,
        },
        value: count.value,
        enabled_ns: count.enabled.get(),
        // The two are read one after the other.
        running_ns: count.running.get().min(count.enabled.get()),
    }
}

/// One line per reason: `cycles, instructions (kernel): not permitted`.
fn reasons(missing: &[UncountedEvent]) -> Vec<String> {
    let mut reasons: Vec<&str> = missing.iter().map(|one| one.why.as_str()).collect();
    reasons.dedup();
    reasons.sort_unstable();
    reasons.dedup();
    let line = |why: &str| {
        let spaces = |event: PerfEvent| -> Vec<Space> {
            missing.iter().filter(|one| one.event == event && one.why == why).map(|one| one.space).collect()
        };
        let mut events: Vec<PerfEvent> = missing.iter().filter(|one| one.why == why).map(|one| one.event).collect();
        events.sort_unstable();
        events.dedup();
        let mut line = String::new();
        for (at, event) in events.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let _ = match spaces(*event)[..] {
                [space] => write!(line, "{comma}{event} ({})", space.name()),
                _ => write!(line, "{comma}{event}"),
            };
        }
        format!("{line}: {why}")
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::clock::MonotonicRaw;

    #[test]
    fn a_reason_is_said_once() {
        let uncounted = |event, space, why: &str| UncountedEvent { event, space, why: why.to_owned() };
        let missing = [
            uncounted(PerfEvent::Cycles, Space::User, "no such counter"),
            uncounted(PerfEvent::Instructions, Space::User, "no such counter"),
            uncounted(PerfEvent::Cycles, Space::Kernel, "no such counter"),
            uncounted(PerfEvent::Instructions, Space::Kernel, "not permitted"),
        ];
        assert_eq!(
            reasons(&missing),
            ["cycles, instructions (user): no such counter", "instructions (kernel): not permitted"]
        );
        assert!(reasons(&[]).is_empty());
    }

    #[test]
    fn a_loop_is_counted_from_its_start_to_its_end() {
        let open = || Counters::for_current_thread(&[PerfEvent::PageFaults, PerfEvent::TaskClock], &[Space::User]);
        let from = MonotonicRaw::read() + 2_000_000;
        let fault = || {
            let memory = vec![1_u8; 8 << 20];
            (MonotonicRaw::read(), std::hint::black_box(memory).len())
        };
        let ((at, _), counted) = run_counted::<MonotonicRaw, _>(Some(open()), from, fault);
        assert!(at >= from);
        if counted.counts.is_empty() {
            // A container that forbids counters reports it.
            assert!(!counted.not_counted.is_empty());
            return;
        }
        let rows = counted.rows(CpuId::new(3));
        let value = |event: &str| rows.iter().find(|row| row.count.event == event).map(|row| row.count.value);
        // With huge pages, four faults are enough.
        assert!(value("page_faults") >= Some(4), "{rows:?}");
        assert!(value("task_clock_ns") > Some(0), "{rows:?}");
        let whole = |count: &EventCount| count.space == CountedIn::User && count.enabled_ns == count.running_ns;
        assert!(rows.iter().all(|row| row.cpu == CpuId::new(3) && whole(&row.count)));
        // Without counters, the loop still runs.
        assert_eq!(run_counted::<MonotonicRaw, _>(None, u64::MAX, || 7), (7, EventTotals::default()));
    }
}
