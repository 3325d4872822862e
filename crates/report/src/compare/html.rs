//! The page of two runs against each other: what changed, by how much, and how sure that is.

use std::path::Path;

use becalm_analyze::compare::{ComparedFigure, Limit, Metric, Side, Verdict};

use crate::compare::{self, COLUMNS, CompareReport};
use crate::form::figure::Figure;
use crate::form::value::grouped;
use crate::form::words::capital;
use crate::html::HtmlTable;
use crate::html::{Axis, AxisScale, AxisUnit, BarPair, Chart, Forest, ForestRow, PairedBars, Spec};
use crate::html::{Block, Grade, Page, Section, Tile};

/// How many sources, nodes and CPUs are drawn at most.
const DRAWN: usize = 16;

/// How many rows a table has at most.
const ROWS: usize = 300;

/// The figures that stand at the top.
const TILES: [Metric; 4] = [Metric::NoiseRatio, Metric::Rate, Metric::P99, Metric::StretchMax];

/// The page of a comparison, made by `program`: `becalm 0.1.0`.
pub(super) fn page(report: &CompareReport<'_>, program: &str) -> Page {
    let comparison = report.comparison;
    let (a, b) = (&comparison.a, &comparison.b);
    let mut sections = vec![headline(report), totals(report)];
    sections.extend(sources(report));
    sections.extend(nodes(report));
    sections.extend(cpus(report));
    sections.push(basis(report));
    Page {
        title: format!("{} against {}", names(a), names(b)),
        subtitle: "Operating system noise before (A) and after (B)".to_owned(),
        sections,
        foot: vec![
            format!("Made by {program} from {} and {}.", paths(a), paths(b)),
            "Drawn with Apache ECharts 6.1.0, which is part of this file; nothing is loaded from elsewhere.".to_owned(),
        ],
    }
}

/// The runs' own names.
fn names(side: &Side) -> String {
    let names: Vec<String> = side.runs.iter().map(|run| name(&run.path)).collect();
    names.join(", ")
}

fn paths(side: &Side) -> String {
    let paths: Vec<String> = side.runs.iter().map(|run| run.path.display().to_string()).collect();
    paths.join(", ")
}

/// A run's own name: that of its folder without the ending.
fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
}

const fn tone(verdict: Verdict) -> Grade {
    match verdict {
        Verdict::Worse => Grade::Bad,
        Verdict::Better => Grade::Good,
        Verdict::NoDifferenceShown => Grade::Plain,
        // That two recordings differ is neither good nor bad news of the machine.
        Verdict::NotEnoughData | Verdict::Higher | Verdict::Lower => Grade::Fair,
    }
}

fn headline(report: &CompareReport<'_>) -> Section {
    let comparison = report.comparison;
    let noise = comparison.total(Metric::NoiseRatio);
    let mut blocks = vec![Block::Verdict {
        tone: noise.map_or(Grade::Plain, |row| tone(row.verdict)),
        text: format!("{}.", compare::answer(comparison).replace(" -> ", " \u{2192} ")),
        basis: changed(report),
    }];
    let rows = TILES.iter().filter_map(|metric| comparison.total(*metric));
    let rows = rows.filter(|row| row.a.is_some() || row.b.is_some());
    blocks.push(Block::Tiles(rows.map(tile).collect()));
    for check in report.checks {
        let text = format!("{}.", compare::check_text(comparison, check));
        blocks.push(match check.outcome {
            Limit::Exceeded => Block::Warning { text, advice: String::new() },
            Limit::NotShown | Limit::Unknown => Block::Text(text),
        });
    }
    Section {
        id: "headline",
        title: "Did the noise change?".to_owned(),
        short: "Summary",
        reading: String::new(),
        blocks,
    }
}

