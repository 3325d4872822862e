//! What reading the time costs, for a terminal and as `becalm.cost-clock/1`.

use std::io::{self, Write};

use becalm_analyze::cost::MeasuredCost;
use serde::Serialize;

use crate::Value;
use crate::cost::events;
use crate::cost::probe::{CostHeader, HeaderDocument, explain};
use crate::form::field::{Field, Object, columns};
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{grouped, picos};
use crate::report::Report;

/// A way to read the time.
#[derive(Clone, PartialEq, Debug)]
pub struct ClockCost {
    /// Its name.
    pub name: String,
    /// Where it is read: `instruction`, `vdso`, `syscall`.
    pub path: String,
    /// What a reading costs; nothing of no samples.
    pub cost: Option<MeasuredCost>,
    /// What it costs by a raw system call, where there is one.
    pub raw: Option<MeasuredCost>,
    /// The resolution that the kernel states, in nanoseconds.
    pub stated_ns: Option<u64>,
    /// The smallest step that was seen, in picoseconds.
    pub smallest_step_ps: Option<i64>,
    /// The median step.
    pub median_step_ps: Option<i64>,
    /// Readings back to back on the CPU.
    pub readings: u64,
    /// How many of them were smaller than the one before.
    pub backwards: u64,
    /// Readings that were compared with one of another CPU; nothing where there is no other, or the clock is a thread's.
    pub compared: Option<u64>,
    /// How many of them were smaller although taken later.
    pub cross_backwards: Option<u64>,
    /// By how much at most, in picoseconds.
    pub cross_largest_ps: Option<i64>,
}

/// Every way to read the time.
#[derive(Clone, PartialEq, Debug)]
pub struct ClockReport {
    /// Where.
    pub header: CostHeader,
    /// One a way.
    pub rows: Vec<ClockCost>,
    /// Why the system calls could not be counted, where they were told by their time.
    pub not_counted: Option<String>,
    /// What is missing of what was to be measured.
    pub incomplete: Option<String>,
}

fn ps(value: Option<i64>) -> Value {
    value.map_or(Value::Missing, Value::Picos)
}

fn count(value: Option<u64>) -> Value {
    value.map_or(Value::Missing, Value::Count)
}

fn of(cost: Option<&MeasuredCost>, get: impl Fn(&MeasuredCost) -> Value) -> Value {
    cost.map_or(Value::Missing, get)
}

macro_rules! cost_field {
    ($which:ident, $name:literal, $title:literal, $get:expr) => {
        Field { name: $name, title: $title, get: |row: &ClockCost| of(row.$which.as_ref(), $get) }
    };
}

/// The fields of a row.
const ROW: &[Field<ClockCost>] = &[
    Field { name: "name", title: "clock", get: |row| Value::Text(row.name.clone()) },
    Field { name: "path", title: "read by", get: |row| Value::Text(row.path.clone()) },
    cost_field!(cost, "median_ps", "median", |m| Value::Picos(m.cost.median_ps)),
    cost_field!(cost, "median_low_ps", "low", |m| ps(m.cost.interval_ps.map(|ends| ends.0))),
    cost_field!(cost, "median_high_ps", "high", |m| ps(m.cost.interval_ps.map(|ends| ends.1))),
    cost_field!(cost, "mean_ps", "mean", |m| Value::Picos(m.cost.mean_ps.round() as i64)),
    cost_field!(cost, "min_ps", "min", |m| Value::Picos(m.cost.min_ps)),
    cost_field!(cost, "p5_ps", "p5", |m| Value::Picos(m.cost.p5_ps)),
    cost_field!(cost, "p95_ps", "p95", |m| Value::Picos(m.cost.p95_ps)),
    cost_field!(cost, "max_ps", "max", |m| Value::Picos(m.cost.max_ps)),
    cost_field!(cost, "samples", "samples", |m| Value::Count(m.cost.samples)),
    cost_field!(cost, "batch", "each of", |m| Value::Count(m.cost.batch.into())),
    cost_field!(cost, "slow", "slow", |m| Value::Count(m.cost.slow)),
    cost_field!(cost, "interrupted", "interrupted", |m| Value::Count(m.cost.interrupted)),
    cost_field!(cost, "interrupts", "interrupts", |m| count(m.interrupts)),
    cost_field!(raw, "syscall_median_ps", "by syscall", |m| Value::Picos(m.cost.median_ps)),
    cost_field!(raw, "syscall_low_ps", "low", |m| ps(m.cost.interval_ps.map(|ends| ends.0))),
    cost_field!(raw, "syscall_high_ps", "high", |m| ps(m.cost.interval_ps.map(|ends| ends.1))),
    cost_field!(raw, "syscall_min_ps", "min", |m| Value::Picos(m.cost.min_ps)),
    cost_field!(raw, "syscall_p5_ps", "p5", |m| Value::Picos(m.cost.p5_ps)),
    cost_field!(raw, "syscall_p95_ps", "p95", |m| Value::Picos(m.cost.p95_ps)),
    cost_field!(raw, "syscall_interrupted", "interrupted", |m| Value::Count(m.cost.interrupted)),
    Field {
        name: "stated_resolution_ns",
        title: "stated",
        get: |row| row.stated_ns.map_or(Value::Missing, |ns| Value::Time(i64::try_from(ns).unwrap_or(i64::MAX))),
    },
    Field { name: "smallest_step_ps", title: "step", get: |row| ps(row.smallest_step_ps) },
    Field { name: "median_step_ps", title: "median step", get: |row| ps(row.median_step_ps) },
    Field { name: "readings", title: "readings", get: |row| Value::Count(row.readings) },
    Field { name: "backwards", title: "backwards", get: |row| Value::Count(row.backwards) },
    Field { name: "cross_compared", title: "compared", get: |row| count(row.compared) },
    Field { name: "cross_backwards", title: "across CPUs", get: |row| count(row.cross_backwards) },
    Field { name: "cross_largest_ps", title: "by up to", get: |row| ps(row.cross_largest_ps) },
];

