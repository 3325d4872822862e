//! What reading the time costs, for a terminal and as `becalm.cost-clock/1`.

use std::io::{self, Write};

use becalm_report::Report;
use becalm_report::form::field::{Field, Object, columns, fields};
use becalm_report::form::figure::{Picos, Share, Time};
use becalm_report::form::paragraph::paragraph;
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;
use becalm_report::form::value::{grouped, picos};
use becalm_report::html::Page;
use serde::Serialize;

use crate::analysis::ClockCost;
use crate::documents::{ClockCosts, CostDoc, CostRun, InstrumentDoc, StepDoc, SuccessiveDoc};
use crate::report::events::{self, ProbeEvent};
use crate::report::header::{self, TimedFields, cut_short, timed_fields};
use crate::report::measured::measured;
use crate::report::view;
use crate::report::probe::explain;

/// What every way to read the time costs.
pub struct ClockReport<'a> {
    pub(super) doc: &'a CostDoc,
    pub(super) costs: &'a ClockCosts,
    pub(super) instrument: InstrumentDoc,
    pub(super) rows: Vec<ClockCost>,
}

impl<'a> ClockReport<'a> {
    /// The report of a stored measurement of clocks.
    #[must_use]
    pub fn new(run: &'a CostRun, costs: &'a ClockCosts) -> Self {
        let instrument = costs.instrument.clone().unwrap_or_default();
        Self { doc: &run.doc, costs, instrument, rows: ClockCost::all(run, costs) }
    }
}

fields! {
    /// The fields of a row.
    pub(super) ROW, row: ClockCost {
        NAME = "name", "clock", |row| row.way.name.clone();
        PATH = "path", "read by", |row| row.way.path.name();
        MEDIAN_PS = measured!(ClockCost, MEDIAN_PS);
        MEDIAN_LOW_PS = measured!(ClockCost, MEDIAN_LOW_PS);
        MEDIAN_HIGH_PS = measured!(ClockCost, MEDIAN_HIGH_PS);
        MEAN_PS = measured!(ClockCost, MEAN_PS);
        STDDEV_PS = measured!(ClockCost, STDDEV_PS);
        MIN_PS = measured!(ClockCost, MIN_PS);
        P5_PS = measured!(ClockCost, P5_PS);
        P95_PS = measured!(ClockCost, P95_PS);
        MAX_PS = measured!(ClockCost, MAX_PS);
        PROCESSES = measured!(ClockCost, PROCESSES);
        SAMPLES = measured!(ClockCost, SAMPLES);
        BATCH = measured!(ClockCost, BATCH);
        SLOW = measured!(ClockCost, SLOW);
        INTERRUPTED = measured!(ClockCost, INTERRUPTED);
        INTERRUPTS = measured!(ClockCost, INTERRUPTS);
        SYSCALL_MEDIAN_PS = measured!(ClockCost, MEDIAN_PS of by_syscall, "syscall_median_ps", "by syscall");
        SYSCALL_LOW_PS = measured!(ClockCost, MEDIAN_LOW_PS of by_syscall, "syscall_low_ps", "low");
        SYSCALL_HIGH_PS = measured!(ClockCost, MEDIAN_HIGH_PS of by_syscall, "syscall_high_ps", "high");
        SYSCALL_MIN_PS = measured!(ClockCost, MIN_PS of by_syscall, "syscall_min_ps", "min");
        SYSCALL_P5_PS = measured!(ClockCost, P5_PS of by_syscall, "syscall_p5_ps", "p5");
        SYSCALL_P95_PS = measured!(ClockCost, P95_PS of by_syscall, "syscall_p95_ps", "p95");
        SYSCALL_INTERRUPTED = measured!(ClockCost, INTERRUPTED of by_syscall, "syscall_interrupted", "interrupted");
        STATED_RESOLUTION_NS = "stated_resolution_ns", "stated",
            |row| row.way.stated_ns.map(|ns| Time(i64::try_from(ns).unwrap_or(i64::MAX)));
        SMALLEST_STEP_PS = "smallest_step_ps", "step", |row| row.way.smallest_step_ps.map(Picos);
        MEDIAN_STEP_PS = "median_step_ps", "median step", |row| row.way.median_step_ps.map(Picos);
        READINGS = "readings", "readings", |row| row.way.readings;
        BACKWARDS = "backwards", "backwards", |row| row.way.backwards;
        CROSS_COMPARED = "cross_compared", "compared", |row| row.way.cross.map(|cross| cross.compared);
        CROSS_BACKWARDS = "cross_backwards", "across CPUs", |row| row.way.cross.map(|cross| cross.backwards);
        CROSS_LARGEST_PS = "cross_largest_ps", "by up to", |row| row.way.cross.map(|cross| cross.largest_ps).map(Picos);
    }
}

