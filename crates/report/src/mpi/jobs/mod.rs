//! Comparison of `becalm-mpi` jobs: Figure 8 of De et al. 2009, average and worst case; a table, `becalm.compare-jobs/1` and a page.

mod view;

use becalm_analyze::job::JobPhases;
use becalm_analyze::jobs::{JobFigure, JobRow, against_first};
use becalm_model::phases::{CollectiveCall, JobDoc};
use becalm_units::counted;
use serde::Serialize;

use super::run::{job, warnings};
use crate::Value;
use crate::catalogue;
use crate::form::field::{Field, Object, fields};
use crate::form::figure::{self, Change, Time};
use crate::form::section::Page;
use crate::form::sheet::Form;
use crate::form::table::Table;
use crate::report::Report;

/// Jobs compared with the first of them.
pub struct JobsReport<'a> {
    /// The name and the phases of each; at least two.
    pub jobs: &'a [(String, JobPhases)],
}

/// How to read the tables.
const LEGEND: &str = "95 % CI: of the change, from blocks of phases drawn again. A difference is one between these jobs: another run of the \
    same configuration may differ as much, so run each several times. max beyond grain: the longest compute phase minus its work, which is \
    the longest interruption of a rank, or several in one phase";

/// The columns of a table of averages.
const AVERAGE: [&Field<NamedRow>; 6] =
    [&row::TIME, &row::JOB, &row::AVERAGE_NS, &row::AVERAGE_CHANGE, &columns::AVERAGE_INTERVAL, &row::AVERAGE_VERDICT];

/// The columns of a table of worst cases.
const WORST: [&Field<NamedRow>; 8] = [
    &row::TIME,
    &row::JOB,
    &row::WORST_NS,
    &row::WORST_CHANGE,
    &columns::WORST_INTERVAL,
    &row::WORST_VERDICT,
    &row::MAX_NS,
    &row::BEYOND_GRAIN_NS,
];

/// A row with the name of its job.
struct NamedRow {
    name: String,
    row: JobRow,
    grain_ns: i64,
}

fn change(figure: &JobFigure) -> Option<Change> {
    figure.change.map(Change)
}

fn low(figure: &JobFigure) -> Option<Change> {
    figure.interval.map(|ends| Change(ends.low))
}

fn high(figure: &JobFigure) -> Option<Change> {
    figure.interval.map(|ends| Change(ends.high))
}

fn interval(figure: &JobFigure) -> Option<String> {
    figure::interval(low(figure), high(figure))
}

fn verdict(figure: &JobFigure) -> Option<&'static str> {
    figure.verdict.map(|verdict| verdict.name())
}

fields! {
    ROW, row: NamedRow {
        TIME = "time", "", |row| row.row.time.name();
        JOB = "job", "job", |row| row.name.clone();
        AVERAGE_NS = "average_ns", "average", |row| Time::rounded(row.row.average.ns);
        AVERAGE_CHANGE = "average_change_ratio", "change", |row| change(&row.row.average);
        AVERAGE_LOW = "average_change_low", "low", |row| low(&row.row.average);
        AVERAGE_HIGH = "average_change_high", "high", |row| high(&row.row.average);
        AVERAGE_VERDICT = "average_verdict", "difference", |row| verdict(&row.row.average);
        WORST_NS = "worst_ns", "worst 1%", |row| Time::rounded(row.row.worst.ns);
        WORST_CHANGE = "worst_change_ratio", "change", |row| change(&row.row.worst);
        WORST_LOW = "worst_change_low", "low", |row| low(&row.row.worst);
        WORST_HIGH = "worst_change_high", "high", |row| high(&row.row.worst);
        WORST_VERDICT = "worst_verdict", "difference", |row| verdict(&row.row.worst);
        MAX_NS = catalogue::MAX_NS, |row| Time(row.row.max_ns);
        BEYOND_GRAIN_NS = "max_beyond_grain_ns", "max beyond grain",
            |row| (row.row.time.name() == "qt").then(|| Time(row.row.max_ns - row.grain_ns));
    }
}

fields! {
    /// Columns only of tables.
    columns: NamedRow {
        AVERAGE_INTERVAL = "average_interval", "95 % CI", |row| interval(&row.row.average);
        WORST_INTERVAL = "worst_interval", "95 % CI", |row| interval(&row.row.worst);
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ComparedJob {
    name: String,
    ranks: u32,
    nodes: u32,
    phases: u64,
    sched: String,
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct JobsDocument {
    jobs: Vec<ComparedJob>,
    grain_ns: i64,
    collective: CollectiveCall,
    bytes: u64,
    rows: Vec<Object<NamedRow>>,
}

impl JobsReport<'_> {
    fn rows(&self) -> Vec<NamedRow> {
        let phases: Vec<&JobPhases> = self.jobs.iter().map(|(_, phases)| phases).collect();
        let named = |row: JobRow| {
            let (name, phases) = &self.jobs[row.job];
            NamedRow { name: name.clone(), row, grain_ns: job(phases).grain_ns.get() }
        };
        against_first(&phases).into_iter().map(named).collect()
    }
}

impl Report for JobsReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.compare-jobs/1"
    }

    fn document(&self) -> impl Serialize {
        let compared = |(name, phases): &'_ (String, JobPhases)| {
            let JobDoc { ranks, nodes, phases: count, sched, .. } = job(phases).clone();
            ComparedJob { name: name.clone(), ranks, nodes, phases: count, sched, warnings: warnings(phases) }
        };
        let JobDoc { grain_ns, collective, bytes, .. } = job(&self.jobs[0].1);
        JobsDocument {
            jobs: self.jobs.iter().map(compared).collect(),
            grain_ns: grain_ns.get(),
            collective: *collective,
            bytes: *bytes,
            rows: self.rows().iter().map(Object::new).collect(),
        }
    }

    fn view(&self, _: Form) -> Page {
        view::page(self)
    }
}

/// The work of a job, in words.
fn words(phases: &JobPhases) -> String {
    let JobDoc { ranks, phases: count, sched, grain_ns, collective, .. } = job(phases);
    let (ranks, count) = (counted(u64::from(*ranks), "rank", "ranks"), counted(*count, "phase", "phases"));
    format!("{ranks}, {count} of {} and {collective}, class {sched}", Value::Time(grain_ns.get()).cell())
}

/// A table with a line between times.
fn rows_table(title: &str, fields: &[&'static Field<NamedRow>], rows: &[NamedRow]) -> Table {
    let mut table = Table::new(fields).captioned(title);
    table.sorts = false;
    for (at, row) in rows.iter().enumerate() {
        if at > 0 && row.row.time != rows[at - 1].row.time {
            table.rule();
        }
        table.row(fields, row);
    }
    table
}
