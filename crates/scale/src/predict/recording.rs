//! What another recording of the machine would have a prediction say.

use becalm_units::Nanos;

use super::{Prediction, Question, Replays, Tables};
use crate::ScaleError;
use crate::collective::Collective;
use crate::uncertainty::{Passed, RecordingBounds, RecordingEnds};

/// Where more than this share of the added time lies above the threshold of the longest delays, it is told apart what messages make of
/// it.
const MOST_ABOVE: f64 = 0.02;

/// By how much of the added time sampled phases and a replay may differ and still tell of the same: the former are off by as much.
const SAME: f64 = 0.05;

impl Prediction<'_> {
    /// The ends of the interval that a recording leaves open for a number of ranks, whatever a replay of it gives; with what replays
    /// of another number of ranks make of it.
    #[must_use]
    pub fn recording_ends(&self, ranks: u64, passed: Passed) -> Option<RecordingEnds> {
        let tables = self.tables.as_ref()?;
        let table = || Some(tables.uncertainty.as_ref()?.ends(self.units(tables, ranks), passed));
        let alone = tables.delays.ranks_per_unit() == 1;
        self.sampled_ends(tables, ranks).filter(|_| alone).or_else(table)
    }

    /// What replays make of the draws of [`Prediction::recording_ends`].
    ///
    /// # Errors
    /// As for [`Prediction::row`].
    pub fn replays_make(&self, ranks: u64) -> Result<Passed, ScaleError> {
        let few = self.tables_of_few(ranks)?;
        let Some(tables) = few.as_ref().or(self.tables.as_ref()) else { return Ok(Passed::ALL) };
        Ok(self.passed(tables, &self.replays(Some(tables), ranks)?, ranks))
    }

    /// What the recording leaves open, for the ideal collective with these replays.
    pub(super) fn recording(&self, tables: &Tables<'_>, replays: &Replays, ranks: u64) -> Option<RecordingBounds> {
        let known = tables.uncertainty.as_ref()?;
        let bounds = known.bounds_passed(self.units(tables, ranks), self.passed(tables, replays, ranks));
        let slowdown = replays.slowdown();
        let Some(ends) = self.sampled_ends(tables, ranks) else { return Some(bounds.with(slowdown)) };
        let ends = match (slowdown, &tables.sampled) {
            // What CPUs of a node meet together is not in phases that are sampled on each of them.
            (Some(replayed), Some(sampled)) if tables.delays.ranks_per_unit() > 1 => {
                let times = over(replayed.mean - 1.0, sampled.slowdown(ranks, None) - 1.0);
                if (times - 1.0).abs() > SAME { ends.times(times).with(replayed) } else { ends }
            }
            _ => ends,
        };
        Some(bounds.between(ends, slowdown))
    }

    /// The interval that a report of the recording prints: one question has one interval.
    fn sampled_ends(&self, tables: &Tables<'_>, ranks: u64) -> Option<RecordingEnds> {
        tables.sampled.as_ref().filter(|_| !self.question.synchronized)?.recording_ends(ranks)
    }

    /// How much of what is drawn the replays have.
    fn passed(&self, tables: &Tables<'_>, replays: &Replays, ranks: u64) -> Passed {
        let Some((known, replayed)) = tables.uncertainty.as_ref().zip(replays.below()) else { return Passed::ALL };
        Passed { below: over(replayed, known.expected_below(self.units(tables, ranks))), above: 1.0 }
    }

    /// What the recording leaves open with messages, of which there are these replays; if it is asked for.
    pub(super) fn recording_with_messages(
        &self,
        replays: &Replays,
        ranks: u64,
    ) -> Result<Option<RecordingBounds>, ScaleError> {
        // Of coalesced noise the delays of ranks hang together, which order statistics do not know.
        let wanted = self.of_recording && self.noise.together() && self.noise.windows().is_none();
        let Some(first) = replays.outcomes.first().filter(|_| wanted) else { return Ok(None) };
        let added = first.mean_phase_ns() - replays.quiet_phase_ns;
        // A job that only waits, of the same phases without noise.
        let grain = Nanos::new((replays.quiet_phase_ns.round() as i64).max(1));
        let question = Question { collective: Collective::Ideal, grain, replicas: 1, ..self.question };
        let waiting = Prediction::new(self.noise, question)?.of_recording();
        let few = waiting.tables_of_few(ranks)?;
        let Some(tables) = few.as_ref().or(waiting.tables.as_ref()) else { return Ok(None) };
        let Some(known) = &tables.uncertainty else { return Ok(None) };
        let units = self.units(tables, ranks);
        let replayed = waiting.replays(Some(tables), ranks)?;
        let (below, above) = (replayed.below().unwrap_or(0.0), replayed.above_ns.iter().sum::<f64>());
        let passed = match known.threshold() {
            Some(threshold) if above > MOST_ABOVE * (below + above) => {
                let noise = self.noise.cut_to(threshold)?;
                let alone = Prediction::new(&noise, Question { replicas: 1, ..self.question })?.watched(self.watch);
                let cut = alone.replays_of(ranks)?.added().unwrap_or(0.0).min(added);
                Passed { below: over(cut, known.expected_below(units)), above: over(added - cut, above) }
            }
            _ => Passed { below: over(added, known.expected_below(units)), above: over(added, below + above) },
        };
        Ok(Some(known.bounds_passed(units, passed)))
    }
}

/// How many times one time is another; once, where there is none.
fn over(a: f64, b: f64) -> f64 {
    if b > 0.0 { (a / b).max(0.0) } else { 1.0 }
}
