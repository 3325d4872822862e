//! What the noise costs a job of many ranks, and whose fault that is.

use becalm_scale::blame::Blame;
use becalm_scale::closed::ClosedBooks;
use becalm_units::Count;

use crate::PredictReport;
use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, fields};
use crate::form::value::factor;
use crate::html::HtmlTable;
use crate::html::{Axis, AxisScale, AxisUnit, Bar, Bars, Chart, ChartSeries, Lines, Spec};
use crate::html::{Block, Section};
use crate::predict::books::{added, added_rows, dear, dear_rows, sentence};
use crate::predict::{self, row};

/// How many sources the table of blame has at most.
const ROWS: usize = 100;

/// The axis of slowdowns ends no lower.
const SMALLEST: f64 = 1.01;

/// A prediction, or what there is instead.
pub enum Scaling<'a> {
    /// The prediction; of one grain.
    Predicted(Box<PredictReport<'a>>),
    /// Why there is none.
    Unknown(String),
}

pub(super) fn section(scaling: &Scaling<'_>) -> Section {
    let (reading, blocks) = match scaling {
        Scaling::Predicted(report) => (reading(report), predicted(report)),
        Scaling::Unknown(why) => (String::new(), vec![Block::Text(format!("There is no prediction: {why}."))]),
    };
    Section { id: "scale", title: "What it costs at scale".to_owned(), short: "At scale", reading, blocks }
}

fn reading(report: &PredictReport<'_>) -> String {
    format!(
        "How many times as long a job takes whose ranks all wait for each other after every {} of work, each rank with the \
         noise of one of these CPUs{}.",
        report.question.grain,
        match report.blame.is_empty() {
            true => "",
            false => "; beside it, what is left without the source that costs most, then also without the next",
        }
    )
}

fn predicted(report: &PredictReport<'_>) -> Vec<Block> {
    let text = most_ranks(report);
    let mut charts = vec![slowdown_chart(report, &text)];
    let blame = report.blame.first().and_then(|(_, blames)| blames.last());
    charts.extend(blame.and_then(|blame| blame_chart(report, blame)));
    let mut blocks = vec![Block::Text(text), Block::Charts(charts), Block::Table(slowdown_table(report))];
    if let Some(blame) = blame {
        if let Some(books) = &blame.books {
            let ranks = Count::new(books.ranks);
            blocks.push(Block::Text(format!("Of the added time at {ranks} ranks: {}.", sentence(report, books))));
            blocks.push(Block::Table(added_table(report, books)));
            blocks.push(Block::Table(dear_table(report, books)));
        }
        blocks.push(Block::Text(blame_text(report, blame)));
        blocks.push(Block::Table(alone(report, blame)));
    }
    blocks.push(Block::Note(format!(
        "{}. Seed and settings are those of becalm predict, which answers for other grains, collectives and networks.",
        predict::job(&report.question)
    )));
    let warning = |warning: &becalm_model::node::Warning| Block::Warning {
        text: warning.message.clone(),
        advice: warning.advice.clone(),
    };
    blocks.extend(report.warnings.iter().map(warning));
    blocks
}

/// The figures of each number of ranks.
fn slowdown_table(report: &PredictReport<'_>) -> HtmlTable {
    let fields: &[&Field<predict::PredictedRow>] = &[
        &row::RANKS,
        &row::SLOWDOWN_RATIO,
        &row::SLOWDOWN_LOW,
        &row::SLOWDOWN_HIGH,
        &row::EXPECTED_RATIO,
        &row::MEAN_PHASE_NS,
        &row::WORST_PHASE_NS,
    ];
    let mut table = HtmlTable::new("Predicted slowdown", fields);
    predict::lines(report).iter().for_each(|line| {
        table.row(fields, line);
    });
    let mut sentences = predict::intervals::sentences(report.rows, report.question.replicas);
    sentences.push("expected: by order statistics, where phases may be taken to start at random times".to_owned());
    table.note = sentences.join(". ") + ".";
    table
}

/// What the prediction says of the largest number of ranks, in a sentence.
fn most_ranks(report: &PredictReport<'_>) -> String {
    let largest = report.rows.iter().filter_map(|row| Some((row, row.slowdown?.mean))).next_back();
    largest.map_or_else(String::new, |(row, slowdown)| {
        let so_far = format!("At {} ranks such a job takes {} times as long", Count::new(row.ranks), factor(slowdown));
        match row.recording.map(|bounds| (factor(bounds.low), bounds.high.map(factor))) {
            Some((low, Some(high))) => format!("{so_far}; what the machine costs lies between {low} and {high}."),
            Some((low, None)) => format!("{so_far}; what the machine costs is at least {low}."),
            None => so_far + ".",
        }
    })
}

