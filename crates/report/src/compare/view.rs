//! A comparison for people.

use std::mem::{Discriminant, discriminant};
use std::path::Path;

use becalm_analyze::compare::{ComparedFigure, Doubt, Limit, Metric, Side};

use super::charts::{DRAWN, forest_chart, pairs, tile, tone};
use super::{COLUMNS, CompareReport, check_text, cpus, headline, legend, most_changed_first, nodes, place, place_name};
use super::{reason, runs, shown_source, sources, title, totals};
use crate::form::section::{Block, Grade, Opening, Page, Section};
use crate::form::table::Table;
use crate::html::Chart;
use crate::predict::view::warning;

/// The number of sources, nodes and CPUs shown unless all are wanted.
const SHOWN: usize = 12;

/// The number of characters that a shortened name keeps at least.
const HEAD: usize = 13;

/// The figures at the top.
const TILES: [Metric; 4] = [Metric::NoiseRatio, Metric::Rate, Metric::P99, Metric::StretchMax];

/// The page with all sources, nodes and CPUs if `all`, else with those that changed most.
pub(super) fn page(report: &CompareReport<'_>, all: bool) -> Page {
    let mut sections = vec![answer(report), basis(report)];
    sections.extend(section(figures(report), usize::MAX));
    let shown = if all { usize::MAX } else { SHOWN };
    let rows = [shares(report), rates(report), node_rows(report, all), cpu_rows(report, all)];
    sections.extend(rows.into_iter().filter_map(|rows| section(rows, shown)));
    let legend = vec![Block::Text(legend())];
    sections.push(Section::new("legend", "Legend", "How to read the figures", legend).opened(Opening::Gap));
    sections.extend(limits(report));
    Page {
        title: format!("{} against {}", names(&report.comparison.a), names(&report.comparison.b)),
        subtitle: "Operating system noise before (A) and after (B)".to_owned(),
        sections,
        foot: Vec::new(),
    }
}

/// The names of the recordings.
fn names(side: &Side) -> String {
    let names: Vec<String> = side.runs.iter().map(|run| name(&run.path)).collect();
    names.join(", ")
}

/// The name of a recording: that of its directory without the extension.
fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
}

fn answer(report: &CompareReport<'_>) -> Section {
    let comparison = report.comparison;
    let noise = comparison.total(Metric::NoiseRatio);
    let tone = noise.map_or(Grade::Plain, |row| tone(row.verdict));
    let rows = TILES.iter().filter_map(|metric| comparison.total(*metric));
    let tiles = rows.filter(|row| row.a.is_some() || row.b.is_some()).map(tile).collect();
    let answer = Block::Verdict { tone, text: headline(comparison), basis: String::new() };
    Section::new("headline", "Summary", "Did the noise change?", vec![answer, Block::Tiles(tiles)])
}

fn basis(report: &CompareReport<'_>) -> Section {
    let mut blocks = vec![Block::Facts(runs(report.comparison))];
    blocks.extend(report.comparison.notes.iter().map(warning));
    Section::new("basis", "Basis", "The recordings that were compared", blocks)
        .opened(Opening::Gap)
        .explained("The recordings, and the adjustments that make them comparable.")
}

fn limits(report: &CompareReport<'_>) -> Option<Section> {
    let block = |check| {
        let text = check_text(report.comparison, check);
        match check.outcome {
            Limit::Exceeded => Block::Warning { text, advice: String::new() },
            Limit::NotShown | Limit::Unknown => Block::Text(text),
        }
    };
    let blocks: Vec<Block> = report.checks.iter().map(block).collect();
    (!blocks.is_empty()).then(|| Section::new("limits", "Limits", "Limits", blocks).opened(Opening::Gap))
}

/// Rows of one table.
struct Rows<'a> {
    id: &'static str,
    short: &'static str,
    title: String,
    /// The title of the first column.
    first: &'static str,
    name: fn(&ComparedFigure) -> String,
    rows: Vec<&'a ComparedFigure>,
    charts: Vec<Chart>,
    reading: &'static str,
}

fn figures<'a>(report: &CompareReport<'a>) -> Rows<'a> {
    let rows = totals(report.comparison);
    let chart = forest_chart("changes", "", rows.iter().map(|row| (title(row), *row)));
    Rows {
        id: "figures",
        short: "Figures",
        title: place(report.comparison),
        first: "figure",
        name: title,
        charts: chart.into_iter().collect(),
        rows,
        reading: "The ratio of B to A. A point is the measured ratio, and its bar is the 95 % CI. The line at 1 means no change: a bar left \
                  of it is a decrease, a bar right of it an increase, and a bar across it is not significant.",
    }
}

fn shares<'a>(report: &CompareReport<'a>) -> Rows<'a> {
    let rows = sources(report.comparison, Metric::TimeRatio);
    Rows {
        id: "sources",
        short: "Sources",
        title: "Sources, share of time".to_owned(),
        first: "source",
        name: source_name,
        charts: both_charts(
            ["sources-pairs", "sources-changes"],
            "Share of time, before and after",
            &rows,
            source_name,
        ),
        rows,
        reading: "The share of time that each source took, and the ratio of B to A with its 95 % CI. Sources that are in only one \
                  recording have no ratio.",
    }
}

