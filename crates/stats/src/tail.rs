//! The length that a detour exceeds once per hour or other period: the maximum by peaks over a threshold.
//!
//! The longest detour of a run means little by itself: a run twice as long would have a longer one. Lengths over a high threshold follow a
//! generalized Pareto distribution. Its fit gives the length exceeded once per period ([return level](Tail::return_level)), with an
//! interval, also for periods a few times as long as the run.
//!
//! - *Clusters.* Several long detours with one cause count as one, by the runs method with the run length of Ferro and Segers.
//! - *Threshold.* At most a tenth of all detours (W. H. DuMouchel, Ann. Statist. 11 (1983)) and at most [`LONGEST`] may exceed it. From
//!   there it rises in steps that each keep 1/sqrt(2) of the exceedances, down to [`CLUSTERS_MIN`] clusters. The first step with a fit that
//!   passes both diagnostics is used: it keeps the most clusters.
//! - *Diagnostics.* The Anderson-Darling test with both parameters estimated, at 10 %, because a good fit is what has to be shown; and a
//!   stable shape: fitted to the upper half of the exceedances it differs by no more than chance gives once in 100 (the variance of the
//!   difference is that of the half less that of the whole, J. A. Hausman, Econometrica 46 (1978)).
//! - *The longest are no exceptions.* The fit must rest on clusters all the way up: at least [`LONG_MIN`] of them are longer than the
//!   geometric mean of the threshold and the longest. A daemon that runs twice for 5 ms among interrupts of 50 us leaves a gap that no test
//!   of fit detects in 40 clusters, and two events do not suffice to extrapolate. A test of this module measured 10 s with a tick, a host
//!   and such a daemon: 7 of 600 runs get a level; without this rule 535 did, of those 82 contained the truth.
//! - *Refusal.* If no step passes, or there are too few clusters, there is no tail, with the reason ([`NoTail`]). There are no levels for
//!   periods over [`EXTRAPOLATION`] times the run.
//!
//! The method is that of A. C. Davison, R. L. Smith, *Models for exceedances over high thresholds*, J. R. Stat. Soc. B 52 (1990). It cannot
//! detect a distribution that changes beyond the lengths seen, such as that of a job that runs once a day.

use super::clusters::Clusters;
use super::longest::{LONGEST, Longest};
use super::pareto::Pareto;

/// The name of the method, for the output.
pub const METHOD: &str = "peaks over threshold, generalized Pareto by maximum likelihood, profile likelihood interval";

/// The minimum number of clusters for a fit.
pub const CLUSTERS_MIN: usize = 40;

/// The maximum period of a return level, in lengths of the run.
pub const EXTRAPOLATION: i64 = 3;

/// At least this many clusters must be longer than the geometric mean of the threshold and the longest.
pub const LONG_MIN: usize = 5;

/// The lengths of a cause with fewer events are too little known; callers that know the causes refuse it with [`NoTail::RareCause`].
pub const CAUSE_EVENTS_MIN: u64 = 10;

/// One in this many detours may exceed the threshold.
const DETOURS_PER_EXCEEDANCE: u64 = 10;

/// The maximum difference of the shapes, in standard errors: 1 % by chance.
const DRIFT_MAX: f64 = 2.576;

/// Customary periods, in seconds: 1 s, 10 s, 30 s, 1 min, 10 min, 30 min, 1 h, 1 day.
const PERIODS_S: [i64; 8] = [1, 10, 30, 60, 600, 1_800, 3_600, 86_400];

