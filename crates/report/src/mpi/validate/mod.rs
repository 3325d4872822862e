//! Predictions held against a real job: `becalm.mpi-validate/1`, a table, and a figure for the terminal and as an SVG.

mod figure;

use std::io::{self, Write};

use becalm_scale::estimate::Estimate;
use serde::Serialize;

pub use self::figure::validate_figure;
use super::{nodes, ranks};
use crate::Value;
use crate::form::field::{Object, fields};
use crate::form::paragraph::{line, paragraph};
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{picos, three_digits, time};
use crate::report::Report;

/// From this added time on, as a part of a phase, a cell's noise is called visible.
const VISIBLE: f64 = 0.02;

/// One noise, measured and predicted.
#[derive(Clone, PartialEq, Debug)]
pub struct ValidateCell {
    /// From one detour to the next.
    pub interval_ns: i64,
    /// How long it lasts.
    pub detour_ns: i64,
    /// Whether all CPUs lost the same instants.
    pub synchronized: bool,
    /// The share of time, where that was given and the interval follows.
    pub constant_ratio: Option<f64>,
    /// The share of time asked for.
    pub requested_ratio: f64,
    /// The share of time delivered.
    pub delivered_ratio: Option<f64>,
    /// How many times as long phases took.
    pub measured: Option<Estimate>,
    /// How many times as long they were to take.
    pub predicted: Option<Estimate>,
    /// Why it was not measured.
    pub why_not: Option<String>,
}

impl ValidateCell {
    fn both(&self) -> Option<(f64, f64)> {
        Some((self.measured?.mean, self.predicted?.mean))
    }

    /// By which part the prediction is above the measurement.
    #[must_use]
    pub fn error_ratio(&self) -> Option<f64> {
        self.both().map(|(measured, predicted)| predicted / measured - 1.0)
    }

    /// The same of the added time alone, where it is visible.
    #[must_use]
    pub fn added_error_ratio(&self) -> Option<f64> {
        let (measured, predicted) = self.both().filter(|(measured, _)| measured - 1.0 >= VISIBLE)?;
        Some((predicted - 1.0) / (measured - 1.0) - 1.0)
    }

    /// Whether the intervals of both overlap.
    fn agrees(&self) -> Option<bool> {
        let (measured, predicted) = (self.measured?, self.predicted?);
        Some(measured.low <= predicted.high && predicted.low <= measured.high)
    }
}

/// A whole validation.
#[derive(Clone, PartialEq, Debug)]
pub struct ValidateReport {
    /// The MPI library's own words.
    pub library: String,
    /// Ranks of the job.
    pub ranks: u32,
    /// Nodes of the job.
    pub nodes: u32,
    /// The collective, with the algorithm that is taken for the library's.
    pub collective: String,
    /// Useful CPU time of a phase.
    pub grain_ns: i64,
    /// The class of the ranks.
    pub sched: String,
    /// A phase without noise: the mean of the quietest batch.
    pub quiet_phase_ns: f64,
    /// The mean phase without injected noise, beside every run.
    pub quiet: Vec<f64>,
    /// Runs during which that changed, though they were made again.
    pub unsteady: usize,
    /// The share of time that the first ranks' CPUs lost before.
    pub own_noise_ratio: Vec<f64>,
    /// The network of the predictions.
    pub network: String,
    /// What a small message takes from rank to rank.
    pub one_way_ns: f64,
    /// Runs of a cell.
    pub repetitions: u32,
    /// Predictions of a cell.
    pub replicas: u64,
    /// Of all places.
    pub seed: u64,
    /// The noises.
    pub cells: Vec<ValidateCell>,
    /// What must be known before the numbers are believed.
    pub warnings: Vec<String>,
}

/// Mean absolute errors of some cells.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ValidateErrors {
    /// Cells that were measured.
    pub cells: usize,
    /// Of their slowdowns; nothing of no cells.
    pub mean_error_ratio: Option<f64>,
    /// The largest.
    pub max_error_ratio: Option<f64>,
    /// Cells whose noise is visible.
    pub visible: usize,
    /// Of the time that those add.
    pub mean_added_error_ratio: Option<f64>,
    /// Cells whose intervals overlap.
    pub overlapping: usize,
}

impl ValidateReport {
    /// Of all cells, or of those that are synchronized or not.
    #[must_use]
    pub fn errors(&self, synchronized: Option<bool>) -> ValidateErrors {
        let cells = || self.cells.iter().filter(|cell| synchronized.is_none_or(|wanted| wanted == cell.synchronized));
        let mean = |errors: &[f64]| (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64);
        let errors: Vec<f64> = cells().filter_map(|cell| cell.error_ratio().map(f64::abs)).collect();
        let added: Vec<f64> = cells().filter_map(|cell| cell.added_error_ratio().map(f64::abs)).collect();
        ValidateErrors {
            cells: errors.len(),
            mean_error_ratio: mean(&errors),
            max_error_ratio: errors.iter().copied().reduce(f64::max),
            visible: added.len(),
            mean_added_error_ratio: mean(&added),
            overlapping: cells().filter(|cell| cell.agrees() == Some(true)).count(),
        }
    }
}

