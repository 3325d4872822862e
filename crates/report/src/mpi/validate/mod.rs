//! Predictions compared with an actual job: `becalm.mpi-validate/1`, a report, and a figure as an SVG.

mod figure;
pub(crate) mod sweep;

use becalm_analyze::validation::{added_error_ratio, error_ratio, errors};
use becalm_model::Estimate;
use becalm_model::validation::{ValidationCell, ValidationDoc, ValidationErrors};
use becalm_units::{Nanos, counted, plural};
use serde::Serialize;

pub use self::figure::validate_figure;
use super::{nodes, ranks};
use crate::Value;
use crate::catalogue;
use crate::form::field::{Object, fields};
use crate::form::figure::{Change, Factor, Ratio};
use crate::form::section::{Block, Page, Section};
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::form::value::{picos, three_digits, time};
use crate::predict::rounded::{self, round};
use crate::report::Report;

fields! {
    /// The fields of a cell.
    CELL, cell: ValidationCell {
        NOISE = "noise", "noise", |cell| if cell.synchronized { "together" } else { "apart" }.to_owned();
        SYNCHRONIZED = "synchronized", "together", |cell| cell.synchronized;
        INTERVAL_NS = catalogue::INTERVAL_NS, |cell| cell.interval_ns;
        DETOUR_NS = "detour_ns", "detour", |cell| cell.detour_ns;
        CONSTANT_RATIO = "constant_ratio", "constant", |cell| cell.constant_ratio.map(Ratio);
        REQUESTED_RATIO = "requested_ratio", "requested", |cell| Ratio(cell.requested_ratio);
        DELIVERED_RATIO = "delivered_ratio", "delivered", |cell| cell.delivered_ratio.map(Ratio);
        MEASURED_RATIO = "measured_ratio", "measured", |cell| cell.measured.map(|estimate| estimate.mean).map(Factor);
        MEASURED_LOW = "measured_low", "low", |cell| cell.measured.map(|estimate| estimate.low).map(Factor);
        MEASURED_HIGH = "measured_high", "high", |cell| cell.measured.map(|estimate| estimate.high).map(Factor);
        PREDICTED_RATIO = "predicted_ratio", "predicted", |cell| cell.predicted.map(|estimate| estimate.mean).map(Factor);
        PREDICTED_LOW = "predicted_low", "low", |cell| cell.predicted.map(|estimate| estimate.low).map(Factor);
        PREDICTED_HIGH = "predicted_high", "high", |cell| cell.predicted.map(|estimate| estimate.high).map(Factor);
        ERROR_RATIO = "error_ratio", "error", |cell| error_ratio(cell).map(Change);
        ADDED_ERROR_RATIO = "added_error_ratio", "of added",
            |cell| added_error_ratio(cell).map(Change);
        WHY_NOT = "why_not", "why not",
            |cell| cell.why_not.clone();
    }
}

fields! {
    /// Columns only of tables.
    columns: ValidationCell {
        MEASURED_INTERVAL = "measured_interval", "95 % CI", |cell| interval(cell.measured);
        PREDICTED_INTERVAL = "predicted_interval", "95 % CI", |cell| interval(cell.predicted);
    }
}

fn interval(slowdown: Option<Estimate>) -> Option<String> {
    slowdown.and_then(|slowdown| rounded::interval(Some(slowdown.low), Some(slowdown.high)))
}

impl Report for ValidationDoc {
    fn schema(&self) -> &'static str {
        "becalm.mpi-validate/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, form: Form) -> Page {
        let section = Section::new("noises", "Noises", "By how much predictions miss", blocks(self, form));
        Page { title: TITLE.to_owned(), subtitle: heading(self), sections: vec![section], foot: Vec::new() }
    }
}

/// The title of its page.
const TITLE: &str = "Predictions compared with a real job";

/// The job in a few words.
fn heading(report: &ValidationDoc) -> String {
    format!("{}, {}", ranks(report.ranks), report.collective)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Errors {
    all: ValidationErrors,
    apart: ValidationErrors,
    together: ValidationErrors,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct ValidateDocument<'a> {
    library: &'a str,
    ranks: u32,
    nodes: u32,
    collective: &'a str,
    grain_ns: Nanos,
    sched: &'a str,
    quiet_phase_ns: f64,
    quiet_compute_ns: f64,
    cpus: u32,
    quiet_mean_phase_ns: &'a [f64],
    unsteady: usize,
    own_noise_ratio: &'a [f64],
    one_way_ns: f64,
    network: &'a str,
    fit_factor: f64,
    repetitions: u32,
    replicas: u64,
    seed: u64,
    errors: Errors,
    rows: Vec<Object<ValidationCell>>,
    warnings: &'a [String],
}

/// The errors of the cells with noise at the same instants on all CPUs, or of the others.
fn errors_of(report: &ValidationDoc, synchronized: bool) -> ValidationErrors {
    errors(report.cells.iter().filter(|cell| cell.synchronized == synchronized))
}

/// Builds `becalm.mpi-validate/1`.
fn document(report: &ValidationDoc) -> ValidateDocument<'_> {
    ValidateDocument {
        library: &report.library,
        ranks: report.ranks,
        nodes: report.nodes,
        collective: &report.collective,
        grain_ns: report.grain_ns,
        sched: &report.sched,
        quiet_phase_ns: report.quiet_phase_ns,
        quiet_compute_ns: report.quiet_compute_ns,
        cpus: report.cpus,
        quiet_mean_phase_ns: &report.quiet,
        unsteady: report.unsteady,
        own_noise_ratio: &report.own_noise_ratio,
        one_way_ns: report.one_way_ns,
        network: &report.network,
        fit_factor: report.fit_factor,
        repetitions: report.repetitions,
        replicas: report.replicas,
        seed: report.seed,
        errors: Errors {
            all: errors(&report.cells),
            apart: errors_of(report, false),
            together: errors_of(report, true),
        },
        rows: report.cells.iter().map(Object::new).collect(),
        warnings: &report.warnings,
    }
}

