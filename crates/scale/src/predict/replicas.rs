//! The replicas of a job, which predictions replay.

use becalm_model::Estimate;
use becalm_units::Nanos;

use super::Question;
use crate::estimate::{from_replicas, not_below};
use crate::machine::{HeldUp, RankStart};
use crate::phases::PhaseDurations;
use crate::replay::ReplayOutcome;

/// All replicas of a job.
pub(super) struct Replays {
    pub(super) outcomes: Vec<ReplayOutcome>,
    pub(super) quiet_phase_ns: f64,
    pub(super) durations: PhaseDurations,
    /// The time added to a mean phase of each replica above the threshold of the law for a recording's longest delays, in nanoseconds; for the ideal
    /// collective.
    pub(super) above_ns: Vec<f64>,
}

impl Replays {
    /// Without replicas yet.
    pub(super) fn new(quiet_phase_ns: f64, durations: PhaseDurations) -> Self {
        Self { outcomes: Vec::new(), quiet_phase_ns, durations, above_ns: Vec::new() }
    }

    /// Adds the next replica.
    pub(super) fn take(&mut self, replica: &Replica) {
        self.outcomes.push(replica.outcome);
        self.durations.merge(&replica.durations);
    }

    /// The time added to a mean phase, in nanoseconds.
    pub(super) fn added(&self) -> Option<f64> {
        let all: f64 = self.outcomes.iter().map(ReplayOutcome::mean_phase_ns).sum();
        (!self.outcomes.is_empty()).then(|| all / self.outcomes.len() as f64 - self.quiet_phase_ns)
    }

    /// The part of it below the threshold.
    pub(super) fn below(&self) -> Option<f64> {
        Some(self.added()? - self.above_ns.iter().sum::<f64>() / self.outcomes.len() as f64)
    }

    /// The slowdown of each replica.
    pub(super) fn slowdowns(&self) -> Vec<f64> {
        self.outcomes.iter().map(|outcome| outcome.mean_phase_ns() / self.quiet_phase_ns).collect()
    }

    pub(super) fn slowdown(&self) -> Option<Estimate> {
        // Noise only ever delays.
        from_replicas(&self.slowdowns()).map(|estimate| not_below(estimate, 1.0))
    }
}

pub(super) struct Replica {
    pub(super) outcome: ReplayOutcome,
    pub(super) durations: PhaseDurations,
    /// The total time of its phases above the threshold, in nanoseconds.
    pub(super) above_ns: i128,
}

/// The replicas of a job with messages, each with its critical path.
pub(crate) struct CriticalPaths<'a> {
    /// The duration of the job without noise.
    pub quiet: Nanos,
    pub replicas: Vec<CriticalPath<'a>>,
}

/// A replica with messages, and the delayed work on its critical path.
pub(crate) struct CriticalPath<'a> {
    pub outcome: ReplayOutcome,
    pub held_up: Vec<HeldUp>,
    /// Each rank's trace, and its offset on it.
    pub starts: Vec<RankStart<'a>>,
}

/// Phases by their ends, each the end of its last rank.
pub(super) struct Durations {
    pub(super) outcome: ReplayOutcome,
}

impl Durations {
    pub(super) fn new(question: &Question) -> Self {
        let grain = question.grain;
        Self { outcome: ReplayOutcome { phases: 0, grain, total: Nanos::ZERO, worst_phase: Nanos::ZERO, delayed: 0 } }
    }

    /// Adds the end of a phase; returns its duration.
    pub(super) fn add(&mut self, end: Nanos) -> Nanos {
        let duration = end - self.outcome.total;
        self.outcome.phases += 1;
        self.outcome.total = end;
        self.outcome.worst_phase = self.outcome.worst_phase.max(duration);
        self.outcome.delayed += u64::from(duration > self.outcome.grain);
        duration
    }
}
