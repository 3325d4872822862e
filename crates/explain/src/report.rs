//! The report of an explanation.

use becalm_observe::words;
use becalm_report::form::field::{Field, fields};
use becalm_report::form::figure::Share;
use becalm_report::form::section::{Block, Grade, Page, Section};
use becalm_report::form::table::Table;
use becalm_report::form::value::{Value, grouped};
use becalm_report::html::{Axis, AxisScale, AxisUnit, Chart, Lane, LaneSort, Lanes, Spec};
use becalm_report::{Form, Report};
use becalm_units::{Named, Nanos, counted, printable};
use serde::Serialize;

use crate::causes::{Class, Side};
use crate::document::{ExplainedDoc, ExplanationDoc, GroupDoc, SourceDoc, SpanCauseDoc, Verdict, WorstDoc};
use crate::summing::percent;

/// The rows of a table in the default report.
const ROWS: usize = 6;
/// The rows of the longest spans.
const WORST_ROWS: usize = 2;
/// A cause with a smaller part of the excess is left out of the default report.
const SMALL: f64 = 0.005;

/// The report of an explanation.
#[derive(Clone, Copy, Debug)]
pub struct ExplainedReport<'a> {
    /// The document.
    pub doc: &'a ExplainedDoc,
}

/// A cause, and the numbers of slow and ordinary spans.
struct SourceRow {
    source: SourceDoc,
    slow: u64,
    ordinary: u64,
}

struct GroupRow {
    group: GroupDoc,
}

struct WorstRow {
    span: WorstDoc,
}

fields! {
    source_row: SourceRow {
        SOURCE = "source", "cause", |row| row.source.shown.clone();
        HOW = "class", "how", |row| how(row.source.class);
        OWNER = "owner", "whose", |row| whose(&row.source);
        TIME = "ns", "each", |row| row.source.ns;
        SHARE = "share_of_excess", "of excess", |row| Share(row.source.share_of_excess);
        INTERVAL = "interval", "95 % CI", |row| interval(row.source.low, row.source.high);
        SLOW = "in_slow", "slow", |row| format!("{}/{}", row.source.in_slow, row.slow);
        ORDINARY = "in_ordinary", "ordinary", |row| format!("{}/{}", row.source.in_ordinary, row.ordinary);
    }
}

fields! {
    group_row: GroupRow {
        NAME = "name", "spans", |row| shortened(&row.group.name);
        COUNT = "spans", "count", |row| row.group.spans;
        MEDIAN = "median_ns", "median", |row| row.group.explanation.as_ref().map(|found| found.median_ns);
        P99 = "p99_ns", "p99", |row| row.group.explanation.as_ref().map(|found| found.p99_ns);
        EXCESS = "excess_ns", "slow: longer by", |row| row.group.explanation.as_ref().map(|found| found.excess_ns);
        SYSTEM = "system", "system", |row| side_text(row.group.explanation.as_ref(), Side::System);
        PROGRAM = "program", "program", |row| side_text(row.group.explanation.as_ref(), Side::Program);
        SLEEP = "waiting", "sleep", |row| side_text(row.group.explanation.as_ref(), Side::Waiting);
        FIRST = "first", "most to", |row| row.group.explanation.as_ref().and_then(first);
    }
}

fields! {
    worst_row: WorstRow {
        NAME = "name", "span", |row| shortened(&row.span.name);
        TID = "tid", "thread", |row| row.span.tid.and_then(|tid| u64::try_from(tid).ok());
        CPU = "cpu", "CPU", |row| row.span.cpu.map(|cpu| u64::from(cpu.get()));
        START = "start_ns", "at", |row| row.span.start_ns;
        LENGTH = "ns", "length", |row| row.span.ns;
        MOST = "most", "most of it", |row| most(&row.span);
    }
}

/// The color of a class.
const fn color(class: Class) -> &'static str {
    match class {
        Class::Ran => "kind-workqueue",
        Class::Call => "kind-kthread",
        Class::OwnWork => "kind-fault",
        Class::OnTop => "kind-irq",
        Class::Queued => "kind-task",
        Class::OnTheWay => "kind-softirq",
        Class::Quota => "kind-throttling",
        Class::Host => "kind-unseen",
        Class::Loop => "kind-self",
        Class::Asleep => "line",
        Class::Stopped => "kind-self",
        Class::Unknown => "kind-not_traced",
    }
}

const fn how(class: Class) -> &'static str {
    match class {
        Class::Ran | Class::Call => "ran",
        Class::OwnWork => "for it",
        Class::OnTop => "on top",
        Class::Queued | Class::Loop => "had the CPU",
        Class::OnTheWay => "wake-up",
        Class::Quota => "limit",
        Class::Host => "had the CPU",
        Class::Asleep | Class::Stopped => "slept",
        Class::Unknown => "",
    }
}

