//! The processor's counters around the samples of a probe: while armed, they count during samples, and pause while a round is prepared.

use std::cell::RefCell;

use becalm_linux::perf::{Counters, PerfEvent, Space};
use becalm_measure::loops::event_count;
use becalm_model::event_count::EventCount;

thread_local! {
    static ARMED: RefCell<Option<Counters>> = const { RefCell::new(None) };
}

/// Starts counting these events of the calling thread during samples.
pub(super) fn arm(events: &[PerfEvent]) {
    ARMED.set(Some(Counters::for_current_thread(events, &Space::APART)));
}

/// Stops counting and returns the counts; empty if that failed.
pub(super) fn disarm() -> Vec<EventCount> {
    let counts = ARMED.take().and_then(|counters| counters.total().ok()).unwrap_or_default();
    counts.iter().map(event_count).collect()
}

/// Takes samples, with the counters if armed. Checks that once per round, not per sample.
#[inline(always)]
pub(super) fn during(take: impl FnOnce()) {
    let armed = ARMED.with_borrow(|counters| counters.as_ref().is_some_and(|counters| counters.resume().is_ok()));
    take();
    if armed {
        ARMED.with_borrow(|counters| {
            // If stopping fails they count too much, and reading them will fail; the kernel has never refused it.
            let _ = counters.as_ref().map(Counters::stop);
        });
    }
}