fn factor(value: Option<f64>) -> Value {
    value.map_or(Value::Missing, Value::Factor)
}

fields! {
    /// The fields of a cell.
    CELL, cell: ValidateCell {
        NOISE = "noise", "noise", |cell| Value::Text(if cell.synchronized { "together" } else { "apart" }.to_owned());
        SYNCHRONIZED = "synchronized", "together", |cell| Value::Flag(cell.synchronized);
        INTERVAL_NS = "interval_ns", "interval", |cell| Value::Time(cell.interval_ns);
        DETOUR_NS = "detour_ns", "detour", |cell| Value::Time(cell.detour_ns);
        CONSTANT_RATIO = "constant_ratio", "constant", |cell| ratio(cell.constant_ratio);
        REQUESTED_RATIO = "requested_ratio", "asked", |cell| Value::Ratio(cell.requested_ratio);
        DELIVERED_RATIO = "delivered_ratio", "delivered", |cell| ratio(cell.delivered_ratio);
        MEASURED_RATIO = "measured_ratio", "measured", |cell| factor(cell.measured.map(|estimate| estimate.mean));
        MEASURED_LOW = "measured_low", "low", |cell| factor(cell.measured.map(|estimate| estimate.low));
        MEASURED_HIGH = "measured_high", "high", |cell| factor(cell.measured.map(|estimate| estimate.high));
        PREDICTED_RATIO = "predicted_ratio", "predicted", |cell| factor(cell.predicted.map(|estimate| estimate.mean));
        PREDICTED_LOW = "predicted_low", "low", |cell| factor(cell.predicted.map(|estimate| estimate.low));
        PREDICTED_HIGH = "predicted_high", "high", |cell| factor(cell.predicted.map(|estimate| estimate.high));
        ERROR_RATIO = "error_ratio", "error", |cell| cell.error_ratio().map_or(Value::Missing, Value::Change);
        ADDED_ERROR_RATIO = "added_error_ratio", "of added",
            |cell| cell.added_error_ratio().map_or(Value::Missing, Value::Change);
        WHY_NOT = "why_not", "why not",
            |cell| cell.why_not.as_ref().map_or(Value::Missing, |why| Value::Text(why.clone()));
    }
}

fn ratio(value: Option<f64>) -> Value {
    value.map_or(Value::Missing, Value::Ratio)
}

impl Report for ValidateReport {
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
struct Errors {
    all: ValidateErrors,
    apart: ValidateErrors,
    together: ValidateErrors,
}

#[derive(Serialize)]
struct ValidateDocument<'a> {
    library: &'a str,
    ranks: u32,
    nodes: u32,
    collective: &'a str,
    grain_ns: i64,
    sched: &'a str,
    quiet_phase_ns: f64,
    quiet_mean_phase_ns: &'a [f64],
    unsteady: usize,
    own_noise_ratio: &'a [f64],
    one_way_ns: f64,
    network: &'a str,
    repetitions: u32,
    replicas: u64,
    seed: u64,
    errors: Errors,
    rows: Vec<Object>,
    warnings: &'a [String],
}

/// As `becalm.mpi-validate/1`.
fn document(report: &ValidateReport) -> ValidateDocument<'_> {
    ValidateDocument {
        library: &report.library,
        ranks: report.ranks,
        nodes: report.nodes,
        collective: &report.collective,
        grain_ns: report.grain_ns,
        sched: &report.sched,
        quiet_phase_ns: report.quiet_phase_ns,
        quiet_mean_phase_ns: &report.quiet,
        unsteady: report.unsteady,
        own_noise_ratio: &report.own_noise_ratio,
        one_way_ns: report.one_way_ns,
        network: &report.network,
        repetitions: report.repetitions,
        replicas: report.replicas,
        seed: report.seed,
        errors: Errors {
            all: report.errors(None),
            apart: report.errors(Some(false)),
            together: report.errors(Some(true)),
        },
        rows: report.cells.iter().map(|cell| Object::new(CELL, cell)).collect(),
        warnings: &report.warnings,
    }
}

/// As a table, with the mean errors and a figure below it.
fn render(report: &ValidateReport, out: &mut Sheet<'_>) -> io::Result<()> {
    print_job(report, out)?;
    print_warnings(report, out)?;
    print_cells(report, out)?;
    print_errors(report, out)?;
    figure::draw(report, out)
}

