//! What traps and detours cost, for a terminal and as `becalm.cost-trap/1` and `becalm.cost-detours/1`.

use std::io::{self, Write};

use becalm_analyze::cost::{Cost, MeasuredCost};
use becalm_units::CpuId;
use serde::Serialize;

use crate::Value;
use crate::cost::events;
use crate::form::field::{Field, Object, columns};
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{picos, three_digits};
use crate::report::Report;

/// Where costs were measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CostPlace {
    /// The machine's name.
    pub node: String,
    /// Its kernel's release.
    pub kernel: String,
    /// The hypervisor, where the processor admits to one.
    pub hypervisor: Option<String>,
    /// Its processor.
    pub processor: String,
    /// The measured CPU.
    pub cpu: CpuId,
    /// Why this one.
    pub cpu_reason: String,
    /// The CPU that takes part in what needs two.
    pub other_cpu: Option<CpuId>,
    /// The scheduling class of what was measured.
    pub class: String,
}

/// Where and with what costs were measured.
#[derive(Clone, PartialEq, Debug)]
pub struct CostHeader {
    /// Where.
    pub place: CostPlace,
    /// The counter that timed.
    pub counter: String,
    /// Its rate, in 1/s.
    pub rate_hz: f64,
    /// The largest relative error of the rate.
    pub rate_error_ratio: f64,
    /// What reading it around a sample costs, in picoseconds; taken from each sample.
    pub overhead_ps: i64,
    /// Which events of the processor are not counted, and why, a line for each reason.
    pub events_not_counted: Vec<String>,
}

/// A row: what was measured, or the reason why it was not.
#[derive(Clone, PartialEq, Debug)]
pub struct CostRow {
    /// Its stable name.
    pub name: String,
    /// What it is.
    pub what: String,
    /// How it was measured.
    pub method: String,
    /// The cost, or the reason.
    pub outcome: Result<MeasuredCost, String>,
}

/// Which command reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CostKind {
    /// `becalm cost trap`.
    Trap,
    /// `becalm cost detours`.
    Detours,
}

/// What traps or detours cost.
#[derive(Clone, PartialEq, Debug)]
pub struct CostReport {
    /// Which command.
    pub kind: CostKind,
    /// Where.
    pub header: CostHeader,
    /// What.
    pub rows: Vec<CostRow>,
    /// What is missing of what was to be measured.
    pub incomplete: Option<String>,
}

/// The order of magnitude that Beckman et al. 2007 give for a row of their catalogue of detours (section 2).
fn published_ns(name: &str) -> Option<i64> {
    match name {
        "memory" | "tlb_miss" => Some(100),
        "interrupt" | "pte_miss" | "tick" => Some(1_000),
        "fault_minor" | "fault_cow" => Some(10_000),
        "swap_in" | "preemption" => Some(10_000_000),
        _ => None,
    }
}

fn of(row: &CostRow, get: impl Fn(&MeasuredCost) -> Value) -> Value {
    row.outcome.as_ref().map_or(Value::Missing, get)
}

fn ps(value: Option<i64>) -> Value {
    value.map_or(Value::Missing, Value::Picos)
}

fn end_of(cost: &Cost, end: impl Fn((i64, i64)) -> i64) -> Value {
    ps(cost.interval_ps.map(end))
}

/// The fields of a row.
const ROW: &[Field<CostRow>] = &[
    Field { name: "name", title: "name", get: |row| Value::Text(row.name.clone()) },
    Field { name: "what", title: "what", get: |row| Value::Text(row.what.clone()) },
    Field { name: "median_ps", title: "median", get: |row| of(row, |m| Value::Picos(m.cost.median_ps)) },
    Field { name: "median_low_ps", title: "low", get: |row| of(row, |m| end_of(&m.cost, |ends| ends.0)) },
    Field { name: "median_high_ps", title: "high", get: |row| of(row, |m| end_of(&m.cost, |ends| ends.1)) },
    Field { name: "mean_ps", title: "mean", get: |row| of(row, |m| Value::Picos(m.cost.mean_ps.round() as i64)) },
    Field { name: "min_ps", title: "min", get: |row| of(row, |m| Value::Picos(m.cost.min_ps)) },
    Field { name: "p5_ps", title: "p5", get: |row| of(row, |m| Value::Picos(m.cost.p5_ps)) },
    Field { name: "p95_ps", title: "p95", get: |row| of(row, |m| Value::Picos(m.cost.p95_ps)) },
    Field { name: "max_ps", title: "max", get: |row| of(row, |m| Value::Picos(m.cost.max_ps)) },
    Field { name: "samples", title: "samples", get: |row| of(row, |m| Value::Count(m.cost.samples)) },
    Field { name: "batch", title: "each of", get: |row| of(row, |m| Value::Count(m.cost.batch.into())) },
    Field { name: "slow", title: "slow", get: |row| of(row, |m| Value::Count(m.cost.slow)) },
    Field { name: "interrupted", title: "interrupted", get: |row| of(row, |m| Value::Count(m.cost.interrupted)) },
    Field {
        name: "interrupted_excess_ps",
        title: "took",
        get: |row| of(row, |m| Value::Picos(m.cost.interrupted_excess_ps)),
    },
    Field {
        name: "interrupts",
        title: "interrupts",
        get: |row| of(row, |m| m.interrupts.map_or(Value::Missing, Value::Count)),
    },
    Field { name: "preempted", title: "pre-empted", get: |row| of(row, |m| Value::Count(m.preempted)) },
    Field {
        name: "published_ns",
        title: "B07",
        get: |row| published_ns(&row.name).map_or(Value::Missing, Value::Time),
    },
    Field { name: "method", title: "method", get: |row| Value::Text(row.method.clone()) },
    Field {
        name: "not_measured",
        title: "why not",
        get: |row| row.outcome.as_ref().err().map_or(Value::Missing, |why| Value::Text(why.clone())),
    },
];

