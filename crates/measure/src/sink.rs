//! Where what was recorded goes.

use std::ops::AddAssign;

use becalm_model::unseen::Watch;
use becalm_model::{Event, LoopThread, NodeDoc, Step};
use becalm_units::Nanos;

use crate::trace::Names;

/// What one CPU gave since the batch before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    /// The position of the CPU among the loops.
    pub index: usize,
    /// The steps that reached the threshold, or the samples, in order of time.
    pub steps: &'a [Step],
    /// The iterations done in each of the steps, if the loops do work; empty otherwise.
    pub work: &'a [u64],
    /// The kernel events, in order of time. They may reach beyond the last step.
    pub events: &'a [Event],
    /// When the loop took its first reading; `None` before that.
    pub began: Option<Nanos>,
    /// No step that begins before this instant will come any more.
    pub complete_until: Nanos,
    /// Until when the kernel was traced, if that ended before the recording.
    pub traced_until: Option<Nanos>,
    /// What was counted of the CPU between looks at it, in order of time. It comes before the steps that it may explain, as do those of
    /// the sibling.
    pub watches: &'a [Watch],
    /// The steps of the measured sibling thread of its core; none where there is no such.
    pub sibling: &'a [Step],
    /// The steps that the loop only counted, as there was no room for them, and their sum.
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

/// Something that takes a recording while it is made, segment by segment.
pub trait Sink {
    /// What can go wrong while taking it.
    type Error;

    /// The loops are calibrated and about to start. Fails if nothing can be stored; the recording does not begin.
    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), Self::Error>;

    /// Takes a portion of a CPU's part of a segment; how many there are makes no difference. `pause` is to be called within long
    /// work, after each small portion of it: it may sleep, where the recorder has no CPU of its own.
    fn batch(&mut self, batch: Batch<'_>, names: &mut Names, pause: &mut dyn FnMut()) -> Result<(), Self::Error>;

    /// Every CPU's part of the segment has been given. `pause` is as above.
    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), Self::Error>;
}
