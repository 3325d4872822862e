//! The events and the time span that a trace has of a CPU.

use becalm_model::{Event, Happening};
use becalm_units::Nanos;

/// The number of events and losses, and the time that they span.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuSpan {
    /// Events, without the marks of lost ones.
    pub events: u64,
    /// Lost events; a gap without a number counts as one.
    pub lost: u64,
    pub gaps: u64,
    /// The time from the last event before each gap to the first after it.
    pub gap_time: Nanos,
    /// The time of the first event; `None` if there was none.
    pub first: Option<Nanos>,
    pub last: Nanos,
}

impl CpuSpan {
    pub fn take(&mut self, event: &Event) {
        if let Happening::Lost { count } = event.what {
            self.lost = self.lost.saturating_add(count.unwrap_or(1).max(1));
            self.gaps += 1;
            self.gap_time += self.first.map_or(Nanos::ZERO, |_| event.time - self.last);
        } else {
            self.events += 1;
        }
        self.first.get_or_insert(event.time);
        self.last = event.time;
    }

    /// From the first event to the last.
    pub fn length(&self) -> Nanos {
        self.first.map_or(Nanos::ZERO, |first| self.last - first)
    }
}
