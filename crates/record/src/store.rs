//! Stores of recorded detours.

use becalm_attribute::Tally;
use becalm_measure::Names;
use becalm_model::cause::Cause;
use becalm_model::node::{CpuDoc, NodeDoc};
use becalm_model::{Labels, LoopThread};

use crate::LanePart;

/// Stores recorded data, segment by segment.
pub trait Store {
    /// The reason why data cannot be stored.
    type Error;

    /// The loops are calibrated and about to start. `node` is the document before any measurement, `threads` has one entry per CPU, in the order of
    /// the parts' positions. If this fails, the recording does not start.
    fn begin(&mut self, node: &NodeDoc, threads: &[LoopThread], names: &mut Names) -> Result<(), Self::Error>;

    /// Takes a portion of a CPU's part of a segment. Long work must call `pause` after each small portion: it may sleep if the recorder has no CPU of
    /// its own.
    fn take(&mut self, part: LanePart<'_>, names: &Names, pause: &mut dyn FnMut()) -> Result<(), Self::Error>;

    /// Every CPU's part of the segment is complete. `pause` is as above. If the segment cannot be stored, this fails and the recording ends.
    fn end_segment(&mut self, names: &Names, pause: &mut dyn FnMut()) -> Result<(), Self::Error>;

    /// Takes a segment of the causes of activities, if they are recorded. Fails if they cannot be stored. Without an implementation they are dropped.
    fn take_causes(&mut self, _causes: &[Cause], _labels: &Labels) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Adds the counts of each CPU to its document. `tallies` are those of attribution, in the order of the lanes.
    fn enter(&mut self, cpus: &mut [CpuDoc], tallies: &[Tally]);

    /// Completes and stores the document of the finished recording.
    fn close(&mut self, node: &mut NodeDoc) -> Result<(), Self::Error>;
}
