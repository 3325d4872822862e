//! The gain of a plan at scale: the slowdown of a job by recorded noise, with and without the noise that the plan removes.

use std::path::PathBuf;

use becalm_units::Nanos;

/// The gains of a plan's changes, by one recording of the CPUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Gains {
    /// The recording.
    pub run: PathBuf,
    /// For each grain and each size of the job, in this order, the slowdown now and without everything that the plan removes.
    pub total: Vec<Gain>,
    /// For each step of the plan, in order, its gain alone.
    pub steps: Vec<StepGain>,
}

/// A predicted job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GainJob {
    /// The length of its phases.
    pub grain: Nanos,
    /// The number of its ranks.
    pub ranks: u64,
}

/// The cost of the noise for a job. A slowdown is 1 or more: the time with noise over the time without.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// The job.
    pub job: GainJob,
    /// The slowdown as recorded.
    pub slowdown: PredictedSlowdown,
    /// The slowdown without all sources that the plan removes.
    pub without: PredictedSlowdown,
}

/// A slowdown with its 95 % interval over recordings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PredictedSlowdown {
    /// The slowdown of this recording.
    pub mean: f64,
    /// The lower end; `None` if there are too many ranks for one.
    pub low: Option<f64>,
    /// The upper end; `None` if the recording does not bound it.
    pub high: Option<f64>,
}

/// The gain of one change of the plan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StepGain {
    /// The recorded sources that it removes; may be empty.
    pub sources: Vec<String>,
    /// The slowdown of each job without those sources; empty if there are none.
    pub without: Vec<(GainJob, PredictedSlowdown)>,
}