/// The place's part of a document.
#[derive(Serialize)]
pub(crate) struct PlaceDocument<'a> {
    node: &'a str,
    kernel: &'a str,
    hypervisor: Option<&'a str>,
    processor: &'a str,
    cpu: u32,
    cpu_reason: &'a str,
    other_cpu: Option<u32>,
    class: &'a str,
}

/// The header's part of a document.
#[derive(Serialize)]
pub(crate) struct HeaderDocument<'a> {
    #[serde(flatten)]
    place: PlaceDocument<'a>,
    counter: &'a str,
    rate_hz: f64,
    rate_error_ratio: f64,
    overhead_ps: i64,
    events_not_counted: &'a [String],
}

impl CostPlace {
    pub(crate) fn document(&self) -> PlaceDocument<'_> {
        PlaceDocument {
            node: &self.node,
            kernel: &self.kernel,
            hypervisor: self.hypervisor.as_deref(),
            processor: &self.processor,
            cpu: self.cpu.get(),
            cpu_reason: &self.cpu_reason,
            other_cpu: self.other_cpu.map(CpuId::get),
            class: &self.class,
        }
    }

    /// The machine, and then the CPU and the class in words.
    pub(crate) fn render(&self, then: &str, out: &mut Sheet<'_>) -> io::Result<()> {
        let Self { node, kernel, processor, cpu, cpu_reason, class, .. } = self;
        let on = self.hypervisor.as_ref().map_or_else(String::new, |name| format!(", a virtual machine of {name}"));
        paragraph(out, "  ", &format!("{node}: Linux {kernel}, {processor}{on}"))?;
        paragraph(out, "  ", &format!("CPU {cpu} ({cpu_reason}), class {class}{then}"))?;
        writeln!(out)
    }
}

impl CostHeader {
    pub(crate) fn document(&self) -> HeaderDocument<'_> {
        HeaderDocument {
            place: self.place.document(),
            counter: &self.counter,
            rate_hz: self.rate_hz,
            rate_error_ratio: self.rate_error_ratio,
            overhead_ps: self.overhead_ps,
            events_not_counted: &self.events_not_counted,
        }
    }

    pub(crate) fn render(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        let clock = format!(
            "; timed by {} at {} MHz, known to {}%; the {} of reading it around a sample are taken off",
            self.counter,
            three_digits(self.rate_hz / 1e6),
            three_digits(self.rate_error_ratio * 100.0),
            picos(self.overhead_ps),
        );
        self.place.render(&clock, out)
    }
}

impl Report for CostReport {
    fn schema(&self) -> &'static str {
        match self.kind {
            CostKind::Trap => "becalm.cost-trap/1",
            CostKind::Detours => "becalm.cost-detours/1",
        }
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
    incomplete: Option<&'a str>,
    rows: Vec<Object>,
    events: Vec<Object>,
}

/// As `becalm.cost-trap/1` or `becalm.cost-detours/1`.
fn document(report: &CostReport) -> Document<'_> {
    let events = counted(report);
    Document {
        header: report.header.document(),
        incomplete: report.incomplete.as_deref(),
        rows: report.rows.iter().map(|row| Object::new(ROW, row)).collect(),
        events: events.iter().map(|row| Object::new(events::ROW, row)).collect(),
    }
}

fn counted(report: &CostReport) -> Vec<events::Row> {
    events::rows(report.rows.iter().map(|row| (row.name.as_str(), row.outcome.as_ref().ok())))
}

