//! Every rank in every phase, but nearly all by one look at a table: the circle of each kind is cut into blocks, each
//! with a bound that no delay of a start within it exceeds. Only a rank whose bound is above the best so far is asked
//! for its delay, which takes the logarithm of the number of detours, however many a grain meets.
//!
//! It is the way for few hundred to few thousand ranks under dense noise, where the sorted pieces are too many to walk
//! down and each rank meets many detours, and for long grains.

use becalm_units::Nanos;

use super::{Clock, OffsetIndex};
use crate::ScaleError;
use crate::delay::{DelayTable, Laps, laps};

/// Blocks of a circle, where it has as many pieces: half a megabyte of bounds, which stay in a core's own cache.
const BLOCKS: i64 = 1 << 17;
/// Blocks of a circle at most, where the grain is so short that coarser ones would tell nothing.
const BLOCKS_MAX: i64 = 1 << 21;
/// Blocks of a grain that are aimed at.
const BLOCKS_PER_GRAIN: i64 = 8;
/// Blocks that are worth their filling, by the pieces that fill them.
const BLOCKS_PER_PIECE: i64 = 8;

/// The bounds of one kind's delay function.
struct KindBounds {
    length: i64,
    /// A block is 2^shift ns long.
    shift: u32,
    bounds: Vec<u32>,
    /// The whole laps and the rest of the grain, for each of its traces.
    laps: Vec<Laps>,
}

/// Bounds of the delays of all kinds of units, and the delays themselves.
pub(crate) struct DelayBounds<'t, 'a> {
    table: &'t DelayTable<'a>,
    kinds: Vec<KindBounds>,
    /// A bound counts 2^quantum ns.
    quantum: u32,
}

impl<'t, 'a> DelayBounds<'t, 'a> {
    /// # Errors
    /// None that the table has not found.
    pub(crate) fn new(table: &'t DelayTable<'a>) -> Result<Self, ScaleError> {
        let mut quantum = 0;
        while table.max_delay().get() >> quantum >= i64::from(u32::MAX) {
            quantum += 1;
        }
        let mut counts = vec![0_i64; table.kinds().len()];
        for piece in table.pieces() {
            counts[piece.kind as usize] += 1;
        }
        let mut kinds = Vec::with_capacity(counts.len());
        for (kind, count) in table.kinds().iter().zip(counts) {
            let shift = shift(kind.length, table.grain().get(), count);
            let blocks = ((kind.length - 1) >> shift) as usize + 1;
            let laps: Result<Vec<Laps>, ScaleError> =
                kind.traces.iter().map(|trace| laps(trace, table.grain())).collect();
            let bounds = vec![quanta(kind.base, quantum); blocks];
            kinds.push(KindBounds { length: kind.length, shift, bounds, laps: laps? });
        }
        for piece in table.pieces() {
            let kind = &mut kinds[piece.kind as usize];
            let (first, last) = (piece.start >> kind.shift, (piece.start + piece.length - 1) >> kind.shift);
            for block in first..=last {
                // Within the falling part a later block has a lower bound.
                let begin = block << kind.shift;
                let fallen = (begin - piece.start - piece.flat).max(0);
                let bound = quanta(piece.delay - fallen, quantum);
                let number = if begin < kind.length { block } else { (begin - kind.length) >> kind.shift };
                kind.raise(number as usize, bound);
                // The circle's last block is shorter, so that later ones straddle two of the next lap's.
                let end = (begin + (1 << kind.shift) - 1).min(piece.start + piece.length - 1);
                if end >= kind.length {
                    kind.raise(((end - kind.length) >> kind.shift) as usize, bound);
                }
            }
        }
        Ok(Self { table, kinds, quantum })
    }

    /// The delay of a unit that starts a phase at a position on the circle of its kind.
    pub(crate) fn delay(&self, kind: usize, position: i64) -> i64 {
        let traces = self.table.kinds()[kind].traces.iter().zip(&self.kinds[kind].laps);
        traces.map(|(trace, laps)| laps.delay + trace.meet(position, laps.rest).delay).max().unwrap_or(0)
    }

    /// Calls with the kind and the position of every unit in use whose bound is at least `least()` at a time of the
    /// common clock; `found` may raise it.
    #[inline]
    pub(crate) fn each_above(
        &self,
        index: &[OffsetIndex],
        now: i64,
        least: i64,
        mut found: impl FnMut(usize, i64) -> i64,
    ) {
        let mut floor = self.floor(least);
        for (number, (kind, offsets)) in self.kinds.iter().zip(index).enumerate() {
            let turn = now % kind.length;
            for offset in offsets.offsets() {
                let mut position = offset + turn;
                if position >= kind.length {
                    position -= kind.length;
                }
                if i64::from(kind.bounds[(position >> kind.shift) as usize]) >= floor {
                    floor = self.floor(found(number, position));
                }
            }
        }
    }

    /// The lowest bound that a delay of `least` can have.
    fn floor(&self, least: i64) -> i64 {
        i64::from(quanta(least, self.quantum))
    }
}

impl KindBounds {
    fn raise(&mut self, block: usize, bound: u32) {
        let here = &mut self.bounds[block];
        *here = (*here).max(bound);
    }
}

/// A delay in quanta, rounded up. All delays of a table fit.
fn quanta(delay: i64, quantum: u32) -> u32 {
    let quanta = (delay >> quantum) + i64::from(delay & ((1 << quantum) - 1) != 0);
    u32::try_from(quanta).unwrap_or(u32::MAX)
}

/// How long blocks are, as a power of two.
fn shift(length: i64, grain: i64, pieces: i64) -> u32 {
    let fine = length / (grain / BLOCKS_PER_GRAIN).max(1);
    let blocks = fine.clamp(BLOCKS, BLOCKS_MAX).min((pieces * BLOCKS_PER_PIECE).max(1));
    let mut shift = 0;
    while length >> shift > blocks {
        shift += 1;
    }
    shift
}

/// Runs all phases that are left.
pub(super) fn run(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
) -> Result<(), ScaleError> {
    let bounds = DelayBounds::new(table)?;
    while !clock.finished() {
        let mut best = 0;
        // Who may be later than the best so far, by 1 ns at least.
        bounds.each_above(index, clock.now, 1, |kind, position| {
            best = best.max(bounds.delay(kind, position));
            best + 1
        });
        clock.advance(best)?;
    }
    Ok(())
}
