//! A study of configurations of a machine: each one's noise, its sources, its cost to a job of many ranks, and whether it differs from the
//! baseline, as `becalm.study-report/1`, for a terminal, and as a page. Modeled on D09's table of mitigations.

mod against;
mod series;
mod view;

use becalm_analyze::summary::{Figures, Pooled, SourceSummary};
use becalm_model::node::Warning;
use becalm_report::Report;
use becalm_report::catalogue;
use becalm_report::form::field::{Object, fields};
use becalm_report::form::figure::{Change, Factor, Rate, Ratio, Time};
use becalm_report::form::known::machine;
use becalm_report::form::section::Page;
use becalm_report::form::sheet::Form;
use becalm_report::predict::rounded::times;
use becalm_report::predict::{PredictedRow, job};
use becalm_scale::predict::Question;
use becalm_units::{Count, Nanos};
use serde::Serialize;

use self::against::AgainstJson;
use crate::study::analysis::{Studied, Turn, mean_slowdown};
use crate::study::document::{ConfigurationDoc, ConfigurationOutcome, StudyDoc};

/// A study with its results.
pub struct StudyReport<'a> {
    /// The configurations, and which of them were recorded.
    pub doc: &'a StudyDoc,
    /// The results of each configuration, in the order of the document; `None` if it was not recorded.
    pub studied: &'a [Option<Studied>],
    /// The job with the predicted slowdown, at the first of its grains; the rows have all.
    pub question: Question,
}

/// A configuration with its results.
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
    /// The relative change of a job's loss at the most ranks from its loss under the baseline.
    loss_change: Option<f64>,
}

impl StudyFigures {
    fn new(doc: &ConfigurationDoc, studied: Option<&Studied>, baseline_loss: Option<f64>) -> Self {
        let pooled = studied.map(|studied| &studied.pooled);
        let slowdown = studied.and_then(slowdown);
        Self {
            name: doc.name.clone(),
            cpus: doc.cpus.to_string(),
            sched: doc.sched.clone(),
            noise_ratio: pooled.and_then(Pooled::noise_ratio),
            rate_hz: pooled.and_then(Pooled::rate_hz),
            max_ns: pooled.and_then(|pooled| pooled.durations.max()),
            slowdown,
            loss_change: slowdown.zip(baseline_loss).map(|(slowdown, loss)| (slowdown - 1.0) / loss - 1.0),
        }
    }
}

fields! {
    FIGURES, figures: StudyFigures {
        CONFIGURATION = "configuration", "configuration", |row| row.name.clone();
        CPUS = catalogue::CPUS, |row| row.cpus.clone();
        SCHED = "sched", "class", |row| row.sched.clone();
        NOISE_RATIO = catalogue::NOISE_RATIO, |row| row.noise_ratio.map(Ratio);
        RATE_HZ = "rate_hz", "detours", |row| row.rate_hz.map(Rate);
        MAX_NS = "max_ns", "longest", |row| row.max_ns.map(Time);
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |row| row.slowdown.map(Factor);
        LOSS_CHANGE_RATIO = "loss_change_ratio", "loss", |row| row.loss_change.map(Change);
    }
}

/// The slowdown at the most ranks.
fn slowdown(studied: &Studied) -> Option<f64> {
    studied.headline().and_then(mean_slowdown)
}

/// The grains in the given order; that of the question if nothing was recorded.
fn grains(report: &StudyReport<'_>) -> Vec<Nanos> {
    let rows = report.studied.iter().flatten().find(|studied| !studied.rows.is_empty());
    let mut grains: Vec<Nanos> = rows.into_iter().flat_map(|studied| &studied.rows).map(|row| row.grain).collect();
    grains.dedup();
    if grains.is_empty() { vec![report.question.grain] } else { grains }
}

fn lines<'a>(studied: &'a Studied, question: &Question) -> impl Iterator<Item = PredictedRow> + use<'a> {
    let replicas = question.replicas;
    studied.rows.iter().map(move |row| PredictedRow::new(row.clone(), replicas))
}