fn slowdown_chart(report: &PredictReport<'_>, text: &str) -> Chart {
    let mut points = Vec::new();
    let mut band = Vec::new();
    let mut expected = Vec::new();
    for row in report.rows {
        if let Some(slowdown) = row.slowdown {
            points.push([row.ranks as f64, slowdown.mean]);
            band.push(match row.recording {
                // What is not bounded is drawn up to what the recording itself gives.
                Some(bounds) => [bounds.low.max(1.0), bounds.high.unwrap_or(slowdown.mean)],
                None => [slowdown.low.max(1.0), slowdown.high],
            });
        }
        expected.extend(row.expected_ratio.map(|ratio| [row.ranks as f64, ratio]));
    }
    // An axis cannot end where it begins.
    let flat = !band.iter().chain(&expected).any(|[_, highest]| *highest > SMALLEST);
    let series = [
        ChartSeries { name: "replayed".to_owned(), points, band, dots: true, ..ChartSeries::default() },
        ChartSeries { name: "expected".to_owned(), points: expected, dashed: true, ..ChartSeries::default() },
    ];
    Chart {
        id: "slowdown",
        title: "Slowdown against ranks".to_owned(),
        label: format!("Predicted slowdown against the number of ranks. {text}"),
        height: 320,
        spec: Spec::Lines(Lines {
            x: Axis::new("ranks", AxisScale::Log, AxisUnit::Ranks),
            y: Axis::new("slowdown", AxisScale::Linear, AxisUnit::Factor).between(Some(1.0), flat.then_some(SMALLEST)),
            series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
            marks: Vec::new(),
        }),
        figures: None,
    }
}

/// What each source adds at the largest number of ranks.
fn added_table(report: &PredictReport<'_>, books: &ClosedBooks) -> HtmlTable {
    let fields = [
        &added::SOURCE,
        &added::ADDED_RATIO,
        &added::ADDED_LOW,
        &added::ADDED_HIGH,
        &added::ADDED_NS,
        &added::SHARE_RATIO,
    ];
    let mut table = HtmlTable::new(&format!("What each source adds at {} ranks", Count::new(books.ranks)), &fields);
    added_rows(report, books).iter().take(ROWS).for_each(|line| {
        table.row(&fields, line);
    });
    table.note =
        "What the latest rank of each phase met, or with messages the work on the critical path, is booked on the sources. The \
         parts add up to all booked time."
            .to_owned();
    table
}

/// The detours that cost most at the largest number of ranks.
fn dear_table(report: &PredictReport<'_>, books: &ClosedBooks) -> HtmlTable {
    let fields = [
        &dear::NODE,
        &dear::CPU,
        &dear::START_NS,
        &dear::DURATION_NS,
        &dear::COST_NS,
        &dear::SHARE_RATIO,
        &dear::SOURCES,
    ];
    let mut table =
        HtmlTable::new(&format!("The detours that cost most at {} ranks", Count::new(books.ranks)), &fields);
    dear_rows(report, books).iter().for_each(|line| {
        table.row(&fields, line);
    });
    table
}

/// What is left without the most rewarding source, without it and the next, and so on.
fn blame_chart(report: &PredictReport<'_>, blame: &Blame) -> Option<Chart> {
    let mut bars = vec![bar("as it is".to_owned(), blame.all.slowdown)];
    for without in &blame.next {
        // Each step takes out one more than the last.
        let name = predict::names(report, without).last().unwrap_or_default();
        bars.push(bar(format!("\u{2212} {name}"), without.slowdown));
    }
    if bars.len() == 1 {
        return None;
    }
    Some(Chart {
        id: "blame",
        title: format!("What is left at {} ranks without one source after another", Count::new(blame.all.ranks)),
        label: format!("Slowdown without sources, one after another. {}", blame_text(report, blame)),
        height: 44 + 34 * bars.len() as u32,
        spec: Spec::Bars(Bars { x: Axis::new("", AxisScale::Linear, AxisUnit::Factor).between(Some(1.0), None), bars }),
        figures: None,
    })
}

/// A source, and what is left without it alone.
struct WithoutSource {
    source: String,
    all: f64,
    slowdown: f64,
}

fields! {
    alone: WithoutSource {
        SOURCE = "source", "without", |row| Value::Text(row.source.clone());
        ALL_RATIO = "all_ratio", "as it is", |row| Value::Factor(row.all);
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |row| Value::Factor(row.slowdown);
    }
}

/// What is left without each source alone, at the largest number of ranks; the most rewarding first.
fn alone(report: &PredictReport<'_>, blame: &Blame) -> HtmlTable {
    let fields = [&alone::SOURCE, &alone::ALL_RATIO, &alone::SLOWDOWN_RATIO];
    let mut table = HtmlTable::new(&format!("Without one source, at {} ranks", Count::new(blame.all.ranks)), &fields);
    // A gain that the figures do not show is none to act on.
    let all = factor(blame.all.slowdown);
    let gains =
        blame.each.iter().filter(|without| without.slowdown < blame.all.slowdown && factor(without.slowdown) != all);
    for without in gains.take(ROWS) {
        let source = predict::names(report, without).last().unwrap_or_default().to_owned();
        table.row(&fields, &WithoutSource { source, all: blame.all.slowdown, slowdown: without.slowdown });
    }
    let others = blame.each.len() - table.len();
    if others > 0 && blame.books.is_none() {
        table.note = format!("The other {others} sources gain nothing, or less, when they are taken out alone.");
    }
    table
}

fn bar(name: String, slowdown: f64) -> Bar {
    Bar { name, value: slowdown, text: factor(slowdown), kind: None }
}

fn blame_text(report: &PredictReport<'_>, blame: &Blame) -> String {
    let ranks = Count::new(blame.all.ranks);
    let steps: Vec<String> = blame
        .next
        .iter()
        .map(|without| {
            let names: Vec<&str> = predict::names(report, without).collect();
            format!("without {} {}", names.join(" and "), factor(without.slowdown))
        })
        .collect();
    match steps.as_slice() {
        [] => format!("Blame at {ranks} ranks: no source gains anything when it is taken out alone."),
        steps => format!("Blame at {ranks} ranks: {} as it is; {}.", factor(blame.all.slowdown), steps.join("; ")),
    }
}
