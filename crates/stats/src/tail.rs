//! Which length a detour exceeds once in an hour: the maximum by peaks over a threshold.
//!
//! The longest detour of a run says little by itself: a run twice as long would have a longer one. What exceeds a high
//! threshold follows a generalized Pareto distribution, and its fit says what comes once in a given time
//! ([return level](Tail::return_level)), with an interval, also for times a few times as long as the run.
//!
//! - *Clusters.* One cause makes several long detours; they are taken as one, by the runs method with the run length of
//!   Ferro and Segers.
//! - *Threshold.* At most a tenth of all detours (W. H. DuMouchel, Ann. Statist. 11 (1983)) and at most [`LONGEST`] may
//!   exceed it. From there it rises in steps that each leave 1/sqrt(2) of the exceedances, down to [`CLUSTERS_MIN`]
//!   clusters, and the first step is taken at which the fit passes both diagnostics: as many clusters as possible, as few
//!   as necessary.
//! - *Diagnostics.* The Anderson-Darling test with both parameters estimated, at 10 %, as it is the good fit that has to be
//!   shown; and the shape is stable: fitted to the upper half of the exceedances it differs by no more than chance gives
//!   once in 100 (the variance of the difference is that of the half less that of the whole, J. A. Hausman, Econometrica
//!   46 (1978)).
//! - *The longest are no exceptions.* The fit must rest on clusters all the way up: at least [`LONG_MIN`] of them are longer than
//!   the geometric mean of the threshold and the longest. A daemon that came twice with 5 ms among interrupts of 50 us leaves a
//!   gap that no test of fit sees in 40 clusters, and of which two events say nothing. Measured by a test of this module: of 10 s with a tick, a host and such a daemon, 7 of
//!   600 runs get a level; without this 535 of 600 did, of which 82 held the truth.
//! - *Refusal.* Where no step passes, or there are too few clusters, there is no tail, with the reason ([`NoTail`]).
//!   Nothing is said of times over [`EXTRAPOLATION`] times the run's.
//!
//! The method is that of A. C. Davison, R. L. Smith, *Models for exceedances over high thresholds*, J. R. Stat. Soc. B 52
//! (1990). What it cannot know: a law that changes beyond what was seen, as of a job that runs once a day.

use super::clusters::Clusters;
use super::longest::{LONGEST, Longest};
use super::pareto::Pareto;

/// The name of the method, for the output.
pub const METHOD: &str = "peaks over threshold, generalized Pareto by maximum likelihood, profile likelihood interval";

/// A tail is not fitted to fewer clusters.
pub const CLUSTERS_MIN: usize = 40;

/// How many times as long as the run the time of a return level may be.
pub const EXTRAPOLATION: i64 = 3;

/// So many clusters must be longer than the geometric mean of the threshold and the longest.
pub const LONG_MIN: usize = 5;

/// A cause that came less often than this has shown too little of its lengths; what knows the causes refuses by it
/// ([`NoTail::RareCause`]).
pub const CAUSE_EVENTS_MIN: u64 = 10;

/// One of so many detours may exceed the threshold.
const DETOURS_PER_EXCEEDANCE: u64 = 10;

/// By how many standard errors the shape may differ above: 1 % by chance.
const DRIFT_MAX: f64 = 2.576;

/// The times in which people think, in seconds: 1 s, 10 s, 30 s, 1 min, 10 min, 30 min, 1 h, 1 day.
const PERIODS_S: [i64; 8] = [1, 10, 30, 60, 600, 1_800, 3_600, 86_400];

/// The fitted tail of a run's detours.
#[derive(Clone, Debug)]
pub struct Tail {
    /// What counts as exceeding, in nanoseconds.
    pub threshold_ns: i64,
    /// How many detours exceed it.
    pub exceedances: usize,
    /// The number of clusters that the exceedances come in.
    pub clusters: usize,
    /// What share of exceedances begins a cluster: 1 where they are independent.
    pub extremal_index: f64,
    /// The shape xi: below 0 for a bounded tail, 0 for an exponential, above for a heavy one.
    pub shape: f64,
    /// The standard error of the shape.
    pub shape_error: f64,
    /// The scale sigma in nanoseconds.
    pub scale_ns: f64,
    /// The Anderson-Darling statistic of the fit.
    pub misfit: f64,
    /// What that exceeds in one of ten samples that do follow the law.
    pub misfit_limit: f64,
    observed: i64,
    fit: Pareto,
}