/// What ran where, and what is known of the machine beside it.
fn print_job(report: &ValidateReport, out: &mut Sheet<'_>) -> io::Result<()> {
    let compute = match report.grain_ns {
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
    line(out, "quiet", &format!("a phase takes {}{means}", exactly(report.quiet_phase_ns),))?;
    let own: Vec<String> =
        report.own_noise_ratio.iter().take(8).map(|ratio| format!("{}%", three_digits(ratio * 100.0))).collect();
    line(out, "noise", &format!("of the CPUs themselves, before: {}", own.join(", ")))?;
    line(
        out,
        "messages",
        &format!("{} from rank to rank; predicted with {}", exactly(report.one_way_ns), report.network),
    )?;
    line(
        out,
        "sure",
        &format!(
            "{} runs and {} predictions of each noise, seed {}; intervals hold the mean with 95 %",
            report.repetitions, report.replicas, report.seed
        ),
    )
}

/// What limits what the numbers say.
fn print_warnings(report: &ValidateReport, out: &mut Sheet<'_>) -> io::Result<()> {
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
fn print_cells(report: &ValidateReport, out: &mut Sheet<'_>) -> io::Result<()> {
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
fn print_errors(report: &ValidateReport, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    for (name, synchronized) in [("apart", Some(false)), ("together", Some(true)), ("all", None)] {
        let errors = report.errors(synchronized);
        let Some((mean, max)) = errors.mean_error_ratio.zip(errors.max_error_ratio) else { continue };
        let percent = |ratio: f64| format!("{}%", three_digits(ratio * 100.0));
        let added = errors.mean_added_error_ratio.map_or_else(String::new, |added| {
            format!("; of the time added, where it is 2 % and more ({} cells): {}", errors.visible, percent(added))
        });
        line(
            out,
            name,
            &format!(
                "mean error {}, largest {}, of {} cells, of which {} agree within their intervals{added}",
                percent(mean),
                percent(max),
                errors.cells,
                errors.overlapping
            ),
        )?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::form::sheet::Form;
    use crate::report;

    pub(crate) fn report() -> ValidateReport {
        let estimate = |mean: f64| Estimate { mean, low: mean * 0.98, high: mean * 1.02 };
        let cell = |synchronized, detour_ns, measured: f64, predicted: f64| ValidateCell {
            interval_ns: 1_000_000,
            detour_ns,
            synchronized,
            constant_ratio: None,
            requested_ratio: detour_ns as f64 / 1e6,
            delivered_ratio: Some(detour_ns as f64 / 1e6),
            measured: Some(estimate(measured)),
            predicted: Some(estimate(predicted)),
            why_not: None,
        };
        let mut cells =
            vec![cell(false, 200_000, 1.5, 1.65), cell(false, 16_000, 1.01, 1.01), cell(true, 200_000, 1.25, 1.25)];
        cells.push(ValidateCell {
            measured: None,
            predicted: None,
            delivered_ratio: None,
            why_not: Some("it is too short".to_owned()),
            ..cells[2].clone()
        });
        ValidateReport {
            library: "Some MPI 1.0".to_owned(),
            ranks: 2,
            nodes: 1,
            collective: "barrier:dissemination".to_owned(),
            grain_ns: 0,
            sched: "other".to_owned(),
            quiet_phase_ns: 300.5,
            quiet: vec![310.0, 320.0],
            unsteady: 1,
            own_noise_ratio: vec![0.01, 0.02],
            network: "L=200ns,o=50ns,g=0ns,G=0.1ns".to_owned(),
            one_way_ns: 290.0,
            repetitions: 2,
            replicas: 4,
            seed: 1,
            cells,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn errors_are_means_over_cells() {
        let report = report();
        let apart = report.errors(Some(false));
        assert_eq!((apart.cells, apart.visible, apart.overlapping), (2, 1, 1));
        assert!((apart.mean_error_ratio.unwrap() - 0.05).abs() < 1e-9);
        assert!((apart.max_error_ratio.unwrap() - 0.1).abs() < 1e-9);
        assert!((apart.mean_added_error_ratio.unwrap() - 0.3).abs() < 1e-9);
        let all = report.errors(None);
        assert_eq!((all.cells, all.visible, all.overlapping), (3, 2, 2));
        assert!((all.mean_error_ratio.unwrap() - 0.1 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_table_and_the_document_say_the_same() {
        let report = report();
        let json: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
        assert_eq!(json["schema"], "becalm.mpi-validate/1");
        assert_eq!(json["rows"][0]["predicted_ratio"], 1.65);
        assert_eq!(json["rows"][3]["why_not"], "it is too short");
        assert!((json["errors"]["together"]["mean_error_ratio"].as_f64().unwrap()).abs() < 1e-9);
        let text = report::text(&report, Form::default());
        for part in ["1.6500", "+10.0%", "not measured: it is too short", "mean error 5.00%, largest 10.0%, of 2 cells"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
