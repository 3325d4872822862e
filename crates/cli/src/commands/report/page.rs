//! `becalm report --html`: the page of a run.

use std::path::Path;

use anyhow::Context;
use becalm_analyze::picture::picture;
use becalm_analyze::summary::{Books, Selection, Summary, summarize};
use becalm_report::PredictReport;
use becalm_report::html::{RunPage, Scaling, run_page};
use becalm_scale::blame::{Blame, blame};
use becalm_scale::collective::Collective;
use becalm_scale::network::Network;
use becalm_scale::predict::{Prediction, Question, Row};
use becalm_scale::watch::Watch;
use becalm_trace::bundle::Bundle;
use becalm_trace::node::{Rung, Warning};
use becalm_units::Nanos;

use super::RunArgs;
use super::progress::Progress;
use crate::commands::predict::short_recording;
use crate::draft::Draft;
use crate::exit::Exit;
use crate::messages::say;
use crate::noise::Source;

/// For how many ranks slowdowns are predicted.
const RANKS: [u64; 5] = [64, 256, 1 << 10, 1 << 12, 1 << 14];

/// The question that is asked of every run: cheap, and the same each time.
fn question() -> anyhow::Result<Question> {
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

/// Runs with more detours are not predicted here: a prediction holds them all in memory.
const DETOURS_LIMIT: u64 = 4_000_000;

/// How many detours the predictions of blame may read in all.
const BLAME_LIMIT: u64 = 20_000_000;

/// How many sources are taken out together at most.
const STEPS: u64 = 3;

/// Reads the run and writes its page.
///
/// # Errors
/// If the run cannot be read or does not hold what was asked for, or the file cannot be written.
pub(super) fn run(args: &RunArgs, file: &Path) -> anyhow::Result<Exit> {
    let bundle = args.open()?;
    let selection = args.selection();
    let mut draft = Draft::new(file)?;
    let summary = summarize(&bundle, &selection)?;
    let activities: u64 = summary.nodes.iter().map(|node| node.activities).sum();
    let mut progress = Progress::new("drawing", summary.total.detours().saturating_add(activities));
    let picture = picture(&bundle, &summary, &mut |rows| progress.advance(rows))?;
    progress.say("predicting");
    let prediction = Predicted::of(&bundle, &selection, &summary);
    drop(progress);
    let scaling = match &prediction {
        Ok(predicted) => Scaling::Predicted(predicted.report()),
        Err(why) => Scaling::Unknown(why.to_string()),
    };
    let program = concat!("becalm ", env!("CARGO_PKG_VERSION"));
    let page = run_page(&RunPage { summary: &summary, picture: &picture, scaling, program });
    page.write(&mut draft).with_context(|| format!("cannot write {}", file.display()))?;
    draft.finish()?;
    say(format_args!("the page is {}", file.display()));
    Ok(Exit::Done)
}

/// What the run costs a job.
struct Predicted {
    question: Question,
    source: Source,
    names: Vec<String>,
    rows: Vec<Row>,
    blame: Vec<(Nanos, Vec<Blame>)>,
    warnings: Vec<Warning>,
}

impl Predicted {
    fn of(bundle: &Bundle, selection: &Selection, summary: &Summary) -> anyhow::Result<Self> {
        let detours = summary.total.detours();
        if detours > DETOURS_LIMIT {
            anyhow::bail!(
                "the run has {} detours, and a prediction holds them all in memory; becalm predict makes it all the same",
                becalm_report::Value::Count(detours).cell()
            );
        }
        let named =
            summary.nodes.iter().all(|node| node.doc.rung == Rung::Tracepoints) && summary.books == Books::Closed;
        let source = Source::of_run(bundle, selection, named)?;
        let question = question()?;
        let prediction = Prediction::new(&source.noise, question)?;
        let rows: Vec<Row> = RANKS.iter().map(|ranks| prediction.row(*ranks)).collect::<Result<_, _>>()?;
        drop(prediction);
        let mut warnings = source.warnings.clone();
        warnings.extend(short_recording(&source, &question, &RANKS));
        let names: Vec<String> = source.booked.as_ref().map_or_else(Vec::new, |booked| booked.sources().to_vec());
        let mut blames = Vec::new();
        if let Some(booked) = &source.booked {
            // Once as it is, once without each source, then without each remaining one after every step.
            let read = |steps: u64| detours.saturating_mul(1 + names.len() as u64 * steps);
            match (1..=STEPS).rev().find(|steps| read(*steps) <= BLAME_LIMIT) {
                Some(steps) => {
                    let ranks = &RANKS[RANKS.len() - 1..];
                    let none = vec![false; names.len()];
                    let found = blame(booked, question, ranks, steps as usize, &none, Watch::NOBODY)?;
                    blames.push((question.grain, found));
                }
                None => warnings.push(Warning {
                    code: "no_blame".to_owned(),
                    message: format!(
                        "which of the {} sources is to blame would take too long to find out here",
                        names.len()
                    ),
                    advice: format!("becalm predict {} --blame finds it out", bundle.path().display()),
                }),
            }
        }
        Ok(Self { question, source, names, rows, blame: blames, warnings })
    }

    fn report(&self) -> PredictReport<'_> {
        PredictReport {
            name: &self.source.name,
            noise: &self.source.noise,
            without: &[],
            question: self.question,
            rows: &self.rows,
            blame: &self.blame,
            sources: &self.names,
            warnings: &self.warnings,
        }
    }
}
