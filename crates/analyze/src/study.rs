//! What the recordings of a study come to: each configuration over all of its turns, a job under its noise, and whether it differs
//! from the baseline.
//!
//! Configurations are recorded by turns. Each has so many recordings, and the baseline's are held against those of every other one:
//! [`compare_sides`] goes by how the recordings of a side differ from each other, so that what the
//! machine does by itself from one to the next is not taken for an effect. Only turns in which both were recorded are compared: what
//! drifts meets both then. The noise of all configurations is one question with several answers, so that its verdicts are adjusted
//! together.

use becalm_bundle::Bundle;
use becalm_model::node::Warning;
use becalm_model::study::{ConfigurationDoc, StudyDoc};
use becalm_scale::ScaleError;
use becalm_scale::predict::{Prediction, Question, RankPrediction};

use crate::compare::{CompareError, Comparison, compare_sides, judge_together};
use crate::noise::{NoiseError, NoiseInput};
use crate::summary::{Pooled, Selection, Summary, SummaryError, summarize};

/// All of a recording, without what becalm itself took.
const EVERYTHING: Selection = Selection { node: None, cpus: None, with_self: false };

/// What a configuration came to.
#[derive(Debug)]
pub struct Studied {
    /// The figures of each of its recordings, turn by turn.
    pub turns: Vec<Turn>,
    /// All of them together.
    pub pooled: Pooled,
    /// The slowdown of a job under the noise of all of them, by rising numbers of ranks.
    pub rows: Vec<RankPrediction>,
    /// The baseline against it, or why that cannot be; `None` of the baseline itself, and without one.
    pub against_baseline: Option<Result<Comparison, CompareError>>,
    /// What limits what these numbers say.
    pub warnings: Vec<Warning>,
}

/// A recording of a configuration.
#[derive(Debug)]
pub struct Turn {
    /// Its figures.
    pub summary: Summary,
    /// The slowdown of the job at the most ranks under its noise alone: the mean of the replicas, or what order statistics expect where
    /// ranks are too many to be replayed.
    pub slowdown: Option<f64>,
}

/// The recordings of a study do not come to anything.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A recording cannot be read.
    #[error(transparent)]
    Summary(#[from] SummaryError),
    /// A recording has no noise that can be replayed.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// The job cannot be simulated.
    #[error(transparent)]
    Scale(#[from] ScaleError),
}

/// What each configuration of a study came to, in the order of the document; `None` of those without a recording. `bundles` are the
/// recordings of each, turn by turn, and `ranks` the numbers of ranks of the job.
///
/// # Errors
/// If a recording cannot be read or the job cannot be simulated. That a configuration cannot be compared is no error.
pub fn study(
    doc: &StudyDoc,
    bundles: &[Vec<Bundle>],
    question: Question,
    ranks: &[u64],
) -> Result<Vec<Option<Studied>>, StudyError> {
    let of = |runs: &Vec<Bundle>| (!runs.is_empty()).then(|| configuration(runs, question, ranks)).transpose();
    let mut studied = bundles.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    if let Some(baseline) = doc.configurations.iter().position(ConfigurationDoc::is_baseline) {
        for (at, runs) in bundles.iter().enumerate() {
            if at != baseline
                && !bundles[baseline].is_empty()
                && let Some(studied) = &mut studied[at]
            {
                studied.against_baseline = Some(against(&bundles[baseline], runs));
            }
        }
    }
    let comparisons =
        studied.iter_mut().flatten().filter_map(|studied| studied.against_baseline.as_mut()?.as_mut().ok());
    judge_together(&mut comparisons.collect::<Vec<_>>());
    Ok(studied)
}

/// How many ranks a node of the job has: one for each CPU that was measured, of the recording with the fewest; 1 without any.
///
/// # Errors
/// If a recording's documents cannot be read.
pub fn ranks_per_node(bundles: &[Vec<Bundle>]) -> Result<u64, StudyError> {
    let mut fewest: Option<u64> = None;
    for bundle in bundles.iter().flatten() {
        for doc in EVERYTHING.documents(bundle)? {
            let cpus = doc.cpus.len() as u64;
            fewest = Some(fewest.map_or(cpus, |fewest| fewest.min(cpus)));
        }
    }
    Ok(fewest.unwrap_or(1).max(1))
}

/// Simulates the job under the noise of the recordings, all together and each by itself.
fn configuration(runs: &[Bundle], question: Question, ranks: &[u64]) -> Result<Studied, StudyError> {
    let mut turns = Vec::with_capacity(runs.len());
    let mut inputs = Vec::with_capacity(runs.len());
    for bundle in runs {
        let summary = summarize(bundle, &EVERYTHING)?;
        let input = NoiseInput::from_run(bundle, &EVERYTHING, false)?;
        let slowdown = match ranks.last() {
            Some(most) => mean_slowdown(&Prediction::new(&input.noise, question)?.row(*most)?),
            None => None,
        };
        turns.push(Turn { summary, slowdown });
        inputs.push(input);
    }
    let mut input = NoiseInput::pooled(inputs)?;
    let prediction = Prediction::new(&input.noise, question)?.of_recording();
    let rows = ranks.iter().map(|ranks| prediction.row(*ranks)).collect::<Result<Vec<_>, _>>()?;
    let short = input.short_recording(&question, ranks);
    let mut warnings = std::mem::take(&mut input.warnings);
    warnings.extend(short);
    let pooled = Pooled::of(turns.iter().map(|turn| &turn.summary));
    Ok(Studied { turns, pooled, rows, against_baseline: None, warnings })
}

/// The mean slowdown, or where ranks are too many to be replayed, what order statistics expect.
#[must_use]
pub fn mean_slowdown(row: &RankPrediction) -> Option<f64> {
    row.slowdown.map(|slowdown| slowdown.mean).or(row.expected_ratio)
}

/// Compares the turns in which both were recorded.
fn against(baseline: &[Bundle], runs: &[Bundle]) -> Result<Comparison, CompareError> {
    let both = baseline.len().min(runs.len());
    let a: Vec<_> = baseline[..both].iter().map(|bundle| (bundle, &EVERYTHING)).collect();
    let b: Vec<_> = runs[..both].iter().map(|bundle| (bundle, &EVERYTHING)).collect();
    compare_sides(&a, &b)
}
