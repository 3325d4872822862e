//! The scheduler's cost by the number of runnable threads: `becalm.cost-scheduler/1`, and as a table.

use std::io::{self, Write};

use serde::Serialize;

use crate::Value;
use crate::field::{Field, Object, columns};
use crate::header::paragraph;
use crate::json;
use crate::table::Table;

/// What was measured with a number of runnable threads. What the kernel's trace was not there for is nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SchedulerRow {
    /// Threads that never sleep, all on the one CPU.
    pub runnable: u32,
    /// Ticks a second.
    pub ticks_hz: Option<f64>,
    /// The mean time of a tick's handler, in nanoseconds.
    pub tick_mean_ns: Option<f64>,
    /// The longest, in nanoseconds.
    pub tick_max_ns: Option<i64>,
    /// Switches a second while the threads only counted.
    pub preemptions_hz: Option<f64>,
    /// The time of a switch between threads that give way, in nanoseconds; nothing where none was switched.
    pub switch_ns: Option<f64>,
    /// The share of the calls to give way that led to a switch.
    pub switched_ratio: Option<f64>,
    /// The time of a call to give way, in nanoseconds.
    pub yield_ns: Option<f64>,
}

/// The rows of a CPU.
#[derive(Clone, PartialEq, Debug)]
pub struct SchedulerReport {
    /// The measured CPU.
    pub cpu: u32,
    /// By rising numbers of runnable threads.
    pub rows: Vec<SchedulerRow>,
    /// Why the kernel's trace could not be had, if it could not.
    pub no_trace: Option<String>,
}

fn rate(value: Option<f64>) -> Value {
    value.map_or(Value::Missing, Value::Rate)
}

fn time(value: Option<f64>) -> Value {
    value.map_or(Value::Missing, Value::time)
}

const ROW: &[Field<SchedulerRow>] = &[
    Field { name: "runnable", title: "runnable", get: |row| Value::Count(row.runnable.into()) },
    Field { name: "ticks_hz", title: "ticks", get: |row| rate(row.ticks_hz) },
    Field { name: "tick_mean_ns", title: "mean tick", get: |row| time(row.tick_mean_ns) },
    Field { name: "tick_max_ns", title: "max tick", get: |row| row.tick_max_ns.map_or(Value::Missing, Value::Time) },
    Field { name: "preemptions_hz", title: "pre-emptions", get: |row| rate(row.preemptions_hz) },
    Field { name: "switch_ns", title: "switch", get: |row| time(row.switch_ns) },
    Field { name: "yield_ns", title: "yield", get: |row| time(row.yield_ns) },
    Field {
        name: "switched_ratio",
        title: "yields that switch",
        get: |row| row.switched_ratio.map_or(Value::Missing, Value::Share),
    },
];

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    cpu: u32,
    no_trace: Option<&'a str>,
    rows: Vec<Object<'a, SchedulerRow>>,
}

/// As `becalm.cost-scheduler/1`.
#[must_use]
pub fn scheduler_json(report: &SchedulerReport) -> String {
    json::text(&Document {
        schema: "becalm.cost-scheduler/1",
        cpu: report.cpu,
        no_trace: report.no_trace.as_deref(),
        rows: report.rows.iter().map(|row| Object(ROW, row)).collect(),
    })
}

/// As a table.
///
/// # Errors
/// If `out` cannot be written.
pub fn render_scheduler(report: &SchedulerReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "CPU {}: ticks and thread switches by the number of runnable threads", report.cpu)?;
    let names: Vec<&str> = ROW.iter().map(|field| field.name).collect();
    let fields = columns(ROW, &names);
    let mut table = Table::new(&fields);
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    if let Some(why) = &report.no_trace {
        paragraph(out, "  ! ", &format!("ticks and pre-emptions need the kernel's trace: {why}"))?;
    }
    Ok(())
}
