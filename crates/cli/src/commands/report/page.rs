//! `becalm report --html`: the page of a run.

use std::io::Write;

use becalm_analyze::noise::NoiseInput;
use becalm_analyze::picture::picture;
use becalm_analyze::summary::{Books, Selection, Summary, summarize};
use becalm_bundle::Bundle;
use becalm_command::Exit;
use becalm_command::arguments::{RanksArgs, RunArgs};
use becalm_command::noise;
use becalm_command::output::{Output, emit};
use becalm_command::progress::{Bar, ReadingProgress, Tail};
use becalm_model::node::{Rung, Warning};
use becalm_model::warning;
use becalm_report::{Drawn, PredictReport, RunReport, Scaling};
use becalm_scale::blame::{Blame, BlameWanted, blame};
use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question, RankPrediction};
use becalm_scale::watch::ReplayWatch;
use becalm_units::{Nanos, fault};

/// Numbers of ranks with a predicted slowdown.
const RANKS: [u64; 5] = [64, 256, 1 << 10, 1 << 12, 1 << 14];

/// The question for every run: cheap, and always the same.
fn question() -> fault::Result<Question> {
    Ok(Question {
        grain: Nanos::from_millis(1),
        phases: 2_000,
        collective: Collective::Ideal,
        // The ideal collective sends no messages.
        network: "infiniband".parse::<Network>()?,
        bytes: 8,
        per_node: 1,
        synchronized: false,
        seed: 1,
        replicas: 5,
    })
}

/// Runs with more detours get no prediction: even order statistics keep them all in memory, at about 170 bytes each.
const DETOURS_LIMIT: u64 = 20_000_000;

/// Runs with more detours get no blame and a shorter replay: accounts take twice the memory, and phases among that many detours are slow.
const SHORT_LIMIT: u64 = 4_000_000;

/// Phases of a short replay, and number of replays.
const SHORT_PHASES: u64 = 200;
const SHORT_REPLICAS: u64 = 2;

/// The maximum number of detours read for predictions of blame.
const BLAME_LIMIT: u64 = 20_000_000;

/// The maximum number of sources to remove, one after another.
const STEPS: u64 = 3;

/// The number of costliest detours to name.
const DETOURS: usize = 10;

/// Reads the run and writes its page. Fails if the run cannot be read or lacks the requested part, or the file cannot be written.
pub(super) fn run(args: &RunArgs, ranks: RanksArgs, output: Output, out: &mut dyn Write) -> fault::Result<Exit> {
    let bundle = args.open()?;
    let selection = args.selection().with_detail(output.detail());
    let reading = ReadingProgress::begin(&bundle, 1);
    let mut summary = summarize(&bundle, &selection)?;
    drop(reading);
    summary.ask_for_ranks(ranks.number().unwrap_or(becalm_analyze::summary::RANKS));
    let activities: u64 = summary.nodes.iter().map(|node| node.activities).sum();
    let drawing = Bar::new("drawing", summary.total.detours().saturating_add(activities), Tail::TimeLeft);
    let picture = picture(&bundle, &summary, &mut |rows| drawing.advance(rows))?;
    drop(drawing);
    let prediction = PagePrediction::from_bundle(&bundle, &selection, &summary);
    let scaling = match &prediction {
        Ok(predicted) => Scaling::Predicted(Box::new(predicted.report())),
        Err(why) => Scaling::Unknown(why.to_string()),
    };
    let drawn = Some(Drawn { picture: &picture, scaling });
    emit(&RunReport { summary: &summary, drawn, at_scale: true }, output, out)?;
    Ok(Exit::Done)
}

/// The run's cost for a job.
struct PagePrediction {
    question: Question,
    source: NoiseInput,
    names: Vec<String>,
    rows: Vec<RankPrediction>,
    blame: Vec<(Nanos, Vec<Blame>)>,
    warnings: Vec<Warning>,
}

impl PagePrediction {
    fn from_bundle(bundle: &Bundle, selection: &Selection, summary: &Summary) -> fault::Result<Self> {
        let detours = summary.total.detours();
        if detours > DETOURS_LIMIT {
            fault::bail!(
                "the run has {} detours, and a prediction holds them all in memory; becalm predict {} --ranks 64,16Ki --grain \
                 1ms makes it all the same, with --cpus of a part of it",
                becalm_report::Value::Count(detours).cell(),
                bundle.path().display()
            );
        }
        let named =
            summary.nodes.iter().all(|node| node.doc.rung == Rung::Tracepoints) && summary.books == Books::Closed;
        let source = noise::from_run(bundle, selection, named && detours <= SHORT_LIMIT)?;
        let names: Vec<String> = source.booked.as_ref().map_or_else(Vec::new, |booked| booked.sources().to_vec());
        // Once with accounts, once without each of the costliest sources, then without the first two of them, and so on.
        let predictions = |steps: u64| if steps == 0 { 1 } else { 2 * steps };
        let blame_steps = (0..=STEPS).rev().find(|steps| detours.saturating_mul(predictions(*steps)) <= BLAME_LIMIT);
        let blame_steps = blame_steps.filter(|_| source.booked.is_some());
        let mut question = question()?;
        // The CPUs of a node, replayed as recorded.
        question.per_node = source.noise.ranks_per_node();
        if detours > SHORT_LIMIT {
            (question.phases, question.replicas) = (SHORT_PHASES, SHORT_REPLICAS);
        }
        let phases = question.phases * question.replicas;
        let steps = phases * (RANKS.len() as u64 + blame_steps.map_or(0, predictions));
        let progress = Bar::new("predicting", steps, Tail::TimeLeft);
        let told = |_, phases| progress.advance(phases);
        let prediction = Prediction::new(&source.noise, question)?.with_recording().watched(ReplayWatch::new(&told));
        let mut rows: Vec<RankPrediction> = Vec::with_capacity(RANKS.len());
        for ranks in RANKS {
            rows.push(prediction.row(ranks)?);
        }
        drop(prediction);
        let mut warnings = source.warnings.clone();
        warnings.extend(source.short_recording(&question, &RANKS));
        let mut blames = Vec::new();
        if let (Some(booked), Some(steps)) = (&source.booked, blame_steps) {
            let ranks = &RANKS[RANKS.len() - 1..];
            let none = vec![false; names.len()];
            let wanted = BlameWanted { without: steps as usize, detours: DETOURS };
            let found = blame(booked, question, ranks, wanted, &none, ReplayWatch::new(&told))?;
            blames.push((question.grain, found));
        } else if named {
            warnings.push(warning::no_blame(bundle.path()));
        }
        Ok(Self { question, source, names, rows, blame: blames, warnings })
    }

    fn report(&self) -> PredictReport<'_> {
        PredictReport {
            name: &self.source.name,
            noise: &self.source.noise,
            summary: false,
            of_threads: false,
            without: &[],
            question: self.question,
            rows: &self.rows,
            blame: &self.blame,
            sources: &self.names,
            places: &self.source.places,
            tolerance: None,
            node_hours: None,
            warnings: &self.warnings,
        }
    }
}
