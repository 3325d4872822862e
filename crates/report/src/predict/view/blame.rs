//! The causes of a job's slowdown, on a page.

use becalm_scale::blame::Blame;
use becalm_scale::closed::ClosedBooks;
use becalm_units::Count;

use crate::PredictReport;
use crate::catalogue;
use crate::form::field::fields;
use crate::form::figure::Factor;
use crate::form::table::Table;
use crate::form::value::factor;
use crate::html::{Axis, AxisScale, AxisUnit, Bar, Bars, Block, Chart, Spec};
use crate::predict;
use crate::predict::books::{added, added_rows, dear, dear_rows, sentence};

/// The most sources in the blame table.
const ROWS: usize = 100;

/// The time added by each source, the costliest detours, and the slowdown without each source.
pub(crate) fn tables(report: &PredictReport<'_>, blame: &Blame) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(books) = &blame.books {
        let ranks = Count::new(books.ranks);
        blocks.push(Block::Text(format!("Of the added time at {ranks} ranks: {}.", sentence(report, books))));
        blocks.push(Block::Table(added_table(report, books)));
        blocks.push(Block::Table(dear_table(report, books)));
    }
    blocks.push(Block::Text(text(report, blame)));
    blocks.push(Block::Table(alone(report, blame)));
    blocks
}

/// The time added by each source at one number of ranks.
fn added_table(report: &PredictReport<'_>, books: &ClosedBooks) -> Table {
    let fields = [
        &added::SOURCE,
        &added::ADDED_RATIO,
        &added::ADDED_LOW,
        &added::ADDED_HIGH,
        &added::ADDED_NS,
        &added::SHARE_RATIO,
    ];
    let mut table =
        Table::new(&fields).captioned(&format!("What each source adds at {} ranks", Count::new(books.ranks)));
    added_rows(report, books).iter().take(ROWS).for_each(|line| {
        table.row(&fields, line);
    });
    table.note =
        "What the latest rank of each phase met, or with messages the work on the critical path, is booked on the sources. The \
         parts add up to all booked time."
            .to_owned();
    table
}

/// The costliest detours at one number of ranks.
fn dear_table(report: &PredictReport<'_>, books: &ClosedBooks) -> Table {
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
        Table::new(&fields).captioned(&format!("The detours that cost most at {} ranks", Count::new(books.ranks)));
    dear_rows(report, books).iter().for_each(|line| {
        table.row(&fields, line);
    });
    table
}

/// The slowdown without the source of the largest gain, without it and the next, and so on.
pub(crate) fn chart(report: &PredictReport<'_>, blame: &Blame, id: &'static str) -> Option<Chart> {
    let mut bars = vec![bar("as it is".to_owned(), blame.all.slowdown)];
    for without in &blame.next {
        // Each step removes one more source.
        let name = predict::names(report, without).last().unwrap_or_default();
        bars.push(bar(format!("\u{2212} {name}"), without.slowdown));
    }
    if bars.len() == 1 {
        return None;
    }
    Some(Chart {
        id,
        title: format!("What is left at {} ranks without one source after another", Count::new(blame.all.ranks)),
        label: format!("Slowdown without sources, one after another. {}", text(report, blame)),
        height: 44 + 34 * bars.len() as u32,
        spec: Spec::Bars(Bars { x: Axis::new("", AxisScale::Linear, AxisUnit::Factor).between(Some(1.0), None), bars }),
        figures: None,
    })
}

/// A source, and the slowdown without it.
struct WithoutSource {
    source: String,
    all: f64,
    slowdown: f64,
}

fields! {
    alone: WithoutSource {
        SOURCE = "source", "without", |row| row.source.clone();
        ALL_RATIO = "all_ratio", "as it is", |row| Factor(row.all);
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |row| Factor(row.slowdown);
    }
}

/// The slowdown without each source alone, at the largest number of ranks; largest gain first.
fn alone(report: &PredictReport<'_>, blame: &Blame) -> Table {
    let fields = [&alone::SOURCE, &alone::ALL_RATIO, &alone::SLOWDOWN_RATIO];
    let mut table =
        Table::new(&fields).captioned(&format!("Without one source, at {} ranks", Count::new(blame.all.ranks)));
    // Omits gains too small to show in the figures.
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

fn text(report: &PredictReport<'_>, blame: &Blame) -> String {
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
