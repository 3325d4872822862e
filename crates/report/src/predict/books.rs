//! The exact accounting of a job: the time added by each source, and the costliest detours.

use becalm_scale::blame::Blame;
use becalm_scale::closed::{ClosedBooks, DearDetour, SourceShare};
use becalm_units::printable;
use serde::Serialize;

use crate::Value;
use crate::catalogue;
use crate::form::field::{Object, fields};
use crate::form::figure::{Figure, Fine, Number, Ratio, Share, Time};
use crate::form::section::Block;
use crate::form::table::Table;
use crate::predict::{PredictReport, quiet_phase_ns};

/// The number of sources with a row in the text.
const SHOWN: usize = 8;

/// The number of sources in the sentence.
const NAMED: usize = 4;

/// The name for time charged to no source.
const UNATTRIBUTED: &str = "not booked";

/// The time that one source adds to a job.
pub(crate) struct AddedRow {
    source: String,
    share: SourceShare,
    /// Whether there is an interval; one replica has none.
    interval: bool,
    /// The duration of a phase without noise, in nanoseconds.
    quiet_ns: f64,
}

impl AddedRow {
    /// A part of a phase without noise, as time.
    fn per_phase(&self, ratio: f64) -> Option<Time> {
        Time::rounded(ratio * self.quiet_ns)
    }

    fn per_phase_interval(&self) -> Option<String> {
        let [low, high] = [self.share.added.low, self.share.added.high].map(|end| self.per_phase(end).value().cell());
        self.interval.then(|| format!("{low} to {high}"))
    }
}

/// One of the costliest detours for the job.
pub(crate) struct DearRow {
    detour: DearDetour,
    place: Option<(String, i32)>,
    /// Its share of all added time.
    share: f64,
    sources: String,
}

fields! {
    pub(crate) ADDED, added: AddedRow {
        SOURCE = catalogue::SOURCE, |row| row.source.clone();
        ADDED_RATIO = "added_ratio", "adds", |row| Ratio(row.share.added.mean);
        ADDED_LOW = "added_low", "low",
            |row| (row.interval).then_some(Ratio(row.share.added.low));
        ADDED_HIGH = "added_high", "high",
            |row| (row.interval).then_some(Ratio(row.share.added.high));
        ADDED_NS = "added_ns", "time", |row| row.share.cost;
        SHARE_RATIO = "share_ratio", "share", |row| Share(row.share.share);
    }
}

fields! {
    /// Fields only of tables.
    columns: AddedRow {
        PER_PHASE = "per_phase_ns", "adds per phase", |row| row.per_phase(row.share.added.mean);
        INTERVAL = "interval", "95 % CI", AddedRow::per_phase_interval;
    }
}

fields! {
    pub(crate) DEAR, dear: DearRow {
        NODE = catalogue::NODE,
            |row| row.place.as_ref().map(|(node, _)| node.clone());
        CPU = catalogue::CPU,
            |row| row.place.as_ref().map(|(_, cpu)| Number(*cpu as u64));
        START_NS = catalogue::START_NS, |row| Fine(row.detour.start.get());
        DURATION_NS = catalogue::DURATION_NS, |row| row.detour.duration;
        COST_NS = "cost_ns", "cost", |row| row.detour.cost;
        SHARE_RATIO = "share_ratio", "share", |row| Share(row.share);
        SOURCES = "sources", "sources", |row| row.sources.clone();
    }
}

/// The books of one number of ranks in JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(super) struct BooksDoc {
    ranks: u64,
    grain_ns: i64,
    /// The time that noise added, over the useful work.
    added_ratio: f64,
    /// The added time of all replicas together: exactly the sum over the sources.
    added_ns: i64,
    /// The part of it that the job would have waited without noise too; only with messages.
    hidden_ns: i64,
    hidden_ratio: f64,
    sources: Vec<Object<AddedRow>>,
    detours: Vec<Object<DearRow>>,
}

pub(super) fn docs(report: &PredictReport<'_>) -> Vec<BooksDoc> {
    let mut docs = Vec::new();
    for (grain, blames) in report.blame {
        docs.extend(blames.iter().filter_map(|blame| {
            let books = blame.books.as_ref()?;
            Some(BooksDoc {
                ranks: books.ranks,
                grain_ns: grain.get(),
                added_ratio: blame.all.slowdown - 1.0,
                added_ns: books.added().get(),
                hidden_ns: books.hidden().get(),
                hidden_ratio: books.hidden_ratio(),
                sources: added_rows(report, books, quiet_phase_ns(report, blame)).iter().map(Object::new).collect(),
                detours: dear_rows(report, books).iter().map(Object::new).collect(),
            })
        }));
    }
    docs
}

