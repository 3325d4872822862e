//! The page of predictions over several noises, payloads and ways in which noise comes.

use becalm_scale::predict::RankPrediction;

use super::{PredictSweepReport, SweptCell, slowdown};
use crate::Value;
use crate::form::field::Field;
use crate::form::table::Table;
use crate::form::value::{factor, grouped};
use crate::html::{AxisUnit, Block, Opening, Page, Section, foot, sentence};
use crate::predict::view::{grade, warning};
use crate::predict::{PredictedRow, counted, intervals, row};
use crate::sweep::Axes;
use crate::sweep::figure::Figure;

/// The names of the charts of slowdowns, and so how many of them a page has at most.
const SLOWDOWNS: [&str; 12] = [
    "slowdown-1",
    "slowdown-2",
    "slowdown-3",
    "slowdown-4",
    "slowdown-5",
    "slowdown-6",
    "slowdown-7",
    "slowdown-8",
    "slowdown-9",
    "slowdown-10",
    "slowdown-11",
    "slowdown-12",
];
/// The same for those of phases.
const PHASES: [&str; 12] = [
    "phase-1", "phase-2", "phase-3", "phase-4", "phase-5", "phase-6", "phase-7", "phase-8", "phase-9", "phase-10",
    "phase-11", "phase-12",
];
/// The table of all cells has at most so many rows.
const ROWS: usize = 2_000;

/// The page of a sweep, made by `program`: `becalm 0.1.0`.
pub(super) fn page(report: &PredictSweepReport<'_>, program: &str) -> Page {
    let axes = report.axes();
    let subtitle = match report.noises {
        [noise] => noise.asked.clone(),
        several => counted(several.len() as u64, "noise", "noises"),
    };
    let sections = vec![
        headline(report, &axes),
        slowdowns(report, &axes),
        phases(report, &axes),
        all_cells(report, &axes),
        noises(report),
    ];
    Page { title: "What noise costs a job".to_owned(), subtitle, sections, foot: foot(format!("Made by {program}.")) }
}

fn headline(report: &PredictSweepReport<'_>, axes: &Axes) -> Section {
    let all = report.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, slowdown(cell)?)));
    let least = all.clone().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = all.max_by(|a, b| a.1.total_cmp(&b.1));
    let mut blocks = Vec::new();
    if let (Some(least), Some(most)) = (least, most) {
        let times = |(at, value): (usize, f64)| format!("{} times as long ({})", factor(value), axes.name_of(at));
        blocks.push(Block::Verdict {
            tone: grade(most.1),
            text: format!("Such jobs take from {} to {} times as long.", factor(least.1), factor(most.1)),
            basis: format!("The least is {}, and the most {}.", times(least), times(most)),
        });
    }
    blocks.push(Block::Facts(vec![("job".to_owned(), report.job())]));
    blocks.extend(report.warnings().iter().map(warning));
    Section {
        opening: Opening::None,
        id: "headline",
        title: "How much longer do such jobs take?".to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks,
    }
}

/// The interval of a cell, where it has one.
fn interval(cell: &SweptCell) -> Option<[f64; 2]> {
    let slowdown = cell.row.slowdown?;
    Some(match &cell.row.recording {
        Some(bounds) => [bounds.low.max(1.0), bounds.high.unwrap_or(slowdown.mean)],
        None => [slowdown.low.max(1.0), slowdown.high],
    })
}