/// The validation for people.
fn blocks(report: &ValidationDoc, form: Form) -> Vec<Block> {
    let mut blocks = job(report);
    blocks.push(Block::gap());
    blocks.extend(cells(report));
    blocks.extend([Block::gap(), Block::Facts(mean_errors(report))]);
    blocks.extend(figure::blocks(report, form));
    blocks
}

/// The job, the machine, and everything that limits the numbers.
fn job(report: &ValidationDoc) -> Vec<Block> {
    let mut blocks = vec![Block::facts(facts(report))];
    blocks.extend(report.warnings.iter().map(Block::warning));
    if report.unsteady > 0 {
        blocks.push(Block::warning(format!(
            "{} runs stand among others whose phases took another time without noise: something else came or went, and a quieter \
             machine would say more",
            report.unsteady
        )));
    }
    blocks
}

fn facts(report: &ValidationDoc) -> [(&'static str, String); 6] {
    let exactly = |ns: f64| picos((ns * 1e3).round() as i64);
    let (compute, parts) = match report.grain_ns.get() {
        0 => ("back to back".to_owned(), String::new()),
        grain => (
            format!("after {} of compute", time(grain)),
            format!(", {} of that computing", exactly(report.quiet_compute_ns)),
        ),
    };
    let (ranks, nodes) = (ranks(report.ranks), nodes(report.nodes));
    let (least, most) =
        report.quiet.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), ns| (least.min(*ns), most.max(*ns)));
    let means = match report.quiet.is_empty() {
        true => String::new(),
        false => {
            format!(
                "; with the CPUs' own noise outside of the runs, {} to {} on average",
                exactly(least),
                exactly(most)
            )
        }
    };
    let own: Vec<String> = report.own_noise_ratio.iter().take(8).map(|ratio| Value::Ratio(*ratio).cell()).collect();
    let (one_way, fit) = (exactly(report.one_way_ns), three_digits(report.fit_factor));
    [
        ("job", format!("{ranks} on {nodes}, {}, {compute}, class {}", report.collective, report.sched)),
        ("library", report.library.trim().to_owned()),
        ("quiet", format!("a phase takes {}{parts}{means}", exactly(report.quiet_phase_ns))),
        ("noise", format!("of the CPUs themselves, before: {}", own.join(", "))),
        (
            "messages",
            format!(
                "{one_way} from rank to rank; predicted with {}, L and o being {fit} times those of single messages",
                report.network
            ),
        ),
        (
            "sure",
            format!(
                "at least {} runs and {} predictions of each noise, seed {}, in pairs with and without it; 95 % CI: of the mean",
                report.repetitions, report.replicas, report.seed
            ),
        ),
    ]
}

/// The noises with measurement and prediction, and why some were not measured.
fn cells(report: &ValidationDoc) -> Vec<Block> {
    let fields = [
        &cell::NOISE,
        &cell::INTERVAL_NS,
        &cell::DETOUR_NS,
        &cell::REQUESTED_RATIO,
        &cell::DELIVERED_RATIO,
        &cell::MEASURED_RATIO,
        &columns::MEASURED_INTERVAL,
        &cell::PREDICTED_RATIO,
        &columns::PREDICTED_INTERVAL,
        &cell::ERROR_RATIO,
        &cell::ADDED_ERROR_RATIO,
    ];
    let mut table = Table::new(&fields).captioned("Each noise");
    for group in report.cells.chunk_by(|a, b| (a.synchronized, a.constant_ratio) == (b.synchronized, b.constant_ratio))
    {
        table.rule();
        group.iter().for_each(|cell| table.row(&fields, cell));
    }
    round(&mut table, 5);
    round(&mut table, 7);
    let mut reasons: Vec<&str> = Vec::new();
    for why in report.cells.iter().filter_map(|cell| cell.why_not.as_deref()) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    let reasons = reasons.into_iter().map(|why| Block::warning(format!("not measured: {why}")));
    std::iter::once(Block::Table(table)).chain(reasons).collect()
}

/// The mean errors of the predictions, over all noises.
fn mean_errors(report: &ValidationDoc) -> Vec<(String, String)> {
    let percent = |ratio: f64| Value::Ratio(ratio).cell();
    let named = |(name, errors): (&str, ValidationErrors)| {
        let (mean, max) = errors.mean_error_ratio.zip(errors.max_error_ratio)?;
        let added = errors.mean_added_error_ratio.map_or_else(String::new, |added| {
            let cells = counted(errors.visible as u64, "cell", "cells");
            format!("; of the time added, for 2 % and more ({cells}): {}", percent(added))
        });
        let text = format!(
            "mean error {}, largest {}, of {}, of which {} {} within their intervals; of {} whose effects are three times \
             their errors and more, {}{added}",
            percent(mean),
            percent(max),
            counted(errors.cells as u64, "cell", "cells"),
            errors.overlapping,
            plural(errors.overlapping as u64, "agrees", "agree"),
            errors.telling,
            errors.telling_overlapping
        );
        Some((name.to_owned(), text))
    };
    let all =
        [("apart", errors_of(report, false)), ("together", errors_of(report, true)), ("all", errors(&report.cells))];
    all.into_iter().filter_map(named).collect()
}
