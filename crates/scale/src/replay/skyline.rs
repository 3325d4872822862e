//! A block of phases at once: the silhouette of all delays over a stretch of time, painted from the top.
//!
//! While the clock runs through a block, a rank at offset o passes through a piece of its delay function during one interval of time: a *hit*. The
//! hits of one piece come from neighboring offsets, so one look-up finds them all, for thousands of phases, while [`super::walk`] needs one for each
//! phase. Pieces are processed from the largest delay down. Time is cut into *cells*. A cell that is covered to both ends by a hit has a floor below
//! which no later hit matters, and its phases need no more pieces. When few cells are left open, it is cheaper to let the few phases that start in
//! them walk down the rest of the list.
//!
//! A phase then checks the hits of its own cell, largest first; a handful, however many ranks there are.

use becalm_units::Nanos;

use super::walk::{Positions, base, expected_visits, largest};
use super::{Clock, OffsetIndex, Scan, cheapest_scan, cost, hand_over};
use crate::ScaleError;
use crate::delay::{DelayTable, TablePiece};

/// A rank's way through a piece, in time since the block's start. It may start before and end after the block.
#[derive(Clone, Copy)]
struct Hit {
    from: i64,
    fall: i64,
    to: i64,
    delay: i64,
}

/// The end of a block's painting.
struct Painted {
    pieces: usize,
    /// The cost: look-ups and hits.
    work: u64,
}

/// Maximum number of cells in a block: their hits then stay in the second-level cache.
pub(super) const CELLS_MAX: usize = 1 << 14;
const CELLS_MIN: usize = 1 << 8;

/// A piece with more than 2 to this power hits per cell is left to the walk.
const HITS_PER_CELL_BITS: u32 = 3;

/// With more hits per cell on average, further pieces are left to the walk.
const MARKS_PER_CELL: usize = 32;

#[derive(Default)]
struct Skyline {
    cells: usize,
    /// A cell is 2^shift ns long.
    shift: u32,
    /// The minimum delay of every instant of the cell.
    floor: Vec<i64>,
    /// The delay of its middle: a sample of the phases that start in it.
    probe: Vec<i64>,
    /// The next cell, from this one on, that no flat hit covers: union-find with path halving.
    open: Vec<u32>,
    open_count: usize,
    hits: Vec<Hit>,
    /// Cell and hit, in falling order of delays.
    marks: Vec<(u32, u32)>,
    /// Each cell's range in `sorted`.
    range: Vec<u32>,
    sorted: Vec<Hit>,
}

impl Skyline {
    fn length(&self) -> i64 {
        (self.cells as i64) << self.shift
    }

    fn clear(&mut self, cells: usize, shift: u32) {
        (self.cells, self.shift) = (cells, shift);
        self.floor.clear();
        self.floor.resize(cells, -1);
        self.probe.clear();
        self.probe.resize(cells, -1);
        self.open.clear();
        self.open.extend(0..=cells as u32);
        self.open_count = cells;
        self.hits.clear();
        self.marks.clear();
    }

    fn next_open(&mut self, mut cell: usize) -> usize {
        while self.open[cell] as usize != cell {
            let next = self.open[self.open[cell] as usize];
            self.open[cell] = next;
            cell = next as usize;
        }
        cell
    }

