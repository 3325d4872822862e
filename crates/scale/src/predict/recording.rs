//! Predictions from a recording, and their uncertainty from one recording to another.

use becalm_model::Estimate;
use becalm_units::Nanos;

use super::{Prediction, Question, Replays, Tables};
use crate::ScaleError;
use crate::collective::Collective;
use crate::estimate::exactly;
use crate::noise::Alignment;
use crate::sampled::PhaseLosses;
use crate::uncertainty::{RecordingBounds, RecordingEnds, RecordingUncertainty, ReplayFactors};

/// If more than this share of the added time is above the threshold of the longest delays, the effect of messages on it is determined separately.
const MOST_ABOVE: f64 = 0.02;

/// The CPUs of a node lose the same together and separately if the added time differs by at most this share.
const SAME: f64 = 0.05;

/// A slowdown and its interval.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) slowdown: Option<Estimate>,
    /// The slowdown if the CPUs of a node are taken separately, if that differs.
    pub(super) apart: Option<f64>,
    /// The uncertainty of the recording, if requested.
    pub(super) recording: Option<RecordingBounds>,
}

impl Prediction<'_> {
    /// The sampled phases that answer the question: for ranks with their own offsets, or a common one only within their node.
    pub(super) fn sampled<'t>(&self, tables: &'t Tables<'_>) -> Option<&'t PhaseLosses<()>> {
        let apart = !self.question.synchronized && self.noise.alignment() != Alignment::Recording;
        tables.losses.as_ref().filter(|_| apart)
    }

    /// The slowdown, without the uncertainty of the recording.
    pub(super) fn answered(&self, tables: &Tables<'_>, replays: &Replays, ranks: u64) -> Answer {
        let replayed = replays.slowdown();
        let Some(losses) = self.sampled(tables) else { return Answer { slowdown: replayed, ..Answer::default() } };
        let apart = losses.slowdown(ranks, None);
        // Sampled phases are those of each CPU.
        let together = replayed.filter(|replayed| {
            let differs = (replayed.mean - apart).abs() > SAME * (apart - 1.0).max(replayed.mean - 1.0);
            let known = self.question.replicas > 1 && !(replayed.low..=replayed.high).contains(&apart);
            tables.delays.ranks_per_unit() > 1 && differs && known
        });
        let slowdown = together.or(Some(exactly(apart)));
        Answer { slowdown, apart: together.map(|_| apart), recording: None }
    }

    /// For the ideal collective, with these replays.
    pub(super) fn answer(&self, tables: &Tables<'_>, replays: &Replays, ranks: u64) -> Answer {
        let Answer { slowdown, apart, .. } = self.answered(tables, replays, ranks);
        let bounds = |known: &RecordingUncertainty| match (self.sampled(tables), slowdown, apart) {
            (Some(losses), Some(slowdown), Some(apart)) => {
                losses.bounds(known, ranks).times(times(slowdown.mean - 1.0, apart - 1.0)).widened(slowdown)
            }
            (Some(losses), ..) => losses.bounds(known, ranks),
            (None, ..) => {
                let passed = self.passed(known, replays, ranks);
                let bounds = known.bounds(self.draws(ranks), passed, replays.added().unwrap_or(0.0));
                slowdown.map_or(bounds, |slowdown| bounds.widened(slowdown))
            }
        };
        Answer { slowdown, apart, recording: tables.known.as_ref().map(bounds) }
    }

    /// The ends of the recording's interval for a number of ranks, with the factors from replays of another number of ranks.
    pub fn recording_ends(&self, ranks: u64, passed: ReplayFactors) -> Option<RecordingEnds> {
        let tables = self.tables.as_ref()?;
        let known = tables.known.as_ref()?;
        let ends = self.sampled(tables).map(|losses| losses.ends(known, ranks));
        Some(ends.unwrap_or_else(|| known.ends(self.draws(ranks), passed)))
    }

    /// The factors from replays for [`Prediction::recording_ends`].
    pub fn replays_make(&self, ranks: u64) -> Result<ReplayFactors, ScaleError> {
        let few = self.small_tables(ranks)?;
        let tables = few.as_ref().or(self.tables.as_ref()).filter(|tables| self.sampled(tables).is_none());
        let known = tables.and_then(|tables| tables.known.as_ref());
        match known {
            Some(known) => Ok(self.passed(known, &self.replays(tables, ranks)?, ranks)),
            None => Ok(ReplayFactors { below: 1.0, above: 1.0 }),
        }
    }

    /// The factors of the replays relative to the draws.
    fn passed(&self, known: &RecordingUncertainty, replays: &Replays, ranks: u64) -> ReplayFactors {
        let below = replays.below().map_or(1.0, |below| times(below, known.expected_below(self.draws(ranks))));
        ReplayFactors { below, above: 1.0 }
    }

    /// The number of ranks with independent noise.
    fn draws(&self, ranks: u64) -> u64 {
        if self.question.synchronized { ranks.min(self.noise.traces().count() as u64) } else { ranks }
    }

    /// For a collective with messages, with these replays.
    pub(super) fn answer_with_messages(&self, replays: &Replays, ranks: u64) -> Result<Answer, ScaleError> {
        let slowdown = replays.slowdown();
        let alone = Answer { slowdown, ..Answer::default() };
        let (Some(first), true) = (replays.outcomes.first(), self.asks_recording) else { return Ok(alone) };
        let added = first.mean_phase_ns() - replays.quiet_phase_ns;
        // A job that only waits, with phases of the same length without noise.
        let grain = Nanos::new((replays.quiet_phase_ns.round() as i64).max(1));
        let question = Question { collective: Collective::Ideal, grain, replicas: 1, ..self.question };
        let waiting = Prediction::new(self.noise, question)?.with_recording();
        let few = waiting.small_tables(ranks)?;
        let Some(tables) = few.as_ref().or(waiting.tables.as_ref()) else { return Ok(alone) };
        let Some(known) = &tables.known else { return Ok(alone) };
        let draws = self.draws(ranks);
        let replayed = waiting.replays(Some(tables), ranks)?;
        let (below, above) = (replayed.below().unwrap_or(0.0), replayed.above_ns.iter().sum::<f64>());
        let passed = match known.threshold() {
            Some(threshold) if above > MOST_ABOVE * (below + above) => {
                let noise = self.noise.cut_to(threshold)?;
                let alone = Prediction::new(&noise, Question { replicas: 1, ..self.question })?.watched(self.watch);
                let cut = alone.replays_alone(ranks)?.added().unwrap_or(0.0).min(added);
                ReplayFactors { below: times(cut, known.expected_below(draws)), above: times(added - cut, above) }
            }
            _ => ReplayFactors { below: times(added, known.expected_below(draws)), above: times(added, below + above) },
        };
        let bounds = known.bounds(draws, passed, added);
        Ok(Answer { recording: Some(slowdown.map_or(bounds, |slowdown| bounds.widened(slowdown))), ..alone })
    }
}

/// The ratio of two times; 1 if the second is 0.
fn times(a: f64, b: f64) -> f64 {
    if b > 0.0 { (a / b).max(0.0) } else { 1.0 }
}
