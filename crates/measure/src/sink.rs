//! The receiver of recorded data.

use std::ops::AddAssign;

use becalm_model::unseen::Watch;
use becalm_model::{Event, LoopThread, NodeDoc, Step};
use becalm_units::Nanos;

use crate::trace::Names;

/// The data of one CPU since the previous batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    /// The position of the CPU among the loops.
    pub index: usize,
    /// The steps that reached the threshold, or the samples, in order of time.
    pub steps: &'a [Step],
    /// The iterations done in each of the steps, if the loops do work; empty otherwise.
    pub work: &'a [u64],
    /// The kernel events, in order of time. They may be later than the last step.
    pub events: &'a [Event],
    /// When the loop took its first reading; `None` before that.
    pub began: Option<Nanos>,
    /// No further step will start before this instant.
    pub complete_until: Nanos,
    /// When tracing ended, if it ended before the recording.
    pub traced_until: Option<Nanos>,
    /// Counts of the CPU between two reads, in order of time. They come before the steps that they may explain, like the sibling's steps.
    pub watches: &'a [Watch],
    /// The steps of the measured hyperthread sibling of its core; empty without one.
    pub sibling: &'a [Step],
    /// The number and sum of steps that the loop only counted because the ring was nearly full.
    pub unstored: Unstored,
}

/// Steps or detours that were only counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unstored {
    /// Their number.
    pub count: u64,
    /// Their sum.
    pub total: Nanos,
}

impl AddAssign for Unstored {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.total += other.total;
    }
}

/// Receives a recording while it is made, segment by segment.
pub trait Sink {
    /// An error while receiving it.
    type Error;

    /// The loops are calibrated and about to start. If this fails, the recording does not start.
    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), Self::Error>;

    /// Takes a portion of a CPU's part of a segment; the number of portions makes no difference. Long work must call `pause` after each small
    /// portion: it may sleep if the recorder has no CPU of its own.
    fn batch(&mut self, batch: Batch<'_>, names: &mut Names, pause: &mut dyn FnMut()) -> Result<(), Self::Error>;

    /// Every CPU's part of the segment is complete. `pause` is as above.
    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), Self::Error>;
}
