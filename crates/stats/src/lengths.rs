//! Counts of detours by length and by time of their start, in bounded memory.

use super::TimeCells;
use super::cells::CELLS;

/// Classes per doubling of the length: a class is at most 25 % wide.
const CLASSES_PER_OCTAVE: usize = 4;

/// Counts by time cell and length class.
///
/// A class allocates its 1 KiB with its first detour; a CPU with detours from 100 ns to 10 ms has about 70. All classes of a signed 64-bit
/// length would take 244 KiB.
#[derive(Clone, Debug)]
pub struct LengthCells {
    cells: usize,
    width: i64,
    classes: Vec<Option<Box<[u32; CELLS]>>>,
}

impl LengthCells {
    /// Creates empty counts for the same cells.
    pub fn for_cells(cells: &TimeCells) -> Self {
        Self { cells: cells.noise().len(), width: cells.width(), classes: Vec::new() }
    }

    /// Takes a detour of `duration` nanoseconds that started in this cell ([`TimeCells::place`]). A negative duration counts as 0.
    #[inline]
    pub fn add(&mut self, cell: usize, duration: i64) {
        let class = class_of(duration);
        match self.classes.get_mut(class) {
            Some(Some(counts)) => counts[cell] = counts[cell].saturating_add(1),
            _ => self.add_first(cell, class),
        }
    }

    #[cold]
    fn add_first(&mut self, cell: usize, class: usize) {
        if class >= self.classes.len() {
            self.classes.resize(class + 1, None);
        }
        self.classes[class].get_or_insert_with(|| Box::new([0; CELLS]))[cell] = 1;
    }

    /// Adds another CPU's counts, cell by cell.
    pub fn merge(&mut self, other: &Self) {
        self.cells = self.cells.max(other.cells);
        if other.classes.len() > self.classes.len() {
            self.classes.resize(other.classes.len(), None);
        }
        for (ours, theirs) in self.classes.iter_mut().zip(&other.classes) {
            let Some(theirs) = theirs else { continue };
            let ours = ours.get_or_insert_with(|| Box::new([0; CELLS]));
            ours.iter_mut().zip(theirs.iter()).for_each(|(ours, theirs)| *ours = ours.saturating_add(*theirs));
        }
    }

    /// The length of a cell, in nanoseconds.
    pub const fn width(&self) -> i64 {
        self.width
    }

    /// The number of detours that started in each cell.
    pub fn counts(&self) -> Vec<i64> {
        let mut counts = vec![0; self.cells];
        self.classes().for_each(|class| sum_into(&mut counts, class));
        counts
    }

    /// The counts of each class that is not empty, the longest detours first.
    pub(super) fn classes(&self) -> impl Iterator<Item = &[u32]> {
        self.classes.iter().rev().flatten().map(|counts| &counts[..self.cells])
    }
}

fn sum_into(sums: &mut [i64], counts: &[u32]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += i64::from(*count));
}

/// The number of the class: the octave and its quarter, from the three leading bits.
const fn class_of(duration: i64) -> usize {
    if duration < CLASSES_PER_OCTAVE as i64 {
        return if duration < 0 { 0 } else { duration as usize };
    }
    let octave = duration.ilog2() as usize;
    let quarter = (duration >> (octave - 2)) as usize & (CLASSES_PER_OCTAVE - 1);
    (octave - 1) * CLASSES_PER_OCTAVE + quarter
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_follow_each_other_without_a_gap() {
        assert_eq!((0..10).map(class_of).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]);
        assert_eq!((class_of(i64::MIN), class_of(i64::MAX)), (0, 247));
    }

    proptest! {
        #[test]
        fn a_class_is_at_most_a_quarter_wide(one in 4_i64..1 << 60, more in 0.0..1.0_f64) {
            let other = one + (one as f64 * more) as i64;
            prop_assert!(class_of(one) <= class_of(other));
            prop_assert!(class_of(one) != class_of(other) || other - one <= one / 4, "{} {}", one, other);
        }

        #[test]
        fn nothing_is_lost(
            rows in proptest::collection::vec((0_i64..100_000, 0_i64..1 << 45), 0..60), at in 0_usize..60,
        ) {
            let cells = TimeCells::new(0, 100_000);
            let fill = |rows: &[(i64, i64)]| {
                let mut lengths = LengthCells::for_cells(&cells);
                rows.iter().for_each(|(start, duration)| lengths.add(cells.place(*start), *duration));
                lengths
            };
            let (left, right) = rows.split_at(at.min(rows.len()));
            let (all, mut merged) = (fill(&rows), fill(left));
            merged.merge(&fill(right));
            let mut plain = vec![0; cells.noise().len()];
            rows.iter().for_each(|(start, _)| plain[(*start / cells.width()) as usize] += 1);
            prop_assert_eq!(all.counts(), plain);
            let classes = |lengths: &LengthCells| lengths.classes().map(<[u32]>::to_vec).collect::<Vec<_>>();
            prop_assert_eq!(classes(&all), classes(&merged));
        }
    }
}
