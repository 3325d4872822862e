//! The lateness of phases, in cells of similar length.

use becalm_units::NumberMap;

/// The number of cells per octave of lengths: the middle of one is within 1/128 of its contents.
pub(super) const CELLS_PER_OCTAVE: u64 = 64;

/// Coarser cells suffice for the time into a detour at which a phase starts.
pub(super) const CELLS_WITHIN: u64 = 8;

/// The cell of a time in nanoseconds. Below twice the cells of an octave, each nanosecond has its own.
pub(super) fn place(time: i64, cells: u64) -> usize {
    let time = time.max(0) as u64;
    if time < 2 * cells {
        return time as usize;
    }
    let octave = time.ilog2() - cells.ilog2();
    (u64::from(octave) * cells + (time >> octave)) as usize
}

pub(super) fn middle(place: usize, cells: u64) -> f64 {
    let place = place as u64;
    let octave = (place / cells).saturating_sub(1);
    let width = (1_u64 << octave) as f64;
    ((place - octave * cells) as f64 + 0.5) * width - 0.5
}

/// Two cells as one number. There are fewer than 4,096 of each.
const fn pair(into: usize, late: usize) -> u64 {
    (into as u64) << 32 | late as u64
}

/// The number of phases by lateness; for a change, the increase or decrease. In parts of a phase.
#[derive(Clone, Default, Debug)]
pub(super) struct LatenessCells {
    /// Those that start at work, by the cell of their lateness.
    pub(super) at_work: Vec<i64>,
    /// Those that start within a detour, by [`pair`] of the cell of the time into it and that of their lateness.
    in_detour: NumberMap<u64, i64>,
    /// Their total lateness, by its cell.
    late: Vec<i128>,
}

impl LatenessCells {
    /// Adds or subtracts parts of phases; `into` is the time into a detour at their start, if they start in one, and `late` the lateness of each.
    pub(super) fn add(&mut self, into: Option<i64>, late: i64, phases: i64) {
        let cell = place(late, CELLS_PER_OCTAVE);
        if cell >= self.late.len() {
            self.at_work.resize(cell + 1, 0);
            self.late.resize(cell + 1, 0);
        }
        let sum = &mut self.late[cell];
        *sum = sum.saturating_add(i128::from(late.max(0)) * i128::from(phases));
        match into {
            Some(into) => *self.in_detour.entry(pair(place(into, CELLS_WITHIN), cell)).or_default() += phases,
            None => self.at_work[cell] += phases,
        }
    }

    /// The phases that start within a detour: the cell of the time into it, that of their lateness, and their number, in any order.
    pub(super) fn in_detour(&self) -> impl Iterator<Item = (usize, usize, i64)> {
        self.in_detour.iter().map(|(pair, phases)| ((pair >> 32) as usize, (pair & 0xffff_ffff) as usize, *phases))
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.late.len() > self.late.len() {
            self.at_work.resize(other.late.len(), 0);
            self.late.resize(other.late.len(), 0);
        }
        self.at_work.iter_mut().zip(&other.at_work).for_each(|(phases, more)| *phases += more);
        self.late.iter_mut().zip(&other.late).for_each(|(late, more)| *late = late.saturating_add(*more));
        other.in_detour.iter().for_each(|(cell, more)| *self.in_detour.entry(*cell).or_default() += more);
    }

    /// The mean lateness of the phases in each of these cells, in nanoseconds.
    pub(super) fn means(&self, cells: &[usize]) -> Vec<f64> {
        let mut phases = self.at_work.clone();
        self.in_detour().for_each(|(_, late, more)| phases[late] += more);
        let mean = |cell: &usize| {
            let middle = middle(*cell, CELLS_PER_OCTAVE);
            if phases[*cell] <= 0 {
                return middle;
            }
            // The rest without a source may be too small for a mean.
            (self.late[*cell] as f64 / phases[*cell] as f64).clamp(middle * (127.0 / 128.0), middle * (129.0 / 128.0))
        };
        cells.iter().map(mean).collect()
    }
}
