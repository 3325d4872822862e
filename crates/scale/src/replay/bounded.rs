//! Every rank in every phase, but nearly all with a single look-up in a table of bounds ([`DelayTable::bounds`]). The delay is computed only for
//! ranks with a bound above the best so far.
//!
//! Used for hundreds to a few thousand ranks under dense noise, where the sorted pieces are too many to walk down and each rank meets many detours,
//! and for long grains.

use becalm_units::Nanos;

use super::{Clock, OffsetIndex};
use crate::ScaleError;
use crate::delay::DelayTable;

/// Runs all remaining phases.
pub(super) fn run(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
) -> Result<(), ScaleError> {
    let bounds = table.bounds();
    while !clock.finished() {
        let mut best = 0;
        // Units that may be later than the best so far, by at least 1 ns.
        bounds.each_above(index.iter().map(OffsetIndex::offsets), clock.now, 1, |kind, position| {
            best = best.max(bounds.delay(&table.kinds()[kind], kind, position));
            best + 1
        });
        clock.advance(best)?;
    }
    Ok(())
}
