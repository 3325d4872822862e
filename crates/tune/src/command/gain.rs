//! The gain of a plan at scale: the slowdown of a job without the noise that each change targets, by a recording.
//!
//! It is an upper bound: a change may leave some of its noise.

use std::collections::HashMap;
use std::path::Path;

use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_command::noise;
use becalm_model::remedy::NoiseSource;
use becalm_scale::ScaleError;
use becalm_scale::books::BookedNoise;
use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question};
use becalm_units::Nanos;
use becalm_units::fault;

use crate::Plan;
use crate::document::{Gain, GainJob, Gains, PredictedSlowdown, StepGain};

/// The gains of the plan's changes for jobs of these grains, each with these numbers of ranks. Fails if the recording cannot be read, lacks the CPUs
/// or does not name sources, or if the question is invalid.
pub fn gains(plan: &Plan, run: &Path, ranks: &[u64], grains: &[Nanos]) -> fault::Result<Gains> {
    let selection = Selection { cpus: Some(plan.cpus.clone()), ..Selection::default() };
    let source = noise::from_run(&Bundle::open(run)?, &selection, true)?;
    let Some(booked) = &source.booked else { fault::bail!("{} does not name sources", run.display()) };
    let per_node = source.noise.ranks_per_node();
    let question = |grain: &Nanos| Ok(Question { per_node, ..question(*grain)? });
    let questions = grains.iter().map(question).collect::<Result<_, ScaleError>>()?;
    let mut scale = Scale { booked, questions, ranks, known: HashMap::new() };
    let none = vec![false; booked.sources().len()];
    let now = scale.slowdowns(&none)?;
    let mut all = none;
    let mut steps = Vec::with_capacity(plan.steps.len());
    for change in &plan.steps {
        let out = source.mark(|kind, name| {
            let removed = |noise: &NoiseSource| noise.matches(kind, name);
            change.removes.iter().any(removed)
        });
        if !out.contains(&true) {
            steps.push(StepGain::default());
            continue;
        }
        let sources = booked.sources().iter().zip(&out).filter(|(_, out)| **out).map(|(name, _)| name.clone());
        steps.push(StepGain { sources: sources.collect(), without: scale.slowdowns(&out)? });
        all.iter_mut().zip(out).for_each(|(all, out)| *all |= out);
    }
    let left = scale.slowdowns(&all)?;
    let rows = now.into_iter().zip(left);
    let total = rows.map(|((job, slowdown), (_, without))| Gain { job, slowdown, without }).collect();
    Ok(Gains { run: run.to_owned(), total, steps })
}

fn question(grain: Nanos) -> Result<Question, ScaleError> {
    // The ideal collective sends no messages, so the network does not matter.
    let network = Network::new(Nanos::ZERO, Nanos::ZERO, Nanos::ZERO, 0)?;
    Ok(Question {
        grain,
        phases: 10_000,
        collective: Collective::Ideal,
        network,
        bytes: 0,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 3,
    })
}

/// The slowdowns of one recording, cached by set of sources.
struct Scale<'a> {
    booked: &'a BookedNoise,
    questions: Vec<Question>,
    ranks: &'a [u64],
    known: HashMap<Vec<bool>, Vec<(GainJob, PredictedSlowdown)>>,
}

impl Scale<'_> {
    /// The slowdowns for each grain and number of ranks, in this order, without these sources.
    fn slowdowns(&mut self, out: &[bool]) -> fault::Result<Vec<(GainJob, PredictedSlowdown)>> {
        if let Some(known) = self.known.get(out) {
            return Ok(known.clone());
        }
        let noise = self.booked.without(out)?;
        let mut slowdowns = Vec::with_capacity(self.questions.len() * self.ranks.len());
        for question in &self.questions {
            let prediction = Prediction::new(&noise, *question)?.with_recording();
            for ranks in self.ranks {
                let row = prediction.row(*ranks)?;
                let mean = row.slowdown.map_or(1.0, |slowdown| slowdown.mean);
                let (low, high) = row.recording.map_or((None, None), |bounds| (Some(bounds.low), bounds.high));
                let job = GainJob { grain: question.grain, ranks: *ranks };
                slowdowns.push((job, PredictedSlowdown { mean, low, high }));
            }
        }
        self.known.insert(out.to_vec(), slowdowns.clone());
        Ok(slowdowns)
    }
}