    /// Paints pieces from the top down until the list ends, or continuing would cost more than letting phases walk.
    fn paint(&mut self, table: &DelayTable<'_>, index: &[OffsetIndex], positions: &Positions) -> Painted {
        let pieces = table.pieces();
        let (mut done, mut check, mut marks_before) = (0, 32, 0);
        while done < pieces.len() && self.open_count > 0 {
            if done == check {
                // A phase in an open cell would visit every further piece, so one more piece saves as many look-ups as there are such phases; it
                // costs one itself, and the placing of its hits.
                let next = pieces[done].delay;
                let open = self.probe.iter().filter(|probe| **probe < next).count();
                let marks_per_piece = (self.marks.len() - marks_before) / (check / 4).max(1);
                if open / CELLS_PER_PHASE <= 1 + marks_per_piece / 2 {
                    break;
                }
                marks_before = self.marks.len();
                check += (check / 4).max(1);
            }
            let piece = &pieces[done];
            let offsets = &index[piece.kind as usize];
            // If even one piece is hit many times in each cell, the circle is short or the ranks are many, and a walking phase finds its largest
            // delay soon.
            if offsets.len() as i64 > offsets.length() >> self.shift.saturating_sub(HITS_PER_CELL_BITS) {
                break;
            }
            if offsets.len() > 0 {
                self.paint_piece(piece, offsets, positions.position(piece.kind));
            }
            done += 1;
            // Under dense noise and long grains every piece covers most cells, and their hits would take unlimited memory.
            if self.marks.len() > MARKS_PER_CELL * self.cells {
                break;
            }
        }
        self.sort();
        Painted { pieces: done, work: (done + self.marks.len()) as u64 }
    }

    fn paint_piece(&mut self, piece: &TablePiece, index: &OffsetIndex, position: i64) {
        let (length, end) = (index.length(), self.length());
        let mut target = piece.start - position;
        if target < 0 {
            target += length;
        }
        // A rank at `target` enters the piece exactly at the block's start, one at a lower offset later, by their difference. The first of interest
        // is the last that has not left the piece by then.
        let last = target + piece.length;
        let (lap, last) = if last >= length { (length, last - length) } else { (0, last) };
        let offsets = index.offsets();
        let mut at = index.below(last);
        let mut shifted = target - lap;
        loop {
            if at == 0 {
                at = offsets.len();
                shifted += length;
            }
            at -= 1;
            let from = shifted - offsets[at];
            if from >= end {
                break;
            }
            self.paint_hit(Hit { from, fall: from + piece.flat, to: from + piece.length, delay: piece.delay });
            if self.open_count == 0 {
                break;
            }
        }
    }

    #[inline]
    fn paint_hit(&mut self, hit: Hit) {
        let number = self.hits.len() as u32;
        let mut cell = self.next_open((hit.from.max(0) >> self.shift) as usize);
        let last = ((hit.to - 1) >> self.shift).min(self.cells as i64 - 1) as usize;
        let mut marked = false;
        while cell <= last {
            if self.floor[cell] < hit.delay {
                self.marks.push((cell as u32, number));
                marked = true;
                let (begin, end) = ((cell as i64) << self.shift, (cell as i64 + 1) << self.shift);
                let middle = begin + (end - begin) / 2;
                if hit.from <= middle && middle < hit.to {
                    self.probe[cell] = self.probe[cell].max(hit.delay - (middle - hit.fall).max(0));
                }
                if hit.from <= begin && hit.to >= end {
                    let lowest = hit.delay - (end - 1 - hit.fall).max(0);
                    self.floor[cell] = self.floor[cell].max(lowest);
                    if lowest == hit.delay {
                        self.open[cell] = cell as u32 + 1;
                        self.open_count -= 1;
                    }
                }
            }
            cell = self.next_open(cell + 1);
        }
        if marked {
            self.hits.push(hit);
        }
    }

    /// Sorts the hits by cell, keeping their order within one.
    fn sort(&mut self) {
        self.range.clear();
        self.range.resize(self.cells + 2, 0);
        for (cell, _) in &self.marks {
            self.range[*cell as usize + 2] += 1;
        }
        for cell in 2..self.range.len() {
            self.range[cell] += self.range[cell - 1];
        }
        self.sorted.clear();
        self.sorted.resize(self.marks.len(), Hit { from: 0, fall: 0, to: 0, delay: 0 });
        for (cell, hit) in &self.marks {
            let slot = &mut self.range[*cell as usize + 1];
            self.sorted[*slot as usize] = self.hits[*hit as usize];
            *slot += 1;
        }
    }

