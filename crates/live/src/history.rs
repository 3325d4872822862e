//! Noise over time: the lost part of each second.

use std::collections::VecDeque;

use becalm_units::Nanos;

/// The length of a cell.
const CELL: i64 = 1_000_000_000;

/// The number of cells kept.
const KEPT: usize = 300;

/// The time lost in each of the last seconds on the view's axis. A detour across several seconds counts in each with its part.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The number of the first cell.
    first: i64,
    cells: VecDeque<i64>,
    /// Everything is known until this instant.
    until: i64,
    /// The start of the known time.
    since: Option<i64>,
}

impl History {
    /// Adds a detour's time to the seconds that it touches.
    pub fn add(&mut self, start: Nanos, duration: Nanos) {
        let (mut at, end) = (start.get(), start.get() + duration.get());
        while at < end {
            let cell = at.div_euclid(CELL);
            let next = ((cell + 1) * CELL).min(end);
            if let Some(lost) = self.cell(cell) {
                *lost += next - at;
            }
            at = next;
        }
    }

    /// Marks everything until this instant as known.
    pub fn advance(&mut self, until: Nanos) {
        self.since.get_or_insert(until.get());
        self.until = self.until.max(until.get());
        self.cell(self.until.div_euclid(CELL));
    }

    /// The noise ratios of the last complete seconds, the latest last; at most `count`.
    pub fn last(&self, count: usize) -> Vec<f64> {
        let whole = self.whole();
        whole.skip(self.whole().count().saturating_sub(count)).map(|lost| lost as f64 / CELL as f64).collect()
    }

    /// The noise ratio over the last complete seconds, at most `over`; `None` if there are none.
    pub fn recent(&self, over: Nanos) -> Option<f64> {
        let last = self.last((over.get() / CELL).max(1) as usize);
        (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64)
    }

    /// The completely observed cells.
    fn whole(&self) -> impl Iterator<Item = i64> {
        let (since, until) = (self.since.unwrap_or(i64::MAX), self.until);
        let numbered = self.cells.iter().zip(self.first..);
        numbered.filter(move |(_, cell)| cell * CELL >= since && (cell + 1) * CELL <= until).map(|(lost, _)| *lost)
    }

    /// The cell with this number; `None` if it is forgotten.
    fn cell(&mut self, number: i64) -> Option<&mut i64> {
        if self.cells.is_empty() {
            self.first = number;
        }
        while self.first + (self.cells.len() as i64) <= number {
            self.cells.push_back(0);
            if self.cells.len() > KEPT {
                self.cells.pop_front();
                self.first += 1;
            }
        }
        self.cells.get_mut(usize::try_from(number - self.first).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    fn history_of(detours: &[(i64, i64)], until: i64) -> History {
        let mut history = History::default();
        history.advance(Nanos::ZERO);
        for (start, duration) in detours {
            history.add(Nanos::new(*start), Nanos::new(*duration));
        }
        history.advance(Nanos::new(until));
        history
    }

    #[test]
    fn a_detour_counts_in_every_second_that_it_touches() {
        let history = history_of(&[(900_000_000, 1_300_000_000)], 3_000_000_000);
        assert_eq!(history.last(10), [0.1, 1.0, 0.2]);
        assert_eq!(history.last(2), [1.0, 0.2]);
        assert!((history.recent(Nanos::from_secs(2)).unwrap() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn a_second_that_is_not_over_is_not_shown() {
        assert!(history_of(&[(0, 5)], 999_999_999).last(10).is_empty());
        assert_eq!(history_of(&[(0, 5)], 999_999_999).recent(SECOND), None);
        assert_eq!(history_of(&[(0, 500_000_000)], 1_999_999_999).last(10), [0.5]);
        // Nor is the one with the start of the loop.
        let mut late = History::default();
        late.advance(Nanos::new(300_000_000));
        late.advance(Nanos::from_secs(2));
        assert_eq!(late.last(10), [0.0]);
    }

    #[test]
    fn what_is_too_old_is_forgotten() {
        let mut history = history_of(&[], 0);
        history.advance(Nanos::from_secs(1_000_000));
        history.add(Nanos::ZERO, SECOND);
        assert_eq!(history.last(1_000).len(), KEPT - 1);
        assert_eq!(history.recent(SECOND), Some(0.0));
    }

    proptest! {
        #[test]
        fn nothing_of_a_detour_is_lost_between_the_seconds(
            detours in prop::collection::vec((0_i64..50_000_000_000, 1_i64..4_000_000_000), 0..40),
        ) {
            let history = history_of(&detours, 60_000_000_000);
            // Plain reference: each second's overlap with each detour.
            for (second, ratio) in history.last(60).iter().enumerate() {
                let (from, to) = (second as i64 * CELL, (second as i64 + 1) * CELL);
                let overlap = |(start, duration): &(i64, i64)| ((start + duration).min(to) - (*start).max(from)).max(0);
                let lost: i64 = detours.iter().map(overlap).sum();
                prop_assert_eq!(*ratio, lost as f64 / CELL as f64);
            }
        }
    }
}
