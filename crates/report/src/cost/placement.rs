//! The cost of an interrupt by placement and kind of instruction: `becalm.cost-placement/1`, and as a table.

use std::io::{self, Write};

use becalm_analyze::cost::PlacedCost;
use becalm_analyze::events::EventRate;
use serde::Serialize;

use crate::Value;
use crate::cost::events;
use crate::cost::probe::{CostPlace, PlaceDocument};
use crate::form::field::{Field, Object, columns};
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{grouped, time};
use crate::report::Report;

/// All places and kinds of work.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacementReport {
    /// Where; its CPU is the one that was interrupted.
    pub place: CostPlace,
    /// Interrupts a second that were added to its own.
    pub added_hz: u32,
    /// How long one measurement was to take.
    pub cell_ns: i64,
    /// How often everything was to be measured.
    pub rounds: u32,
    /// The seed of the order.
    pub seed: u64,
    /// The costs.
    pub rows: Vec<PlacedCost>,
    /// Which places there are not, and why.
    pub missing: Vec<String>,
    /// Which events of the processor are not counted, and why.
    pub not_counted: Vec<String>,
    /// What is missing of what was asked for.
    pub incomplete: Option<String>,
}

fn bound(row: &PlacedCost, end: fn(&becalm_analyze::cost::tick::Bounds) -> f64) -> Value {
    row.cost.and_then(|cost| cost.bounds).map_or(Value::Missing, |bounds| Value::time(end(&bounds)))
}

const ROW: &[Field<PlacedCost>] = &[
    Field { name: "place", title: "place", get: |row| Value::Text(row.place.name().to_owned()) },
    Field { name: "cpu", title: "cpu", get: |row| Value::Number(row.cpu.get().into()) },
    Field { name: "body", title: "body", get: |row| Value::Text(row.body.clone()) },
    Field {
        name: "cost_ns",
        title: "cost of an interrupt",
        get: |row| row.cost.map_or(Value::Missing, |cost| Value::time(cost.mean_ns)),
    },
    Field { name: "cost_ns_low", title: "low", get: |row| bound(row, |bounds| bounds.low) },
    Field { name: "cost_ns_high", title: "high", get: |row| bound(row, |bounds| bounds.high) },
    Field { name: "rounds", title: "rounds", get: |row| Value::Count(row.cost.map_or(0, |cost| cost.rounds as u64)) },
];

/// An event beside where it was counted.
struct EventRow {
    at: PlacedCost,
    of: EventRate,
}

const EVENT: &[Field<EventRow>] = &[
    Field { name: "place", title: "place", get: |row| Value::Text(row.at.place.name().to_owned()) },
    Field { name: "cpu", title: "cpu", get: |row| Value::Number(row.at.cpu.get().into()) },
    Field { name: "body", title: "body", get: |row| Value::Text(row.at.body.clone()) },
    Field { name: "event", title: "event", get: |row| events::name(&row.of) },
    Field { name: "user_per_interrupt", title: "user, an interrupt", get: |row| events::often(row.of.user) },
    Field { name: "kernel_per_interrupt", title: "kernel, an interrupt", get: |row| events::often(row.of.kernel) },
    Field { name: "counted_ratio", title: "counted", get: |row| Value::Share(row.of.counted_ratio) },
];

fn event_rows(report: &PlacementReport) -> Vec<EventRow> {
    report.rows.iter().flat_map(|at| at.events.iter().map(|of| EventRow { at: at.clone(), of: of.clone() })).collect()
}

impl Report for PlacementReport {
    fn schema(&self) -> &'static str {
        "becalm.cost-placement/1"
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
    place: PlaceDocument<'a>,
    interrupted_cpu: u32,
    added_hz: u32,
    cell_ns: i64,
    rounds: u32,
    seed: u64,
    incomplete: Option<&'a str>,
    missing: &'a [String],
    rows: Vec<Object>,
    /// What one more interrupt makes the processor count.
    events: Vec<Object>,
    not_counted: &'a [String],
}

/// As `becalm.cost-placement/1`.
fn document(report: &PlacementReport) -> Document<'_> {
    let events = event_rows(report);
    Document {
        place: report.place.document(),
        interrupted_cpu: report.place.cpu.get(),
        added_hz: report.added_hz,
        cell_ns: report.cell_ns,
        rounds: report.rounds,
        seed: report.seed,
        incomplete: report.incomplete.as_deref(),
        missing: &report.missing,
        rows: report.rows.iter().map(|row| Object::new(ROW, row)).collect(),
        events: events.iter().map(|row| Object::new(EVENT, row)).collect(),
        not_counted: &report.not_counted,
    }
}

/// As a table.
fn render(report: &PlacementReport, out: &mut Sheet<'_>) -> io::Result<()> {
    let of = format!(
        "; this CPU takes {} more timer interrupts a second; {} rounds of {}, seed {}",
        grouped(report.added_hz.into()),
        report.rounds,
        time(report.cell_ns),
        report.seed
    );
    report.place.render(&of, out)?;
    let names: Vec<&str> = ROW.iter().map(|field| field.name).collect();
    let fields = columns(ROW, &names);
    let mut table = Table::new(&fields);
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    let rows = event_rows(report);
    if !rows.is_empty() {
        writeln!(
            out,
            "\nThe processor's counters: what one more interrupt adds, in the work itself (user) and in the kernel"
        )?;
        let fields: Vec<&Field<EventRow>> = EVENT.iter().collect();
        let mut table = Table::new(&fields);
        rows.iter().for_each(|row| table.row(&fields, row));
        table.print(out)?;
        events::remark(rows.iter().map(|row| &row.of), out)?;
    }
    events::not_counted(&report.not_counted, out)?;
    report.missing.iter().chain(&report.incomplete).try_for_each(|text| paragraph(out, "  ! ", text))?;
    writeln!(out)?;
    paragraph(
        out,
        "  ",
        "what one more interrupt of that CPU costs work on the same hardware thread, on its sibling, on another core; low and \
         high: 95% limits of the mean over the rounds (Student). Limits on both sides of zero show no cost",
    )
}
