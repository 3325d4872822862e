//! `becalm predict` of several noises, payloads and ways in which noise comes.

use std::io::Write;

use becalm_report::{PredictSweepReport, SweptCell, SweptNoise};
use becalm_scale::Noise;
use becalm_scale::collective::{Collective, Operation};
use becalm_scale::predict::{Prediction, Question, RankPrediction};
use becalm_scale::watch::ReplayWatch;
use becalm_units::{Nanos, RankCount};
use indicatif::ProgressBar;

use super::source::PreparedNoise;
use super::{PredictArgs, cost, questions, tell};
use crate::exit::Exit;
use crate::output::{Output, emit};
use crate::progress;

/// So many detours of noises are kept from when the bill is made until they are replayed; more are read or drawn again. They take 24
/// bytes each.
const KEPT_DETOURS: usize = 1 << 24;

/// The lists that are swept.
struct Lists {
    bytes: Vec<u64>,
    synchronized: &'static [bool],
    coalesced: Vec<Nanos>,
    ranks: Vec<u64>,
}

/// A noise in one window, with what is known of it before it is replayed.
struct Planned {
    noise: usize,
    /// The number of its window.
    window: usize,
    size: cost::NoiseSize,
    questions: Vec<Question>,
    /// Kept, if there is room for it.
    prepared: Option<PreparedNoise>,
}

/// Predicts each cell, and prints all of them.
///
/// # Errors
/// As for one noise.
pub(super) fn run(args: &PredictArgs, ranks: &[u64], output: Output, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let lists = Lists {
        bytes: args.bytes.iter().map(|bytes| bytes.get()).collect(),
        synchronized: args.synchronized(),
        coalesced: args.coalesce.clone(),
        ranks: ranks.to_vec(),
    };
    let (noises, planned) = plan(args, &lists)?;
    let bills = planned.iter().map(|planned| {
        let asked: Vec<Question> = computed(&planned.questions, &lists).collect();
        cost::Bill::new(&asked, ranks, planned.size, None)
    });
    let bill = cost::Bill::of_all(bills.collect());
    tell(args, &bill)?;
    let question = planned[0].questions[0];
    let bar = progress::bar(bill.steps() as u64, "predicting {msg} {wide_bar} {percent}%, {eta} left");
    let mut cells: Vec<(usize, SweptCell)> = Vec::new();
    for planned in planned {
        cells.extend(cells_of(args, &lists, planned, &bar)?);
    }
    bar.finish_and_clear();
    cells.sort_by_key(|(place, _)| *place);
    let cells: Vec<SweptCell> = cells.into_iter().map(|(_, cell)| cell).collect();
    let report = PredictSweepReport {
        noises: &noises,
        without: &args.without,
        question,
        collectives: &args.collective,
        bytes: &lists.bytes,
        synchronized: lists.synchronized,
        coalesced: &lists.coalesced,
        grains: &args.grain,
        ranks,
        cells: &cells,
        node_hours: args.node_hours,
    };
    emit(&report, output, out)?;
    Ok(Exit::Done)
}

/// Reads each noise, in each window.
fn plan(args: &PredictArgs, lists: &Lists) -> anyhow::Result<(Vec<SweptNoise>, Vec<Planned>)> {
    let (mut noises, mut planned, mut kept) = (Vec::new(), Vec::new(), 0);
    for (number, (asked, noise)) in args.noises().enumerate() {
        for (window, coalesced) in lists.coalesced.iter().enumerate() {
            let mut prepared = PreparedNoise::read(args, noise, *coalesced)?;
            let questions = questions(args, prepared.per_node);
            if window == 0 {
                let source = &mut prepared.source;
                let short = questions.iter().find_map(|question| source.short_recording(question, &lists.ranks));
                source.warnings.extend(short);
                let warnings = source.warnings.clone();
                let name = source.name.clone();
                noises.push(SweptNoise::new(asked.clone(), name, &source.noise, prepared.per_node, warnings));
            }
            let all = std::iter::once(&prepared.source.noise).chain(&prepared.source.draws);
            let detours: usize = all.flat_map(Noise::traces).map(becalm_scale::NoiseTrace::len).sum();
            let size = cost::NoiseSize::of(&prepared.source.noise);
            kept += detours;
            let prepared = (kept <= KEPT_DETOURS).then_some(prepared);
            planned.push(Planned { noise: number, window, size, questions, prepared });
        }
    }
    Ok((noises, planned))
}

