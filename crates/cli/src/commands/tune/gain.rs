//! What a plan gains at scale: the slowdown of a job without the noise that each change aims at, by a recording.
//!
//! It is the most that can be expected: a change may leave some of its noise.

use std::collections::HashMap;
use std::path::Path;

use becalm_analyze::summary::Selection;
use becalm_bundle::Bundle;
use becalm_model::remedy::NoiseSource;
use becalm_model::tune::{Gain, Gains, PredictedSlowdown, StepGain};
use becalm_scale::ScaleError;
use becalm_scale::books::BookedNoise;
use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question};
use becalm_tune::Plan;
use becalm_units::Nanos;

use crate::noise;

/// What the changes of a plan gain.
///
/// # Errors
/// If the recording cannot be read, lacks the CPUs or does not name sources; or the question makes no sense.
pub fn gains(plan: &Plan, run: &Path, ranks: &[u64], grain: Nanos) -> anyhow::Result<Gains> {
    let selection = Selection { node: None, cpus: Some(plan.cpus.clone()), with_self: false };
    let source = noise::from_run(&Bundle::open(run)?, &selection, true)?;
    let Some(booked) = &source.booked else { anyhow::bail!("{} does not name sources", run.display()) };
    let question = Question { per_node: source.noise.ranks_per_node(), ..question(grain)? };
    let mut scale = Scale { booked, question, ranks, known: HashMap::new() };
    let none = vec![false; booked.sources().len()];
    let now = scale.slowdowns(&none)?;
    let mut all = none;
    let mut steps = Vec::with_capacity(plan.steps.len());
    for change in &plan.steps {
        let out = source.mark(|kind, name| {
            let removed = |noise: &NoiseSource| kind.parse().is_ok_and(|kind| noise.matches(kind, name));
            change.removes.iter().any(removed)
        });
        if !out.contains(&true) {
            steps.push(StepGain::default());
            continue;
        }
        let sources = booked.sources().iter().zip(&out).filter(|(_, out)| **out).map(|(name, _)| name.clone());
        let without = ranks.iter().copied().zip(scale.slowdowns(&out)?);
        steps.push(StepGain { sources: sources.collect(), without: without.collect() });
        all.iter_mut().zip(out).for_each(|(all, out)| *all |= out);
    }
    let left = scale.slowdowns(&all)?;
    let rows = ranks.iter().zip(now).zip(left);
    let total = rows.map(|((ranks, slowdown), without)| Gain { ranks: *ranks, slowdown, without }).collect();
    Ok(Gains { run: run.to_owned(), grain, total, steps })
}

fn question(grain: Nanos) -> Result<Question, ScaleError> {
    // With the ideal collective no message is sent, and the network has no say.
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

/// The slowdowns of one recording, each set of sources asked once.
struct Scale<'a> {
    booked: &'a BookedNoise,
    question: Question,
    ranks: &'a [u64],
    known: HashMap<Vec<bool>, Vec<PredictedSlowdown>>,
}

impl Scale<'_> {
    fn slowdowns(&mut self, out: &[bool]) -> anyhow::Result<Vec<PredictedSlowdown>> {
        if let Some(known) = self.known.get(out) {
            return Ok(known.clone());
        }
        let noise = self.booked.without(out)?;
        let prediction = Prediction::new(&noise, self.question)?.of_recording();
        let slowdown = |ranks: &u64| -> anyhow::Result<PredictedSlowdown> {
            let row = prediction.row(*ranks)?;
            let mean = row.slowdown.map(|slowdown| slowdown.mean).or(row.expected_ratio).unwrap_or(1.0);
            let (low, high) = row.recording.map_or((None, None), |bounds| (Some(bounds.low), bounds.high));
            Ok(PredictedSlowdown { mean, low, high })
        };
        let slowdowns = self.ranks.iter().map(slowdown).collect::<anyhow::Result<Vec<_>>>()?;
        self.known.insert(out.to_vec(), slowdowns.clone());
        Ok(slowdowns)
    }
}
