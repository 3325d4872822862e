//! Every rank in every phase, but nearly all by one look at a table of bounds ([`DelayTable::bounds`]). Only a rank whose bound is above the
//! best so far is asked for its delay.
//!
//! It is the way for few hundred to few thousand ranks under dense noise, where the sorted pieces are too many to walk
//! down and each rank meets many detours, and for long grains.

use becalm_units::Nanos;

use super::{Clock, OffsetIndex};
use crate::ScaleError;
use crate::delay::DelayTable;

/// Runs all phases that are left.
pub(super) fn run(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
) -> Result<(), ScaleError> {
    let bounds = table.bounds();
    while !clock.finished() {
        let mut best = 0;
        // Who may be later than the best so far, by 1 ns at least.
        bounds.each_above(index.iter().map(OffsetIndex::offsets), clock.now, 1, |kind, position| {
            best = best.max(bounds.delay(&table.kinds()[kind], kind, position));
            best + 1
        });
        clock.advance(best)?;
    }
    Ok(())
}
