//! Events in order of time from two sources: those kept from the previous call, and those of this one.

use becalm_model::{Event, Happening, Pid};
use becalm_units::Nanos;

/// The events not yet replayed; copied only at the end of a call.
pub(super) struct EventFeed<'a> {
    /// The events to take first.
    now: &'a [Event],
    /// The events to take when `now` is empty.
    then: &'a [Event],
}

impl<'a> EventFeed<'a> {
    pub fn new(kept: &'a [Event], fresh: &'a [Event]) -> Self {
        if kept.is_empty() { Self { now: fresh, then: &[] } } else { Self { now: kept, then: fresh } }
    }

    /// The first event that was not taken yet; none at the end.
    pub fn peek(&self) -> Option<&'a Event> {
        self.now.first()
    }

    /// Takes the next event if it is before `until`.
    pub fn next_before(&mut self, until: Nanos) -> Option<&'a Event> {
        let event = self.peek().filter(|event| event.time < until)?;
        self.skip();
        Some(event)
    }

    /// Takes the next event, if there is one.
    pub fn skip(&mut self) {
        if let [_, rest @ ..] = self.now {
            self.now = if rest.is_empty() { std::mem::take(&mut self.then) } else { rest };
        }
    }

    /// The thread that wrote the next event before `until`; `None` if there is no such event, or more events were lost
    /// before it.
    pub fn thread_of_next(&self, until: Nanos) -> Option<Pid> {
        let next = self.peek().filter(|event| event.time < until)?;
        match next.what {
            Happening::Lost { .. } => None,
            Happening::Switch { prev, .. } => Some(prev),
            _ => Some(next.thread),
        }
    }

    /// Whether the CPU idles before `until` and before this thread, which just left it, is back; not beyond lost events.
    pub fn idles_without(&self, thread: Pid, until: Nanos) -> bool {
        for event in self.coming(until) {
            let (before, after) = match event.what {
                Happening::Lost { .. } => return false,
                Happening::Switch { prev, next, .. } => (prev, next),
                _ => (event.thread, event.thread),
            };
            if let Some(first) = [before, after].into_iter().find(|pid| *pid == thread || *pid == Pid::IDLE) {
                return first != thread;
            }
        }
        false
    }

    /// The events before `until` that were not taken, in order.
    pub fn coming(&self, until: Nanos) -> impl Iterator<Item = &'a Event> + use<'a> {
        self.rest().take_while(move |event| event.time < until)
    }

    /// All events that were not taken, in order.
    pub fn rest(&self) -> impl Iterator<Item = &'a Event> + use<'a> {
        self.now.iter().chain(self.then)
    }
}
