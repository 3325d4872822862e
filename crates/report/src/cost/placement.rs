//! The cost of an interrupt by placement and kind of instruction: `becalm.cost-placement/1`, and as a table.

use std::io::{self, Write};

use becalm_analyze::cost::PlacedCost;
use becalm_analyze::events::EventRate;
use becalm_model::cost::{CostDoc, PlacementCosts};
use becalm_units::CpuId;
use serde::Serialize;

use crate::Value;
use crate::cost::events;
use crate::cost::header::{self, SiteFields, incomplete, site_fields};
use crate::form::field::{Field, Object, columns};
use crate::form::paragraph::paragraph;
use crate::form::sheet::Sheet;
use crate::form::table::Table;
use crate::form::value::{grouped, time};
use crate::report::Report;

/// What an interrupt costs at every place and for every kind of work.
pub struct PlacementReport<'a> {
    doc: &'a CostDoc,
    costs: &'a PlacementCosts,
    rows: Vec<PlacedCost>,
}

impl<'a> PlacementReport<'a> {
    /// The report of a stored measurement by placement. The measured CPU is the one that was interrupted.
    #[must_use]
    pub fn new(doc: &'a CostDoc, costs: &'a PlacementCosts) -> Self {
        Self { doc, costs, rows: PlacedCost::all(costs) }
    }

    /// What is missing of what was asked for; `None` if nothing is.
    fn incomplete(&self) -> Option<String> {
        let PlacementCosts { rounds, places, bodies, results, .. } = self.costs;
        let planned = (*rounds as usize).saturating_mul(places.len() * bodies.len());
        incomplete(self.doc, results.len(), planned, "measurements")
    }
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
    rate: EventRate,
}

const EVENT: &[Field<EventRow>] = &[
    Field { name: "place", title: "place", get: |row| Value::Text(row.at.place.name().to_owned()) },
    Field { name: "cpu", title: "cpu", get: |row| Value::Number(row.at.cpu.get().into()) },
    Field { name: "body", title: "body", get: |row| Value::Text(row.at.body.clone()) },
    Field { name: "event", title: "event", get: |row| events::name(&row.rate) },
    Field { name: "user_per_interrupt", title: "user, an interrupt", get: |row| events::often(row.rate.user) },
    Field { name: "kernel_per_interrupt", title: "kernel, an interrupt", get: |row| events::often(row.rate.kernel) },
    Field { name: "counted_ratio", title: "counted", get: |row| Value::Share(row.rate.counted_ratio) },
];

fn event_rows(report: &PlacementReport<'_>) -> Vec<EventRow> {
    report
        .rows
        .iter()
        .flat_map(|at| at.events.iter().map(|rate| EventRow { at: at.clone(), rate: rate.clone() }))
        .collect()
}

impl Report for PlacementReport<'_> {
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
    site: SiteFields<'a>,
    interrupted_cpu: CpuId,
    added_hz: u32,
    cell_ns: i64,
    rounds: u32,
    seed: u64,
    incomplete: Option<String>,
    missing: &'a [String],
    rows: Vec<Object>,
    /// What one more interrupt makes the processor count.
    events: Vec<Object>,
    not_counted: &'a [String],
}

/// The fields of `becalm.cost-placement/1`.
fn document<'a>(report: &'a PlacementReport<'_>) -> Document<'a> {
    let events = event_rows(report);
    Document {
        site: site_fields(report.doc),
        interrupted_cpu: report.doc.cpu,
        added_hz: report.costs.added_hz,
        cell_ns: report.costs.cell_ns,
        rounds: report.costs.rounds,
        seed: report.costs.seed,
        incomplete: report.incomplete(),
        missing: &report.costs.missing,
        rows: report.rows.iter().map(|row| Object::new(ROW, row)).collect(),
        events: events.iter().map(|row| Object::new(EVENT, row)).collect(),
        not_counted: &report.costs.not_counted,
    }
}

/// Writes the table.
fn render(report: &PlacementReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    let then = format!(
        "; this CPU takes {} more timer interrupts a second; {} rounds of {}, seed {}",
        grouped(report.costs.added_hz.into()),
        report.costs.rounds,
        time(report.costs.cell_ns),
        report.costs.seed
    );
    header::site(report.doc, &then, out)?;
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
        events::remark(rows.iter().map(|row| &row.rate), out)?;
    }
    events::not_counted(&report.costs.not_counted, out)?;
    report.costs.missing.iter().chain(&report.incomplete()).try_for_each(|text| paragraph(out, "  ! ", text))?;
    writeln!(out)?;
    paragraph(
        out,
        "  ",
        "what one more interrupt of that CPU costs work on the same hardware thread, on its sibling, on another core; low and \
         high: 95% limits of the mean over the rounds (Student). Limits on both sides of zero show no cost",
    )
}
