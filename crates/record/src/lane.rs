//! The lane of one measured CPU turns its steps and kernel events into detours and activities.

use becalm_attribute::{Attributor, Tally};
use becalm_measure::{Batch, Unstored};
use becalm_model::{Activity, Detour, Label, Labels, LoopThread, Platform, Step, Tasks};
use becalm_units::Nanos;

/// The data of one CPU since the previous part.
#[derive(Clone, Copy, Debug)]
pub struct LanePart<'a> {
    /// The position of the CPU among the lanes.
    pub index: usize,
    /// The thread that measured the CPU.
    pub thread: LoopThread,
    /// The steps that were kept, in order of time; for a loop that does work, the samples.
    pub steps: &'a [Step],
    /// The iterations done in each step; empty if the loop does no work.
    pub work: &'a [u64],
    /// The detours of the steps, in order of time.
    pub detours: &'a [Detour],
    /// The activities in the detours, in the order of the detours; empty if the kernel is not traced.
    pub activities: &'a [Activity],
    /// The loop's first reading; `None` before that.
    pub began: Option<Nanos>,
    /// No further detour will start before this instant.
    pub complete_until: Nanos,
    /// The number and sum of the detours that were only counted because the ring was nearly full.
    pub unstored: Unstored,
}

/// A measured CPU with its state so far.
#[derive(Debug)]
pub struct Lane {
    thread: LoopThread,
    /// `None` if the kernel is not traced. The sources are then unknown, which is not the same as `unseen`.
    attributor: Option<Attributor>,
    detours: Vec<Detour>,
    activities: Vec<Activity>,
}

impl Lane {
    /// Starts the lane of a thread. `traced` is the platform below the kernel, if its events will come.
    #[must_use]
    pub fn new(thread: LoopThread, traced: Option<Platform>, labels: &mut Labels) -> Self {
        Self {
            thread,
            attributor: traced.map(|platform| Attributor::new(thread, platform, labels)),
            detours: Vec::new(),
            activities: Vec::new(),
        }
    }

    /// Attributes the steps of a batch to the kernel events in them. Without a trace, each step becomes a detour without activities. The result is
    /// valid until the next batch.
    pub fn attribute<'a>(&'a mut self, batch: Batch<'a>, tasks: &Tasks, labels: &mut Labels) -> LanePart<'a> {
        self.detours.clear();
        self.activities.clear();
        match &mut self.attributor {
            Some(attributor) => {
                let (detours, activities) = (&mut self.detours, &mut self.activities);
                batch.traced_until.into_iter().for_each(|until| attributor.end_trace(until));
                attributor.look_beside(batch.watches, batch.sibling);
                attributor.attribute(batch.steps, batch.events, tasks, labels, detours, activities);
                attributor.advance(batch.complete_until, tasks, labels);
            }
            None => self.detours.extend(batch.steps.iter().map(|step| self.thread.detour(*step))),
        }
        let Unstored { count, total } = batch.unstored;
        LanePart {
            index: batch.index,
            thread: self.thread,
            steps: batch.steps,
            work: batch.work,
            detours: &self.detours,
            activities: &self.activities,
            began: batch.began,
            complete_until: batch.complete_until,
            unstored: Unstored { count, total: Step::sum_of_detours(count, total, self.thread.t_min) },
        }
    }

    /// Ends the lane and returns the counts of attribution.
    pub fn finish(&mut self, labels: &mut Labels) -> Tally {
        self.attributor.as_mut().map_or_else(Tally::default, |attributor| attributor.finish(labels))
    }

    /// The pairs of threads between which switches were missing in detours, the first few.
    pub fn missing_switches(&self) -> impl Iterator<Item = Label> {
        self.attributor.iter().flat_map(|attributor| attributor.missing_switches().iter().copied())
    }
}
