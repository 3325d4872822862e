//! A paper as a page for a browser.

use becalm_paper::{Chart as Drawn, ChartAxis, ChartUnit, Item};

use super::{PaperReport, row};
use crate::html::{Axis, AxisScale, AxisUnit, Block, Chart, ChartSeries, Grade, HtmlTable, Lines, Page, Section, Spec};

/// The names of charts on a page, in their order; a test holds that they are enough.
const CHARTS: [&str; 24] = [
    "chart-a", "chart-b", "chart-c", "chart-d", "chart-e", "chart-f", "chart-g", "chart-h", "chart-i", "chart-j",
    "chart-k", "chart-l", "chart-m", "chart-n", "chart-o", "chart-p", "chart-q", "chart-r", "chart-s", "chart-t",
    "chart-u", "chart-v", "chart-w", "chart-x",
];

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
    let tone = if counts.not + counts.broken == 0 && counts.hold > 0 { Grade::Good } else { Grade::Fair };
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
    blocks.push(Block::Text(format!("{name}.")));
    if !table.is_empty() {
        blocks.push(Block::Table(table));
    }
    if !item.lacking.is_empty() {
        blocks.push(Block::Note(sentence(&item.lacking)));
    }
    let charts: Vec<Chart> = item
        .charts
        .iter()
        .filter_map(|drawn| chart(report, item, drawn))
        .zip(ids)
        .map(|(chart, id)| Chart { id, ..chart })
        .collect();
    if !charts.is_empty() {
        blocks.push(Block::Charts(charts));
    }
    let notes = rows.iter().filter(|found| !found.figure.note.is_empty());
    blocks.extend(notes.map(|found| Block::Note(format!("{}: {}", found.figure.what, found.figure.note))));
    let commands = report.commands(item).into_iter().map(|command| ("command".to_owned(), command)).collect::<Vec<_>>();
    let files = report.files(item).join(", ");
    let files = Some(files).filter(|files| !files.is_empty()).map(|files| ("files".to_owned(), files));
    let facts: Vec<(String, String)> = commands.into_iter().chain(files).collect();
    if !facts.is_empty() {
        blocks.push(Block::Facts(facts));
    }
    blocks
}

/// A remark of the catalogue as a sentence.
fn sentence(remark: &str) -> String {
    let mut letters = remark.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// The curves of a figure, not named yet; `None` where no step of it was done.
fn chart(report: &PaperReport, item: &Item, drawn: &Drawn) -> Option<Chart> {
    let curve = |curve: &becalm_paper::Curve| {
        let points = drawn.points(curve, report.documents.get(&curve.step)?);
        (!points.is_empty()).then(|| ChartSeries {
            name: curve.name.clone(),
            points,
            dots: true,
            scattered: drawn.scattered,
            ..ChartSeries::default()
        })
    };
    let series: Vec<ChartSeries> = drawn.curves.iter().filter_map(curve).collect();
    if series.is_empty() {
        return None;
    }
    let what = if drawn.title.is_empty() { &item.title } else { &drawn.title };
    let label = format!(
        "{what}: {} against {}, {}.",
        drawn.y.title,
        drawn.x.title,
        becalm_units::counted(series.len() as u64, "curve", "curves")
    );
    Some(Chart {
        id: "",
        title: format!(
            "{}, from here{}",
            item.name(),
            if drawn.title.is_empty() { String::new() } else { format!(": {}", drawn.title) }
        ),
        label,
        height: 360,
        spec: Spec::Lines(Lines { x: axis(&drawn.x), y: axis(&drawn.y), series, marks: Vec::new() }),
        figures: None,
    })
}

fn axis(axis: &ChartAxis) -> Axis {
    let scale = if axis.log { AxisScale::Log } else { AxisScale::Linear };
    let unit = match axis.unit {
        ChartUnit::Time => AxisUnit::Time,
        ChartUnit::Instant => AxisUnit::Instant,
        ChartUnit::Ranks => AxisUnit::Ranks,
        ChartUnit::Factor => AxisUnit::Factor,
        ChartUnit::Ratio => AxisUnit::Ratio,
        ChartUnit::Rate => AxisUnit::Rate,
        ChartUnit::Plain => AxisUnit::Plain,
    };
    Axis::new(&axis.title, scale, unit)
}

#[cfg(test)]
mod tests {
    use becalm_paper::catalogue;

    use super::CHARTS;

    #[test]
    fn charts_have_names_enough() {
        for name in catalogue::names() {
            let charts: usize = catalogue::paper(name).unwrap().items.iter().map(|item| item.charts.len()).sum();
            assert!(charts > 0 && charts <= CHARTS.len(), "{name} has {charts} charts");
        }
    }
}
