//! The results of a study: each configuration over all of its turns, a job under its noise, and whether it differs from the baseline.
//!
//! Configurations are recorded in alternating turns, so each has several recordings. [`compare_sides`] compares the baseline's with those
//! of every other one, using the scatter between the recordings of a side, so the machine's own changes from one recording to the next do
//! not count as an effect. Only turns with recordings of both are compared, because a drift affects both of these. The noise of all
//! configurations is one question with several answers, so their verdicts are adjusted together.

use becalm_analyze::compare::{CompareError, Comparison, compare_sides, judge_together};
use becalm_analyze::noise::NoiseInput;
use becalm_analyze::summary::{Detail, Pooled, Selection, Summary, summarize};
use becalm_bundle::Bundle;
use becalm_model::node::Warning;
use becalm_scale::predict::{Prediction, Question, RankPrediction};
use becalm_scale::{Noise, NoiseTrace};
use becalm_units::{Nanos, fault};

use super::document::{ConfigurationDoc, StudyDoc};

/// All of a recording, without becalm's own time.
const EVERYTHING: Selection = Selection { node: None, cpus: None, with_self: false, detail: Detail::Figures };

/// The results of a configuration.
#[derive(Debug)]
pub struct Studied {
    /// The figures of each of its recordings, turn by turn.
    pub turns: Vec<Turn>,
    /// All of them together.
    pub pooled: Pooled,
    /// The slowdown of a job under the noise of all of them: for each grain in the given order, by rising numbers of ranks.
    pub rows: Vec<RankPrediction>,
    /// The baseline compared with it, or why that is impossible; `None` for the baseline itself, and without one.
    pub against_baseline: Option<Result<Comparison, CompareError>>,
    /// Limits of these numbers.
    pub warnings: Vec<Warning>,
}

/// A recording of a configuration.
#[derive(Debug)]
pub struct Turn {
    /// Its figures.
    pub summary: Summary,
    /// The slowdown of the job of the first grain at the most ranks, under its noise alone.
    pub slowdown: Option<f64>,
    /// The time that all of its CPUs were measured.
    pub length: Nanos,
    /// Start and length of the longest detour of each of up to 200 equal parts of that time, over all CPUs; in order of time.
    pub longest: Vec<(Nanos, Nanos)>,
}

/// The number of equal parts in a drawing of a turn.
const PARTS: i64 = 200;

/// The longest detour of each of this many equal parts of the noise's time, in order; parts without detours have none.
fn longest_in_parts(noise: &Noise, parts: i64) -> Vec<(Nanos, Nanos)> {
    let length = noise.traces().map(NoiseTrace::length).max().unwrap_or(Nanos::ZERO).get();
    let each = (length / parts + 1).max(1);
    let mut longest = vec![None; parts as usize];
    for (start, duration) in noise.traces().flat_map(NoiseTrace::detours) {
        let slot = usize::try_from(start.get() / each).ok().and_then(|part| longest.get_mut(part));
        let Some(slot) = slot else { continue };
        // Of equally long detours the first counts.
        if slot.is_none_or(|(began, most)| (duration, began) > (most, start)) {
            *slot = Some((start, duration));
        }
    }
    longest.into_iter().flatten().collect()
}

