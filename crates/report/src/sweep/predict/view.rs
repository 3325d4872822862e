//! Predictions over several noises, payloads and alignments, for people.

use std::iter;

use becalm_scale::predict::RankPrediction;

use super::{PredictSweepReport, SweptCell, slowdown};
use crate::Value;
use crate::form::field::Field;
use crate::form::table::Table;
use crate::form::value::grouped;
use crate::html::{AxisUnit, Block, Opening, Page, Section};
use crate::predict::rounded::{round, times};
use crate::predict::view::{grade, warning};
use crate::predict::{PredictedRow, counted, intervals, row};
use crate::sweep::{Axes, SweepFigure};

/// The most rows in the table of all cells.
const ROWS: usize = 2_000;

/// A sweep for people.
pub(super) fn page(report: &PredictSweepReport<'_>) -> Page {
    let axes = report.axes();
    let subtitle = match report.noises {
        [noise] => noise.asked.clone(),
        several => counted(several.len() as u64, "noise", "noises"),
    };
    let values = report.cells.iter().map(slowdown).collect();
    let mut slowdowns = SweepFigure::new(&axes, "slowdown", AxisUnit::Factor, Value::Factor, values);
    slowdowns.intervals = report.cells.iter().map(interval).collect();
    let sections = vec![
        headline(report, &axes),
        slowdown_section(report, &axes, &slowdowns),
        phases(report, &axes),
        slowdowns.surface_section("Surface: the slowdowns as shades", report.ranks),
        all_cells(report, &axes),
    ];
    Page { title: "What noise costs a job".to_owned(), subtitle, sections, foot: Vec::new() }
}

/// The noises with their noise ratios.
fn noises(report: &PredictSweepReport<'_>) -> Block {
    if let [noise] = report.noises {
        return Block::facts([("noise", noise.asked.clone())]);
    }
    Block::Table(Table::filled(&report.noise_fields(), report.noises).captioned("Noises"))
}

fn headline(report: &PredictSweepReport<'_>, axes: &Axes) -> Section {
    let all = report.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, slowdown(cell)?)));
    let least = all.clone().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = all.max_by(|a, b| a.1.total_cmp(&b.1));
    let named = |(at, value): (usize, f64)| format!("{} times as long ({})", times(value), axes.name_of(at));
    let verdict = least.zip(most).map(|(least, most)| Block::Verdict {
        tone: grade(most.1),
        text: format!("Noise makes these jobs {} to {} times as long.", times(least.1), times(most.1)),
        basis: format!("The shortest takes {}, the longest {}.", named(least), named(most)),
    });
    let job = Block::facts([("job", report.job())]);
    let gap = Block::OnTerminal(vec![Block::gap()]);
    let mut blocks: Vec<Block> = verdict.into_iter().chain([gap, noises(report), job]).collect();
    blocks.extend(report.warnings().iter().map(warning));
    Section::new("headline", "Summary", "How much longer do such jobs take?", blocks)
}

/// The interval of a cell, if it has one.
fn interval(cell: &SweptCell) -> Option<[f64; 2]> {
    let slowdown = cell.row.slowdown?;
    Some(match &cell.row.recording {
        Some(bounds) => [bounds.low.max(1.0), bounds.high.unwrap_or(f64::INFINITY)],
        None => [slowdown.low.max(1.0), slowdown.high],
    })
}

fn slowdown_section(report: &PredictSweepReport<'_>, axes: &Axes, slowdowns: &SweepFigure<'_>) -> Section {
    let mut blocks = slowdowns.charts("slowdown-");
    blocks.push(slowdowns.table("Predicted slowdown"));
    let cells = counted(report.cells.len() as u64, "cell", "cells");
    let title = format!("Slowdown: mean phase / phase without noise, {cells}{}", axes.columns_are());
    Section::new("slowdowns", "Slowdown", "Slowdown", blocks).opened(Opening::Title(title)).explained(
        "The mean phase divided by the phase without noise. Bands are the 95 % CI. A band without an upper bound is open to the \
         top of the axis. All charts have the same axis.",
    )
}

fn phases(report: &PredictSweepReport<'_>, axes: &Axes) -> Section {
    let values = report.cells.iter().map(|cell| cell.row.mean_phase_ns).collect();
    let figure = SweepFigure::new(axes, "mean phase", AxisUnit::Time, Value::time, values);
    let mut blocks = figure.charts("phase-");
    blocks.push(figure.table("The mean duration of a phase"));
    Section::new("phases", "Phases", "How long a phase takes", blocks)
        .opened(Opening::Title(format!("Phases: the mean duration{}", axes.columns_are())))
        .explained("The mean duration of work and collective together.")
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
    let slowdowns =
        [&row::SLOWDOWN_RATIO, &row::SLOWDOWN_LOW, &row::SLOWDOWN_HIGH, &row::EXPECTED_RATIO].map(|field| field.name);
    for (at, _) in fields.iter().enumerate().filter(|(_, field)| slowdowns.contains(&field.name)) {
        round(&mut table, axes.all_titles().len() + at);
    }
    if lines.len() > ROWS {
        table.note = format!(
            "The first {} of {} cells; becalm predict --json has all of them.",
            grouped(ROWS as u64),
            grouped(lines.len() as u64)
        );
    }
    let rows: Vec<RankPrediction> = report.cells.iter().map(|cell| cell.row.clone()).collect();
    let meaning = intervals::meaning(&rows, report.question.replicas).map(Block::Note);
    let hint = "--json has the intervals, the quiet phase and the spread of each cell".to_owned();
    let mut blocks = vec![Block::OnPage(iter::once(Block::Table(table)).chain(meaning).collect())];
    blocks.extend(intervals::together(&rows).map(Block::Note));
    blocks.push(Block::OnTerminal(vec![Block::Text(hint)]));
    Section::new("cells", "Cells", "All cells, with their intervals", blocks)
}
