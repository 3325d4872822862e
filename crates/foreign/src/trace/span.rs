//! What a trace holds of a CPU.

use becalm_model::{Event, Happening};
use becalm_units::Nanos;

/// How many events there are, and from when to when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuSpan {
    /// Events, the marks of lost ones not counted.
    pub events: u64,
    /// Events that were lost; of a gap that does not say how many, one.
    pub lost: u64,
    pub gaps: u64,
    /// The time from the last event before each gap until the first behind it.
    pub gap_time: Nanos,
    /// When the first event came; `None` if there was none.
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

    /// From the first event until the last.
    pub fn length(&self) -> Nanos {
        self.first.map_or(Nanos::ZERO, |first| self.last - first)
    }
}