/// Steps of one length between readings back to back, beside all of them.
pub(super) struct SuccessiveStep {
    pub(super) step: StepDoc,
    pub(super) all: u64,
    tick_ps: i64,
}

fields! {
    /// The fields of such steps.
    pub(super) STEP, step: SuccessiveStep {
        TICKS = "ticks", "ticks", |row| row.step.ticks;
        STEP_PS = "step_ps", "step", |row| Picos(i64::try_from(row.step.ticks).unwrap_or(i64::MAX).saturating_mul(row.tick_ps));
        COUNT = "count", "count", |row| row.step.count;
        SHARE_RATIO = "share_ratio", "of all", |row| Share(row.step.count as f64 / row.all.max(1) as f64);
        RUNS = "runs", "runs", |row| row.step.runs;
        LONGEST_RUN = "longest_run", "longest run", |row| row.step.longest_run;
    }
}

/// How many of them are printed.
pub(super) const STEPS: usize = 8;

pub(super) fn steps(found: &SuccessiveDoc) -> Vec<SuccessiveStep> {
    let all = found.readings.saturating_sub(1 + found.backwards);
    found.steps.iter().map(|step| SuccessiveStep { step: *step, all, tick_ps: found.tick_ps }).collect()
}

/// The steps between successive readings of the counter, the most frequent ones.
fn successive(found: &SuccessiveDoc, out: &mut Sheet<'_>) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "Steps between {} readings of the counter back to back", grouped(found.readings))?;
    let fields: Vec<&Field<_>> = STEP.iter().collect();
    let mut table = Table::new(&fields);
    steps(found).iter().take(STEPS).for_each(|row| table.row(&fields, row));
    table.print(out)?;
    let longest = i64::try_from(found.max_ticks).unwrap_or(i64::MAX).saturating_mul(found.tick_ps);
    let text = format!(
        "{} different steps, the longest of {} ticks ({}); a run is steps of the same length one after the other",
        grouped(found.distinct),
        grouped(found.max_ticks),
        picos(longest)
    );
    paragraph(out, "  ", &text)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct SuccessivePart {
    readings: u64,
    tick_ps: i64,
    distinct: u64,
    max_ticks: u64,
    backwards: u64,
    steps: Vec<Object<SuccessiveStep>>,
}

impl Report for ClockReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.cost-clock/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
    }

    fn page(&self, program: &str) -> Option<Page> {
        Some(view::clock::page(self, program))
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct ClockDocument<'a> {
    #[serde(flatten)]
    header: TimedFields<'a>,
    path_found_by: &'static str,
    not_counted: Option<&'a str>,
    incomplete: Option<String>,
    rows: Vec<Object<ClockCost>>,
    events: Vec<Object<ProbeEvent>>,
    /// Readings of the counter back to back.
    successive: Option<SuccessivePart>,
}

/// The fields of `becalm.cost-clock/1`.
fn document<'a>(report: &'a ClockReport<'_>) -> ClockDocument<'a> {
    let events = counted(report);
    ClockDocument {
        header: timed_fields(report.doc, &report.instrument),
        path_found_by: if report.costs.not_counted.is_none() { "tracepoint" } else { "time" },
        not_counted: report.costs.not_counted.as_deref(),
        incomplete: cut_short(report.doc),
        rows: report.rows.iter().map(Object::new).collect(),
        events: events.iter().map(Object::new).collect(),
        successive: report.costs.successive.as_ref().map(|found| SuccessivePart {
            readings: found.readings,
            tick_ps: found.tick_ps,
            distinct: found.distinct,
            max_ticks: found.max_ticks,
            backwards: found.backwards,
            steps: steps(found).iter().map(Object::new).collect(),
        }),
    }
}

pub(super) fn counted(report: &ClockReport<'_>) -> Vec<events::ProbeEvent> {
    events::rows(report.rows.iter().map(|row| (row.way.name.as_str(), row.measured.as_ref())))
}

/// The clocks that said an earlier time on another CPU.
pub(super) fn backwards(report: &ClockReport<'_>) -> Vec<String> {
    let said = report.rows.iter().filter_map(|row| {
        let cross = row.way.cross.filter(|cross| cross.backwards > 0)?;
        Some(format!(
            "{}: of {} readings that came after one on another CPU, {} said earlier, by up to {}",
            row.way.name,
            grouped(cross.compared),
            grouped(cross.backwards),
            picos(cross.largest_ps),
        ))
    });
    said.collect()
}