    /// The largest delay among the painted pieces for a phase that starts `at` after the start of the block, or `base`.
    #[inline]
    fn largest(&self, at: i64, base: i64) -> i64 {
        let cell = (at >> self.shift) as usize;
        let mut best = base;
        for hit in &self.sorted[self.range[cell] as usize..self.range[cell + 1] as usize] {
            if best >= hit.delay {
                break;
            }
            if hit.from <= at && at < hit.to {
                best = best.max(hit.delay - (at - hit.fall).max(0));
            }
        }
        best
    }
}

/// Cells per mean phase: finer cells are covered to both ends by more hits, but cost more to fill.
const CELLS_PER_PHASE: usize = 2;

/// Runs all remaining phases; switches to [`super::plain`] or [`super::bounded`] once that has turned out to be cheaper, unless `stay` is set.
pub(super) fn run(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
    stay: bool,
) -> Result<(), ScaleError> {
    let Scan { method: other, phase_ns: each } = cheapest_scan(table, index);
    let worth = if stay { f64::INFINITY } else { each };
    if !run_while_cheaper(table, index, clock, worth, CELLS_MAX)? {
        hand_over(table, index, clock, other)?;
    }
    Ok(())
}

/// One short block, then the other method.
#[cfg(test)]
pub(super) fn run_and_hand_over(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
    other: super::Method,
) -> Result<(), ScaleError> {
    assert!(!run_while_cheaper(table, index, clock, 0.0, 64)?, "a short block leaves phases");
    hand_over(table, index, clock, other)
}

/// Runs block after block, of at most `cells_max` cells, while a phase costs at most `worth` nanoseconds; returns whether all are done. A block ends
/// early if its phases walk down too many pieces.
pub(super) fn run_while_cheaper(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
    worth: f64,
    cells_max: usize,
) -> Result<bool, ScaleError> {
    let base = base(table, index);
    // Long enough that a block's look-ups, about six for each of the pieces that one phase would visit, are few per phase.
    let visits = expected_visits(table, index, CELLS_MAX as f64);
    let cells =
        ((8.0 * visits) as usize * CELLS_PER_PHASE).next_power_of_two().clamp(CELLS_MIN.min(cells_max), cells_max);
    let mut positions = Positions::new(index);
    let mut skyline = Skyline::default();
    // Until phases have been seen, they are assumed to be as long as at the piece where a phase is expected to end.
    let typical = table.pieces().get(visits as usize).map_or(base, |piece| piece.delay);
    let mut mean_phase = table.grain().get() + typical.max(base);
    while !clock.finished() {
        let (start, done) = (clock.now, clock.done);
        let cell = (mean_phase / CELLS_PER_PHASE as i64).max(1);
        // Blocks end within the range of times: a phase that starts later is rejected anyway.
        let shift = cell.ilog2().min(60 - cells.ilog2());
        skyline.clear(cells, shift);
        positions.set(start);
        let painted = skyline.paint(table, index, &positions);
        let mut work = painted.work;
        // The budget of visits for walking phases: all pieces once, plus its worth for each phase.
        let mut left = table.pieces().len() as f64;
        let next_delay = table.pieces().get(painted.pieces).map_or(-1, |piece| piece.delay);
        while left >= 0.0 && !clock.finished() && clock.now - start < skyline.length() {
            let mut delay = skyline.largest(clock.now - start, base);
            if delay < next_delay {
                positions.set(clock.now);
                let (largest, visits) = largest(table, index, &positions, painted.pieces, delay);
                (delay, work) = (largest, work + visits);
                left -= visits as f64;
            }
            left += worth / cost::LOOK_UP;
            clock.advance(delay)?;
        }
        let phases = clock.done - done;
        mean_phase = (clock.now - start) / phases as i64;
        if work as f64 * cost::LOOK_UP > phases as f64 * worth {
            return Ok(clock.finished());
        }
    }
    Ok(true)
}
