//! What a plan gains at scale: the slowdown of a job by the noise of a recording, with and without what the plan removes.

use std::path::PathBuf;

use becalm_units::Nanos;

/// What the changes of a plan gain, by one recording of the CPUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Gains {
    /// The recording that tells the gains.
    pub run: PathBuf,
    /// For each length of its phases and each size of the job, in this order, the slowdown now and without all that the plan removes.
    pub total: Vec<Gain>,
    /// For each step of the plan, in order, what it gains alone.
    pub steps: Vec<StepGain>,
}

/// A job that is predicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GainJob {
    /// The length of its phases.
    pub grain: Nanos,
    /// Its ranks.
    pub ranks: u64,
}

/// What the noise costs a job, as a ratio of 1 or more: the time that it takes over the time without noise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// The job.
    pub job: GainJob,
    /// The slowdown as recorded.
    pub slowdown: PredictedSlowdown,
    /// The slowdown without all sources that the plan removes.
    pub without: PredictedSlowdown,
}

/// A slowdown with the 95 % interval that the recording leaves open.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PredictedSlowdown {
    /// By the recording as it is.
    pub mean: f64,
    /// The lower end; nothing where ranks are too many for one.
    pub low: Option<f64>,
    /// The upper end; nothing where the recording does not bound it.
    pub high: Option<f64>,
}

/// What a job gains by one change of the plan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StepGain {
    /// The recorded sources that it removes; empty if none was recorded.
    pub sources: Vec<String>,
    /// Of each job the slowdown that is left without those sources; empty if there are none.
    pub without: Vec<(GainJob, PredictedSlowdown)>,
}