/// The fitted tail of a run's detours.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The threshold, in nanoseconds.
    pub threshold_ns: i64,
    /// The number of detours over the threshold.
    pub exceedances: usize,
    /// The number of clusters of exceedances.
    pub clusters: usize,
    /// The share of exceedances that start a cluster: 1 if they are independent.
    pub extremal_index: f64,
    /// The shape xi: below 0 for a bounded tail, 0 for an exponential, above for a heavy one.
    pub shape: f64,
    /// The standard error of the shape.
    pub shape_error: f64,
    /// The scale sigma in nanoseconds.
    pub scale_ns: f64,
    /// The Anderson-Darling statistic of the fit.
    pub misfit: f64,
    /// The value that the statistic exceeds in one of ten samples that do follow the distribution.
    pub misfit_limit: f64,
    observed: i64,
    fit: Pareto,
}

/// The length that a detour exceeds once per period, on average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReturnLevel {
    /// The period, in nanoseconds.
    pub period_ns: i64,
    /// The length, in nanoseconds.
    pub level_ns: i64,
    /// The lower end of its 95 % interval, in nanoseconds.
    pub low_ns: i64,
    /// The upper end of the interval, in nanoseconds.
    pub high_ns: i64,
}

/// Why there is no tail, or no return level.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NoTail {
    /// There are too few independent clusters of long detours.
    FewClusters {
        /// The number over the lowest threshold.
        clusters: usize,
    },
    /// The long detours do not follow the distribution: several causes of different lengths, or one with constant length.
    BadFit {
        /// The Anderson-Darling statistic at the threshold where it was closest to its limit; `None` if all lengths are equal.
        misfit: Option<f64>,
        /// The limit at that threshold.
        limit: f64,
    },
    /// The shape changes with the length, so it may change again beyond the lengths seen.
    ShapeDrifts {
        /// The shape over the threshold.
        shape: f64,
        /// The shape for the longer half.
        higher: f64,
    },
    /// The longest clusters are exceptions, with a gap between them and the others.
    FewLong {
        /// The number longer than the geometric mean of the threshold and the longest.
        clusters: usize,
    },
    /// The cause of the longest detour occurred fewer than [`CAUSE_EVENTS_MIN`] times.
    RareCause {
        /// How often it came.
        events: u64,
    },
    /// For several CPUs together: the level would be below that of one of them.
    BelowPart {
        /// The highest level of a single CPU, in nanoseconds.
        part_ns: i64,
    },
    /// The fit does not bound the level above.
    Unbounded,
    /// The requested period is longer than [`EXTRAPOLATION`] runs.
    TooFar {
        /// The run length needed, in nanoseconds.
        needed_ns: i64,
    },
    /// The requested period is so short that the level is below the tail.
    TooNear,
}

impl Tail {
    /// Fits the longest detours of a loop that ran for `observed` nanoseconds.
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
                // There are enough detours, but so many of equal length that few exceed it.
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

    /// The fit over a threshold, if it passes the diagnostics.
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

    /// The length that a detour exceeds once per `period` nanoseconds, with its 95 % interval; a cluster counts as one. Fails if the period
    /// is too long for the run, or so short that the level is below the tail.
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

    /// The level for the longest of 1 s, 10 s, 30 s, 1 min, 10 min, 30 min, 1 h and 1 day that the run supports. Fails if there is none.
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

/// The number of clusters in the upper half of their range, on a logarithmic scale of length.
fn clusters_that_are_long(threshold: i64, excesses: &[f64]) -> usize {
    let threshold = threshold.max(1) as f64;
    let longest = excesses.iter().copied().fold(0.0, f64::max);
    let middle = (threshold * (threshold + longest)).sqrt();
    excesses.iter().filter(|excess| threshold + *excess > middle).count()
}

/// The refusal that is closer to a fit.
fn nearer(a: NoTail, b: NoTail) -> NoTail {
    let distance = |why: &NoTail| match why {
        NoTail::BadFit { misfit: Some(misfit), limit } => misfit / limit,
        NoTail::ShapeDrifts { .. } => 1.0,
        // Reported only if nothing else is wrong.
        NoTail::FewLong { .. } => f64::MAX,
        _ => f64::INFINITY,
    };
    if distance(&b) < distance(&a) { b } else { a }
}

#[cfg(test)]
mod tests;
