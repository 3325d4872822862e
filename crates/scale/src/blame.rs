//! What removing each source would gain at scale: each alone, and then the best next one after another.
//!
//! All predictions draw the same offsets, so that they differ by the sources and not by luck.

use becalm_units::Nanos;

use crate::ScaleError;
use crate::books::BookedNoise;
use crate::predict::{Prediction, Question};
use crate::watch::ReplayWatch;

/// The slowdown that is left without some sources.
#[derive(Clone, PartialEq, Debug)]
pub struct Without {
    /// Ranks of the job.
    pub ranks: u64,
    /// The numbers of the sources that are out, in the order in which they were taken; none for the noise as it is.
    pub sources: Vec<usize>,
    /// The slowdown that is left: the mean over replicas.
    pub slowdown: f64,
}

/// The blame at one number of ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct Blame {
    /// The noise as it is.
    pub all: Without,
    /// Without each source alone, the most rewarding first.
    pub each: Vec<Without>,
    /// Without the best source, without it and the best next one, and so on.
    pub next: Vec<Without>,
}

/// Predicts without each source, and without the best of them one after another until `steps` are out, nothing is
/// left to gain, or no source is left. `out` marks sources that are taken out from the start.
///
/// `watch` is told of the phases of all predictions.
///
/// Ties go to the source with the lower number. Where ranks are too many to be replayed, order statistics take over.
///
/// # Errors
/// [`ScaleError`], as for [`Prediction`].
pub fn blame(
    noise: &BookedNoise,
    question: Question,
    ranks: &[u64],
    steps: usize,
    out: &[bool],
    watch: ReplayWatch<'_>,
) -> Result<Vec<Blame>, ScaleError> {
    let slowdowns = |out: &[bool], ranks: &[u64]| -> Result<Vec<f64>, ScaleError> {
        let noise = noise.without(out)?;
        let prediction = Prediction::new(&noise, question)?.watched(watch);
        let slowdown = |ranks: &u64| -> Result<f64, ScaleError> {
            let row = prediction.row(*ranks)?;
            Ok(row.slowdown.map(|slowdown| slowdown.mean).or(row.expected_ratio).unwrap_or(1.0))
        };
        ranks.iter().map(slowdown).collect()
    };
    let without = |out: &[bool], source: usize| {
        let mut more = out.to_vec();
        more[source] = true;
        more
    };
    let all = slowdowns(out, ranks)?;
    let mut blames: Vec<Blame> = ranks
        .iter()
        .zip(&all)
        .map(|(ranks, slowdown)| Blame {
            all: Without { ranks: *ranks, sources: Vec::new(), slowdown: *slowdown },
            each: Vec::new(),
            next: Vec::new(),
        })
        .collect();
    // A source that is nowhere the root goes with others, and not by itself.
    let candidates: Vec<usize> = noise
        .totals()
        .iter()
        .enumerate()
        .filter(|(_, whole)| **whole > Nanos::ZERO)
        .map(|(source, _)| source)
        .filter(|source| !out[*source])
        .collect();
    for source in &candidates {
        // One table without a source serves all numbers of ranks.
        for (blame, slowdown) in blames.iter_mut().zip(slowdowns(&without(out, *source), ranks)?) {
            blame.each.push(Without { ranks: blame.all.ranks, sources: vec![*source], slowdown });
        }
    }
    for blame in &mut blames {
        blame.each.sort_by(|a, b| a.slowdown.total_cmp(&b.slowdown));
        let Some(first) = blame.each.first().filter(|first| first.slowdown < blame.all.slowdown && steps > 0) else {
            continue;
        };
        blame.next.push(first.clone());
        while blame.next.len() < steps {
            let last = &blame.next[blame.next.len() - 1];
            let gone = last.sources.iter().fold(out.to_vec(), |out, source| without(&out, *source));
            let mut best: Option<(usize, f64)> = None;
            for source in candidates.iter().filter(|source| !gone[**source]) {
                let slowdown = slowdowns(&without(&gone, *source), &[last.ranks])?[0];
                if best.is_none_or(|(_, lowest)| slowdown < lowest) {
                    best = Some((*source, slowdown));
                }
            }
            let Some((source, slowdown)) = best.filter(|(_, slowdown)| *slowdown < last.slowdown) else { break };
            let mut sources = last.sources.clone();
            sources.push(source);
            blame.next.push(Without { ranks: last.ranks, sources, slowdown });
        }
    }
    Ok(blames)
}