fn entries<'a>(report: &'a StudyReport<'_>) -> Vec<StudyEntry<'a>> {
    let pairs = || report.doc.configurations.iter().zip(report.studied);
    let baseline = pairs().find(|(doc, _)| doc.is_baseline()).and_then(|(_, studied)| studied.as_ref());
    let loss = baseline.and_then(slowdown).map(|slowdown| slowdown - 1.0).filter(|loss| *loss > 0.0);
    let entry = |(doc, studied): (&'a ConfigurationDoc, &'a Option<Studied>)| {
        let studied = studied.as_ref();
        StudyEntry { doc, studied, figures: StudyFigures::new(doc, studied, loss) }
    };
    pairs().map(entry).collect()
}

/// The largest number of ranks.
fn most_ranks(report: &StudyReport<'_>) -> Option<Count> {
    report.studied.iter().flatten().find_map(Studied::headline).map(|row| Count::new(row.ranks))
}

/// A sentence that names the configuration that gained most; `None` without a baseline and another one.
fn answer(report: &StudyReport<'_>) -> Option<String> {
    let entries = entries(report);
    let ranks = most_ranks(report)?;
    let (baseline, others): (Vec<&StudyEntry<'_>>, Vec<_>) = entries.iter().partition(|entry| entry.doc.is_baseline());
    let baseline = baseline.first()?.figures.slowdown?;
    let slowdowns = others.into_iter().filter_map(|entry| Some((entry, entry.figures.slowdown?)));
    let (best, slowdown) = slowdowns.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let phases = match grains(report).as_slice() {
        [grain, _, ..] => format!(" with phases of {grain}"),
        _ => String::new(),
    };
    let text = format!("at {ranks} ranks, a job{phases} takes {} times as long as without noise", times(baseline));
    if slowdown >= baseline || times(slowdown) == times(baseline) {
        return Some(format!("{text}; no configuration gains anything"));
    }
    let verdict = best.studied.and_then(against::verdict).map_or_else(String::new, |verdict| format!("; {verdict}"));
    Some(format!("{text}; {} brings that to {}{verdict}", best.doc.name, times(slowdown)))
}

/// Why a configuration has no figures, or fewer turns than others; `None` if it is complete.
fn missing(report: &StudyReport<'_>, doc: &ConfigurationDoc, studied: Option<&Studied>) -> Option<String> {
    let (name, turns) = (&doc.name, report.doc.turns);
    match (&doc.outcome, studied) {
        (ConfigurationOutcome::Skipped { why }, _) => Some(format!("{name} was skipped: {why}")),
        (ConfigurationOutcome::Planned, _) => Some(format!("{name} was not reached")),
        (ConfigurationOutcome::Recorded { runs, .. }, None) => {
            Some(format!("{name} has no figures: {} contains none", runs.join(", ")))
        }
        (ConfigurationOutcome::Recorded { runs, failed }, Some(_)) => {
            let short = runs.len() < turns as usize || failed.is_some();
            let why = failed.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            short.then(|| format!("{name} was recorded in only {} of {turns} turns{why}", runs.len()))
        }
    }
}

impl Report for StudyReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.study-report/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, _: Form) -> Page {
        view::page(self)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct StudyDocument<'a> {
    node: &'a str,
    kernel: &'a str,
    hypervisor: Option<&'a str>,
    begun: String,
    duration_ns: i64,
    turns: u32,
    job: String,
    grain_ns: i64,
    seed: u64,
    replicas: u64,
    configurations: Vec<ConfigurationJson<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ConfigurationJson<'a> {
    #[serde(flatten)]
    figures: Object<StudyFigures>,
    what: &'a str,
    idle_cpus: String,
    command: &'a [String],
    /// The recordings, turn by turn.
    runs: Vec<TurnJson<'a>>,
    /// Why there are no recordings.
    skipped: Option<&'a str>,
    /// Why there are no more of them.
    failed: Option<&'a str>,
    rows: Vec<Object<PredictedRow>>,
    /// The longest detour of every two-hundredth of each turn, the turns one behind the other.
    over_time: Vec<series::LongestJson>,
    against_baseline: Option<AgainstJson<'a>>,
    sources: Vec<Object<SourceSummary>>,
    warnings: &'a [Warning],
}

