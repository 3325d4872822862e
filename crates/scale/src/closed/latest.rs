//! Finds the latest rank of a phase with a known delay.
//!
//! Several ranks may be latest: all in the same detours, or in others that happen to take equally long. The first choice is one whose whole laps
//! alone take that long; then the first kind of unit, its first trace, the lowest number of the first detour met, and the fewest detours met. All
//! ranks that tie in these have the same books.

use crate::delay::{DelayBounds, DelayTable, Laps};
use crate::noise::MetDetours;
use crate::replay::walk::expected_visits;
use crate::replay::{OffsetIndex, cost};

/// A trace that is as late as the latest, and the position on its circle where its phase started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LatestRank {
    pub kind: usize,
    pub trace: usize,
    pub position: i64,
}

/// The sort key of equally late ranks.
type Order = (usize, usize, i64, i64);

/// Finds the latest rank, for fixed offsets.
pub(super) struct LatestFinder<'t, 'a> {
    table: &'t DelayTable<'a>,
    index: &'t [OffsetIndex],
    /// The bounds of all units, if they are cheaper than going through the sorted pieces.
    bounds: Option<&'t DelayBounds>,
}

impl<'t, 'a> LatestFinder<'t, 'a> {
    /// Uses bounds or pieces; by default the cheaper one.
    pub(super) fn new(table: &'t DelayTable<'a>, index: &'t [OffsetIndex], by_bounds: Option<bool>) -> Self {
        let by_bounds = by_bounds.unwrap_or_else(|| {
            let bounds = cost::bounded(table, index);
            expected_visits(table, index, bounds / cost::LOOK_UP) * cost::LOOK_UP >= bounds
        });
        Self { table, index, bounds: by_bounds.then(|| table.bounds()) }
    }

    /// The whole laps and the remaining grain of a trace.
    pub(super) fn laps(&self, kind: usize, trace: usize) -> Laps {
        self.table.kinds()[kind].laps[trace]
    }

    /// The latest rank of a phase that starts at this time of the common clock, and has this delay. `None` only if no rank has this delay.
    pub(super) fn find(&self, now: i64, delay: i64) -> Option<LatestRank> {
        if let Some(rank) = self.in_whole_laps(now, delay) {
            return Some(rank);
        }
        let mut best: Option<(Order, LatestRank)> = None;
        match self.bounds {
            None => self.down_the_pieces(now, delay, &mut best),
            Some(bounds) => {
                bounds.each_above(self.index.iter().map(OffsetIndex::offsets), now, delay, |kind, position| {
                    self.consider(kind, position, delay, &mut best);
                    delay
                });
            }
        }
        best.map(|(_, rank)| rank)
    }

    /// A trace whose whole laps take as long as the latest rank: no rank of it meets more.
    fn in_whole_laps(&self, now: i64, delay: i64) -> Option<LatestRank> {
        let kinds = self.table.kinds();
        let used = (0..kinds.len()).filter(|kind| self.index[*kind].len() > 0);
        used.flat_map(|kind| (0..kinds[kind].laps.len()).map(move |trace| (kind, trace)))
            .find(|(kind, trace)| delay > 0 && kinds[*kind].laps[*trace].delay == delay)
            .map(|(kind, trace)| {
                let index = &self.index[kind];
                let position = (index.offsets()[0] + now % index.length()) % index.length();
                LatestRank { kind, trace, position }
            })
    }

    fn down_the_pieces(&self, now: i64, delay: i64, best: &mut Option<(Order, LatestRank)>) {
        for piece in self.table.pieces() {
            if piece.delay < delay {
                break;
            }
            let kind = piece.kind as usize;
            let index = &self.index[kind];
            if index.len() == 0 {
                continue;
            }
            let length = index.length();
            let target = (piece.start - now % length).rem_euclid(length);
            let into = index.distance_up(target);
            if into >= piece.length || piece.delay - (into - piece.flat).max(0) != delay {
                continue;
            }
            self.consider(kind, (piece.start + into) % length, delay, best);
            // A flat piece of several traces may contain ranks with other books.
            if self.table.kinds()[kind].laps.len() > 1 {
                let first = (target + into) % length;
                let from = index.below(first);
                for step in 1..index.len() {
                    let number = (from + step) % index.len();
                    let at = into + (index.offsets()[number] - first).rem_euclid(length);
                    if at >= piece.flat {
                        break;
                    }
                    self.consider(kind, (piece.start + at) % length, delay, best);
                }
            }
        }
    }

    /// Takes a unit's trace if it is equally late and precedes the best so far.
    fn consider(&self, kind: usize, position: i64, delay: i64, best: &mut Option<(Order, LatestRank)>) {
        let unit = &self.table.kinds()[kind];
        for (number, (trace, laps)) in unit.traces.iter().zip(&unit.laps).enumerate() {
            let met = match self.bounds {
                Some(bounds) => bounds.meet(unit, kind, number, position),
                None => trace.meet(position, laps.rest),
            };
            if laps.delay + met.delay != delay {
                continue;
            }
            let order = order(kind, number, met, trace.len() as i64);
            if best.is_none_or(|(before, _)| order < before) {
                *best = Some((order, LatestRank { kind, trace: number, position }));
            }
        }
    }
}

/// The sort key of an equally late rank, from the detours that it meets, of `count` in all.
pub(super) fn order(kind: usize, trace: usize, met: MetDetours, count: i64) -> Order {
    (kind, trace, met.first.rem_euclid(count.max(1)), met.after - met.first)
}
