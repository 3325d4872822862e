//! Distributions of delays in cells of length.

use crate::order::mean_of_any;

/// The number of cells per octave of lengths.
const PER_OCTAVE: usize = 32;

/// The cell of a delay in nanoseconds. Below two octaves' worth of cells, each nanosecond has its own.
pub(super) fn place(delay: i64) -> usize {
    let delay = delay.max(0) as usize;
    if delay < 2 * PER_OCTAVE {
        return delay;
    }
    let octave = (delay.ilog2() - PER_OCTAVE.ilog2()) as usize;
    octave * PER_OCTAVE + (delay >> octave)
}

/// The lower edge of a cell, in nanoseconds.
pub(super) fn edge(place: usize) -> f64 {
    let octave = (place / PER_OCTAVE).saturating_sub(1);
    (place - octave * PER_OCTAVE) as f64 * (1_u64 << octave) as f64
}

/// The delay of one unit: the probability of each cell.
#[derive(Clone, Debug)]
pub(super) struct CellDistribution(pub Vec<f64>);

impl CellDistribution {
    /// The contribution of delays up to `most` to the mean of the largest of n, in nanoseconds: the integral of 1 - F^n up to there, with cells
    /// assumed uniform.
    pub(super) fn mean_of_largest(&self, n: f64, most: f64) -> f64 {
        let (mut above, mut mean) = (0.0, 0.0);
        // The last cell's values: many consecutive cells are empty and have the same.
        let mut last = (0.0, 0.0, 0.0);
        for (at, mass) in self.0.iter().enumerate().rev() {
            let (from, to) = (edge(at), edge(at + 1));
            let lower = (above + mass).clamp(0.0, 1.0);
            let end = to.min(most);
            if end > from {
                let upper = (above + mass * (to - end) / (to - from)).clamp(0.0, 1.0);
                if (last.0, last.1) != (upper, lower) {
                    last = (upper, lower, mean_of_any(n, upper, lower));
                }
                mean += (end - from) * last.2;
            }
            above = lower;
        }
        mean
    }
}

/// The middle of a cell, in nanoseconds.
pub(super) fn middle(place: usize) -> f64 {
    (edge(place) + edge(place + 1) - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Empty cells, of which there may be many between others, are not recomputed; exact to the last digit.
        #[test]
        fn the_mean_of_the_largest_is_a_sum_over_all_cells(
            cells in prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => 0.0..1.0], 1..300), n in 0.0..7.0, most in 0.0..1e6,
        ) {
            let n = 10.0_f64.powf(n);
            let all = cells.iter().sum::<f64>().max(1.0);
            let cells: Vec<f64> = cells.into_iter().map(|mass| mass / all).collect();
            let mut plain = 0.0;
            for (at, mass) in cells.iter().enumerate().rev().filter(|(at, _)| edge(*at) < most) {
                let above = cells[at + 1..].iter().rev().fold(0.0, |sum: f64, mass| (sum + mass).clamp(0.0, 1.0));
                let (from, to) = (edge(at), edge(at + 1));
                let end = to.min(most);
                let upper = above + mass * (to - end) / (to - from);
                plain += (end - from) * mean_of_any(n, upper.clamp(0.0, 1.0), (above + mass).clamp(0.0, 1.0));
            }
            prop_assert_eq!(CellDistribution(cells).mean_of_largest(n, most), plain);
        }
    }
}
