//! The processor's counters around the samples of a probe: armed for some rounds, they count while samples are taken, and
//! stand still while a round is prepared.

use std::cell::RefCell;

use becalm_linux::perf::{Counters, PerfEvent, Space};
use becalm_measure::loops::event_count;
use becalm_model::event_count::EventCount;

thread_local! {
    static ARMED: RefCell<Option<Counters>> = const { RefCell::new(None) };
}

/// Counts these events of the calling thread during samples from now on.
pub(super) fn arm(events: &[PerfEvent]) {
    ARMED.set(Some(Counters::for_current_thread(events, &Space::APART)));
}

/// Ends that, and returns what was counted; no counts if it failed.
pub(super) fn disarm() -> Vec<EventCount> {
    let counts = ARMED.take().and_then(|counters| counters.total().ok()).unwrap_or_default();
    counts.iter().map(event_count).collect()
}

/// Takes samples, counted where counters are armed. This looks once for all samples of a round, not within one.
#[inline(always)]
pub(super) fn during(take: impl FnOnce()) {
    let armed = ARMED.with_borrow(|counters| counters.as_ref().is_some_and(|counters| counters.resume().is_ok()));
    take();
    if armed {
        ARMED.with_borrow(|counters| {
            // If they cannot be stopped they count too much, which the kernel has never refused; reading them says so then.
            let _ = counters.as_ref().map(Counters::stop);
        });
    }
}
