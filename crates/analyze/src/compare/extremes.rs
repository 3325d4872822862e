//! The longest detours of a run.
//!
//! The longest detour of a run is a single value that grows with the run's length: two of them show nothing. So all runs are cut into stretches of
//! the same length, and the medians of their longest detours are compared.

use super::contrast::RunFigure;
use becalm_stats::median_mid;

/// Minimum number of stretches of a run that is alone on its side.
pub(super) const STRETCHES_MIN: usize = 12;

/// Stretches of equal length, each with its longest detour.
#[derive(Clone, Debug)]
pub(super) struct Stretches {
    start: i64,
    width: i64,
    longest: Vec<i64>,
}

impl Stretches {
    /// For a run of `length` ns from `start`; an incomplete last stretch is not counted.
    pub(super) fn new(start: i64, length: i64, width: i64) -> Self {
        let width = width.max(1);
        Self { start, width, longest: vec![0; (length.max(0) / width) as usize] }
    }

    #[inline]
    pub(super) fn add(&mut self, start: i64, duration: i64) {
        let at = start.saturating_sub(self.start) / self.width;
        if let Some(longest) = usize::try_from(at).ok().and_then(|at| self.longest.get_mut(at)) {
            *longest = duration.max(*longest);
        }
    }

    /// The length of a stretch, in nanoseconds.
    pub(super) const fn width(&self) -> i64 {
        self.width
    }

    /// The median of the stretches' longest detours, with the variance from the ranks around it; `None` without stretches.
    ///
    /// The number of n values below the true median is binomial with standard deviation sqrt(n)/2, so the ranks n/2 -+ sqrt(n)/2 are one standard
    /// error from it (W. J. Conover, *Practical Nonparametric Statistics*, 1999, section 3.2).
    pub(super) fn typical(&self) -> Option<RunFigure> {
        let mut longest: Vec<f64> = self.longest.iter().map(|ns| *ns as f64).collect();
        let value = median_mid(&mut longest)?;
        longest.sort_unstable_by(f64::total_cmp);
        let (middle, error) = (longest.len() as f64 / 2.0, (longest.len() as f64).sqrt() / 2.0);
        let at = |rank: f64| longest[(rank.max(0.0) as usize).min(longest.len() - 1)];
        Some(RunFigure::new(value, ((at(middle + error) - at(middle - error)) / 2.0).powi(2)))
    }

    /// The number of stretches.
    pub(super) const fn count(&self) -> usize {
        self.longest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detours_are_kept_by_stretch() {
        let mut found = Stretches::new(500, 3_400, 1_000);
        for (start, duration) in [(500, 7), (1_499, 9), (1_500, 3), (3_500, 99), (i64::MIN, 5), (i64::MAX, 5)] {
            found.add(start, duration);
        }
        assert_eq!((found.longest.as_slice(), found.count()), ([9, 3, 0].as_slice(), 3));
    }

    /// For 16 values, the ranks 8 -+ 2 are one standard error from the median.
    #[test]
    fn the_median_of_stretches_scatters_by_their_ranks() {
        let found = Stretches { start: 0, width: 1_000, longest: (1..=16).map(|k| 10 * k).collect() };
        assert_eq!(found.typical().unwrap(), RunFigure::new(85.0, 400.0));
    }
}