/// How it was found whether a clock is read in the kernel.
pub(super) fn path_found(report: &ClockReport<'_>) -> String {
    let found = match &report.costs.not_counted {
        None => "the kernel counted the system calls (tracepoint raw_syscalls:sys_enter)".to_owned(),
        Some(why) => format!(
            "by its time: a call that is not faster than the raw system call by half a getpid enters the kernel; they could \
             not be counted: {why}"
        ),
    };
    format!("read by vdso or syscall: {found}")
}

fn render(report: &ClockReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    header::timed(report.doc, &report.instrument, out)?;
    let names = [
        "name",
        "path",
        "median_ps",
        "median_low_ps",
        "median_high_ps",
        "min_ps",
        "p5_ps",
        "p95_ps",
        "interrupted",
        "syscall_median_ps",
        "stated_resolution_ns",
        "smallest_step_ps",
        "median_step_ps",
        "backwards",
        "cross_backwards",
    ];
    let fields = columns(ROW, &names);
    let mut table = Table::new(&fields);
    table.keep_names_long();
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    backwards(report).iter().try_for_each(|text| paragraph(out, "  ! ", text))?;
    report.costs.successive.iter().try_for_each(|found| successive(found, out))?;
    events::print_probes(&counted(report), out)?;
    events::not_counted(&report.instrument.not_counted, out)?;
    cut_short(report.doc).iter().try_for_each(|text| paragraph(out, "  ! ", text))?;
    writeln!(out)?;
    paragraph(out, "  ", &path_found(report))?;
    paragraph(
        out,
        "  ",
        "step: the smallest change between two readings; - where the clock stood still for 50ms. backwards: readings \
         smaller than the one before, on this CPU and across CPUs",
    )?;
    explain(report.doc, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{BY_SYSCALL, ClockWayDoc, Costs, CrossDoc, ProbeSamples, ReadBy};
    use becalm_report as report;
    use becalm_report::form::sheet::Form;

    fn run(not_counted: Option<String>) -> CostRun {
        let samples = |ps| ProbeSamples::new(64, vec![vec![ps; 3]; 20]);
        let (own, raw) = (samples(21_300), samples(180_000));
        let way = ClockWayDoc {
            name: "CLOCK_MONOTONIC".to_owned(),
            path: ReadBy::Vdso,
            series: own.series,
            by_syscall: Some(raw.series),
            stated_ns: Some(1),
            readings: 10_000,
            smallest_step_ps: Some(1_000),
            median_step_ps: None,
            backwards: 0,
            cross: Some(CrossDoc { compared: 1_000, backwards: 2, largest_ps: 7_000 }),
        };
        let samples =
            [("CLOCK_MONOTONIC".to_owned(), own.rounds), (format!("CLOCK_MONOTONIC{BY_SYSCALL}"), raw.rounds)];
        let costs = ClockCosts {
            instrument: Some(header::tests::instrument()),
            not_counted,
            clocks: vec![way],
            successive: None,
        };
        CostRun { doc: header::tests::doc(Costs::Clock(costs)), samples: samples.into() }
    }

    #[test]
    fn how_it_was_found_is_said() {
        for (why, in_text, in_json) in
            [(None, "the kernel counted", "tracepoint"), (Some("no tracefs"), "by its time", "time")]
        {
            let run = run(why.map(str::to_owned));
            let Costs::Clock(costs) = &run.doc.measured else { panic!("they are clocks") };
            let report = ClockReport::new(&run, costs);
            let text = report::text(&report, Form::default());
            assert!(text.contains(in_text), "{text}");
            assert!(text.contains("CLOCK_MONOTONIC  vdso     21.3ns  21.3ns  21.3ns"), "{text}");
            assert!(text.contains("2 said earlier, by up to 7.00ns"), "{text}");
            let document: serde_json::Value = serde_json::from_str(&report::json(&report)).unwrap();
            assert_eq!(
                (&document["schema"], &document["path_found_by"]),
                (&"becalm.cost-clock/1".into(), &in_json.into())
            );
            let row = &document["rows"][0];
            assert_eq!((&row["syscall_median_ps"], &row["stated_resolution_ns"]), (&180_000.into(), &1.into()));
            assert!(row["median_step_ps"].is_null() && row["interrupts"].is_null());
            assert_eq!(row.as_object().unwrap().len(), ROW.len());
        }
    }
}