/// As a table, with what could not be measured and how the rest was measured below it.
fn render(report: &CostReport, out: &mut Sheet<'_>) -> io::Result<()> {
    report.header.render(out)?;
    let names: &[&str] = match report.kind {
        CostKind::Trap => &[
            "what",
            "median_ps",
            "median_low_ps",
            "median_high_ps",
            "mean_ps",
            "min_ps",
            "p5_ps",
            "p95_ps",
            "samples",
            "slow",
            "interrupted",
        ],
        CostKind::Detours => &[
            "what",
            "published_ns",
            "median_ps",
            "median_low_ps",
            "median_high_ps",
            "min_ps",
            "p5_ps",
            "p95_ps",
            "samples",
            "slow",
            "interrupted",
        ],
    };
    let fields = columns(ROW, names);
    let mut table = Table::new(&fields);
    table.keep_names_long();
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    for row in &report.rows {
        if let Err(why) = &row.outcome {
            paragraph(out, "  ! ", &format!("{}: not measured: {why}", row.what))?;
        }
    }
    events::table(&counted(report), out)?;
    events::not_counted(&report.header.events_not_counted, out)?;
    report.incomplete.iter().try_for_each(|text| paragraph(out, "  ! ", text))?;
    writeln!(out)?;
    for row in report.rows.iter().filter(|row| row.outcome.is_ok()) {
        paragraph(out, "  - ", &format!("{}: {}", row.what, row.method))?;
    }
    writeln!(out)?;
    explain(out)?;
    if report.kind == CostKind::Detours {
        paragraph(out, "  ", "B07: the magnitudes that Beckman et al. gave in 2007, on the machines of that time")?;
    }
    Ok(())
}

/// What the columns mean that all cost tables have.
pub(crate) fn explain(out: &mut Sheet<'_>) -> io::Result<()> {
    let text = "low and high: interval of the median, 95% or more, from the medians of the rounds. slow: samples at least 1us \
                beyond the others. interrupted: the slowest of those, as many as the kernel counted interrupts and \
                pre-emptions; they are in the percentiles and not in the mean";
    paragraph(out, "  ", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::sheet::Form;
    use crate::report;

    fn header() -> CostHeader {
        let place = CostPlace {
            node: "node1".to_owned(),
            kernel: "6.1.0".to_owned(),
            hypervisor: None,
            processor: "a processor".to_owned(),
            cpu: CpuId::new(3),
            cpu_reason: "as asked".to_owned(),
            other_cpu: None,
            class: "other".to_owned(),
        };
        CostHeader {
            place,
            counter: "tsc".to_owned(),
            rate_hz: 2.5e9,
            rate_error_ratio: 1e-6,
            overhead_ps: 20_400,
            events_not_counted: Vec::new(),
        }
    }

    fn report(kind: CostKind) -> CostReport {
        let rounds: Vec<Vec<i64>> = (0..20).map(|round| vec![1_130 + round, 1_140, 9_000_000]).collect();
        let cost = Cost::of(&rounds, 1, None).unwrap();
        let row = |name: &str, outcome| CostRow {
            name: name.to_owned(),
            what: format!("the {name}"),
            method: "by hand".to_owned(),
            outcome,
        };
        let measured = MeasuredCost { cost, interrupts: Some(21), preempted: 0, events: Vec::new() };
        CostReport {
            kind,
            header: header(),
            incomplete: None,
            rows: vec![row("memory", Ok(measured)), row("swap_in", Err("no swap here".to_owned()))],
        }
    }

    fn text(report: &CostReport) -> String {
        report::text(report, Form::default())
    }

    #[test]
    fn what_is_missing_is_said_and_what_is_there_has_its_method() {
        let text = text(&report(CostKind::Detours));
        assert!(text.contains("  the memory    100ns  1.14ns"), "{text}");
        assert!(text.contains("  the swap_in  10.0ms       -"), "{text}");
        assert!(text.contains("! the swap_in: not measured: no swap here"), "{text}");
        assert!(text.contains("- the memory: by hand") && !text.contains("- the swap_in: by hand"), "{text}");
        assert!(text.contains("CPU 3 (as asked), class other; timed by tsc at 2500 MHz"), "{text}");
    }

    #[test]
    fn documents_hold_every_field_of_every_row() {
        for (kind, schema) in [(CostKind::Trap, "becalm.cost-trap/1"), (CostKind::Detours, "becalm.cost-detours/1")] {
            let document: serde_json::Value = serde_json::from_str(&report::json(&report(kind))).unwrap();
            assert_eq!(document["schema"], schema);
            assert_eq!((&document["cpu"], &document["overhead_ps"]), (&3.into(), &20_400.into()));
            let [memory, swap] = document["rows"].as_array().unwrap().as_slice() else { panic!("{document}") };
            assert_eq!((&memory["published_ns"], &memory["interrupts"]), (&100.into(), &21.into()));
            assert_eq!(memory["median_ps"], 1_140);
            assert!(memory["not_measured"].is_null() && swap["median_ps"].is_null());
            assert_eq!(swap["not_measured"], "no swap here");
            assert_eq!(memory.as_object().unwrap().len(), ROW.len());
        }
    }
}