/// The length that a detour exceeds once in a time, on average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReturnLevel {
    /// The time, in nanoseconds.
    pub period_ns: i64,
    /// The length, in nanoseconds.
    pub level_ns: i64,
    /// The lower end of its 95 % interval.
    pub low_ns: i64,
    /// The upper end of the interval, in nanoseconds.
    pub high_ns: i64,
}

/// Why there is no tail, or no return level.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NoTail {
    /// There are too few independent clusters of long detours.
    FewClusters {
        /// How many there are over the lowest threshold.
        clusters: usize,
    },
    /// The long detours do not follow the law: several causes of different lengths, or one that always takes the same.
    BadFit {
        /// The Anderson-Darling statistic where it was smallest against its limit; `None` if the lengths are all alike.
        misfit: Option<f64>,
        /// The limit that the statistic exceeds there.
        limit: f64,
    },
    /// The longer the detours, the more the shape changes: beyond what was seen it may change again.
    ShapeDrifts {
        /// The shape over the threshold.
        shape: f64,
        /// The shape of the longer half.
        higher: f64,
    },
    /// The longest clusters are exceptions: between them and the others there is a gap.
    FewLong {
        /// How many are longer than the geometric mean of the threshold and the longest.
        clusters: usize,
    },
    /// The cause of the longest detour came fewer than [`CAUSE_EVENTS_MIN`] times.
    RareCause {
        /// How often it came.
        events: u64,
    },
    /// Of several CPUs together: the level would be below that of one of them.
    BelowPart {
        /// The highest level of a part, in nanoseconds.
        part_ns: i64,
    },
    /// The fit leaves the level open upward.
    Unbounded,
    /// The time asked for is longer than [`EXTRAPOLATION`] runs.
    TooFar {
        /// How long the run would have to be, in nanoseconds.
        needed_ns: i64,
    },
    /// The time asked for is so short that the level is not in the tail.
    TooNear,
}

impl Tail {
    /// Of the longest detours of a loop that was observed for so many nanoseconds.
    pub fn fit(longest: Longest, observed: i64) -> Result<Self, NoTail> {
        let share = usize::try_from(longest.count() / DETOURS_PER_EXCEEDANCE).unwrap_or(usize::MAX);
        let (floor, detours) = longest.sorted();
        let mut lengths: Vec<i64> = detours.iter().map(|(_, length)| *length).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let candidate = |exceedances: usize| {
            let threshold = lengths.get(exceedances).copied().unwrap_or(floor).max(0);
            (threshold, Clusters::for_threshold(threshold, &detours))
        };
        let mut exceedances = share.min(LONGEST);
        let mut refusal: Option<NoTail> = None;
        loop {
            let (threshold, clusters) = candidate(exceedances);
            if clusters.exceedances < CLUSTERS_MIN && exceedances >= CLUSTERS_MIN {
                // There are enough detours, but so many are equally long that few exceed what most of them have.
                return Err(refusal.unwrap_or(NoTail::BadFit { misfit: None, limit: 0.0 }));
            }
            if clusters.excesses.len() < CLUSTERS_MIN || observed <= 0 {
                return Err(refusal.unwrap_or(NoTail::FewClusters { clusters: clusters.excesses.len() }));
            }
            match Self::diagnosed(threshold, &clusters, &candidate(exceedances / 2).1, observed) {
                Ok(tail) => return Ok(tail),
                Err(why) => refusal = Some(refusal.map_or(why, |before| nearer(before, why))),
            }
            exceedances = (exceedances as f64 / std::f64::consts::SQRT_2) as usize;
        }
    }

