//! A paper as a page for a browser.

use becalm_paper::{Chart as Drawn, Item};

use super::{PaperReport, row};
use crate::html::{Axis, AxisScale, AxisUnit, Block, Chart, ChartSeries, Grade, HtmlTable, Lines, Page, Section, Spec};

/// The names of charts on a page, in their order.
const CHARTS: [&str; 6] = ["chart-a", "chart-b", "chart-c", "chart-d", "chart-e", "chart-f"];

/// The page of a paper, made by `program`: `becalm 0.1.0`.
pub(super) fn page(report: &PaperReport, program: &str) -> Page {
    let mut charts = CHARTS.into_iter();
    let blocks = report.items.iter().flat_map(|item| blocks(report, item, &mut charts)).collect();
    let items = Section {
        id: "figures",
        title: "Tables and figures, in the order of the paper".to_owned(),
        short: "Tables and figures",
        reading: "What was published, beside what was found here: a number holds within 10 % of the published one, one that is given \
                  with an \"about\" within 25 %, and a bound is kept or not. Times of the paper's machine are shown beside those of \
                  this one, and are no reproduction."
            .to_owned(),
        blocks,
    };
    Page {
        title: format!("{}: published, and here", report.name),
        subtitle: report.paper.citation.clone(),
        sections: vec![headline(report), items],
        foot: vec![
            format!("Made by {program}. The documents of all steps are in the folder steps beside this page."),
            "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.".to_owned(),
        ],
    }
}

fn headline(report: &PaperReport) -> Section {
    let counts = report.counts();
    let tone = if counts.not == 0 { Grade::Good } else { Grade::Fair };
    let basis = if report.quick { "A quick campaign: the long steps were left out." } else { "All steps were run." };
    let facts = [("Machine of the paper", &report.paper.machine), ("Machine of here", &report.here)]
        .map(|(name, what)| (name.to_owned(), what.clone()));
    Section {
        id: "headline",
        title: "Is it found again?".to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks: vec![
            Block::Verdict { tone, text: format!("{}.", report.summary()), basis: basis.to_owned() },
            Block::Facts(facts.to_vec()),
        ],
    }
}

fn blocks(report: &PaperReport, item: &Item, ids: &mut impl Iterator<Item = &'static str>) -> Vec<Block> {
    let name = format!("{}: {}", item.name(), item.title);
    let mut blocks = Vec::new();
    let rows = report.rows(item);
    let fields = [&row::PUBLISHED, &row::HERE, &row::DIFFERENCE, &row::VERDICT];
    let mut table = HtmlTable::named(&name, "what", &fields);
    table.sorts = false;
    rows.iter().for_each(|found| table.named_row(found.figure.what.clone(), &fields, found));
    let is_empty = table.is_empty();
    if is_empty {
        blocks.push(Block::Text(format!("{name}.")));
    } else {
        blocks.push(Block::Table(table));
    }
    if !item.lacking.is_empty() {
        blocks.push(Block::Note(format!("Not here: {}.", item.lacking)));
    }
    if let Some((drawn, id)) = item.chart.as_ref().and_then(|drawn| Some((drawn, ids.next()?))) {
        blocks.extend(chart(report, item, drawn, id).map(|chart| Block::Charts(vec![chart])));
    }
    let notes = rows.iter().filter(|found| !found.figure.note.is_empty());
    blocks.extend(notes.map(|found| Block::Note(format!("{}: {}", found.figure.what, found.figure.note))));
    let commands = report.commands(item).into_iter().map(|command| ("command".to_owned(), command)).collect::<Vec<_>>();
    if !commands.is_empty() {
        blocks.push(Block::Facts(commands));
    }
    blocks
}

/// The curves of a figure; `None` where no step of it was done.
fn chart(report: &PaperReport, item: &Item, drawn: &Drawn, id: &'static str) -> Option<Chart> {
    let points = |step: &str| -> Option<Vec<[f64; 2]>> {
        let rows = report.documents.get(step)?.get("rows")?.as_array()?;
        let number = |row: &serde_json::Value, name: &str| row.get(name)?.as_f64().filter(|value| *value > 0.0);
        Some(rows.iter().filter_map(|row| Some([number(row, &drawn.x)?, number(row, &drawn.y)?])).collect())
    };
    let series: Vec<ChartSeries> = drawn
        .curves
        .iter()
        .filter_map(|curve| {
            let points = points(&curve.step).filter(|points| !points.is_empty())?;
            Some(ChartSeries { name: curve.name.clone(), points, dots: true, ..ChartSeries::default() })
        })
        .collect();
    if series.is_empty() {
        return None;
    }
    let (title, unit) = match drawn.y.as_str() {
        "mean_phase_ns" => ("mean phase", AxisUnit::Time),
        _ => ("slowdown", AxisUnit::Factor),
    };
    Some(Chart {
        id,
        title: format!("{}, from here", item.name()),
        label: format!("{}: {title} against the number of {}, as becalm finds it.", item.title, drawn.x),
        height: 360,
        spec: Spec::Lines(Lines {
            x: Axis::new("processes", AxisScale::Log, AxisUnit::Ranks),
            y: Axis::new(title, AxisScale::Log, unit),
            series,
            marks: Vec::new(),
        }),
        figures: None,
    })
}
