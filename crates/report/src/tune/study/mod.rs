//! A study of configurations of a machine: each one's noise, its sources, and what it costs a job of many ranks, as
//! `becalm.tune-study/1`, for a terminal, and as a page. After D09's table of what mitigates noise.

mod html;
mod text;

use std::io;

use becalm_analyze::summary::Summary;
use becalm_model::node::Warning;
use becalm_model::study::{ConfigurationDoc, ConfigurationOutcome, StudyDoc};
use becalm_scale::predict::{Question, RankPrediction};
use becalm_units::{Count, Nanos};
use serde::Serialize;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Object, fields};
use crate::form::sheet::Sheet;
use crate::html::Page;
use crate::predict::{PredictedRow, ROW, job};
use crate::record::figures::SOURCE;
use crate::report::Report;

/// What a configuration came to.
pub struct Studied {
    /// The figures of its recording.
    pub summary: Summary,
    /// The slowdown of a job under its noise, by rising numbers of ranks.
    pub rows: Vec<RankPrediction>,
    /// What limits what these numbers say.
    pub warnings: Vec<Warning>,
}

/// A study and what it came to.
pub struct StudyReport<'a> {
    /// The configurations, and which of them were recorded.
    pub doc: &'a StudyDoc,
    /// What became of each configuration, in the order of the document; nothing where it was not recorded.
    pub studied: &'a [Option<Studied>],
    /// The job whose slowdown is predicted.
    pub question: Question,
}

/// A configuration with what became of it.
struct StudyEntry<'a> {
    doc: &'a ConfigurationDoc,
    studied: Option<&'a Studied>,
    figures: StudyFigures,
}

/// A configuration as one row of the table.
struct StudyFigures {
    name: String,
    cpus: String,
    sched: String,
    noise_ratio: Option<f64>,
    rate_hz: Option<f64>,
    max_ns: Option<i64>,
    /// The slowdown at the most ranks.
    slowdown: Option<f64>,
    /// By which part what a job loses at the most ranks differs from what it loses under the baseline.
    loss_change: Option<f64>,
}

impl StudyFigures {
    fn new(doc: &ConfigurationDoc, studied: Option<&Studied>, baseline_loss: Option<f64>) -> Self {
        let total = studied.map(|studied| &studied.summary.total);
        let slowdown = studied.and_then(slowdown);
        Self {
            name: doc.name.clone(),
            cpus: doc.cpus.to_string(),
            sched: doc.sched.clone(),
            noise_ratio: total.and_then(becalm_analyze::summary::Figures::noise_ratio),
            rate_hz: total.and_then(becalm_analyze::summary::Figures::rate_hz),
            max_ns: total.and_then(|total| total.durations.max()),
            slowdown,
            loss_change: slowdown.zip(baseline_loss).map(|(slowdown, loss)| (slowdown - 1.0) / loss - 1.0),
        }
    }
}

fields! {
    FIGURES, figures: StudyFigures {
        CONFIGURATION = "configuration", "configuration", |row| Value::Text(row.name.clone());
        CPUS = catalogue::CPUS, |row| Value::Text(row.cpus.clone());
        SCHED = "sched", "class", |row| Value::Text(row.sched.clone());
        NOISE_RATIO = catalogue::NOISE_RATIO, |row| row.noise_ratio.map_or(Value::Missing, Value::Ratio);
        RATE_HZ = "rate_hz", "detours", |row| row.rate_hz.map_or(Value::Missing, Value::Rate);
        MAX_NS = "max_ns", "longest", |row| row.max_ns.map_or(Value::Missing, Value::Time);
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |row| row.slowdown.map_or(Value::Missing, Value::Factor);
        LOSS_CHANGE_RATIO = "loss_change_ratio", "loss", |row| row.loss_change.map_or(Value::Missing, Value::Change);
    }
}

/// The slowdown at the most ranks.
fn slowdown(studied: &Studied) -> Option<f64> {
    studied.rows.last().and_then(mean)
}

/// The mean slowdown, or where ranks are too many to be replayed, what order statistics expect.
fn mean(row: &RankPrediction) -> Option<f64> {
    row.slowdown.map(|slowdown| slowdown.mean).or(row.expected_ratio)
}

fn lines<'a>(studied: &'a Studied, question: &Question) -> impl Iterator<Item = PredictedRow> + use<'a> {
    let replicas = question.replicas;
    studied.rows.iter().map(move |row| PredictedRow::new(row.clone(), replicas))
}

fn entries<'a>(report: &'a StudyReport<'_>) -> Vec<StudyEntry<'a>> {
    let pairs = || report.doc.configurations.iter().zip(report.studied);
    let baseline = pairs().find(|(doc, _)| doc.name == "baseline").and_then(|(_, studied)| studied.as_ref());
    let loss = baseline.and_then(slowdown).map(|slowdown| slowdown - 1.0).filter(|loss| *loss > 0.0);
    let entry = |(doc, studied): (&'a ConfigurationDoc, &'a Option<Studied>)| {
        let studied = studied.as_ref();
        StudyEntry { doc, studied, figures: StudyFigures::new(doc, studied, loss) }
    };
    pairs().map(entry).collect()
}

