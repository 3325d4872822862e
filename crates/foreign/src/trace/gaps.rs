//! The gaps of a loop in the kernel's own tracer, split into the tracer's events in each.

use becalm_attribute::{Attributor, Interruptions, Tally};
use becalm_measure::Names;
use becalm_model::{Event, LoopThread, Platform, Step};
use becalm_units::{CpuId, Nanos};

use super::TracerLoop;

/// Complete gaps are attributed after this many events.
const PORTION: usize = 1 << 13;

/// Follows the loop of one CPU.
#[derive(Debug)]
pub(super) struct Gaps {
    attributor: Attributor,
    steps: std::vec::IntoIter<Step>,
    /// Events not yet given to attribution.
    events: Vec<Event>,
    /// From the start of the first gap to the end of the last one.
    pub looked: Option<Step>,
}

impl Gaps {
    pub fn new(tracer: &TracerLoop, cpu: CpuId, names: &mut Names) -> Self {
        let as_loop = LoopThread { cpu, pid: tracer.thread, t_min: Nanos::ZERO, realtime: false };
        let ends = tracer.steps.first().zip(tracer.steps.last());
        Self {
            // The trace does not show whether there is a hypervisor.
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

    /// Attributes this many gaps; all of their events must have come.
    fn attribute(&mut self, count: usize, names: &mut Names, found: &mut Interruptions) {
        let Names { tasks, labels, .. } = names;
        let steps: Vec<Step> = self.steps.by_ref().take(count).collect();
        self.attributor.attribute(&steps, &self.events, tasks, labels, &mut found.detours, &mut found.activities);
        self.events.clear();
    }
}