fn rates<'a>(report: &CompareReport<'a>) -> Rows<'a> {
    let rows = sources(report.comparison, Metric::Rate);
    let title = "Sources, rate".to_owned();
    let charts = Vec::new();
    Rows { id: "rates", short: "Rates", title, first: "source", name: source_name, rows, charts, reading: "" }
}

fn node_rows<'a>(report: &CompareReport<'a>, all: bool) -> Rows<'a> {
    let rows = nodes(report.comparison);
    Rows {
        id: "nodes",
        short: "Nodes",
        title: "Nodes, noise".to_owned(),
        first: "node",
        name: |row| place_name(row, true),
        charts: place_charts(["nodes-pairs", "nodes-changes"], &rows, |row| place_name(row, true)),
        rows: ordered(rows, all),
        reading: "The noise of all CPUs of each node, and the ratio of B to A with its 95 % CI. A node that changed alone has a cause of \
                  its own.",
    }
}

fn cpu_rows<'a>(report: &CompareReport<'a>, all: bool) -> Rows<'a> {
    let rows = cpus(report.comparison);
    let several = report.comparison.a.count_nodes() > 1;
    let name: fn(&ComparedFigure) -> String =
        if several { |row| place_name(row, true) } else { |row| place_name(row, false) };
    // Next to a bar, a number without a name means nothing.
    let label: fn(&ComparedFigure) -> String =
        if several { name } else { |row| format!("CPU {}", place_name(row, false)) };
    Rows {
        id: "cpus",
        short: "CPUs",
        title: "CPUs, noise".to_owned(),
        first: "cpu",
        name,
        charts: place_charts(["cpus-pairs", "cpus-changes"], &rows, label),
        rows: ordered(rows, all),
        reading: "The noise of each CPU, and the ratio of B to A with its 95 % CI. A CPU that changed alone has a cause of its own.",
    }
}

/// The most changed first, unless all are shown.
fn ordered(mut rows: Vec<&ComparedFigure>, all: bool) -> Vec<&ComparedFigure> {
    if !all && rows.len() > SHOWN {
        most_changed_first(&mut rows);
    }
    rows
}

fn place_charts(ids: [&'static str; 2], rows: &[&ComparedFigure], name: fn(&ComparedFigure) -> String) -> Vec<Chart> {
    let mut rows = rows.to_vec();
    if rows.len() > DRAWN {
        most_changed_first(&mut rows);
    }
    both_charts(ids, "Noise, before and after", &rows, name)
}

fn both_charts(
    ids: [&'static str; 2],
    title: &str,
    rows: &[&ComparedFigure],
    name: fn(&ComparedFigure) -> String,
) -> Vec<Chart> {
    let [pairs_id, changes_id] = ids;
    let named = || rows.iter().map(|row| (name(row), *row));
    let changes = forest_chart(changes_id, "Ratio of B to A", named());
    [pairs(pairs_id, title, named())].into_iter().chain(changes).collect()
}

/// The charts and the table of these rows, limited to `shown` rows on a terminal; below it, why there is not enough data.
fn section(rows: Rows<'_>, shown: usize) -> Option<Section> {
    let Rows { id, short, title, first, name, rows, charts, reading } = rows;
    if rows.is_empty() {
        return None;
    }
    let mut table = Table::named(first, &COLUMNS);
    rows.iter().for_each(|row| table.named_row(name(row), &COLUMNS, *row));
    let mut heads: Vec<String> = rows.iter().map(|row| name(row).chars().take(HEAD).collect()).collect();
    heads.sort_unstable();
    // Names that differ only at their ends would look alike if shortened.
    if heads.windows(2).any(|pair| pair[0] == pair[1]) {
        table.keep_whole(0);
    }
    let table = table.with_most_important(shown, |_| format!("the first {SHOWN} of {}", rows.len()));
    let mut blocks = Vec::new();
    if !charts.is_empty() {
        blocks.push(Block::Charts(charts));
    }
    if rows.len() > DRAWN {
        blocks.push(Block::OnPage(vec![Block::Note(format!("At most {DRAWN} are drawn: those that changed most."))]));
    }
    blocks.push(Block::Table(table));
    blocks.extend(doubts(rows.iter().take(shown).copied(), name));
    Some(Section::new(id, short, title.clone(), blocks).opened(Opening::Title(title)).explained(reading))
}

fn doubts<'a>(rows: impl Iterator<Item = &'a ComparedFigure>, name: fn(&ComparedFigure) -> String) -> Vec<Block> {
    let mut known: Vec<Discriminant<Doubt>> = Vec::new();
    let mut remarks = Vec::new();
    for row in rows {
        let Some(doubt) = row.doubt else { continue };
        // For sources, omits a reason already given with another figure, and one that refers to another row.
        if (row.source.is_none() && doubt != Doubt::Drifting) || !known.contains(&discriminant(&doubt)) {
            remarks.push(Block::Remark(name(row), reason(doubt)));
        }
        known.push(discriminant(&doubt));
    }
    remarks
}

fn source_name(row: &ComparedFigure) -> String {
    row.source.as_ref().map_or_else(String::new, |(kind, source)| shown_source(*kind, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_by_its_folder() {
        assert_eq!(name(Path::new("/data/before.becalm")), "before");
        assert_eq!(name(Path::new("..")), "..");
    }
}