/// The results of each configuration of a study, in the order of the document; `None` without a recording. `bundles` are the recordings of
/// each, turn by turn; `questions` is one job for each grain, at least one, and `ranks` their numbers of ranks. Fails if a recording cannot
/// be read or the job cannot be simulated. A configuration that cannot be compared is no error.
pub fn study(
    doc: &StudyDoc,
    bundles: &[Vec<Bundle>],
    questions: &[Question],
    ranks: &[u64],
) -> fault::Result<Vec<Option<Studied>>> {
    let figures = |runs: &Vec<Bundle>| (!runs.is_empty()).then(|| configuration(runs, questions, ranks)).transpose();
    let mut studied = bundles.iter().map(figures).collect::<Result<Vec<_>, _>>()?;
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

/// The ranks per node of the job: one for each measured CPU of the recording with the fewest; 1 without any. Fails if a recording's
/// documents cannot be read.
pub fn ranks_per_node(bundles: &[Vec<Bundle>]) -> fault::Result<u64> {
    let mut fewest: Option<u64> = None;
    for bundle in bundles.iter().flatten() {
        for doc in EVERYTHING.documents(bundle)? {
            let cpus = doc.cpus.len() as u64;
            fewest = Some(fewest.map_or(cpus, |fewest| fewest.min(cpus)));
        }
    }
    Ok(fewest.unwrap_or(1).max(1))
}

/// Simulates the jobs under the noise of all recordings together, and the first job under that of each.
fn configuration(runs: &[Bundle], questions: &[Question], ranks: &[u64]) -> fault::Result<Studied> {
    let mut turns = Vec::with_capacity(runs.len());
    let mut inputs = Vec::with_capacity(runs.len());
    for bundle in runs {
        let summary = summarize(bundle, &EVERYTHING)?;
        let input = NoiseInput::from_run(bundle, &EVERYTHING, false)?;
        let slowdown = match questions.first().zip(ranks.last()) {
            Some((question, most)) => Prediction::new(&input.noise, *question)?.slowdown(*most)?.map(|it| it.mean),
            None => None,
        };
        let length = input.noise.traces().map(NoiseTrace::length).max().unwrap_or(Nanos::ZERO);
        turns.push(Turn { summary, slowdown, length, longest: longest_in_parts(&input.noise, PARTS) });
        inputs.push(input);
    }
    let mut input = NoiseInput::pooled(inputs)?;
    let mut rows = Vec::with_capacity(questions.len() * ranks.len());
    for question in questions {
        let prediction = Prediction::new(&input.noise, *question)?.with_recording();
        for ranks in ranks {
            rows.push(prediction.row(*ranks)?);
        }
    }
    let short: Vec<Warning> = questions.iter().filter_map(|question| input.short_recording(question, ranks)).collect();
    let mut warnings = std::mem::take(&mut input.warnings);
    warnings.extend(short);
    let pooled = Pooled::new(turns.iter().map(|turn| &turn.summary));
    Ok(Studied { turns, pooled, rows, against_baseline: None, warnings })
}

impl Studied {
    /// The row of the first grain at the most ranks, which the answer uses; `None` without numbers of ranks.
    pub fn headline(&self) -> Option<&RankPrediction> {
        let first = self.rows.first()?.grain;
        self.rows.iter().take_while(|row| row.grain == first).last()
    }
}

/// The slowdown without its interval.
pub fn mean_slowdown(row: &RankPrediction) -> Option<f64> {
    row.slowdown.map(|slowdown| slowdown.mean)
}

/// Compares the turns with recordings of both.
fn against(baseline: &[Bundle], runs: &[Bundle]) -> Result<Comparison, CompareError> {
    let both = baseline.len().min(runs.len());
    let a: Vec<_> = baseline[..both].iter().map(|bundle| (bundle, &EVERYTHING)).collect();
    let b: Vec<_> = runs[..both].iter().map(|bundle| (bundle, &EVERYTHING)).collect();
    compare_sides(&a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_scale::NodeNoise;

    #[test]
    fn the_longest_detour_of_each_part_is_kept() {
        let trace = |detours: &[(i64, i64)]| {
            let detours = detours.iter().map(|(start, length)| (Nanos::new(*start), Nanos::new(*length)));
            NoiseTrace::new(Nanos::new(100), detours).unwrap()
        };
        let cpus = vec![trace(&[(1, 2), (5, 4), (30, 3)]), trace(&[(2, 4), (60, 1), (98, 2)])];
        let noise = Noise::recorded(vec![NodeNoise::new("node1", cpus).unwrap()]).unwrap();
        let found: Vec<(i64, i64)> =
            longest_in_parts(&noise, 4).iter().map(|(start, length)| (start.get(), length.get())).collect();
        // Parts of 26 ns: 0 to 25, 26 to 51, 52 to 77, from 78.
        assert_eq!(found, [(2, 4), (30, 3), (60, 1), (98, 2)]);
    }
}