impl Report for ClockReport {
    fn schema(&self) -> &'static str {
        "becalm.cost-clock/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    header: HeaderDocument<'a>,
    path_found_by: &'static str,
    not_counted: Option<&'a str>,
    incomplete: Option<&'a str>,
    rows: Vec<Object>,
    events: Vec<Object>,
}

/// As `becalm.cost-clock/1`.
fn document(report: &ClockReport) -> Document<'_> {
    let events = counted(report);
    Document {
        header: report.header.document(),
        path_found_by: if report.not_counted.is_none() { "tracepoint" } else { "time" },
        not_counted: report.not_counted.as_deref(),
        incomplete: report.incomplete.as_deref(),
        rows: report.rows.iter().map(|row| Object::new(ROW, row)).collect(),
        events: events.iter().map(|row| Object::new(events::ROW, row)).collect(),
    }
}

fn counted(report: &ClockReport) -> Vec<events::Row> {
    events::rows(report.rows.iter().map(|row| (row.name.as_str(), row.cost.as_ref())))
}

/// As a table.
fn render(report: &ClockReport, out: &mut Sheet<'_>) -> io::Result<()> {
    report.header.render(out)?;
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
    for row in report.rows.iter().filter(|row| row.cross_backwards.is_some_and(|times| times > 0)) {
        let text = format!(
            "{}: of {} readings that came after one on another CPU, {} said earlier, by up to {}",
            row.name,
            grouped(row.compared.unwrap_or(0)),
            grouped(row.cross_backwards.unwrap_or(0)),
            picos(row.cross_largest_ps.unwrap_or(0)),
        );
        paragraph(out, "  ! ", &text)?;
    }
    events::table(&counted(report), out)?;
    events::not_counted(&report.header.events_not_counted, out)?;
    report.incomplete.iter().try_for_each(|text| paragraph(out, "  ! ", text))?;
    writeln!(out)?;
    let found = match &report.not_counted {
        None => "the kernel counted the system calls (tracepoint raw_syscalls:sys_enter)".to_owned(),
        Some(why) => format!(
            "by its time: a call that is not faster than the raw system call by half a getpid enters the kernel; they could \
             not be counted: {why}"
        ),
    };
    paragraph(out, "  ", &format!("read by vdso or syscall: {found}"))?;
    paragraph(
        out,
        "  ",
        "step: the smallest change between two readings; - where the clock stood still for 50ms. backwards: readings \
         smaller than the one before, on this CPU and across CPUs",
    )?;
    explain(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::probe::CostPlace;
    use crate::form::sheet::Form;
    use crate::report;
    use becalm_analyze::cost::Cost;
    use becalm_units::CpuId;

    fn report(not_counted: Option<String>) -> ClockReport {
        let place = CostPlace {
            node: "node1".to_owned(),
            kernel: "6.1.0".to_owned(),
            hypervisor: Some("kvm".to_owned()),
            processor: "a processor".to_owned(),
            cpu: CpuId::new(0),
            cpu_reason: "as asked".to_owned(),
            other_cpu: Some(CpuId::new(1)),
            class: "fifo:80".to_owned(),
        };
        let header = CostHeader {
            place,
            counter: "tsc".to_owned(),
            rate_hz: 2.5e9,
            rate_error_ratio: 1e-6,
            overhead_ps: 20_400,
            events_not_counted: Vec::new(),
        };
        let cost = |ps| {
            let cost = Cost::of(&vec![vec![ps; 3]; 20], 64, None);
            cost.map(|cost| MeasuredCost { cost, interrupts: None, preempted: 0, events: Vec::new() })
        };
        let row = ClockCost {
            name: "CLOCK_MONOTONIC".to_owned(),
            path: "vdso".to_owned(),
            cost: cost(21_300),
            raw: cost(180_000),
            stated_ns: Some(1),
            smallest_step_ps: Some(1_000),
            median_step_ps: None,
            readings: 10_000,
            backwards: 0,
            compared: Some(1_000),
            cross_backwards: Some(2),
            cross_largest_ps: Some(7_000),
        };
        ClockReport { header, rows: vec![row], not_counted, incomplete: None }
    }

    #[test]
    fn how_it_was_found_is_said() {
        for (why, in_text, in_json) in
            [(None, "the kernel counted", "tracepoint"), (Some("no tracefs"), "by its time", "time")]
        {
            let report = report(why.map(str::to_owned));
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
