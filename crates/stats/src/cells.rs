//! The noise in each of a fixed number of equal time slices of a run.

/// The number of cells in a run.
pub(super) const CELLS: usize = 256;

/// The noise of one CPU, or the sum of several, in 256 equal time cells that cover the run.
///
/// A detour that crosses the end of a cell is split there, so the cells add up to the total noise exactly.
#[derive(Clone, Debug)]
pub struct TimeCells {
    start: i64,
    length: i64,
    width: i64,
    current: usize,
    current_end: i64,
    noise: Vec<i64>,
}

impl TimeCells {
    /// Cells over `length` nanoseconds from `start` on; a length below 1 counts as 1.
    pub fn new(start: i64, length: i64) -> Self {
        let length = length.max(1);
        // Rounded up to cover the run; the last cell is shorter by less than 256 ns. Only runs below 65 us need fewer cells.
        let width = (length - 1) / CELLS as i64 + 1;
        let cells = ((length - 1) / width + 1) as usize;
        Self { start, length, width, current: 0, current_end: start.saturating_add(width), noise: vec![0; cells] }
    }

    /// Creates cells of `width` nanoseconds (at least 1) from their sums; the run starts with the first. No sums give one cell without
    /// noise.
    pub fn from_sums(width: i64, mut sums: Vec<i64>) -> Self {
        if sums.is_empty() {
            sums.push(0);
        }
        let width = width.max(1);
        Self {
            start: 0,
            length: width.saturating_mul(sums.len() as i64),
            width,
            current: 0,
            current_end: width,
            noise: sums,
        }
    }

    /// The number of the cell that contains this time; times outside the run map to the first or last cell.
    #[inline]
    pub fn place(&self, time: i64) -> usize {
        if time >= self.current_end.saturating_sub(self.width) && time < self.current_end {
            self.current
        } else {
            self.cell_of(time)
        }
    }

    /// Adds a detour. Parts outside the run count in the first or last cell.
    #[inline]
    pub fn add(&mut self, start: i64, duration: i64) {
        let end = start.saturating_add(duration);
        // Detours come in order of time and most are shorter than a cell, so try the cell of the last one first.
        if start < self.current_end.saturating_sub(self.width) || end > self.current_end {
            self.add_anywhere(start, end);
        } else {
            self.noise[self.current] = self.noise[self.current].saturating_add(duration);
        }
    }

    #[cold]
    fn add_anywhere(&mut self, mut start: i64, end: i64) {
        let first = self.cell_of(start);
        let last = self.cell_of(end.saturating_sub(1)).max(first);
        for cell in first..=last {
            let cell_end = if cell == last { end } else { self.end_of(cell) };
            self.noise[cell] = self.noise[cell].saturating_add(cell_end.saturating_sub(start));
            start = cell_end;
        }
        self.current = last;
        self.current_end = self.end_of(last);
    }

    fn cell_of(&self, time: i64) -> usize {
        let since = time.saturating_sub(self.start).clamp(0, self.length - 1);
        (since / self.width) as usize
    }

    fn end_of(&self, cell: usize) -> i64 {
        self.start.saturating_add(self.width.saturating_mul(cell as i64 + 1))
    }

    /// Adds another CPU's noise, cell by cell. Both runs should start and end together: cells are matched by number.
    pub fn merge(&mut self, other: &Self) {
        self.noise.resize(self.noise.len().max(other.noise.len()), 0);
        for (ours, theirs) in self.noise.iter_mut().zip(&other.noise) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// The noise in each cell, in nanoseconds.
    pub fn noise(&self) -> &[i64] {
        &self.noise
    }

    /// The start of the run, in nanoseconds.
    pub const fn start(&self) -> i64 {
        self.start
    }

    /// The length of the run, in nanoseconds, at least 1.
    pub const fn length(&self) -> i64 {
        self.length
    }

    /// The length of a cell, in nanoseconds.
    pub const fn width(&self) -> i64 {
        self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_detour_over_an_end_is_split_there() {
        let mut cells = TimeCells::new(1_000, 256_000);
        cells.add(1_500, 100);
        cells.add(1_900, 2_300);
        cells.add(4_150, 50);
        assert_eq!(cells.noise()[..5], [200, 1_000, 1_000, 250, 0]);
    }

    #[test]
    fn damaged_times_do_not_panic() {
        for length in [i64::MIN, -1, 0, 1, i64::MAX] {
            let mut cells = TimeCells::new(-5, length);
            for (start, duration) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MAX), (0, -7), (i64::MIN, i64::MIN)] {
                cells.add(start, duration);
            }
        }
    }

    proptest! {
        #[test]
        fn the_cells_add_up_to_all_noise(
            length in 1_i64..100_000,
            detours in proptest::collection::vec((0_i64..120_000, 0_i64..2_000), 0..100),
        ) {
            let mut cells = TimeCells::new(10, length);
            for (start, duration) in &detours {
                cells.add(*start, *duration);
            }
            prop_assert_eq!(cells.noise().iter().sum::<i64>(), detours.iter().map(|(_, d)| d).sum::<i64>());
        }

        #[test]
        fn each_nanosecond_lands_in_its_cell(
            detours in proptest::collection::vec((0_i64..2_560, 1_i64..40), 0..40),
        ) {
            let mut cells = TimeCells::new(0, 2_560);
            let mut plain = vec![0_i64; CELLS];
            for (start, duration) in &detours {
                cells.add(*start, *duration);
                for ns in *start..start + duration {
                    plain[(ns as usize / 10).min(CELLS - 1)] += 1;
                }
            }
            prop_assert_eq!(cells.noise(), &plain[..]);
        }
    }
}
