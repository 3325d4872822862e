//! Bounds of delays: the circle of each kind of unit is cut into blocks, each with an upper bound for all starts within it. Only the delays of ranks
//! with a high enough bound are computed, which takes about constant time however many detours there are.

use super::{DelayTable, ReplayUnit};
use crate::noise::{MetDetours, NoiseTrace};

/// Number of blocks of a circle with enough pieces: half a megabyte of bounds, which fit into a core's own cache.
const BLOCKS: i64 = 1 << 17;
/// Maximum number of blocks of a circle, for grains so short that coarser ones would be useless.
const BLOCKS_MAX: i64 = 1 << 21;
/// Target number of blocks per grain.
const BLOCKS_PER_GRAIN: i64 = 8;
/// Maximum number of blocks per piece, to limit the cost of filling them.
const BLOCKS_PER_PIECE: i64 = 8;

/// The bounds of one kind's delay function.
#[derive(Clone, Debug)]
struct KindBounds {
    length: i64,
    /// A block is 2^shift ns long.
    shift: u32,
    bounds: Vec<u32>,
    /// The number of detours of each of its traces that start before each block, and in all.
    before: Vec<Vec<u32>>,
}

/// Bounds of the delays of all kinds of units of a table.
#[derive(Clone, Debug)]
pub(crate) struct DelayBounds {
    kinds: Vec<KindBounds>,
    /// The unit of a bound is 2^quantum ns.
    quantum: u32,
}

impl DelayBounds {
    pub(super) fn new(table: &DelayTable<'_>) -> Self {
        let mut quantum = 0;
        while table.max_delay().get() >> quantum >= i64::from(u32::MAX) {
            quantum += 1;
        }
        let mut counts = vec![0_i64; table.kinds().len()];
        for piece in table.pieces() {
            counts[piece.kind as usize] += 1;
        }
        let kind = |(kind, count): (&ReplayUnit<'_>, i64)| {
            let shift = shift(kind.length, table.grain().get(), count);
            let blocks = ((kind.length - 1) >> shift) as usize + 1;
            let before = kind.traces.iter().map(|trace| starts_before(trace, shift, blocks)).collect();
            KindBounds { length: kind.length, shift, bounds: vec![quanta(kind.base, quantum); blocks], before }
        };
        let mut kinds: Vec<KindBounds> = table.kinds().iter().zip(counts).map(kind).collect();
        for piece in table.pieces() {
            let kind = &mut kinds[piece.kind as usize];
            let (first, last) = (piece.start >> kind.shift, (piece.start + piece.length - 1) >> kind.shift);
            for block in first..=last {
                // Within the falling part, later blocks have lower bounds.
                let begin = block << kind.shift;
                let fallen = (begin - piece.start - piece.flat).max(0);
                let bound = quanta(piece.delay - fallen, quantum);
                let number = if begin < kind.length { block } else { (begin - kind.length) >> kind.shift };
                kind.raise(number as usize, bound);
                // The circle's last block is shorter, so later ones straddle two of the next lap's.
                let end = (begin + (1 << kind.shift) - 1).min(piece.start + piece.length - 1);
                if end >= kind.length {
                    kind.raise(((end - kind.length) >> kind.shift) as usize, bound);
                }
            }
        }
        Self { kinds, quantum }
    }

    /// The detours that a trace of a unit meets, besides whole laps, in a phase that starts at a position on the circle of its kind.
    pub(crate) fn meet(&self, unit: &ReplayUnit<'_>, kind: usize, trace: usize, position: i64) -> MetDetours {
        let KindBounds { shift, before, .. } = &self.kinds[kind];
        let block = (position >> shift) as usize;
        let near = before[trace][block] as usize..before[trace][block + 1] as usize;
        unit.traces[trace].meet_from(position, near, unit.laps[trace].rest)
    }

    /// The delay of a unit that starts a phase at a position on the circle of its kind.
    pub(crate) fn delay(&self, unit: &ReplayUnit<'_>, kind: usize, position: i64) -> i64 {
        let delays = unit.laps.iter().enumerate();
        delays.map(|(trace, laps)| laps.delay + self.meet(unit, kind, trace, position).delay).max().unwrap_or(0)
    }

    /// Calls `found` with the kind and the position of every unit in use whose bound at a time of the common clock is at least `least`; `found` may
    /// raise that.
    #[inline]
    pub(crate) fn each_above<'o>(
        &self,
        offsets: impl Iterator<Item = &'o [i64]>,
        now: i64,
        least: i64,
        mut found: impl FnMut(usize, i64) -> i64,
    ) {
        let mut floor = self.floor(least);
        for (number, (kind, offsets)) in self.kinds.iter().zip(offsets).enumerate() {
            let turn = now % kind.length;
            for offset in offsets {
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

    /// The lowest bound of a delay of at least `least`.
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

/// The binary logarithm of the length of blocks.
fn shift(length: i64, grain: i64, pieces: i64) -> u32 {
    let fine = length / (grain / BLOCKS_PER_GRAIN).max(1);
    let blocks = fine.clamp(BLOCKS, BLOCKS_MAX).min((pieces * BLOCKS_PER_PIECE).max(1));
    let mut shift = 0;
    while length >> shift > blocks {
        shift += 1;
    }
    shift
}

/// The number of detours that start before each of `blocks` blocks of 2^shift ns, and in all.
fn starts_before(trace: &NoiseTrace, shift: u32, blocks: usize) -> Vec<u32> {
    let mut before = vec![0; blocks + 1];
    trace.starts_ns().iter().for_each(|start| before[(start >> shift) as usize + 1] += 1);
    for block in 1..before.len() {
        before[block] += before[block - 1];
    }
    before
}
