//! What is kept of one run's detours in one place (a CPU, or all together) for a comparison.

use super::Doubt;
use super::extremes::Stretches;
use super::series::{RatioOfSums, Scatter};
use super::tails::RunQuantile;
use becalm_stats::{Moments, Quantiles, TimeCells};

/// The quantiles that are compared, as the share of detours above them.
pub(super) const ABOVE: [f64; 2] = [0.01, 0.001];

/// Sums, quantiles and cells of time, in memory that does not grow with the detours.
#[derive(Clone, Debug)]
pub(super) struct DetourSample {
    /// How long the loops ran, added up over the CPUs, in nanoseconds.
    observed: i64,
    durations: Moments,
    quantiles: Quantiles,
    noise: TimeCells,
    count: TimeCells,
    stretches: Stretches,
    /// The quantiles, once all detours were seen, with the detours above each.
    above: [(i64, TimeCells); ABOVE.len()],
    /// Whether it is of the summary form, which has neither the detours above the quantiles nor the stretches.
    condensed: bool,
}

/// What the summary form says of one place.
#[derive(Debug)]
pub(super) struct Condensed {
    /// How long the loops ran, added up over the CPUs, in nanoseconds.
    pub(super) observed: i64,
    pub(super) durations: Moments,
    /// The quantiles [`ABOVE`], in nanoseconds.
    pub(super) levels: [Option<i64>; ABOVE.len()],
    /// The noise of each cell of time, and how many detours began in it.
    pub(super) noise: TimeCells,
    pub(super) count: TimeCells,
}

impl DetourSample {
    /// Of loops that ran for `length` nanoseconds from `start` on, `observed` in all; the longest detours are kept of
    /// stretches of `stretch` nanoseconds.
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

    /// Of the summary form.
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

    /// Whether it is of the summary form.
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

    /// Ends the first round: now the quantiles are known.
    pub(super) fn set_levels(&mut self) {
        for ((level, _), above) in self.above.iter_mut().zip(ABOVE) {
            *level = self.quantiles.at(1.0 - above).unwrap_or(i64::MAX);
        }
    }

    /// Takes a detour in the second round.
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

    /// How many detours come in a nanosecond; `None` if too little was observed.
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

    /// The same with how it scatters. None of no detours.
    pub(super) fn tail(&self, which: usize) -> Option<Result<RunQuantile, Doubt>> {
        if self.condensed {
            return (self.durations.count() > 0).then_some(Err(Doubt::SummaryForm));
        }
        let exceed = RatioOfSums::per_count(&self.above[which].1, &self.count)?;
        let tail = |exceed: Scatter| RunQuantile::new(ABOVE[which], self.durations.count(), &exceed, &self.quantiles);
        Some(exceed.scatter().and_then(tail))
    }
}