/// The largest number of ranks.
fn most_ranks(report: &StudyReport<'_>) -> Option<Count> {
    report.studied.iter().flatten().find_map(|studied| studied.rows.last()).map(|row| Count::new(row.ranks))
}

/// A sentence that says which configuration gained most; `None` without a baseline and another one.
fn answer(report: &StudyReport<'_>) -> Option<String> {
    let entries = entries(report);
    let ranks = most_ranks(report)?;
    let (baseline, others): (Vec<&StudyEntry<'_>>, Vec<_>) =
        entries.iter().partition(|entry| entry.doc.name == "baseline");
    let baseline = baseline.first()?.figures.slowdown?;
    let slowdowns = others.into_iter().filter_map(|entry| Some((entry, entry.figures.slowdown?)));
    let (best, slowdown) = slowdowns.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let factor = crate::form::value::factor;
    Some(if slowdown < baseline && factor(slowdown) != factor(baseline) {
        format!(
            "at {ranks} ranks a job takes {} times as long as without noise; {} brings that to {}",
            factor(baseline),
            best.doc.name,
            factor(slowdown)
        )
    } else {
        format!(
            "at {ranks} ranks a job takes {} times as long as without noise, and no configuration gains anything",
            factor(baseline)
        )
    })
}

/// Why there are no figures of a configuration; `None` where there are.
fn missing(doc: &ConfigurationDoc, studied: Option<&Studied>) -> Option<String> {
    match (&doc.outcome, studied) {
        (_, Some(_)) => None,
        (ConfigurationOutcome::Skipped { why }, _) => Some(format!("{} was skipped: {why}", doc.name)),
        (ConfigurationOutcome::Planned, _) => Some(format!("{} was not reached", doc.name)),
        (ConfigurationOutcome::Recorded { run }, None) => {
            Some(format!("{} has no figures: {run} holds none", doc.name))
        }
    }
}

impl Report for StudyReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.tune-study/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        text::render(self, out)
    }

    fn page(&self, program: &str) -> Option<Page> {
        Some(html::page(self, program))
    }
}

#[derive(Serialize)]
struct StudyDocument<'a> {
    node: &'a str,
    kernel: &'a str,
    hypervisor: Option<&'a str>,
    begun: String,
    duration_ns: i64,
    job: String,
    grain_ns: i64,
    seed: u64,
    replicas: u64,
    configurations: Vec<ConfigurationJson<'a>>,
}

#[derive(Serialize)]
struct ConfigurationJson<'a> {
    #[serde(flatten)]
    figures: Object,
    what: &'a str,
    idle_cpus: String,
    command: &'a [String],
    run: Option<&'a str>,
    skipped: Option<&'a str>,
    rows: Vec<Object>,
    sources: Vec<Object>,
    warnings: &'a [Warning],
}

/// The report as the document `becalm.tune-study/1`.
fn document<'a>(report: &'a StudyReport<'_>) -> StudyDocument<'a> {
    let entries = entries(report);
    let configurations = entries.iter().map(|entry| configuration(entry, &report.question)).collect();
    StudyDocument {
        node: &report.doc.node,
        kernel: &report.doc.machine.kernel,
        hypervisor: report.doc.machine.hypervisor.as_deref(),
        begun: report.doc.begun.to_string(),
        duration_ns: report.doc.duration_ns,
        job: job(&report.question),
        grain_ns: report.question.grain.get(),
        seed: report.question.seed,
        replicas: report.question.replicas,
        configurations,
    }
}

fn configuration<'a>(entry: &StudyEntry<'a>, question: &Question) -> ConfigurationJson<'a> {
    let (run, skipped) = match &entry.doc.outcome {
        ConfigurationOutcome::Recorded { run } => (Some(run.as_str()), None),
        ConfigurationOutcome::Skipped { why } => (None, Some(why.as_str())),
        ConfigurationOutcome::Planned => (None, None),
    };
    let rows = entry.studied.into_iter().flat_map(|studied| lines(studied, question));
    let sources = entry.studied.map_or(&[][..], |studied| &studied.summary.sources);
    ConfigurationJson {
        figures: Object::new(FIGURES, &entry.figures),
        what: &entry.doc.what,
        idle_cpus: entry.doc.idle.to_string(),
        command: &entry.doc.command,
        run,
        skipped,
        rows: rows.map(|line| Object::new(ROW, &line)).collect(),
        sources: sources.iter().map(|source| Object::new(SOURCE, source)).collect(),
        warnings: entry.studied.map_or(&[], |studied| &studied.warnings),
    }
}

/// What was recorded for how long, where, and for which job the slowdown is.
fn heading(report: &StudyReport<'_>) -> [(&'static str, String); 2] {
    let machine = &report.doc.machine;
    let on = machine.hypervisor.as_ref().map_or_else(String::new, |name| format!(", a virtual machine of {name}"));
    let duration = Nanos::new(report.doc.duration_ns);
    [
        (
            "study",
            format!(
                "{}: Linux {}, {}{on}; each configuration recorded for {duration}",
                report.doc.node, machine.kernel, machine.processor
            ),
        ),
        ("job", format!("phases of {}: {}", report.question.grain, job(&report.question))),
    ]
}