/// Which sources are shown to have changed.
fn changed(report: &CompareReport<'_>) -> String {
    let all: Vec<String> = compare::changed(report.comparison)
        .map(|(kind, name, how)| match name.split_once(' ') {
            Some((own, _)) if own == kind.name() => format!("{name} {how}"),
            _ => format!("{name} ({kind}) {how}"),
        })
        .collect();
    match all.as_slice() {
        [] => "No source is shown to have changed its share of time.".to_owned(),
        few if few.len() <= compare::NAMED => format!("Shown to have changed their share of time: {}.", few.join(", ")),
        many => format!(
            "{} sources are shown to have changed their share of time, most of all {}.",
            grouped(many.len() as u64),
            many[..compare::NAMED].join(", ")
        ),
    }
}

fn tile(row: &ComparedFigure) -> Tile {
    let figure = |number| compare::figure(row, number).value().cell();
    let detail = match (row.effect.and_then(|effect| effect.ratio), interval(row)) {
        (Some(ratio), Some(interval)) => {
            format!("{} (95 %: {interval}), {}", compare::change(Some(ratio)).value().cell(), said(row.verdict))
        }
        (Some(ratio), None) => format!("{}, {}", compare::change(Some(ratio)).value().cell(), said(row.verdict)),
        (None, _) => said(row.verdict).to_owned(),
    };
    let tone = match row.verdict {
        // A single figure of which too little is known is no matter of concern.
        Verdict::NotEnoughData => Grade::Plain,
        verdict => tone(verdict),
    };
    let name = capital(&compare::title(row));
    Tile { name, figure: format!("{} \u{2192} {}", figure(row.a), figure(row.b)), detail, tone }
}

const fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NoDifferenceShown => "no difference shown",
        Verdict::NotEnoughData => "too little data to say",
        Verdict::Worse => "worse",
        Verdict::Better => "better",
        Verdict::Higher => "higher in this recording",
        Verdict::Lower => "lower in this recording",
    }
}

/// The interval of a change, as the table writes it.
fn interval(row: &ComparedFigure) -> Option<String> {
    let effect = row.effect?;
    let end = |end: Option<f64>| end.map(|ratio| compare::change(Some(ratio)).value().cell());
    match (end(effect.ratio_low), end(effect.ratio_high)) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}")),
        (Some(low), None) => Some(format!("over {low}")),
        (None, Some(high)) => Some(format!("up to {high}")),
        (None, None) => None,
    }
}

fn totals(report: &CompareReport<'_>) -> Section {
    let comparison = report.comparison;
    let rows = compare::totals(comparison);
    let mut blocks: Vec<Block> = forest("changes", "", &rows, compare::title).into_iter().collect();
    blocks.push(Block::Table(table("Figures", "figure", &rows, &compare::title)));
    // What is missing in the table is explained below it, the same reason once.
    let reasons = rows.iter().filter_map(|row| Some((compare::title(row), compare::reason(row.doubt?))));
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for (title, reason) in reasons {
        match said.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, titles)) => titles.push(title),
            None => said.push((reason, vec![title])),
        }
    }
    blocks.extend(said.into_iter().map(|(reason, titles)| Block::Note(format!("{}: {reason}.", titles.join(", ")))));
    Section {
        id: "figures",
        title: compare::place(comparison),
        short: "Figures",
        reading: "How many times as much there is in B as in A: the point is what was measured, the bar its 95 % interval; \
                  what lies wholly to the left of the line has become less, wholly to the right more, and a bar across the \
                  line shows no difference."
            .to_owned(),
        blocks,
    }
}

fn sources(report: &CompareReport<'_>) -> Option<Section> {
    let comparison = report.comparison;
    let shares = compare::sources(comparison, Metric::TimeRatio);
    if shares.is_empty() {
        return None;
    }
    let mut blocks = Vec::new();
    blocks.push(Block::Text(changed(report)));
    let mut charts = vec![pairs("sources-pairs", "Share of time, before and after", &shares, source)];
    charts.extend(forest_chart("sources-changes", "Change of it, B / A", named(&shares, source)));
    blocks.push(Block::Charts(charts));
    if shares.len() > DRAWN {
        blocks.push(Block::Note(format!(
            "Drawn are the first {DRAWN} of {} sources: those that are shown to have changed before the others.",
            grouped(shares.len() as u64)
        )));
    }
    blocks.push(Block::Table(table("Sources, of all time", "source", &shares, &source)));
    let rates = compare::sources(comparison, Metric::Rate);
    blocks.push(Block::Text("How often they came:".to_owned()));
    blocks.push(Block::Table(table("Sources, how often", "source", &rates, &source)));
    Some(Section {
        id: "sources",
        title: "Sources".to_owned(),
        short: "Sources",
        reading: "Who took the time before and after: on the left what each source took of all time, on the right by how many \
                  times that changed, with its 95 % interval; a source that only one of the runs has stands on the left only."
            .to_owned(),
        blocks,
    })
}