/// The time added by each source, largest first.
pub(crate) fn added_rows(report: &PredictReport<'_>, books: &ClosedBooks, quiet_ns: f64) -> Vec<AddedRow> {
    let interval = books.replicas.len() > 1;
    let row = |share: SourceShare| AddedRow { source: name(report, share.source), share, interval, quiet_ns };
    books.sources().into_iter().map(row).collect()
}

/// The costliest detours, the most expensive first.
pub(crate) fn dear_rows(report: &PredictReport<'_>, books: &ClosedBooks) -> Vec<DearRow> {
    let all = books.added().get() as f64;
    let row = |detour: &DearDetour| {
        let names: Vec<String> = detour.sources.iter().take(2).map(|part| name(report, part.source)).collect();
        DearRow {
            place: report.places.get(detour.cpu).cloned(),
            share: detour.cost.get() as f64 / all,
            sources: names.join(", "),
            detour: detour.clone(),
        }
    };
    books.dearest.iter().map(row).collect()
}

fn name(report: &PredictReport<'_>, source: Option<usize>) -> String {
    source.map_or_else(|| UNATTRIBUTED.to_owned(), |source| report.sources[source].clone())
}

/// The accounting in a sentence: `A phase takes 4.20ms; noise adds 3.20ms of that: timer 2.80ms, kworker 310us, 12 others 90.0us`.
pub(crate) fn sentence(report: &PredictReport<'_>, blame: &Blame, books: &ClosedBooks) -> String {
    let quiet_ns = quiet_phase_ns(report, blame);
    let rows = added_rows(report, books, quiet_ns);
    if rows.is_empty() {
        return "noise adds no time".to_owned();
    }
    let per_phase = |ratio: f64| Value::time(ratio * quiet_ns).cell();
    let part = |row: &AddedRow| format!("{} {}", printable(&row.source), per_phase(row.share.added.mean));
    let mut parts: Vec<String> = rows.iter().take(NAMED).map(part).collect();
    match rows.get(NAMED..).unwrap_or(&[]) {
        [] => {}
        [one] => parts.push(part(one)),
        others => {
            let sum: f64 = others.iter().map(|row| row.share.added.mean).sum();
            parts.push(format!("{} others {}", others.len(), per_phase(sum)));
        }
    }
    let hidden = books.hidden_ratio();
    let correction = match books.hidden().get() {
        0 => String::new(),
        1.. => format!("; minus {} of waiting that occurs without noise, too", per_phase(hidden)),
        _ => format!("; plus {} because noise reorders messages", per_phase(-hidden)),
    };
    let added = rows.iter().map(|row| row.share.added.mean).sum::<f64>() - hidden;
    format!(
        "a phase takes {}; noise adds {} of that: {}{correction}",
        per_phase(1.0 + added),
        per_phase(added),
        parts.join(", ")
    )
}

/// The accounting on a terminal.
pub(super) fn blocks(report: &PredictReport<'_>, blame: &Blame, books: &ClosedBooks) -> Vec<Block> {
    let mut blocks = vec![Block::Text(sentence(report, blame, books))];
    let rows = added_rows(report, books, quiet_phase_ns(report, blame));
    let (shown, more) = rows.split_at(rows.len().min(SHOWN));
    if !shown.is_empty() {
        blocks.push(Block::Table(added_table(shown)));
    }
    if !more.is_empty() {
        blocks.push(Block::Text(format!("and {} more that add less; --json has them all", more.len())));
    }
    let dear = dear_rows(report, books);
    if !dear.is_empty() {
        blocks.push(Block::Text("the interruptions that cost most:".to_owned()));
        blocks.push(Block::Table(dear_table(&dear)));
    }
    blocks
}

/// The time that each of these sources adds to a phase.
pub(crate) fn added_table(rows: &[AddedRow]) -> Table {
    let mut fields = vec![&added::SOURCE, &columns::PER_PHASE];
    if rows.iter().any(|row| row.interval) {
        fields.push(&columns::INTERVAL);
    }
    fields.push(&added::SHARE_RATIO);
    Table::filled(&fields, rows)
}

fn dear_table(dear: &[DearRow]) -> Table {
    let node = |row: &DearRow| row.place.as_ref().map(|(node, _)| node.clone());
    let several = dear.iter().any(|row| node(row) != node(&dear[0]));
    let fields = [&dear::CPU, &dear::START_NS, &dear::DURATION_NS, &dear::SHARE_RATIO, &dear::SOURCES];
    let fields: Vec<_> = several.then_some(&dear::NODE).into_iter().chain(fields).collect();
    Table::filled(&fields, dear)
}
