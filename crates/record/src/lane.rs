//! One measured CPU: its steps and kernel events become detours and activities.

use becalm_attribute::{Attributor, Tally};
use becalm_measure::{Batch, Unstored};
use becalm_model::{Activity, Detour, Label, Labels, LoopThread, Platform, Step, Tasks};
use becalm_units::Nanos;

/// What one CPU gave since the part before.
#[derive(Clone, Copy, Debug)]
pub struct LanePart<'a> {
    /// The position of the CPU among the lanes.
    pub index: usize,
    /// The thread that measured the CPU.
    pub thread: LoopThread,
    /// The steps that were kept, in order of time; of a loop that does work, the samples.
    pub steps: &'a [Step],
    /// The iterations done in each step; empty if the loop does no work.
    pub work: &'a [u64],
    /// The detours of the steps, in order of time.
    pub detours: &'a [Detour],
    /// What the detours are split over, in the order of the detours; empty where the kernel is not traced.
    pub activities: &'a [Activity],
    /// The loop's first reading; `None` before that.
    pub began: Option<Nanos>,
    /// No detour that begins before this instant will come any more.
    pub complete_until: Nanos,
    /// The detours that were only counted, as there was no room for them, and their sum.
    pub unstored: Unstored,
}

/// A measured CPU, and what is known of its time so far.
#[derive(Debug)]
pub struct Lane {
    thread: LoopThread,
    /// `None` where the kernel is not traced. Nothing is known of the sources then, which is not the same as `unseen`.
    attributor: Option<Attributor>,
    detours: Vec<Detour>,
    activities: Vec<Activity>,
}

impl Lane {
    /// Begins the lane of a thread. `traced` says on what the kernel runs, if its events will come.
    #[must_use]
    pub fn new(thread: LoopThread, traced: Option<Platform>, labels: &mut Labels) -> Self {
        Self {
            thread,
            attributor: traced.map(|platform| Attributor::new(thread, platform, labels)),
            detours: Vec::new(),
            activities: Vec::new(),
        }
    }

    /// Splits the steps of a batch over the kernel events in them. Without a trace each step becomes a detour without
    /// activities. What is returned stays until the next batch.
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

    /// Ends the lane, and returns what attribution counted.
    pub fn finish(&mut self, labels: &mut Labels) -> Tally {
        self.attributor.as_mut().map_or_else(Tally::default, |attributor| attributor.finish(labels))
    }

    /// Between whom switches were missing in detours, the first few pairs.
    pub fn missing_switches(&self) -> impl Iterator<Item = Label> {
        self.attributor.iter().flat_map(|attributor| attributor.missing_switches().iter().copied())
    }
}
