//! Where what was recorded goes.

use becalm_model::{Event, LoopThread, NodeDoc, Step};
use becalm_units::Nanos;

use crate::trace::Names;

/// What one CPU gave since the batch before.
#[derive(Clone, Copy, Debug)]
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
    /// The steps that the loop only counted, as there was no room for them, and their sum.
    pub unstored: (u64, Nanos),
}

/// Something that takes a recording while it is made, segment by segment.
pub trait Sink {
    /// What can go wrong while taking it.
    type Error;

    /// The loops are calibrated and about to start.
    ///
    /// # Errors
    /// If nothing can be stored; the recording does not begin.
    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), Self::Error>;

    /// Takes a CPU's part of a segment.
    ///
    /// # Errors
    /// If it cannot be taken; the recording ends.
    fn batch(&mut self, batch: Batch<'_>, names: &mut Names) -> Result<(), Self::Error>;

    /// Every CPU's part of the segment has been given.
    ///
    /// # Errors
    /// If it cannot be stored; the recording ends.
    fn end_segment(&mut self, names: &Names) -> Result<(), Self::Error>;
}