    /// The fit over a threshold, if it passes.
    fn diagnosed(threshold: i64, clusters: &Clusters, higher: &Clusters, observed: i64) -> Result<Self, NoTail> {
        let no_fit = NoTail::BadFit { misfit: None, limit: 0.0 };
        let fit = Pareto::fit(&clusters.excesses).ok_or(no_fit)?;
        let long = clusters_that_are_long(threshold, &clusters.excesses);
        if long < LONG_MIN {
            return Err(NoTail::FewLong { clusters: long });
        }
        let (misfit, limit) = (fit.anderson_darling(), fit.anderson_darling_limit());
        if misfit > limit {
            return Err(NoTail::BadFit { misfit: Some(misfit), limit });
        }
        if let Some(higher) = Pareto::fit(&higher.excesses) {
            let variance = higher.shape_error().powi(2) - fit.shape_error().powi(2);
            if variance > 0.0 && (higher.shape - fit.shape).abs() > DRIFT_MAX * variance.sqrt() {
                return Err(NoTail::ShapeDrifts { shape: fit.shape, higher: higher.shape });
            }
        }
        Ok(Self {
            threshold_ns: threshold,
            exceedances: clusters.exceedances,
            clusters: clusters.excesses.len(),
            extremal_index: clusters.extremal_index(),
            shape: fit.shape,
            shape_error: fit.shape_error(),
            scale_ns: fit.scale,
            misfit,
            misfit_limit: limit,
            observed,
            fit,
        })
    }

    /// The length that a detour exceeds once in `period` nanoseconds, with its 95 % interval; a cluster counts as one.
    /// Fails if the period is too long for the run, or so short that the level is not in the tail.
    pub fn return_level(&self, period: i64) -> Result<ReturnLevel, NoTail> {
        if period > self.observed.saturating_mul(EXTRAPOLATION) {
            return Err(NoTail::TooFar { needed_ns: period / EXTRAPOLATION });
        }
        if period < self.shortest() {
            return Err(NoTail::TooNear);
        }
        let level = self.fit.level(period as f64, self.observed as f64).ok_or(NoTail::Unbounded)?;
        let ns = |excess: f64| self.threshold_ns.saturating_add(excess.round() as i64);
        Ok(ReturnLevel { period_ns: period, level_ns: ns(level.best), low_ns: ns(level.low), high_ns: ns(level.high) })
    }

    /// The level for the longest of 1 s, 10 s, 30 s, 1 min, 10 min, 30 min, 1 h and 1 day that the run allows. Fails if
    /// it allows none.
    pub fn longest_return_level(&self) -> Result<ReturnLevel, NoTail> {
        let reach = self.observed.saturating_mul(EXTRAPOLATION);
        let periods = PERIODS_S.map(|seconds| seconds * 1_000_000_000);
        let period = periods.into_iter().rev().find(|period| *period <= reach);
        self.return_level(period.ok_or(NoTail::TooFar { needed_ns: periods[0] / EXTRAPOLATION })?)
    }

    /// Twice the mean time between two clusters.
    fn shortest(&self) -> i64 {
        self.observed / self.clusters as i64 * 2
    }
}

/// How many clusters lie in the upper half of their range, on a logarithmic scale of length.
fn clusters_that_are_long(threshold: i64, excesses: &[f64]) -> usize {
    let threshold = threshold.max(1) as f64;
    let longest = excesses.iter().copied().fold(0.0, f64::max);
    let middle = (threshold * (threshold + longest)).sqrt();
    excesses.iter().filter(|excess| threshold + *excess > middle).count()
}

/// Of two refusals the one that comes nearer to a fit.
fn nearer(a: NoTail, b: NoTail) -> NoTail {
    let distance = |why: &NoTail| match why {
        NoTail::BadFit { misfit: Some(misfit), limit } => misfit / limit,
        NoTail::ShapeDrifts { .. } => 1.0,
        // Where nothing else is wrong.
        NoTail::FewLong { .. } => f64::MAX,
        _ => f64::INFINITY,
    };
    if distance(&b) < distance(&a) { b } else { a }
}

#[cfg(test)]
mod tests;
