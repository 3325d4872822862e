//! What keeps the detours of a recording.

use becalm_attribute::Tally;
use becalm_measure::Names;
use becalm_model::LoopThread;
use becalm_model::node::{CpuDoc, NodeDoc};

use crate::LanePart;

/// Keeps what was recorded, segment by segment.
pub trait Store {
    /// Why something cannot be kept.
    type Error;

    /// The loops are calibrated and about to start. `node` is the document before anything was measured, `threads` has one
    /// entry for each CPU, in the order of the parts' positions. Fails if nothing can be stored; the recording does not
    /// begin.
    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), Self::Error>;

    /// Takes a portion of a CPU's part of a segment. `pause` is to be called within long work, after each small portion of it:
    /// it may sleep, where the recorder has no CPU of its own.
    fn take(&mut self, part: LanePart<'_>, names: &Names, pause: &mut dyn FnMut()) -> Result<(), Self::Error>;

    /// Every CPU's part of the segment has been given. `pause` is as above. Fails if the segment cannot be stored; the
    /// recording ends.
    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), Self::Error>;

    /// Enters what was seen on each CPU into its document. `tallies` are those of the attribution, in the order of the
    /// lanes.
    fn enter(&mut self, cpus: &mut [CpuDoc], tallies: &[Tally]);

    /// Completes and stores the document of the finished recording.
    fn close(&mut self, node: &mut NodeDoc) -> Result<(), Self::Error>;
}
