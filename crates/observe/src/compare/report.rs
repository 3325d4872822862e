//! The report of a comparison.

use becalm_analyze::compare::{Basis, ComparedFigure, Limit, Verdict};
use becalm_model::observed::Owner;
use becalm_report::compare::{NAMED, SHARE_COLUMNS, reason, significant, tone};
use becalm_report::form::field::fields;
use becalm_report::form::figure::Ratio;
use becalm_report::form::section::{Block, Opening, Page, Section};
use becalm_report::form::table::Table;
use becalm_report::form::value::Value;
use becalm_report::{Form, Report};
use becalm_units::{counted, printable};
use serde::Serialize;

use super::document::{SCHEMA, document};
use super::series::TakerKey;
use super::sides::{Compared, ReadRun};
use crate::report::program;
use crate::totals::{is_sibling, ratio};
use crate::words;

/// The rows of a table in the default report.
const ROWS: usize = 12;
/// A difference of less than this share of the lives is not told of.
const LEAST: f64 = 0.01;

/// A comparison and its limit.
#[derive(Debug)]
pub struct CompareObservedReport<'a> {
    /// The comparison.
    pub compared: &'a Compared,
    /// The limit, if one was given.
    pub limited: Option<&'a LimitedLoss>,
}

/// A limit on the time lost to others.
#[derive(Clone, PartialEq, Debug)]
pub struct LimitedLoss {
    /// By how much it may grow, relative to A.
    pub share: f64,
    /// Whether it did.
    pub outcome: Limit,
    /// The result in a sentence.
    pub text: String,
}

impl LimitedLoss {
    /// Whether the limit was exceeded.
    pub fn is_exceeded(&self) -> bool {
        self.outcome == Limit::Exceeded
    }
}

/// The share of a part in the threads' time.
struct PartRow {
    name: &'static str,
    shares: [f64; 2],
}

fields! {
    part_row: PartRow {
        NAME = "part", "", |row| row.name;
        A = "a", "A", |row| Ratio(row.shares[0]);
        B = "b", "B", |row| Ratio(row.shares[1]);
        DIFFERENCE = "difference", "B - A", |row| Ratio(row.shares[1] - row.shares[0]);
    }
}

fn percent(share: f64) -> String {
    Value::Ratio(share).cell()
}

fn both(shares: [f64; 2]) -> String {
    format!("from {} to {}", percent(shares[0]), percent(shares[1]))
}

/// The answer: whether others took more or less of the program's time, and because of whom.
pub(super) fn headline(compared: &Compared) -> String {
    let row = &compared.lives.total;
    let totals = [0, 1].map(|side| compared.sides.totals(side, None));
    let subject = compared.sides.runs[0].first().map_or_else(String::new, |run| program(&run.doc, &totals[0]));
    let [a, b] = shares(row);
    let verdict = match (row.verdict, row.doubt) {
        (Verdict::Better | Verdict::Lower, _) => format!("better{}", cause(compared)),
        (Verdict::Worse | Verdict::Higher, _) => format!("worse{}", cause(compared)),
        (Verdict::NoDifferenceShown, _) => format!("no significant change{}", changed(compared)),
        (Verdict::NotEnoughData, Some(doubt)) if are_traced(compared) => {
            format!("not enough data for a verdict, because {}", reason(doubt))
        }
        (Verdict::NotEnoughData, _) => "not enough data for a verdict".to_owned(),
    };
    let own = totals.each_ref().map(|totals| ratio(totals.siblings, totals.wall));
    let own = if (own[1] - own[0]).abs() < LEAST {
        String::new()
    } else {
        format!("; waits of its threads for each other's CPU: {}", both(own))
    };
    format!("others took {} of {subject}'s time in A and {} in B: {verdict}{own}", percent(a), percent(b))
}

