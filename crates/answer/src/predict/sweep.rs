//! Predictions for several noises, payloads and synchronizations.

use becalm_report::{PredictSweepReport, SweptCell, SweptNoise};
use becalm_scale::Noise;
use becalm_scale::collective::{Collective, Operation};
use becalm_scale::predict::{Question, RankPrediction};
use becalm_scale::watch::ReplayWatch;
use becalm_units::{Count, fault};

use super::PredictQuestion;
use super::forecast::{Forecast, steps_of_phase};
use super::source::PreparedNoise;
use crate::{Asker, Steps};

/// The maximum number of detours kept from the forecast until their replay; further ones are read or drawn again. They take 24 bytes each.
const KEPT_DETOURS: usize = 1 << 24;

/// A noise in one window, with the data known before its replay.
struct Planned {
    noise: usize,
    window: usize,
    questions: Vec<Question>,
    /// Kept if there is space.
    prepared: Option<PreparedNoise>,
}

/// Predicts and shows all cells.
pub(super) fn answer(asked: &PredictQuestion, asker: &mut impl Asker) -> fault::Result<()> {
    let mut forecast = Forecast::default();
    let (noises, planned) = plan(asked, asker, &mut forecast)?;
    forecast.judge(&asked.ranks, asked.allow_long, asker)?;
    let question = planned[0].questions[0];
    let bar = asker.predicting(forecast.steps());
    let mut cells: Vec<(usize, SweptCell)> = Vec::new();
    for planned in planned {
        cells.extend(cells_of(asked, planned, asker, &bar)?);
    }
    drop(bar);
    cells.sort_by_key(|(place, _)| *place);
    let cells: Vec<SweptCell> = cells.into_iter().map(|(_, cell)| cell).collect();
    let report = PredictSweepReport {
        noises: &noises,
        without: &asked.without,
        question,
        collectives: &asked.collectives,
        bytes: &asked.bytes,
        synchronized: asked.synchronized,
        coalesced: &asked.coalesced,
        grains: &asked.grains,
        ranks: &asked.ranks,
        cells: &cells,
        node_hours: asked.node_hours,
    };
    asker.show(&report)
}

/// Reads each noise, in each window, and adds its cells to the forecast.
fn plan(
    asked: &PredictQuestion,
    asker: &impl Asker,
    forecast: &mut Forecast,
) -> fault::Result<(Vec<SweptNoise>, Vec<Planned>)> {
    let (mut noises, mut planned, mut kept) = (Vec::new(), Vec::new(), 0);
    for (number, (text, noise)) in asked.noises.iter().enumerate() {
        for (window, coalesced) in asked.coalesced.iter().enumerate() {
            let mut prepared = PreparedNoise::read(asked, noise, asked.grains[0], *coalesced, asker)?;
            let questions = asked.questions(prepared.per_node);
            if window == 0 {
                let source = &mut prepared.source;
                let short = questions.iter().find_map(|question| source.short_recording(question, &asked.ranks));
                source.warnings.extend(short);
                let warnings = source.warnings.clone();
                let name = source.name.clone();
                noises.push(SweptNoise::new(text.clone(), name, &source.noise, prepared.per_node, warnings));
            }
            let all = std::iter::once(&prepared.source.noise).chain(&prepared.source.draws);
            let detours: usize = all.flat_map(Noise::traces).map(becalm_scale::NoiseTrace::len).sum();
            for question in computed(&questions, asked) {
                forecast.add(&prepared, question, &asked.ranks, 1.0)?;
            }
            kept += detours;
            let prepared = (kept <= KEPT_DETOURS).then_some(prepared);
            planned.push(Planned { noise: number, window, questions, prepared });
        }
    }
    Ok((noises, planned))
}

/// Whether a collective takes longer with more bytes.
fn has_payload(collective: Collective) -> bool {
    !matches!(collective.operation(), None | Some(Operation::Barrier))
}

/// The questions to compute: with each number of bytes if the collective has a payload, and for each synchronization.
fn computed<'a>(questions: &'a [Question], asked: &'a PredictQuestion) -> impl Iterator<Item = Question> + 'a {
    questions.iter().flat_map(move |question| {
        let payloads = if has_payload(question.collective) { asked.bytes.len() } else { 1 };
        asked.bytes[..payloads].iter().flat_map(move |bytes| {
            asked.synchronized.iter().map(move |synchronized| Question {
                bytes: *bytes,
                synchronized: *synchronized,
                ..*question
            })
        })
    })
}

/// The cells of one noise in one window, each with its index among all.
fn cells_of(
    asked: &PredictQuestion,
    planned: Planned,
    asker: &impl Asker,
    bar: &impl Steps,
) -> fault::Result<Vec<(usize, SweptCell)>> {
    let Planned { noise, window, questions, prepared } = planned;
    let coalesced = asked.coalesced[window];
    let mut prepared = match prepared {
        Some(prepared) => prepared,
        None => PreparedNoise::read(asked, &asked.noises[noise].1, asked.grains[0], coalesced, asker)?,
    };
    let mut cells = Vec::new();
    for (number, question) in questions.iter().enumerate() {
        if !prepared.serves(question.grain, coalesced) {
            prepared = PreparedNoise::read(asked, &asked.noises[noise].1, question.grain, coalesced, asker)?;
        }
        let told = |ranks, phases| bar.advance((phases as f64 * steps_of_phase(question, ranks)) as u64);
        bar.say("tables".to_owned());
        let mut prediction = prepared.prediction(*question)?.watched(ReplayWatch::new(&told));
        let mut rows: Vec<RankPrediction> = Vec::new();
        for (payload, bytes) in asked.bytes.iter().enumerate() {
            if payload == 0 || has_payload(question.collective) {
                rows.clear();
                for synchronized in asked.synchronized {
                    prediction = prediction.asking(*bytes, *synchronized);
                    for ranks in &asked.ranks {
                        bar.say(format!("{} ranks", Count::new(*ranks)));
                        rows.push(prediction.row(*ranks)?);
                    }
                }
            }
            let (grain, collective) = (number / asked.collectives.len(), number % asked.collectives.len());
            let ranks = asked.ranks.len();
            for (at, row) in rows.iter().enumerate() {
                let way = at / ranks;
                let place = place(asked, [collective, payload, way, window, noise, grain]) * ranks + at % ranks;
                let synchronized = asked.synchronized[way];
                cells.push((place, SweptCell { noise, coalesced, synchronized, bytes: *bytes, row: row.clone() }));
            }
        }
    }
    Ok(cells)
}

/// The index of the cells of some values among all: by collective, bytes, whether noise is synchronized, window, noise and grain.
fn place(asked: &PredictQuestion, numbers: [usize; 6]) -> usize {
    let counts = [
        asked.collectives.len(),
        asked.bytes.len(),
        asked.synchronized.len(),
        asked.coalesced.len(),
        asked.noises.len(),
        asked.grains.len(),
    ];
    numbers.iter().zip(counts).fold(0, |place, (number, count)| place * count + number)
}
