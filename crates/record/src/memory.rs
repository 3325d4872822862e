//! The in-memory store, for short recordings that the recording program evaluates itself.

use std::convert::Infallible;

use becalm_attribute::Tally;
use becalm_measure::Names;
use becalm_model::node::{CpuDoc, NodeDoc};
use becalm_model::{Activity, Detour, Labels, LoopThread, Step};
use becalm_units::CpuId;

use crate::{LanePart, Store};

/// The recorded data of one CPU.
#[derive(Debug)]
pub struct MemoryLane {
    /// The measured CPU.
    pub cpu: CpuId,
    /// The steps that were kept, in order of time.
    pub steps: Vec<Step>,
    /// The iterations done in each step; empty if the loop does no work.
    pub work: Vec<u64>,
    /// The detours of the steps, in order of time.
    pub detours: Vec<Detour>,
    /// The activities in the detours, in the order of the detours; empty if the kernel was not traced.
    pub activities: Vec<Activity>,
    /// The counts of attribution; complete once the recording is.
    pub tally: Tally,
}

/// Keeps all data of a recording.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// One entry per CPU, in ascending order.
    pub lanes: Vec<MemoryLane>,
    /// The texts of the activities' labels, as of the last segment.
    pub labels: Labels,
}

impl Store for MemoryStore {
    type Error = Infallible;

    fn begin(&mut self, _: &NodeDoc, threads: &[LoopThread], _: &mut Names) -> Result<(), Infallible> {
        let lane = |thread: &LoopThread| MemoryLane {
            cpu: thread.cpu,
            steps: Vec::new(),
            work: Vec::new(),
            detours: Vec::new(),
            activities: Vec::new(),
            tally: Tally::default(),
        };
        self.lanes = threads.iter().map(lane).collect();
        Ok(())
    }

    fn take(&mut self, part: LanePart<'_>, _: &Names, _: &mut dyn FnMut()) -> Result<(), Infallible> {
        let lane = &mut self.lanes[part.index];
        lane.steps.extend_from_slice(part.steps);
        lane.work.extend_from_slice(part.work);
        lane.detours.extend_from_slice(part.detours);
        lane.activities.extend_from_slice(part.activities);
        Ok(())
    }

    fn end_segment(&mut self, names: &Names, _: &mut dyn FnMut()) -> Result<(), Infallible> {
        self.labels = names.labels.clone();
        Ok(())
    }

    fn enter(&mut self, _: &mut [CpuDoc], tallies: &[Tally]) {
        for (lane, tally) in self.lanes.iter_mut().zip(tallies) {
            lane.tally = *tally;
        }
    }

    fn close(&mut self, _: &mut NodeDoc) -> Result<(), Infallible> {
        Ok(())
    }
}