/// The largest change in the direction of the whole, if it is a good part of it.
fn cause(compared: &Compared) -> String {
    let [a, b] = shares(&compared.lives.total);
    let takers = compared.takers.iter().zip(&compared.lives.takers);
    let takers = takers.filter(|((key, _), _)| !is_sibling(key.owner)).map(|((key, _), row)| (name(key), shares(row)));
    let totals = [0, 1].map(|side| compared.sides.totals(side, None));
    let on_the_way = totals.each_ref().map(|totals| ratio(totals.sum(|thread| thread.on_the_way_ns), totals.wall));
    let causes = takers.chain([("the way to a CPU".to_owned(), on_the_way)]);
    let part = |shares: [f64; 2]| (shares[1] - shares[0]) / (b - a);
    let Some((name, shares)) = causes.max_by(|one, other| part(one.1).total_cmp(&part(other.1))) else {
        return String::new();
    };
    match part(shares) {
        most if most >= 0.5 => format!(", mostly {name} ({})", both(shares)),
        some if some >= 0.2 => format!(", the most by {name} ({})", both(shares)),
        _ => String::new(),
    }
}

/// The takers that changed significantly, although all together did not.
fn changed(compared: &Compared) -> String {
    let takers = compared.takers.iter().zip(&compared.lives.takers);
    let changed = takers.filter(|(_, row)| row.verdict.is_difference());
    let told: Vec<String> =
        changed.take(NAMED).map(|((key, _), row)| format!("{} {}", name(key), both(shares(row)))).collect();
    if told.is_empty() { String::new() } else { format!(" of the sum, but {}", told.join(", ")) }
}

/// The shares of both sides; 0 for a side without the figure.
fn shares(row: &ComparedFigure) -> [f64; 2] {
    [row.a, row.b].map(Option::unwrap_or_default)
}

fn name(key: &TakerKey) -> String {
    words::taker_name(key.kind, &key.source)
}

/// The name of a taker with its owner.
fn owned_name(key: &TakerKey) -> String {
    let on_top = if key.on_top && key.owner != Owner::Host { ", on top" } else { "" };
    format!("{} ({}{on_top})", name(key), words::owner(key.owner))
}

/// Whether all recordings have the kernel's trace.
fn are_traced(compared: &Compared) -> bool {
    compared.sides.runs.iter().flatten().all(|run| run.doc.tracing.is_some())
}

/// The limits of the comparison, and the threads that it leaves out.
pub(super) fn notes(compared: &Compared) -> Vec<String> {
    let sides = &compared.sides;
    let mut notes = Vec::new();
    for (side, names) in [("A", &sides.alone[0]), ("B", &sides.alone[1])] {
        if !names.is_empty() {
            let names: Vec<_> = names.iter().map(|name| printable(name)).collect();
            notes.push(format!("only {side} has threads of these names, which are not compared: {}", names.join(", ")));
        }
    }
    let helpers = sides.shown.iter().filter(|shown| !**shown).count() as u64;
    if helpers > 0 {
        let names = counted(helpers, "name sleep", "names sleep");
        notes.push(format!("threads of {names} for more than 99 % of their time on both sides, and are left out"));
    }
    for run in sides.runs.iter().flatten() {
        let path = run.path.display();
        if run.doc.tracing.is_none() {
            notes.push(format!(
                "{path} has no trace of the kernel: waits for each other count as lost, nobody is named, and nothing is tested; \
                 observe with sudo"
            ));
        } else if run.doc.lost_events > 0 {
            notes.push(format!("{path} lacks {}", counted(run.doc.lost_events, "kernel event", "kernel events")));
        }
    }
    if compared.lives.basis == Basis::WithinRuns && !compared.lives.total.verdict.is_difference() {
        notes.push(
            "one recording per side shows only large changes: observe three before and three after the change, and compare \
             them with becalm compare A1 A2 A3 -- B1 B2 B3"
                .to_owned(),
        );
    }
    notes
}

