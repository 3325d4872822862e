//! Walks down the pieces of the delay functions, sorted by their largest delay, until the best so far is at least as large as all that follow.
//! Whether any rank is in a piece takes one look-up among the sorted offsets.
//!
//! A phase visits about L / (N G) pieces, so phases get cheaper as the machine grows.

use becalm_units::Nanos;

use super::{Clock, OffsetIndex, Scan, cheapest_scan, cost, hand_over};
use crate::ScaleError;
use crate::delay::DelayTable;

/// The clock on each kind's circle.
pub(super) struct Positions(Vec<(i64, i64)>);

impl Positions {
    pub(super) fn new(index: &[OffsetIndex]) -> Self {
        Self(index.iter().map(|index| (0, index.length())).collect())
    }

    pub(super) fn set(&mut self, now: i64) {
        for (position, length) in &mut self.0 {
            *position = now % *length;
        }
    }

    #[inline]
    pub(super) fn position(&self, kind: u32) -> i64 {
        self.0[kind as usize].0
    }
}

/// The minimum delay of every unit in use.
pub(super) fn base(table: &DelayTable<'_>, index: &[OffsetIndex]) -> i64 {
    let used = table.kinds().iter().zip(index).filter(|(_, index)| index.len() > 0);
    used.map(|(kind, _)| kind.base).max().unwrap_or(0)
}

/// The largest delay over all ranks, given that the pieces before `from` lead to `best`; and the number of visited pieces.
#[inline]
pub(super) fn largest(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    positions: &Positions,
    from: usize,
    mut best: i64,
) -> (i64, u64) {
    let mut visits = 0;
    for piece in &table.pieces()[from..] {
        if best >= piece.delay {
            break;
        }
        visits += 1;
        let offsets = &index[piece.kind as usize];
        if offsets.len() == 0 {
            continue;
        }
        // The offset of a rank that is at the piece's start now. On the falling part the lowest offset counts.
        let mut target = piece.start - positions.position(piece.kind);
        if target < 0 {
            target += offsets.length();
        }
        let into = offsets.distance_up(target);
        if into < piece.length {
            best = best.max(piece.delay - (into - piece.flat).max(0));
        }
    }
    (best, visits)
}

/// The number of pieces that a phase is expected to visit, for evenly spread offsets; at most about `enough`.
pub(crate) fn expected_visits(table: &DelayTable<'_>, index: &[OffsetIndex], enough: f64) -> f64 {
    let (mut visits, mut missed) = (0.0, 1.0);
    for piece in table.pieces() {
        visits += missed;
        let offsets = &index[piece.kind as usize];
        missed *= (1.0 - piece.length as f64 / offsets.length() as f64).powf(offsets.len() as f64);
        if missed < 1e-3 || visits > enough {
            break;
        }
    }
    visits
}

/// Runs all remaining phases; switches to a method that visits every rank once that has turned out to be cheaper, unless `stay` is set. That happens
/// if offsets are not spread as [`expected_visits`] assumes: those of coalesced noise are whole windows apart, and in a phase without the end of a
/// window no rank is in any piece.
pub(super) fn run(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
    stay: bool,
) -> Result<(), ScaleError> {
    let Scan { method: other, phase_ns: each } = cheapest_scan(table, index);
    let worth = if stay { f64::INFINITY } else { each / cost::LOOK_UP };
    if run_while_cheaper(table, index, clock, worth)? { Ok(()) } else { hand_over(table, index, clock, other) }
}

/// Runs phases until they have visited more than `worth` pieces per phase plus each piece once; returns whether all are done.
pub(super) fn run_while_cheaper(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
    worth: f64,
) -> Result<bool, ScaleError> {
    let base = base(table, index);
    let mut positions = Positions::new(index);
    let mut left = table.pieces().len() as f64;
    while !clock.finished() {
        positions.set(clock.now);
        let (delay, visits) = largest(table, index, &positions, 0, base);
        clock.advance(delay)?;
        left += worth - visits as f64;
        if left < 0.0 {
            return Ok(clock.finished());
        }
    }
    Ok(true)
}
