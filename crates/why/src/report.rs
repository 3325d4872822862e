//! The report of the causes of activities.

use becalm_model::Kind;
use becalm_model::cause::Requester;
use becalm_report::form::field::fields;
use becalm_report::form::section::{Block, Grade, Page, Section, sentence};
use becalm_report::form::table::Table;
use becalm_report::form::value::{Value, grouped};
use becalm_report::{Form, Report};
use becalm_units::printable;
use serde::Serialize;

use crate::document::{CauseDoc, CoverageDoc, FunctionDoc, RequesterDoc, WhyDoc};

/// The rows of a table in the default report.
const ROWS: usize = 20;

/// The report of the causes of activities.
#[derive(Clone, Copy, Debug)]
pub struct WhyReport<'a> {
    /// The document.
    pub doc: &'a WhyDoc,
    /// Whether to show who made the requests, instead of what they made.
    pub by_requester: bool,
}

struct CauseRow {
    cause: CauseDoc,
}

struct RequesterRow {
    requester: RequesterDoc,
}

fields! {
    CAUSES, cause_row: CauseRow {
        SOURCE = "source", "what ran", |row| source(row.cause.kind, &row.cause.source);
        COUNT = "count", "count", |row| row.cause.count;
        TOTAL = "whole_ns", "total", |row| row.cause.whole_ns;
        BY = "by", "requested by", |row| by(row.cause.owner, &row.cause.by);
        CONTEXT = "context", "by way of", |row| Some(row.cause.context.clone()).filter(|context| !context.is_empty());
        DELAY = "delay_median_ns", "delay", |row| row.cause.delay_median_ns;
        SITE = "site", "code", |row| Some(row.cause.site.clone()).filter(|site| !site.is_empty());
    }
}

fields! {
    REQUESTERS, requester_row: RequesterRow {
        BY = "by", "requested by", |row| by(row.requester.owner, &row.requester.by);
        COUNT = "count", "count", |row| row.requester.count;
        TOTAL = "whole_ns", "total", |row| row.requester.whole_ns;
        SOURCES = "sources", "what ran", |row| sources(&row.requester.sources);
    }
}

/// The sources in a cell.
const SOURCES: usize = 3;

fn sources(all: &[String]) -> String {
    let first: Vec<&str> = all.iter().take(SOURCES).map(String::as_str).collect();
    let rest = all.len() - first.len();
    if rest > 0 { format!("{}, {rest} more", first.join(", ")) } else { first.join(", ") }
}

fn source(kind: Kind, source: &str) -> String {
    match kind {
        Kind::Task => format!("thread {source}"),
        Kind::Kthread => format!("kernel thread {source}"),
        Kind::Softirq => format!("softirq {source}"),
        _ => source.to_owned(),
    }
}

/// A requester in words.
pub fn by(owner: Requester, name: &str) -> String {
    match owner {
        Requester::Program => name.to_owned(),
        Requester::Kernel if name == "idle" => "idle CPU".to_owned(),
        Requester::Kernel => format!("kernel thread {name}"),
        Requester::Becalm => "becalm".to_owned(),
        Requester::Device => format!("device {name}"),
        Requester::Timer => format!("timer {name}"),
        Requester::Unknown => "not known".to_owned(),
    }
}

fn percent(part: f64, whole: f64) -> String {
    Value::Share(if whole > 0.0 { part / whole } else { 1.0 }).cell()
}

impl WhyReport<'_> {
    fn verdict(&self) -> Vec<Block> {
        let CoverageDoc { activities, known, total_ns, known_ns } = self.doc.coverage;
        let text = if activities == 0 {
            "No activity has a cause: nothing but the kernel's tick interrupted.".to_owned()
        } else {
            format!(
                "The cause of {} of {} activities is known, and of {} of their time.",
                percent(known as f64, activities as f64),
                grouped(activities),
                percent(known_ns.get() as f64, total_ns.get() as f64)
            )
        };
        let basis = format!("{}, {}, without the kernel's tick", printable(&self.doc.node), self.doc.cpus);
        let lead = Block::OnTerminal(vec![Block::Lead(basis.clone())]);
        let mut blocks = vec![lead, Block::Verdict { tone: Grade::Plain, text, basis }];
        let lost = self.doc.lost_events;
        if lost > 0 {
            let text = format!("{} events of requests were dropped: some causes are not known", grouped(lost));
            blocks.push(Block::warning(text));
        }
        blocks.extend(self.doc.missing.iter().map(|missing| Block::Note(format!("not recorded: {missing}"))));
        blocks
    }

    fn causes(&self, form: Form) -> Table {
        let fields: Vec<_> = CAUSES.iter().collect();
        let all: Vec<CauseRow> = self.doc.causes.iter().map(|cause| CauseRow { cause: cause.clone() }).collect();
        let shown = if form.all() { all.len() } else { ROWS };
        let table =
            Table::filled(&fields, &all).with_most_important(shown, |_| format!("the first {ROWS} of {}", all.len()));
        if form.all() { table } else { table.without_on_terminal(&["code"]) }
    }

    fn functions(&self) -> Option<Section> {
        let text = |function: &FunctionDoc| {
            let fix = function.fix.as_ref().map_or_else(String::new, |fix| format!(" {}", sentence(fix)));
            format!("{} {}.{fix}", function.source, function.does)
        };
        let blocks = Block::texts(self.doc.functions.iter().map(text));
        (!self.doc.functions.is_empty()).then(|| Section::named("functions", "What to do", blocks))
    }

    fn requesters(&self, form: Form) -> Table {
        let fields: Vec<_> = REQUESTERS.iter().collect();
        let all = self.doc.requesters.iter().map(|requester| RequesterRow { requester: requester.clone() });
        let all: Vec<RequesterRow> = all.collect();
        let shown = if form.all() { all.len() } else { ROWS };
        Table::filled(&fields, &all).with_most_important(shown, |_| format!("the first {ROWS} of {}", all.len()))
    }
}

impl Report for WhyReport<'_> {
    fn schema(&self) -> &'static str {
        crate::document::SCHEMA
    }

    fn document(&self) -> impl Serialize {
        self.doc
    }

    fn named_document(&self) -> impl Serialize {
        self.doc
    }

    fn view(&self, form: Form) -> Page {
        let doc = self.doc;
        let mut sections = vec![Section::new("verdict", "Verdict", "Verdict", self.verdict())];
        let causes = Section::named("causes", "Causes", vec![Block::Table(self.causes(form))])
            .explained("delay: the median time from the request to its start");
        let requesters = Section::named("requesters", "Requesters", vec![Block::Table(self.requesters(form))]);
        if !doc.causes.is_empty() {
            sections.push(if self.by_requester { requesters } else { causes });
        }
        sections.extend(self.functions());
        Page {
            title: format!("{}: who requested what ran", printable(&doc.node)),
            subtitle: doc.cpus.clone(),
            sections,
            foot: Vec::new(),
        }
    }
}
