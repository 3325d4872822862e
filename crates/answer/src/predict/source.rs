//! The noise of a prediction, from a run or a formula, assigned to ranks.

use std::path::Path;

use becalm_analyze::noise::{NoiseInput, NoiseOrigin};
use becalm_analyze::summary::Selection;
use becalm_bundle::Contents;
use becalm_scale::placement::RANKS_LIMIT;
use becalm_scale::predict::{Prediction, Question};
use becalm_scale::spec::Drawing;
use becalm_scale::{Alignment, ScaleError};
use becalm_units::Nanos;
use becalm_units::fault::{self, UsageError, Wording};

use super::{AskedNoise, PredictQuestion};
use crate::noise::{NoiseArg, read_named};
use crate::{Asker, open};

pub(super) struct PreparedNoise {
    pub(super) source: NoiseInput,
    pub(super) per_node: u64,
    /// The names of its sources, if it has accounts.
    pub(super) sources: Vec<String>,
    pub(super) taken_out: Vec<bool>,
}

impl PreparedNoise {
    /// Reads or draws the noise for phases of a grain, without removed sources, coalesced in windows unless `window` is zero. Fails if it
    /// cannot be read, does not match the options, or leaves no time for work.
    pub(super) fn read(
        asked: &PredictQuestion,
        noise: &AskedNoise,
        grain: Nanos,
        window: Nanos,
        asker: &impl Asker,
    ) -> fault::Result<Self> {
        // Delayed noise covers a whole window.
        let (mut source, per_node) = aligned(asked, source(asked, noise, grain.max(window), asker)?)?;
        let sources: Vec<String> = source.booked.as_ref().map_or_else(Vec::new, |booked| booked.sources().to_vec());
        let mut taken_out = vec![false; sources.len()];
        if let Some(booked) = &source.booked {
            for name in &asked.without {
                for number in source.source_numbers(name)? {
                    taken_out[number] = true;
                }
            }
            source.noise = booked.without(&taken_out).map_err(becalm_scale::ScaleError::from)?;
        }
        if window != Nanos::ZERO {
            source = source.coalesced(window)?;
        }
        Ok(Self { source, per_node, sources, taken_out })
    }

    /// Whether it also serves phases of this grain, with noise in such windows.
    pub(super) fn serves(&self, grain: Nanos, window: Nanos) -> bool {
        self.source.summary.is_none_or(|summary| summary.grain == grain.max(window))
    }

    /// The prediction for a question, with the noise's known error.
    pub(super) fn prediction(&self, question: Question) -> Result<Prediction<'_>, ScaleError> {
        let prediction = Prediction::new(&self.source.noise, question)?.with_draws(&self.source.draws)?;
        Ok(match self.source.summary {
            Some(summary) => prediction.with_recorded(summary.recorded),
            None => prediction.with_recording(),
        })
    }
}

/// The noise, with its accounts if the question is about sources.
fn source(asked: &PredictQuestion, noise: &AskedNoise, grain: Nanos, asker: &impl Asker) -> fault::Result<NoiseInput> {
    let books = asked.blame || !asked.without.is_empty();
    let chosen = asked.selection.cpus.is_some() || asked.selection.node.is_some();
    let refused = |why| Err(UsageError::new(Wording::new(why)).into());
    match noise {
        AskedNoise::Given(_) if books => refused(
            "detours from memory have no sources: {blame!} and {without} need a run that was recorded with sources",
        ),
        AskedNoise::Given(_) if chosen => {
            refused("detours from memory are chosen already: {cpus} and {node} choose from a run")
        }
        AskedNoise::Given(input) => Ok(input.as_ref().clone()),
        AskedNoise::Named(NoiseArg::Spec(_)) if books => {
            refused("a formula has no sources: {blame!} and {without} need a run that was recorded with sources")
        }
        AskedNoise::Named(NoiseArg::Spec(_)) if chosen => {
            refused("a formula has no CPUs: {cpus} and {node} choose from a run")
        }
        AskedNoise::Named(NoiseArg::RunWith(..)) if books => refused(
            "{blame!} and {without} split a recording by its sources, and a formula has none: leave the formula out",
        ),
        AskedNoise::Named(NoiseArg::Spec(spec)) => Ok(NoiseInput::from_spec(spec, drawing(asked), asked.replicas)?),
        AskedNoise::Named(NoiseArg::Run(path)) => recorded(asked, path, books, grain, asker),
        AskedNoise::Named(NoiseArg::RunWith(path, spec)) => {
            Ok(recorded(asked, path, false, grain, asker)?.with_cause(spec, drawing(asked))?)
        }
    }
}

/// The noise of the chosen CPUs of a run.
fn recorded(
    asked: &PredictQuestion,
    path: &Path,
    books: bool,
    grain: Nanos,
    asker: &impl Asker,
) -> fault::Result<NoiseInput> {
    let contents = Contents::read(path)?;
    let refused = |why| Err(UsageError::new(Wording::new(why)).into());
    if contents == Contents::Observed {
        if asked.alignment == Alignment::Recording {
            return refused(
                "{as_recorded!} replays noise as it came, and ranks draw observed threads one by one: leave it out",
            );
        }
        if asked.selection.cpus.is_some() {
            return refused("observed threads move between CPUs: leave {cpus} out");
        }
        let Selection { node, with_self, .. } = &asked.selection;
        return Ok(NoiseInput::from_threads(path, node.as_deref(), *with_self, books)?);
    }
    if contents == Contents::Summary {
        if asked.alignment == Alignment::Recording {
            return refused(
                "{as_recorded!} replays noise as it came, and the summary form does not keep that: leave it out",
            );
        }
        if asked.tolerated.is_some() {
            return refused(
                "{tolerate} says which detours would have to go, and the summary form does not keep detours",
            );
        }
        let bundle = open::summary(path, |text| asker.tell(text))?;
        return Ok(NoiseInput::from_summary(&bundle, &asked.selection, books, grain)?);
    }
    let bundle = open::recording(path, |text| asker.tell(text))?;
    let _reading = asker.reading(&bundle, 1);
    Ok(NoiseInput::from_run(&bundle, &asked.selection, books)?)
}

/// The random source and the length for the detours of a formula.
fn drawing(asked: &PredictQuestion) -> Drawing<'static> {
    let ranks = asked.ranks.iter().copied().max().unwrap_or(1).min(RANKS_LIMIT);
    let grain = asked.grains.iter().copied().max().unwrap_or(Nanos::ZERO);
    let phases = ranks.saturating_mul(asked.phases).saturating_mul(asked.replicas);
    let time = grain.get().saturating_mul(i64::try_from(phases).unwrap_or(i64::MAX));
    Drawing { seed: asked.seed, number: 0, time: Nanos::new(time), read: &read_named }
}

/// Assigns ranks to common offsets, and returns the ranks per node: as requested or recorded.
fn aligned(asked: &PredictQuestion, source: NoiseInput) -> fault::Result<(NoiseInput, u64)> {
    if asked.alignment == Alignment::Recording && source.origin != NoiseOrigin::Recorded {
        let text = Wording::new("a formula was not recorded: {as_recorded!} needs a run");
        return Err(UsageError::new(text).into());
    }
    let source = source.aligned(asked.alignment)?;
    let per_node = asked.ranks_per_node.unwrap_or_else(|| source.noise.ranks_per_node());
    Ok((source, per_node))
}
