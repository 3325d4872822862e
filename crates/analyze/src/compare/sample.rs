//! The data of one run's detours in one place (a CPU, or all together) that a comparison needs.

use super::Doubt;
use super::extremes::Stretches;
use super::series::{RatioOfSums, Scatter};
use super::tails::RunQuantile;
use becalm_stats::{Moments, Quantiles, TimeCells};

/// The compared quantiles: the share of detours above each.
pub(super) const ABOVE: [f64; 2] = [0.01, 0.001];

/// Sums, quantiles and cells of time, in constant memory.
#[derive(Clone, Debug)]
pub(super) struct DetourSample {
    /// The total run time of the loops of all CPUs, in nanoseconds.
    observed: i64,
    durations: Moments,
    quantiles: Quantiles,
    noise: TimeCells,
    count: TimeCells,
    stretches: Stretches,
    /// The quantiles, once all detours were seen, with the detours above each.
    above: [(i64, TimeCells); ABOVE.len()],
    /// Whether it comes from the summary form, which has neither the detours above the quantiles nor the stretches.
    condensed: bool,
}

/// The figures of one place in summary form.
#[derive(Debug)]
pub(super) struct Condensed {
    /// The total run time of the loops of all CPUs, in nanoseconds.
    pub(super) observed: i64,
    pub(super) durations: Moments,
    /// The quantiles [`ABOVE`], in nanoseconds.
    pub(super) levels: [Option<i64>; ABOVE.len()],
    /// Per cell of time: the noise, and the number of detours that started there.
    pub(super) noise: TimeCells,
    pub(super) count: TimeCells,
}

impl DetourSample {
    /// For loops that ran for `length` nanoseconds from `start`, `observed` in all; the longest detours are kept per stretch of `stretch`
    /// nanoseconds.
    pub(super) fn new(start: i64, length: i64, observed: i64, stretch: i64) -> Self {
        let cells = TimeCells::new(start, length);
        Self {
            observed,
            durations: Moments::default(),
            quantiles: Quantiles::default(),
            noise: cells.clone(),
            count: cells.clone(),
            stretches: Stretches::new(start, length, stretch),
            above: std::array::from_fn(|_| (i64::MAX, cells.clone())),
            condensed: false,
        }
    }

    /// From the summary form.
    pub(super) fn from_condensed(figures: Condensed) -> Self {
        let nowhere = TimeCells::from_sums(1, Vec::new());
        Self {
            observed: figures.observed,
            durations: figures.durations,
            quantiles: Quantiles::default(),
            noise: figures.noise,
            count: figures.count,
            stretches: Stretches::new(0, 0, 1),
            above: figures.levels.map(|level| (level.unwrap_or(i64::MAX), nowhere.clone())),
            condensed: true,
        }
    }

    /// Whether it comes from the summary form.
    pub(super) const fn is_condensed(&self) -> bool {
        self.condensed
    }

    /// Adds a detour by its start and its length, in nanoseconds.
    #[inline]
    pub(super) fn add(&mut self, start: i64, duration: i64) {
        self.durations.add(duration);
        self.quantiles.add(duration);
        self.noise.add(start, duration);
        self.count.add(start, 1);
        self.stretches.add(start, duration);
    }

    /// Ends the first pass: now the quantiles are known.
    pub(super) fn set_levels(&mut self) {
        for ((level, _), above) in self.above.iter_mut().zip(ABOVE) {
            *level = self.quantiles.at(1.0 - above).unwrap_or(i64::MAX);
        }
    }

    /// Adds a detour in the second pass.
    #[inline]
    pub(super) fn add_above(&mut self, start: i64, duration: i64) {
        for (level, cells) in &mut self.above {
            if duration > *level {
                cells.add(start, 1);
            }
        }
    }

    pub(super) const fn observed(&self) -> i64 {
        self.observed
    }

    pub(super) const fn durations(&self) -> &Moments {
        &self.durations
    }

    pub(super) const fn stretches(&self) -> &Stretches {
        &self.stretches
    }

    /// Time lost over time observed.
    pub(super) fn noise_ratio(&self) -> Option<RatioOfSums> {
        RatioOfSums::over_time(&self.noise, self.observed)
    }

    /// Detours per nanosecond; `None` if too little was observed.
    pub(super) fn rate(&self) -> Option<RatioOfSums> {
        RatioOfSums::over_time(&self.count, self.observed)
    }

    /// The mean detour, in nanoseconds.
    pub(super) fn mean(&self) -> Option<RatioOfSums> {
        RatioOfSums::per_count(&self.noise, &self.count)
    }

    /// One of the quantiles [`ABOVE`], in nanoseconds.
    pub(super) fn quantile(&self, which: usize) -> Option<i64> {
        Some(self.above[which].0).filter(|_| self.durations.count() > 0)
    }

    /// The same with its scatter; `None` without detours.
    pub(super) fn tail(&self, which: usize) -> Option<Result<RunQuantile, Doubt>> {
        if self.condensed {
            return (self.durations.count() > 0).then_some(Err(Doubt::SummaryForm));
        }
        let exceed = RatioOfSums::per_count(&self.above[which].1, &self.count)?;
        let tail = |exceed: Scatter| RunQuantile::new(ABOVE[which], self.durations.count(), &exceed, &self.quantiles);
        Some(exceed.scatter().and_then(tail))
    }
}
