//! Injected noise, delivered against requested: `becalm.inject/1`, and as tables.

use std::io::{self, Write};

use becalm_units::Nanos;
use serde::Serialize;

use crate::Value;
use crate::field::{Field, Object, columns};
use crate::header::paragraph;
use crate::json;
use crate::table::Table;

/// Detours, asked for or delivered.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Injected {
    /// How many.
    pub count: u64,
    /// Mean time from one start to the next, in nanoseconds.
    pub interval_ns: Option<f64>,
    /// Its standard deviation, in nanoseconds.
    pub interval_stddev_ns: Option<f64>,
    /// Mean length, in nanoseconds.
    pub length_ns: Option<f64>,
    /// Its standard deviation, in nanoseconds.
    pub length_stddev_ns: Option<f64>,
    /// The shortest and the longest.
    pub ends: Option<(Nanos, Nanos)>,
    /// The share of time that they take.
    pub ratio: Option<f64>,
}

/// What happened on one CPU.
#[derive(Clone, PartialEq, Debug)]
pub struct InjectedCpu {
    /// Which.
    pub cpu: u32,
    /// For how long.
    pub observed: Nanos,
    /// What was due.
    pub requested: Injected,
    /// What was done.
    pub delivered: Injected,
    /// Not done, as the CPU was had only when their time was over.
    pub missed: u64,
    /// Begun right where the one before ended, being late.
    pub joined: u64,
    /// How late starts were: median and 99th percentile.
    pub late: Option<(Nanos, Nanos)>,
    /// What taking the CPU and giving it back costs, which is the shortest detour.
    pub shortest: Nanos,
    /// Of every lap, detours left out as too short, and the time that they take.
    pub left_out: (usize, Nanos),
    /// Of every lap, detours that became one with the one before.
    pub merged: usize,
}

/// A whole injection.
#[derive(Clone, PartialEq, Debug)]
pub struct InjectReport {
    /// What was asked for, in the words of a prediction.
    pub noise: String,
    /// Whether all CPUs and nodes were to lose the same instants.
    pub synchronized: bool,
    /// What random places were drawn from.
    pub seed: u64,
    /// The scheduling class of the injecting threads.
    pub class: String,
    /// CPU by CPU.
    pub cpus: Vec<InjectedCpu>,
}

fn time(ns: Option<f64>) -> Value {
    ns.map_or(Value::Missing, Value::time)
}

fn end(ns: Option<Nanos>) -> Value {
    ns.map_or(Value::Missing, |ns| Value::Time(ns.get()))
}

const FIGURES: &[Field<Injected>] = &[
    Field { name: "count", title: "detours", get: |row| Value::Count(row.count) },
    Field { name: "interval_ns", title: "interval", get: |row| time(row.interval_ns) },
    Field { name: "interval_stddev_ns", title: "stddev", get: |row| time(row.interval_stddev_ns) },
    Field { name: "length_ns", title: "length", get: |row| time(row.length_ns) },
    Field { name: "length_stddev_ns", title: "stddev", get: |row| time(row.length_stddev_ns) },
    Field { name: "length_min_ns", title: "min", get: |row| end(row.ends.map(|ends| ends.0)) },
    Field { name: "length_max_ns", title: "max", get: |row| end(row.ends.map(|ends| ends.1)) },
    Field { name: "ratio", title: "noise", get: |row| row.ratio.map_or(Value::Missing, Value::Ratio) },
];

/// A line of the table: a CPU, and which of the two it is about.
struct Line {
    cpu: Option<u32>,
    what: &'static str,
    figures: Injected,
    late: Option<(Nanos, Nanos)>,
}

const LINE: &[Field<Line>] = &[
    Field {
        name: "cpu",
        title: "cpu",
        get: |line| line.cpu.map_or(Value::Text(String::new()), |cpu| Value::Number(cpu.into())),
    },
    Field { name: "what", title: "", get: |line| Value::Text(line.what.to_owned()) },
    Field { name: "count", title: "detours", get: |line| (FIGURES[0].get)(&line.figures) },
    Field { name: "interval_ns", title: "interval", get: |line| (FIGURES[1].get)(&line.figures) },
    Field { name: "interval_stddev_ns", title: "stddev", get: |line| (FIGURES[2].get)(&line.figures) },
    Field { name: "length_ns", title: "length", get: |line| (FIGURES[3].get)(&line.figures) },
    Field { name: "length_stddev_ns", title: "stddev", get: |line| (FIGURES[4].get)(&line.figures) },
    Field { name: "length_min_ns", title: "min", get: |line| (FIGURES[5].get)(&line.figures) },
    Field { name: "length_max_ns", title: "max", get: |line| (FIGURES[6].get)(&line.figures) },
    Field { name: "ratio", title: "noise", get: |line| (FIGURES[7].get)(&line.figures) },
    Field { name: "late_median_ns", title: "late", get: |line| end(line.late.map(|late| late.0)) },
    Field { name: "late_p99_ns", title: "late p99", get: |line| end(line.late.map(|late| late.1)) },
];