/// A recording of a configuration, with what the job takes at the most ranks under its noise alone.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct TurnJson<'a> {
    run: &'a str,
    noise_ratio: Option<f64>,
    rate_hz: Option<f64>,
    max_ns: Option<i64>,
    slowdown_ratio: Option<f64>,
}

impl<'a> TurnJson<'a> {
    fn new(run: &'a str, turn: Option<&Turn>) -> Self {
        let total = turn.map(|turn| &turn.summary.total);
        Self {
            run,
            noise_ratio: total.and_then(Figures::noise_ratio),
            rate_hz: total.and_then(Figures::rate_hz),
            max_ns: total.and_then(|total| total.durations.max()),
            slowdown_ratio: turn.and_then(|turn| turn.slowdown),
        }
    }
}

/// The report as the document `becalm.study-report/1`.
fn document<'a>(report: &'a StudyReport<'_>) -> StudyDocument<'a> {
    let entries = entries(report);
    let configurations = entries.iter().map(|entry| configuration(entry, &report.question)).collect();
    StudyDocument {
        node: &report.doc.node,
        kernel: &report.doc.machine.kernel,
        hypervisor: report.doc.machine.hypervisor.as_deref(),
        begun: report.doc.begun.to_string(),
        duration_ns: report.doc.duration_ns,
        turns: report.doc.turns,
        job: job(&report.question),
        grain_ns: report.question.grain.get(),
        seed: report.question.seed,
        replicas: report.question.replicas,
        configurations,
    }
}

fn configuration<'a>(entry: &StudyEntry<'a>, question: &Question) -> ConfigurationJson<'a> {
    let (skipped, failed) = match &entry.doc.outcome {
        ConfigurationOutcome::Recorded { failed, .. } => (None, failed.as_deref()),
        ConfigurationOutcome::Skipped { why } => (Some(why.as_str()), None),
        ConfigurationOutcome::Planned => (None, None),
    };
    let turn = |at: usize| entry.studied.and_then(|studied| studied.turns.get(at));
    let runs = entry.doc.runs().iter().enumerate().map(|(at, run)| TurnJson::new(run, turn(at)));
    let rows = entry.studied.into_iter().flat_map(|studied| lines(studied, question));
    let sources = entry.studied.map_or(&[][..], |studied| &studied.pooled.sources);
    ConfigurationJson {
        figures: Object::new(&entry.figures),
        what: &entry.doc.what,
        idle_cpus: entry.doc.idle.to_string(),
        command: &entry.doc.command,
        runs: runs.collect(),
        skipped,
        failed,
        rows: rows.map(|line| Object::new(&line)).collect(),
        over_time: entry.studied.into_iter().flat_map(series::longest).collect(),
        against_baseline: entry.studied.and_then(against::document),
        sources: sources.iter().map(Object::new).collect(),
        warnings: entry.studied.map_or(&[], |studied| &studied.warnings),
    }
}

/// The grains, separated by commas.
fn grains_in_words(report: &StudyReport<'_>) -> String {
    grains(report).iter().map(Nanos::to_string).collect::<Vec<_>>().join(", ")
}

/// The recorded configurations, time and machine, and the job of the slowdown.
fn heading(report: &StudyReport<'_>) -> [(&'static str, String); 2] {
    let mut duration = Nanos::new(report.doc.duration_ns).to_string();
    if report.doc.turns > 1 {
        duration += &format!(" in {} turns", report.doc.turns);
    }
    [
        ("study", format!("{}: {}; {duration} per configuration", report.doc.node, machine(&report.doc.machine))),
        ("job", format!("phases of {}: {}", grains_in_words(report), job(&report.question))),
    ]
}