fn slowdowns(report: &PredictSweepReport<'_>, axes: &Axes) -> Section {
    let values: Vec<Option<f64>> = report.cells.iter().map(slowdown).collect();
    let intervals: Vec<Option<[f64; 2]>> = report.cells.iter().map(interval).collect();
    let figure = Figure {
        title: "slowdown",
        ids: &SLOWDOWNS,
        unit: AxisUnit::Factor,
        from: Some(1.0),
        values: &values,
        intervals: &intervals,
        cell: Value::Factor,
        whole: None,
    };
    let mut blocks = figure.charts(axes);
    blocks.extend(figure.surface(axes, "surface"));
    blocks.push(figure.table(axes, "Predicted slowdown"));
    Section {
        opening: Opening::None,
        id: "slowdowns",
        title: "Slowdown".to_owned(),
        short: "Slowdown",
        reading: "The mean phase by that without noise. Bands are the intervals of the table of all cells; where one has no upper \
                  end, it is drawn up to the slowdown itself. Charts side by side have the same axis."
            .to_owned(),
        blocks,
    }
}

fn phases(report: &PredictSweepReport<'_>, axes: &Axes) -> Section {
    let values: Vec<Option<f64>> = report.cells.iter().map(|cell| cell.row.mean_phase_ns).collect();
    let figure = Figure {
        title: "mean phase",
        ids: &PHASES,
        unit: AxisUnit::Time,
        from: None,
        values: &values,
        intervals: &[],
        cell: Value::time,
        whole: None,
    };
    let mut blocks = figure.charts(axes);
    blocks.push(figure.table(axes, "The mean duration of a phase"));
    Section {
        opening: Opening::None,
        id: "phases",
        title: "How long a phase takes".to_owned(),
        short: "Phases",
        reading: "Work and collective together, on the average over all phases.".to_owned(),
        blocks,
    }
}

fn all_cells(report: &PredictSweepReport<'_>, axes: &Axes) -> Section {
    let lines: Vec<PredictedRow> = report.cells.iter().map(|cell| report.line(cell)).collect();
    let every: [&'static Field<PredictedRow>; 11] = [
        &row::SLOWDOWN_RATIO,
        &row::SLOWDOWN_LOW,
        &row::SLOWDOWN_HIGH,
        &row::EXPECTED_RATIO,
        &row::EFFICIENCY_RATIO,
        &row::LOST_NODE_HOURS,
        &row::QUIET_PHASE_NS,
        &row::MEAN_PHASE_NS,
        &row::PHASE_MEDIAN_NS,
        &row::PHASE_P99_NS,
        &row::WORST_PHASE_NS,
    ];
    let shown = |field: &&Field<PredictedRow>| lines.iter().any(|line| (field.get)(line) != Value::Missing);
    let fields: Vec<&Field<PredictedRow>> = every.into_iter().filter(shown).collect();
    let titles: Vec<String> = fields.iter().map(|field| field.title.to_owned()).collect();
    let mut table = Table::matrix(&axes.all_titles(), titles).captioned("All cells");
    for (at, line) in lines.iter().enumerate().take(ROWS) {
        table.values(&axes.labels_of(at), fields.iter().map(|field| (field.get)(line)));
    }
    if lines.len() > ROWS {
        table.note = format!(
            "The first {} of {} cells; becalm predict --json has all of them.",
            grouped(ROWS as u64),
            grouped(lines.len() as u64)
        );
    }
    let rows: Vec<RankPrediction> = report.cells.iter().map(|cell| cell.row.clone()).collect();
    let meaning = intervals::meaning(&rows, report.question.replicas);
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(meaning.into_iter().chain(intervals::together(&rows)).map(|text| Block::Note(sentence(&text))));
    Section {
        opening: Opening::None,
        id: "cells",
        title: "All cells, with their intervals".to_owned(),
        short: "Cells",
        reading: String::new(),
        blocks,
    }
}

fn noises(report: &PredictSweepReport<'_>) -> Section {
    let fields = report.noise_fields();
    let mut table = Table::new(&fields).captioned("Noises");
    for noise in report.noises {
        table.row(&fields, &(noise.clone(), noise.asked.clone()));
    }
    Section {
        opening: Opening::None,
        id: "noises",
        title: "The noises".to_owned(),
        short: "Noises",
        reading: String::new(),
        blocks: vec![Block::Table(table)],
    }
}