/// Whether a collective takes longer with more bytes.
fn has_payload(collective: Collective) -> bool {
    !matches!(collective.operation(), None | Some(Operation::Barrier))
}

/// The questions that are computed: with each number of bytes where the collective has any, and for each way in which noise comes.
fn computed<'a>(questions: &'a [Question], lists: &'a Lists) -> impl Iterator<Item = Question> + 'a {
    questions.iter().flat_map(move |question| {
        let payloads = if has_payload(question.collective) { lists.bytes.len() } else { 1 };
        lists.bytes[..payloads].iter().flat_map(move |bytes| {
            lists.synchronized.iter().map(move |synchronized| Question {
                bytes: *bytes,
                synchronized: *synchronized,
                ..*question
            })
        })
    })
}

/// The cells of one noise in one window, each with its place among all.
fn cells_of(
    args: &PredictArgs,
    lists: &Lists,
    planned: Planned,
    bar: &ProgressBar,
) -> anyhow::Result<Vec<(usize, SweptCell)>> {
    let Planned { noise, window, size, questions, prepared } = planned;
    let coalesced = lists.coalesced[window];
    let prepared = match prepared {
        Some(prepared) => prepared,
        None => {
            let (_, asked) = args.noises().nth(noise).expect("it was planned");
            PreparedNoise::read(args, asked, coalesced)?
        }
    };
    let source = &prepared.source;
    let mut cells = Vec::new();
    for (number, question) in questions.iter().enumerate() {
        let told = |ranks, phases| bar.inc(cost::steps_of_phases(&size, question, ranks, phases) as u64);
        bar.set_message("tables");
        let mut prediction = Prediction::new(&source.noise, *question)?.with_draws(&source.draws)?.of_recording();
        prediction = prediction.watched(ReplayWatch::by(&told));
        let mut rows: Vec<RankPrediction> = Vec::new();
        for (payload, bytes) in lists.bytes.iter().enumerate() {
            if payload == 0 || has_payload(question.collective) {
                rows.clear();
                for synchronized in lists.synchronized {
                    prediction = prediction.asking(*bytes, *synchronized);
                    for ranks in &lists.ranks {
                        bar.set_message(format!("{} ranks", RankCount::new(*ranks)));
                        rows.push(prediction.row(*ranks)?);
                    }
                }
            }
            let (grain, collective) = (number / args.collective.len(), number % args.collective.len());
            let ranks = lists.ranks.len();
            for (at, row) in rows.iter().enumerate() {
                let way = at / ranks;
                let place = lists.place(args, [collective, payload, way, window, noise, grain]) * ranks + at % ranks;
                let synchronized = lists.synchronized[way];
                cells.push((place, SweptCell { noise, coalesced, synchronized, bytes: *bytes, row: row.clone() }));
            }
        }
    }
    Ok(cells)
}

impl Lists {
    /// The place of the cells of some values among all: by collective, bytes, whether noise is synchronized, window, noise and grain.
    fn place(&self, args: &PredictArgs, numbers: [usize; 6]) -> usize {
        let counts = [
            args.collective.len(),
            self.bytes.len(),
            self.synchronized.len(),
            self.coalesced.len(),
            args.noises().count(),
            args.grain.len(),
        ];
        numbers.iter().zip(counts).fold(0, |place, (number, count)| place * count + number)
    }
}