fn whose(source: &SourceDoc) -> &'static str {
    match source.class {
        Class::Ran | Class::Call => "program",
        Class::Asleep | Class::Stopped | Class::Unknown => "",
        _ => words::owner(source.owner),
    }
}

fn interval(low: Option<f64>, high: Option<f64>) -> Option<String> {
    low.zip(high).map(|(low, high)| format!("{} to {}%", percent(low), percent(high)))
}

fn side_text(found: Option<&ExplanationDoc>, side: Side) -> Option<String> {
    let part = found?.sides.iter().find(|part| part.side == side)?;
    let interval = part
        .low
        .zip(part.high)
        .map_or_else(String::new, |(low, high)| format!(" [{}, {}]", percent(low), percent(high)));
    Some(format!("{}%{interval}", percent(part.share_of_excess)))
}

fn first(found: &ExplanationDoc) -> Option<String> {
    found.sources.first().filter(|source| source.ns > Nanos::ZERO).map(|source| source.shown.clone())
}

/// A name of the file, as long as a line has room for.
fn shortened(name: &str) -> String {
    let name = printable(name);
    match name.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.into_owned(),
    }
}

/// The largest causes of a span, for a table cell.
fn most(span: &WorstDoc) -> String {
    let phrase = |cause: &SpanCauseDoc| format!("{} {}", cause.shown, Value::Time(cause.ns.get()).cell());
    span.causes.iter().take(2).map(phrase).collect::<Vec<_>>().join(", ")
}

/// A table of the excess of slow spans by causes: the largest, or all of them.
pub fn causes(found: &ExplanationDoc, all: bool) -> Table {
    let is_shown = |source: &&SourceDoc| all || source.share_of_excess.abs() >= SMALL;
    let rows: Vec<SourceRow> = found
        .sources
        .iter()
        .filter(is_shown)
        .map(|source| SourceRow { source: source.clone(), slow: found.slow, ordinary: found.ordinary })
        .collect();
    let columns: [&Field<SourceRow>; 8] = [
        &source_row::SOURCE,
        &source_row::HOW,
        &source_row::OWNER,
        &source_row::TIME,
        &source_row::SHARE,
        &source_row::INTERVAL,
        &source_row::SLOW,
        &source_row::ORDINARY,
    ];
    let mut table = Table::filled(&columns, &rows).captioned("The excess of slow spans by causes");
    for column in [1, 2, 5, 6, 7] {
        table.keep_whole(column);
    }
    table.may_leave_out(2);
    let rows = if all { usize::MAX } else { ROWS };
    table.with_most_important(rows, |more| format!("{more} more"))
}

