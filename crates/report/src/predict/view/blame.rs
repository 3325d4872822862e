//! The causes of a job's slowdown, on a page.

use becalm_scale::blame::{Blame, Removal};
use becalm_scale::closed::ClosedBooks;
use becalm_units::Count;

use crate::PredictReport;
use crate::catalogue;
use crate::form::field::fields;
use crate::form::figure::{Factor, Figure, Time};
use crate::form::table::Table;
use crate::html::{Axis, AxisScale, AxisUnit, Bar, Bars, Block, Chart, Spec};
use crate::predict::books::{added_rows, added_table, dear, dear_rows, sentence};
use crate::predict::rounded::{digits, round, times};
use crate::predict::{self, quiet_phase_ns};

/// The most sources in the blame table.
const ROWS: usize = 100;

/// The time added by each source, the costliest detours, and the slowdown without each source.
pub(crate) fn tables(report: &PredictReport<'_>, blame: &Blame) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(books) = &blame.books {
        let ranks = Count::new(books.ranks);
        let added = format!("Time added per phase at {ranks} ranks");
        blocks.push(Block::Text(format!("At {ranks} ranks {}.", sentence(report, blame, books))));
        let rows = added_rows(report, books, quiet_phase_ns(report, blame));
        let mut table = added_table(&rows[..rows.len().min(ROWS)]).captioned(&added);
        table.note = "The time is charged to the sources that delayed the latest rank of each phase or, with messages, the work on \
                      the critical path. The parts add up to all added time."
            .to_owned();
        blocks.push(Block::Table(table));
        blocks.push(Block::Table(dear_table(report, books)));
    }
    blocks.push(Block::Text(text(report, blame)));
    let alone = alone(report, blame, ROWS);
    if !alone.is_empty() {
        blocks.push(Block::Table(alone));
    }
    blocks
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
    let mut table = Table::new(&fields)
        .captioned(&format!("The interruptions that cost most at {} ranks", Count::new(books.ranks)));
    dear_rows(report, books).iter().for_each(|line| {
        table.row(&fields, line);
    });
    table
}

/// The slowdown without the source of the largest gain, without it and the next, and so on.
pub(crate) fn chart(report: &PredictReport<'_>, blame: &Blame, id: &'static str) -> Option<Chart> {
    let mut bars = vec![bar("all noise".to_owned(), blame.all.slowdown)];
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
        title: format!("Slowdown at {} ranks without one source after another", Count::new(blame.all.ranks)),
        label: format!("Slowdown without sources, one after another. {}", text(report, blame)),
        height: 44 + 34 * bars.len() as u32,
        spec: Spec::Bars(Bars { x: Axis::new("", AxisScale::Linear, AxisUnit::Factor).between(Some(1.0), None), bars }),
        figures: None,
    })
}

/// A source, and the slowdown without it.
struct WithoutSource {
    source: String,
    slowdown: f64,
    /// The time that it gains per phase, with half of its interval, in nanoseconds.
    gain_ns: Option<[f64; 2]>,
}

impl WithoutSource {
    fn gain(&self) -> Option<String> {
        let [gain, half] = self.gain_ns?.map(|ns| Time::rounded(ns).value().cell());
        Some(format!("{gain} \u{b1} {half}"))
    }
}

fields! {
    alone: WithoutSource {
        SOURCE = "source", "without", |row| row.source.clone();
        SLOWDOWN_RATIO = catalogue::SLOWDOWN_RATIO, |row| Factor(row.slowdown);
        GAIN = "gain", "less per phase", WithoutSource::gain;
    }
}

/// The slowdown without each source alone, at most `most` of them; largest gain first.
pub(crate) fn alone(report: &PredictReport<'_>, blame: &Blame, most: usize) -> Table {
    let quiet_ns = quiet_phase_ns(report, blame);
    let all = &blame.all;
    // Omits gains too small to show in the figures.
    let gains =
        |without: &&Removal| without.slowdown < all.slowdown && digits(without.slowdown) != digits(all.slowdown);
    let row = |without: &Removal| WithoutSource {
        source: predict::names(report, without).last().unwrap_or_default().to_owned(),
        slowdown: without.slowdown,
        gain_ns: without
            .gain
            .filter(|_| report.question.replicas > 1)
            .map(|gain| [gain.mean, (gain.high - gain.low) / 2.0].map(|ratio| ratio * quiet_ns)),
    };
    let rows: Vec<WithoutSource> = blame.each.iter().filter(gains).take(most).map(row).collect();
    let mut fields = vec![&alone::SOURCE, &alone::SLOWDOWN_RATIO];
    if rows.iter().any(|row| row.gain_ns.is_some()) {
        fields.push(&alone::GAIN);
    }
    let mut table =
        Table::filled(&fields, &rows).captioned(&format!("Without one source, at {} ranks", Count::new(all.ranks)));
    round(&mut table, 1);
    let others = blame.each.len() - rows.len();
    if others > 0 && blame.books.is_none() {
        table.note = format!("The other {others} sources gain little or nothing when they are removed alone.");
    }
    table
}

fn bar(name: String, slowdown: f64) -> Bar {
    Bar { name, value: slowdown, text: digits(slowdown), kind: None }
}

fn text(report: &PredictReport<'_>, blame: &Blame) -> String {
    let ranks = Count::new(blame.all.ranks);
    let steps: Vec<String> = blame
        .next
        .iter()
        .map(|without| {
            let names: Vec<&str> = predict::names(report, without).collect();
            format!("without {} {}", names.join(" and "), times(without.slowdown))
        })
        .collect();
    match steps.as_slice() {
        [] => format!("Slowdown at {ranks} ranks: no source gains anything when it is removed alone."),
        steps => {
            format!("Slowdown at {ranks} ranks: {} with all noise, {}.", times(blame.all.slowdown), steps.join(", "))
        }
    }
}
