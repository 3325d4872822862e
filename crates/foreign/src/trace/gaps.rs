//! The gaps of a loop that ran in the kernel's own tracer, split over what the tracer says of each.

use becalm_attribute::{Attributor, Interruptions, Tally};
use becalm_measure::Names;
use becalm_model::{Event, LoopThread, Platform, Step};
use becalm_units::{CpuId, Nanos};

use super::TracerLoop;

/// After so many events the gaps that are complete are attributed.
const PORTION: usize = 1 << 13;

/// Follows the loop of one CPU.
#[derive(Debug)]
pub(super) struct Gaps {
    attributor: Attributor,
    steps: std::vec::IntoIter<Step>,
    /// Events that were not given to attribution yet.
    events: Vec<Event>,
    /// From the begin of the first gap to the end of the last one.
    pub looked: Option<Step>,
}

impl Gaps {
    pub fn new(tracer: &TracerLoop, cpu: CpuId, names: &mut Names) -> Self {
        let as_loop = LoopThread { cpu, pid: tracer.thread, t_min: Nanos::ZERO, realtime: false };
        let ends = tracer.steps.first().zip(tracer.steps.last());
        Self {
            // Whether there is a hypervisor the trace does not tell.
            attributor: Attributor::new(as_loop, Platform::Metal, &mut names.labels),
            steps: tracer.steps.clone().into_iter(),
            events: Vec::new(),
            looked: ends.map(|(first, last)| Step { start: first.start, end: last.end }),
        }
    }

    pub fn take(&mut self, event: &Event, names: &mut Names, found: &mut Interruptions) {
        self.events.push(*event);
        if self.events.len() >= PORTION {
            let complete = self.steps.as_slice().partition_point(|step| step.end <= event.time);
            self.attribute(complete, names, found);
            let until = self.steps.as_slice().first().map_or(event.time, |step| step.start.min(event.time));
            self.attributor.advance(until, &names.tasks, &mut names.labels);
        }
    }

    pub fn end(&mut self, names: &mut Names, found: &mut Interruptions) -> Tally {
        self.attribute(self.steps.as_slice().len(), names, found);
        self.attributor.finish(&mut names.labels)
    }

    /// Attributes so many gaps, of which all events have come.
    fn attribute(&mut self, count: usize, names: &mut Names, found: &mut Interruptions) {
        let Names { tasks, labels, .. } = names;
        let steps: Vec<Step> = self.steps.by_ref().take(count).collect();
        self.attributor.attribute(&steps, &self.events, tasks, labels, &mut found.detours, &mut found.activities);
        self.events.clear();
    }
}
