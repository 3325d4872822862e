//! Predictions held against a real job: `becalm.mpi-validate/1`, a table, and a figure for the terminal and as an SVG.

mod figure;
pub(crate) mod sweep;

use std::io::{self, Write};

use becalm_analyze::validation::{added_error_ratio, error_ratio, errors};
use becalm_model::validation::{ValidationCell, ValidationDoc, ValidationErrors};
use becalm_units::{Nanos, counted, plural};
use serde::Serialize;

pub use self::figure::validate_figure;
use super::{nodes, ranks};
use crate::catalogue;
use crate::form::field::{Object, fields};
use crate::form::figure::{Change, Factor, Ratio};
use crate::form::paragraph::{line, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{picos, three_digits, time};
use crate::report::Report;

fields! {
    /// The fields of a cell.
    CELL, cell: ValidationCell {
        NOISE = "noise", "noise", |cell| if cell.synchronized { "together" } else { "apart" }.to_owned();
        SYNCHRONIZED = "synchronized", "together", |cell| cell.synchronized;
        INTERVAL_NS = catalogue::INTERVAL_NS, |cell| cell.interval_ns;
        DETOUR_NS = "detour_ns", "detour", |cell| cell.detour_ns;
        CONSTANT_RATIO = "constant_ratio", "constant", |cell| cell.constant_ratio.map(Ratio);
        REQUESTED_RATIO = "requested_ratio", "asked", |cell| Ratio(cell.requested_ratio);
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

impl Report for ValidationDoc {
    fn schema(&self) -> &'static str {
        "becalm.mpi-validate/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
    }
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

/// The errors of the cells whose CPUs lost the same instants, or not.
fn errors_of(report: &ValidationDoc, synchronized: bool) -> ValidationErrors {
    errors(report.cells.iter().filter(|cell| cell.synchronized == synchronized))
}

/// The report as the document `becalm.mpi-validate/1`.
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

/// As a table, with the mean errors and a figure below it.
fn render(report: &ValidationDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    print_job(report, out)?;
    print_warnings(report, out)?;
    print_cells(report, out)?;
    print_errors(report, out)?;
    figure::draw(report, out)
}

/// What ran where, and what is known of the machine beside it.
fn print_job(report: &ValidationDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    let compute = match report.grain_ns.get() {
        0 => "back to back".to_owned(),
        grain => format!("after {} of compute", time(grain)),
    };
    let (ranks, nodes) = (ranks(report.ranks), nodes(report.nodes));
    line(out, "job", &format!("{ranks} on {nodes}, {}, {compute}, class {}", report.collective, report.sched))?;
    line(out, "library", report.library.trim())?;
    let exactly = |ns: f64| picos((ns * 1e3).round() as i64);
    let (least, most) =
        report.quiet.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), ns| (least.min(*ns), most.max(*ns)));
    let means = match report.quiet.is_empty() {
        true => String::new(),
        false => {
            format!("; with the CPUs' own noise, beside the runs, {} to {} on average", exactly(least), exactly(most))
        }
    };
    let parts = match report.grain_ns.get() {
        0 => String::new(),
        _ => format!(", {} of that computing", exactly(report.quiet_compute_ns)),
    };
    line(out, "quiet", &format!("a phase takes {}{parts}{means}", exactly(report.quiet_phase_ns)))?;
    let own: Vec<String> =
        report.own_noise_ratio.iter().take(8).map(|ratio| format!("{}%", three_digits(ratio * 100.0))).collect();
    line(out, "noise", &format!("of the CPUs themselves, before: {}", own.join(", ")))?;
    line(
        out,
        "messages",
        &format!(
            "{} from rank to rank; predicted with {}, L and o being {} times those of single messages",
            exactly(report.one_way_ns),
            report.network,
            three_digits(report.fit_factor)
        ),
    )?;
    line(
        out,
        "sure",
        &format!(
            "{} runs and more and {} predictions of each noise, seed {}, of pairs with and without; intervals hold the mean with 95 %",
            report.repetitions, report.replicas, report.seed
        ),
    )
}

/// What limits what the numbers say.
fn print_warnings(report: &ValidationDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    for warning in &report.warnings {
        paragraph(out, "  ! ", warning)?;
    }
    if report.unsteady > 0 {
        let text = format!(
            "{} runs stand among others whose phases took another time without noise: something else came or went, and a quieter \
             machine would say more",
            report.unsteady
        );
        paragraph(out, "  ! ", &text)?;
    }
    Ok(())
}

/// The noises with what was measured and predicted under each, and why some were not measured.
fn print_cells(report: &ValidationDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    let fields = [
        &cell::NOISE,
        &cell::INTERVAL_NS,
        &cell::DETOUR_NS,
        &cell::REQUESTED_RATIO,
        &cell::DELIVERED_RATIO,
        &cell::MEASURED_RATIO,
        &cell::MEASURED_LOW,
        &cell::MEASURED_HIGH,
        &cell::PREDICTED_RATIO,
        &cell::PREDICTED_LOW,
        &cell::PREDICTED_HIGH,
        &cell::ERROR_RATIO,
        &cell::ADDED_ERROR_RATIO,
    ];
    let mut table = Table::new(&fields);
    let mut before = None;
    for cell in &report.cells {
        let group = (cell.synchronized, cell.constant_ratio);
        if before.replace(group).is_some_and(|before| before != group) {
            table.rule();
        }
        table.row(&fields, cell);
    }
    table.print(out)?;
    let reasons = report.cells.iter().filter_map(|cell| cell.why_not.as_deref());
    let mut told: Vec<&str> = Vec::new();
    for why in reasons {
        if !told.contains(&why) {
            told.push(why);
            paragraph(out, "  ! ", &format!("not measured: {why}"))?;
        }
    }
    Ok(())
}

/// By how much predictions miss, over all noises.
fn print_errors(report: &ValidationDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    let (apart, together) = (errors_of(report, false), errors_of(report, true));
    for (name, errors) in [("apart", apart), ("together", together), ("all", errors(&report.cells))] {
        let Some((mean, max)) = errors.mean_error_ratio.zip(errors.max_error_ratio) else { continue };
        let percent = |ratio: f64| format!("{}%", three_digits(ratio * 100.0));
        let added = errors.mean_added_error_ratio.map_or_else(String::new, |added| {
            let cells = counted(errors.visible as u64, "cell", "cells");
            format!("; of the time added, where it is 2 % and more ({cells}): {}", percent(added))
        });
        line(
            out,
            name,
            &format!(
                "mean error {}, largest {}, of {}, of which {} {} within their intervals; of {} whose effects are three times \
                 their errors and more, {}{added}",
                percent(mean),
                percent(max),
                counted(errors.cells as u64, "cell", "cells"),
                errors.overlapping,
                plural(errors.overlapping as u64, "agrees", "agree"),
                errors.telling,
                errors.telling_overlapping
            ),
        )?;
    }
    Ok(())
}