impl ExplainedReport<'_> {
    fn groups(&self) -> Table {
        let rows: Vec<GroupRow> = self.doc.by.iter().map(|group| GroupRow { group: group.clone() }).collect();
        let columns: [&Field<GroupRow>; 9] = [
            &group_row::NAME,
            &group_row::COUNT,
            &group_row::MEDIAN,
            &group_row::P99,
            &group_row::EXCESS,
            &group_row::SYSTEM,
            &group_row::PROGRAM,
            &group_row::SLEEP,
            &group_row::FIRST,
        ];
        let mut table = Table::filled(&columns, &rows).captioned("Slow spans by group");
        for column in [5, 6, 7] {
            table.keep_whole(column);
        }
        for column in [6, 7, 3] {
            table.may_leave_out(column);
        }
        table.with_most_important(ROWS, |more| format!("{more} more"))
    }

    fn worst(&self, all: bool) -> Table {
        let shown = if all { self.doc.worst.len() } else { WORST_ROWS };
        let rows: Vec<WorstRow> = self.doc.worst.iter().map(|span| WorstRow { span: span.clone() }).collect();
        let is_of_cpus = self.doc.worst.iter().any(|span| span.cpu.is_some());
        let subject = if is_of_cpus { &worst_row::CPU } else { &worst_row::TID };
        let columns: [&Field<WorstRow>; 5] =
            [&worst_row::NAME, subject, &worst_row::START, &worst_row::LENGTH, &worst_row::MOST];
        let mut table = Table::filled(&columns, &rows).captioned("The longest spans");
        table.may_leave_out(1);
        table.with_most_important(shown, |more| format!("{more} more"))
    }

    /// What happened in the longest spans.
    fn timelines(&self) -> Chart {
        let rows = self.doc.worst.iter().map(|span| {
            let sort = |class: Class| Class::ALL.iter().position(|known| *known == class).unwrap_or(0) as u32;
            Lane {
                name: format!("{} at {}", shortened(&span.name), Value::Time(span.start_ns.get()).cell()),
                start: 0,
                ends: span.timeline.iter().map(|stretch| stretch.until_ns.get()).collect(),
                sorts: span.timeline.iter().map(|stretch| sort(stretch.class)).collect(),
                texts: span.timeline.iter().map(|stretch| stretch.shown.clone()).collect(),
            }
        });
        let sorts =
            Class::ALL.iter().map(|class| LaneSort { name: class.name().replace('_', " "), color: color(*class) });
        let spec = Lanes {
            x: Axis::new("time since the start of the span", AxisScale::Linear, AxisUnit::Time),
            sorts: sorts.collect(),
            rows: rows.collect(),
        };
        Chart {
            id: "timelines",
            title: String::new(),
            label: "What happened in turn in the longest spans".to_owned(),
            height: 96 + 30 * self.doc.worst.len() as u32,
            spec: Spec::Lanes(spec),
            figures: None,
        }
    }

    /// How far the figures can be trusted.
    fn trust(&self) -> Vec<String> {
        let doc = self.doc;
        let found = if doc.clock_found { ", found by where it puts the spans" } else { "" };
        let mut text = vec![
            format!(
                "the parts of every span add up to its length; the cause of {} is known",
                Value::Ratio(doc.all.covered).cell()
            ),
            format!(
                "clock of the spans: {}{found}; off by at most {}",
                doc.clock.name(),
                Value::Time(doc.clock_error_ns.get()).cell()
            ),
        ];
        if doc.outside + doc.strangers > 0 {
            text.push(format!(
                "left out: {} outside of the recording, {} of threads or CPUs that it does not have",
                counted(doc.outside, "span", "spans"),
                grouped(doc.strangers)
            ));
        }
        text
    }

    fn verdict(&self) -> Vec<Block> {
        let all = &self.doc.all;
        let tone = match all.verdict {
            Verdict::Even | Verdict::Program | Verdict::Waiting => Grade::Good,
            Verdict::System => Grade::Bad,
            Verdict::Threads | Verdict::Mixed => Grade::Fair,
            Verdict::Unknown => Grade::Plain,
        };
        let time = |ns: Nanos| Value::Time(ns.get()).cell();
        let basis = format!(
            "{}: median {}, 99th percentile {}, longest {}",
            counted(all.spans, "span", "spans"),
            time(all.median_ns),
            time(all.p99_ns),
            time(all.longest_ns)
        );
        vec![
            Block::OnTerminal(vec![Block::Lead(basis.clone())]),
            Block::Verdict { tone, text: all.sentence.clone(), basis },
        ]
    }
}

impl Report for ExplainedReport<'_> {
    fn schema(&self) -> &'static str {
        crate::document::SCHEMA
    }

    fn document(&self) -> impl Serialize {
        self.doc
    }

    fn named_document(&self) -> impl Serialize {
        self.doc
    }

    fn answer(&self) -> Option<String> {
        Some(self.doc.all.sentence.clone())
    }

    fn view(&self, form: Form) -> Page {
        let doc = self.doc;
        let mut verdict = self.verdict();
        verdict.extend(doc.notes.iter().cloned().map(Block::Note));
        let mut sections = vec![Section::new("verdict", "Verdict", "Verdict", verdict)];
        if !doc.by.is_empty() {
            sections.push(Section::named("groups", "By group", vec![Block::Table(self.groups())]));
        }
        let table = causes(&doc.all, form.all());
        if !table.is_empty() {
            sections.push(Section::named("causes", "Causes", vec![Block::Table(table)]));
        }
        for group in doc.by.iter().filter(|_| form.all()) {
            let Some(found) = &group.explanation else { continue };
            let blocks = vec![
                Block::Heading(shortened(&group.name)),
                Block::Text(found.sentence.clone()),
                Block::Table(causes(found, false)),
            ];
            sections.push(Section::new("group", "Group", shortened(&group.name), blocks));
        }
        let worst =
            vec![Block::OnPage(vec![Block::Charts(vec![self.timelines()])]), Block::Table(self.worst(form.all()))];
        sections.push(Section::named("worst", "Longest spans", worst));
        if !doc.all.advice.is_empty() {
            sections.push(Section::named("fix", "What to do", vec![Block::Text(doc.all.advice.clone())]));
        }
        sections.push(Section::named("trust", "Trust", Block::texts(self.trust())));
        Page {
            title: format!("{}: why slow spans were slow", doc.node),
            subtitle: counted(doc.all.spans, "span", "spans"),
            sections,
            foot: Vec::new(),
        }
    }
}