fn source(row: &ComparedFigure) -> String {
    row.source.as_ref().map_or_else(String::new, |(_, name)| name.clone())
}

/// What the rows of one family of places are called on the page.
struct Places {
    id: &'static str,
    /// The ids of its two charts.
    charts: [&'static str; 2],
    title: &'static str,
    /// Of one of them, in a column.
    one: &'static str,
    reading: &'static str,
}

fn nodes(report: &CompareReport<'_>) -> Option<Section> {
    let called = Places {
        id: "nodes",
        charts: ["nodes-pairs", "nodes-changes"],
        title: "Nodes",
        one: "node",
        reading: "What each node lost before and after on all of its CPUs, and by how many times that changed, with its 95 % interval: one node \
                  that changed alone has a cause of its own.",
    };
    places(called, compare::nodes(report.comparison), |row| compare::place_name(row, true))
}

fn cpus(report: &CompareReport<'_>) -> Option<Section> {
    let nodes = report.comparison.a.count_nodes() > 1;
    let called = Places {
        id: "cpus",
        charts: ["cpus-pairs", "cpus-changes"],
        title: "CPUs",
        one: "cpu",
        reading: "What each CPU lost before and after, and by how many times that changed, with its 95 % interval: one CPU that changed alone \
                  has a cause of its own.",
    };
    let name = move |row: &ComparedFigure| compare::place_name(row, nodes);
    places(called, compare::cpus(report.comparison), name)
}

fn places(
    called: Places,
    mut rows: Vec<&ComparedFigure>,
    name: impl Fn(&ComparedFigure) -> String + Copy,
) -> Option<Section> {
    if rows.is_empty() {
        return None;
    }
    let all = table(&format!("{}, noise", called.title), called.one, &rows, &name);
    let count = rows.len();
    if count > DRAWN {
        compare::most_changed_first(&mut rows);
        rows.truncate(DRAWN);
    }
    // A number alone says nothing beside a bar.
    let label = move |row: &ComparedFigure| match name(row) {
        number if number.bytes().all(|byte| byte.is_ascii_digit()) && called.one == "cpu" => format!("CPU {number}"),
        name => name,
    };
    let [id_pairs, id_changes] = called.charts;
    let mut charts = vec![pairs(id_pairs, "Noise, before and after", &rows, label)];
    charts.extend(forest_chart(id_changes, "Change of it, B / A", named(&rows, label)));
    let mut blocks = vec![Block::Charts(charts)];
    if count > DRAWN {
        blocks.push(Block::Note(format!(
            "The {DRAWN} of {} {} that changed most.",
            grouped(count as u64),
            called.title
        )));
    }
    blocks.push(Block::Table(all));
    Some(Section {
        id: called.id,
        title: called.title.to_owned(),
        short: called.title,
        reading: called.reading.to_owned(),
        blocks,
    })
}

fn basis(report: &CompareReport<'_>) -> Section {
    let comparison = report.comparison;
    let mut blocks: Vec<Block> = Vec::new();
    let warning =
        |note: &becalm_model::node::Warning| Block::Warning { text: note.message.clone(), advice: note.advice.clone() };
    blocks.extend(comparison.notes.iter().map(warning));
    blocks.push(Block::Facts(compare::runs(comparison)));
    blocks.push(Block::Note(format!("{}.", compare::legend(comparison))));
    Section {
        id: "basis",
        title: "What was compared, and how".to_owned(),
        short: "Basis",
        reading:
            "Read this before believing the differences: what the runs are, what was done to bring them to a common \
                  ground, and what the intervals and verdicts say."
                .to_owned(),
        blocks,
    }
}

fn table(caption: &str, first: &str, rows: &[&ComparedFigure], name: &dyn Fn(&ComparedFigure) -> String) -> HtmlTable {
    let mut table = HtmlTable::named(caption, first, &COLUMNS);
    rows.iter().take(ROWS).for_each(|row| table.named_row(name(row), &COLUMNS, *row));
    if rows.len() > ROWS {
        table.note = format!("The first {ROWS} of {}.", grouped(rows.len() as u64));
    }
    table
}

fn pairs(id: &'static str, title: &str, rows: &[&ComparedFigure], name: impl Fn(&ComparedFigure) -> String) -> Chart {
    let pair = |row: &&ComparedFigure| BarPair {
        name: name(row),
        values: [row.a.unwrap_or(0.0), row.b.unwrap_or(0.0)],
        texts: [row.a, row.b].map(|number| compare::figure(row, number).value().cell()),
    };
    let pairs: Vec<BarPair> = rows.iter().take(DRAWN).map(pair).collect();
    let texts: Vec<String> =
        pairs.iter().map(|pair| format!("{} {} to {}", pair.name, pair.texts[0], pair.texts[1])).collect();
    Chart {
        id,
        title: title.to_owned(),
        label: format!("{title}: {}.", texts.join("; ")),
        height: 74 + 34 * pairs.len() as u32,
        spec: Spec::Pairs(PairedBars {
            x: Axis::new("", AxisScale::Linear, AxisUnit::Ratio).between(Some(0.0), None),
            names: ["A, before", "B, after"].map(str::to_owned),
            pairs,
        }),
        figures: None,
    }
}

fn forest(
    id: &'static str,
    title: &str,
    rows: &[&ComparedFigure],
    name: impl Fn(&ComparedFigure) -> String,
) -> Option<Block> {
    forest_chart(id, title, named(rows, name)).map(|chart| Block::Charts(vec![chart]))
}

fn named<'a>(
    rows: &[&'a ComparedFigure],
    name: impl Fn(&ComparedFigure) -> String,
) -> impl Iterator<Item = (String, &'a ComparedFigure)> {
    rows.iter().map(move |row| (name(row), *row))
}

/// The changes that have a ratio, with the names of the rows; none, if there are none.
pub fn forest_chart<'a>(
    id: &'static str,
    title: &str,
    rows: impl Iterator<Item = (String, &'a ComparedFigure)>,
) -> Option<Chart> {
    let row = |(name, row): (String, &ComparedFigure)| {
        let effect = row.effect?;
        // What is gone has no place on a logarithmic axis.
        let ratio = effect.ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0)?;
        let change = compare::change(Some(ratio)).value().cell();
        let text = interval(row).map_or_else(|| change.clone(), |interval| format!("{change} ({interval})"));
        Some(ForestRow {
            name,
            ratio,
            low: effect.ratio_low.filter(|low| low.is_finite()),
            high: effect.ratio_high.filter(|high| high.is_finite()),
            text,
            verdict: said(row.verdict),
            tone: tone(row.verdict).class(),
        })
    };
    let rows: Vec<ForestRow> = rows.take(DRAWN).filter_map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let texts: Vec<String> = rows.iter().map(|row| format!("{} {}, {}", row.name, row.text, row.verdict)).collect();
    Some(Chart {
        id,
        title: title.to_owned(),
        label: format!("By how much the figures changed: {}.", texts.join("; ")),
        height: 74 + 34 * rows.len() as u32,
        spec: Spec::Forest(Forest { title: "B / A".to_owned(), rows }),
        figures: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_by_its_folder() {
        assert_eq!(name(Path::new("/data/before.becalm")), "before");
        assert_eq!(name(Path::new("..")), "..");
    }

    #[test]
    fn verdicts_have_the_tone_of_what_they_say() {
        assert_eq!([Verdict::Worse, Verdict::Better].map(tone), [Grade::Bad, Grade::Good]);
        assert_eq!([Verdict::NoDifferenceShown, Verdict::NotEnoughData].map(tone), [Grade::Plain, Grade::Fair]);
    }
}