#[derive(Serialize)]
struct Cpu<'a> {
    cpu: u32,
    observed_ns: i64,
    requested: Object<'a, Injected>,
    delivered: Object<'a, Injected>,
    missed: u64,
    joined: u64,
    late_median_ns: Option<i64>,
    late_p99_ns: Option<i64>,
    shortest_ns: i64,
    left_out: usize,
    left_out_ns: i64,
    merged: usize,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    noise: &'a str,
    synchronized: bool,
    seed: u64,
    class: &'a str,
    requested: Object<'a, Injected>,
    delivered: Object<'a, Injected>,
    cpus: Vec<Cpu<'a>>,
}

/// All CPUs together: counts added, means over all detours, noise as the mean over CPUs.
fn together(report: &InjectReport, of: fn(&InjectedCpu) -> &Injected) -> Injected {
    let cpus: Vec<&Injected> = report.cpus.iter().map(of).collect();
    let count: u64 = cpus.iter().map(|cpu| cpu.count).sum();
    let mean = |value: fn(&Injected) -> Option<f64>| {
        let sum: f64 = cpus.iter().filter_map(|cpu| Some(value(cpu)? * cpu.count as f64)).sum();
        let weight: u64 = cpus.iter().filter(|cpu| value(cpu).is_some()).map(|cpu| cpu.count).sum();
        (weight > 0).then(|| sum / weight as f64)
    };
    let ends = cpus.iter().filter_map(|cpu| cpu.ends).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let ratios: Vec<f64> = cpus.iter().filter_map(|cpu| cpu.ratio).collect();
    let ratio = (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64);
    Injected {
        count,
        interval_ns: mean(|cpu| cpu.interval_ns),
        length_ns: mean(|cpu| cpu.length_ns),
        // Spreads of different CPUs are not one spread.
        interval_stddev_ns: if let [cpu] = cpus[..] { cpu.interval_stddev_ns } else { None },
        length_stddev_ns: if let [cpu] = cpus[..] { cpu.length_stddev_ns } else { None },
        ends,
        ratio,
    }
}

/// As `becalm.inject/1`.
#[must_use]
pub fn inject_json(report: &InjectReport) -> String {
    let requested = together(report, |cpu| &cpu.requested);
    let delivered = together(report, |cpu| &cpu.delivered);
    json::text(&Document {
        schema: "becalm.inject/1",
        noise: &report.noise,
        synchronized: report.synchronized,
        seed: report.seed,
        class: &report.class,
        requested: Object(FIGURES, &requested),
        delivered: Object(FIGURES, &delivered),
        cpus: report.cpus.iter().map(json_cpu).collect(),
    })
}

fn json_cpu(cpu: &InjectedCpu) -> Cpu<'_> {
    Cpu {
        cpu: cpu.cpu,
        observed_ns: cpu.observed.get(),
        requested: Object(FIGURES, &cpu.requested),
        delivered: Object(FIGURES, &cpu.delivered),
        missed: cpu.missed,
        joined: cpu.joined,
        late_median_ns: cpu.late.map(|late| late.0.get()),
        late_p99_ns: cpu.late.map(|late| late.1.get()),
        shortest_ns: cpu.shortest.get(),
        left_out: cpu.left_out.0,
        left_out_ns: cpu.left_out.1.get(),
        merged: cpu.merged,
    }
}

/// As a table, two lines a CPU.
///
/// # Errors
/// If `out` cannot be written.
pub fn render_inject(report: &InjectReport, out: &mut dyn Write) -> io::Result<()> {
    let places = match report.synchronized {
        true => "at the same instants on all CPUs".to_owned(),
        false => format!("each CPU from a random place, seed {}", report.seed),
    };
    paragraph(out, "  ", &format!("{}, {places}, by threads of class {}", report.noise, report.class))?;
    writeln!(out)?;
    let names: Vec<&str> = LINE.iter().map(|field| field.name).collect();
    let fields = columns(LINE, &names);
    let mut table = Table::new(&fields);
    for cpu in &report.cpus {
        table.row(&fields, &Line { cpu: Some(cpu.cpu), what: "requested", figures: cpu.requested, late: None });
        table.row(&fields, &Line { cpu: None, what: "delivered", figures: cpu.delivered, late: cpu.late });
    }
    table.print(out)?;
    for cpu in &report.cpus {
        if cpu.missed > 0 {
            let text = format!("CPU {}: {} detours were missed: the CPU could not be had in time", cpu.cpu, cpu.missed);
            paragraph(out, "  ! ", &text)?;
        }
        if cpu.joined > 0 {
            let text = format!("CPU {}: {} detours came late and joined the one before", cpu.cpu, cpu.joined);
            paragraph(out, "  ! ", &text)?;
        }
        if cpu.left_out.0 > 0 {
            let text = format!(
                "CPU {}: of every lap {} detours, {} together, are shorter than the {} that one takes here, and were left out",
                cpu.cpu, cpu.left_out.0, cpu.left_out.1, cpu.shortest
            );
            paragraph(out, "  ! ", &text)?;
        }
        if cpu.merged > 0 {
            let text = format!(
                "CPU {}: of every lap {} detours came too close to the one before and became one with it",
                cpu.cpu, cpu.merged
            );
            paragraph(out, "  ! ", &text)?;
        }
    }
    Ok(())
}
