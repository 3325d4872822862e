//! The page of the noise law over several grains, delays and rates.

use becalm_units::Share;

use super::{LawCell, LawSweepReport};
use crate::Value;
use crate::form::value::factor;
use crate::html::{AxisUnit, Block, Opening, Page, Section, foot};
use crate::law::view::curve;
use crate::predict::view::grade;
use crate::sweep::Axes;
use crate::sweep::figure::Figure;

/// The names of the charts of slowdowns, and so how many of them a page has at most.
const SLOWDOWNS: [&str; 8] =
    ["slowdown-1", "slowdown-2", "slowdown-3", "slowdown-4", "slowdown-5", "slowdown-6", "slowdown-7", "slowdown-8"];

/// The page of a sweep, made by `program`: `becalm 0.1.0`.
pub(super) fn page(report: &LawSweepReport, program: &str) -> Page {
    let axes = report.axes();
    let mut sections = vec![headline(report, &axes), slowdowns(report, &axes)];
    sections.extend(report.tolerated.map(|lost| tolerance(report, &axes, lost)));
    Page {
        title: "What the noise law says".to_owned(),
        subtitle: report.heading(),
        sections,
        foot: foot(format!("Made by {program}. The law is that of D. Tsafrir, ExpCS 2007.")),
    }
}

fn slowdown(cell: &LawCell) -> f64 {
    cell.row.point.slowdown_ratio
}

fn headline(report: &LawSweepReport, axes: &Axes) -> Section {
    let all = report.cells.iter().enumerate().map(|(at, cell)| (at, slowdown(cell)));
    let least = all.clone().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = all.max_by(|a, b| a.1.total_cmp(&b.1));
    let mut blocks = Vec::new();
    if let (Some(least), Some(most)) = (least, most) {
        blocks.push(Block::Verdict {
            tone: grade(most.1),
            text: format!("Such jobs take from {} to {} times as long.", factor(least.1), factor(most.1)),
            basis: format!("The least with {}, and the most with {}.", axes.name_of(least.0), axes.name_of(most.0)),
        });
    }
    Section {
        opening: Opening::None,
        id: "headline",
        title: "How much longer do such jobs take?".to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks,
    }
}

fn slowdowns(report: &LawSweepReport, axes: &Axes) -> Section {
    let values: Vec<Option<f64>> = report.cells.iter().map(|cell| Some(slowdown(cell))).collect();
    let whole = |cell: usize| report.cells.get(cell).map_or_else(Vec::new, |cell| curve(&cell.law, &report.ranks));
    let figure = Figure {
        title: "slowdown",
        ids: &SLOWDOWNS,
        unit: AxisUnit::Factor,
        from: Some(1.0),
        values: &values,
        intervals: &[],
        cell: Value::Factor,
        whole: Some(&whole),
    };
    let mut blocks = figure.charts(axes);
    blocks.extend(figure.surface(axes, "surface"));
    blocks.push(figure.table(axes, "Slowdown by the law"));
    Section {
        opening: Opening::None,
        id: "slowdowns",
        title: "Slowdown".to_owned(),
        short: "Slowdown",
        reading:
            "1 + (1 - (1-p)^n) D/G: each phase waits for the latest of n ranks. Charts side by side have the same axis."
                .to_owned(),
        blocks,
    }
}

fn tolerance(report: &LawSweepReport, axes: &Axes, lost: Share) -> Section {
    let values: Vec<Option<f64>> = report.cells.iter().map(|cell| Some(cell.row.tolerable?.probability)).collect();
    let figure = Figure {
        title: "p may be",
        ids: &[],
        unit: AxisUnit::Ratio,
        from: None,
        values: &values,
        intervals: &[],
        cell: Value::Ratio,
        whole: None,
    };
    let mut blocks: Vec<Block> = figure.surface(axes, "tolerance-surface").into_iter().collect();
    blocks.push(figure.table(axes, "What p may be"));
    Section {
        opening: Opening::None,
        id: "tolerance",
        title: format!("What p may be for a job that loses {lost} of its time"),
        short: "Tolerance",
        reading: String::new(),
        blocks,
    }
}