/// The recordings of a side.
fn recordings(runs: &[ReadRun]) -> String {
    let told = |run: &ReadRun| {
        let threads = counted(run.doc.threads.len() as u64, "thread", "threads");
        let time = Value::Time(run.doc.duration_ns.get()).cell();
        format!("{}: {}, {threads} over {time}", run.path.display(), printable(&run.doc.node))
    };
    runs.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// The time of all compared threads by parts.
fn parts(compared: &Compared) -> Table {
    let totals = [0, 1].map(|side| compared.sides.totals(side, None));
    let [a, b] = totals.each_ref().map(|totals| (totals.parts(), totals.wall));
    let rows = a.0.iter().zip(&b.0).filter(|(a, b)| a.1 > 0 || b.1 > 0);
    let row = |(one, other): (&(&'static str, i64), &(&'static str, i64))| PartRow {
        name: one.0,
        shares: [ratio(one.1, a.1), ratio(other.1, b.1)],
    };
    let fields = [&part_row::NAME, &part_row::A, &part_row::B, &part_row::DIFFERENCE];
    let mut table = Table::filled(&fields, &rows.map(row).collect::<Vec<_>>()).captioned("Shares of the threads' time");
    let lost = totals.each_ref().map(|totals| ratio(totals.lost(), totals.wall));
    table.total(&fields, &PartRow { name: "", shares: lost }, "could have run longer");
    table.keep_whole(0);
    table.sorts = false;
    table
}

fn takers(compared: &Compared) -> Option<Table> {
    let mut table =
        Table::named("who took the time", &SHARE_COLUMNS).captioned("Takers, as shares of the threads' time");
    let rows = compared.takers.iter().zip(&compared.lives.takers);
    rows.for_each(|((key, _), row)| table.named_row(owned_name(key), &SHARE_COLUMNS, row));
    let rest = compared
        .lives
        .takers
        .iter()
        .skip(ROWS)
        .map(shares)
        .fold([0.0; 2], |sum, row| [sum[0] + row[0], sum[1] + row[1]]);
    let remark = |more| format!("{more} more, together {}", both(rest));
    (!table.is_empty()).then(|| table.with_most_important(ROWS, remark))
}

fn threads(compared: &Compared, all: bool) -> Option<Table> {
    let sides = &compared.sides;
    let mut table =
        Table::named("threads", &SHARE_COLUMNS).captioned("Time that others took, as shares of the threads' time");
    for (place, row) in compared.lives.groups.iter().enumerate().filter(|(place, _)| all || sides.shown[*place]) {
        let count = |side| sides.totals(side, Some(place)).shown.len();
        let count = match [count(0), count(1)] {
            [1, 1] => String::new(),
            [a, b] if a == b => format!(" ({a})"),
            [a, b] => format!(" ({a}, {b})"),
        };
        table.named_row(format!("{}{count}", printable(&sides.names[place])), &SHARE_COLUMNS, row);
    }
    (table.len() > 1).then(|| table.with_most_important(ROWS, |more| format!("{more} more")))
}

impl Report for CompareObservedReport<'_> {
    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn answer(&self) -> Option<String> {
        Some(headline(self.compared))
    }

    fn view(&self, form: Form) -> Page {
        let compared = self.compared;
        let answer =
            Block::Verdict { tone: tone(compared.lives.total.verdict), text: headline(compared), basis: String::new() };
        let facts = ["A", "B"].into_iter().zip(compared.sides.runs.iter().map(|side| recordings(side)));
        let mut basis = vec![Block::facts(facts)];
        basis.extend(notes(compared).into_iter().map(Block::Note));
        let mut sections = vec![
            Section::new("headline", "Summary", "Did the program get its CPU?", vec![answer]),
            Section::new("basis", "Basis", "The recordings that were compared", basis).opened(Opening::Gap),
            Section::named("time", "Time", vec![Block::Table(parts(compared))]),
        ];
        let tables = [("takers", "Takers", takers(compared)), ("threads", "Threads", threads(compared, form.all()))];
        for (id, title, table) in tables {
            sections.extend(table.map(|table| Section::named(id, title, vec![Block::Table(table)])));
        }
        let legend = vec![Block::Text(significant())];
        sections.push(Section::new("legend", "Legend", "How to read the figures", legend).opened(Opening::Gap));
        if let Some(limited) = self.limited {
            let text = limited.text.clone();
            let block = if limited.is_exceeded() { Block::warning(text) } else { Block::Text(text) };
            sections.push(Section::new("limits", "Limits", "Limits", vec![block]).opened(Opening::Gap));
        }
        let name = |side: &[ReadRun]| {
            let stems = side.iter().filter_map(|run| run.path.file_stem());
            stems.map(|stem| stem.to_string_lossy().into_owned()).collect::<Vec<_>>().join(", ")
        };
        Page {
            title: format!("{} against {}", name(&compared.sides.runs[0]), name(&compared.sides.runs[1])),
            subtitle: "The CPU of observed threads before (A) and after (B)".to_owned(),
            sections,
            foot: Vec::new(),
        }
    }
}
