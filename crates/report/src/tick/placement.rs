//! The cost of an interrupt by placement and kind of instruction: `becalm.cost-placement/1`, and as a table.

use std::io::{self, Write};

use becalm_analyze::tick::PlacementCost;
use serde::Serialize;

use crate::Value;
use crate::field::{Field, Object, columns};
use crate::header::paragraph;
use crate::json;
use crate::table::Table;

/// The cost at a place.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacementRow {
    /// Where the work ran, as seen from the interrupts: `same`, `sibling`, `other`.
    pub place: &'static str,
    /// That CPU.
    pub cpu: u32,
    /// The work.
    pub body: String,
    /// Nothing where the interrupt rate did not rise.
    pub cost: Option<PlacementCost>,
}

/// All places and kinds of work.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacementReport {
    /// The CPU that was interrupted.
    pub interrupted: u32,
    /// Interrupts a second that were added to its own.
    pub added_hz: u32,
    /// The seed of the order.
    pub seed: u64,
    /// The costs.
    pub rows: Vec<PlacementRow>,
    /// Which places there are not, and why.
    pub missing: Vec<String>,
}

fn bound(row: &PlacementRow, end: fn(&becalm_analyze::tick::Bounds) -> f64) -> Value {
    row.cost.and_then(|cost| cost.bounds).map_or(Value::Missing, |bounds| Value::time(end(&bounds)))
}

const ROW: &[Field<PlacementRow>] = &[
    Field { name: "place", title: "place", get: |row| Value::Text(row.place.to_owned()) },
    Field { name: "cpu", title: "cpu", get: |row| Value::Number(row.cpu.into()) },
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

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    interrupted_cpu: u32,
    added_hz: u32,
    seed: u64,
    missing: &'a [String],
    rows: Vec<Object<'a, PlacementRow>>,
}

/// As `becalm.cost-placement/1`.
#[must_use]
pub fn placement_json(report: &PlacementReport) -> String {
    json::text(&Document {
        schema: "becalm.cost-placement/1",
        interrupted_cpu: report.interrupted,
        added_hz: report.added_hz,
        seed: report.seed,
        missing: &report.missing,
        rows: report.rows.iter().map(|row| Object(ROW, row)).collect(),
    })
}

/// As a table.
///
/// # Errors
/// If `out` cannot be written.
pub fn render_placement(report: &PlacementReport, out: &mut dyn Write) -> io::Result<()> {
    let of = format!("CPU {} takes {} more timer interrupts a second", report.interrupted, report.added_hz);
    writeln!(out, "{of}; what one of them costs work elsewhere (seed {})", report.seed)?;
    let names: Vec<&str> = ROW.iter().map(|field| field.name).collect();
    let fields = columns(ROW, &names);
    let mut table = Table::new(&fields);
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    report.missing.iter().try_for_each(|text| paragraph(out, "  ! ", text))
}
