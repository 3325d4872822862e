//! The noise law over several grains, delays and rates, for people.

use becalm_units::Share;

use super::{LawCell, LawSweepReport};
use crate::Value;
use crate::form::words::capital;
use crate::html::{AxisUnit, Block, Opening, Page, Section};
use crate::law::view::curve;
use crate::predict::rounded::times;
use crate::predict::view::grade;
use crate::sweep::{Axes, SweepFigure};

/// A sweep for people.
pub(super) fn page(report: &LawSweepReport) -> Page {
    let axes = report.axes();
    let whole = |cell: usize| report.cells.get(cell).map_or_else(Vec::new, |cell| curve(&cell.law, &report.ranks));
    let values = report.cells.iter().map(|cell| Some(slowdown(cell))).collect();
    let mut slowdowns = SweepFigure::new(&axes, "slowdown", AxisUnit::Factor, Value::Factor, values);
    slowdowns.whole = Some(&whole);
    let mut sections = vec![headline(report, &axes), slowdown_section(&axes, &slowdowns)];
    sections.extend(report.tolerated.map(|lost| tolerance(report, &axes, lost)));
    sections.push(slowdowns.surface_section("Surface: the slowdowns as shades", &report.ranks));
    Page {
        title: "The noise law".to_owned(),
        subtitle: report.heading(),
        sections,
        foot: vec!["The law is that of D. Tsafrir, ExpCS 2007.".to_owned()],
    }
}

fn slowdown(cell: &LawCell) -> f64 {
    cell.row.point.slowdown_ratio
}

fn headline(report: &LawSweepReport, axes: &Axes) -> Section {
    let all = report.cells.iter().enumerate().map(|(at, cell)| (at, slowdown(cell)));
    let least = all.clone().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = all.max_by(|a, b| a.1.total_cmp(&b.1));
    let verdict = least.zip(most).map(|(least, most)| Block::Verdict {
        tone: grade(most.1),
        text: format!("Delays make these jobs {} to {} times as long.", times(least.1), times(most.1)),
        basis: format!("The least with {}, and the most with {}.", axes.name_of(least.0), axes.name_of(most.0)),
    });
    let heading = Block::OnTerminal(vec![Block::Text(report.heading())]);
    let blocks = vec![heading, Block::OnPage(verdict.into_iter().collect())];
    Section::new("headline", "Summary", "How much longer do such jobs take?", blocks)
}

fn slowdown_section(axes: &Axes, slowdowns: &SweepFigure<'_>) -> Section {
    let mut blocks = slowdowns.charts("slowdown-");
    blocks.push(slowdowns.table("Slowdown by the law"));
    Section::new("slowdowns", "Slowdown", "Slowdown", blocks)
        .opened(Opening::Title(format!("Slowdown: 1 + (1 - (1-p)^n) D/G{}", axes.columns_are())))
        .explained(
            "1 + (1 - (1-p)^n) D/G: each phase waits for the latest of n ranks. Charts side by side have the same axis.",
        )
}

fn tolerance(report: &LawSweepReport, axes: &Axes, lost: Share) -> Section {
    let values = report.cells.iter().map(|cell| Some(cell.row.tolerable?.probability)).collect();
    let figure = SweepFigure::new(axes, "p may be", AxisUnit::Ratio, Value::Ratio, values);
    let blocks = figure.surface("tolerance-surface").into_iter().chain([figure.table("What p may be")]).collect();
    let title = format!("what p may be for a job that loses {lost} of its time");
    let opening = Opening::Title(format!("Tolerance: {title}{}", axes.columns_are()));
    Section::new("tolerance", "Tolerance", capital(&title), blocks).opened(opening)
}
