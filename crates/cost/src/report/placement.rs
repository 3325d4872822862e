//! The cost of an interrupt by placement and kind of instruction: `becalm.cost-placement/1`, and as a table.

use becalm_analyze::events::EventRate;
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Object, fields};
use becalm_report::form::figure::{Rate, Ratio, Time, interval};
use becalm_units::CpuId;
use serde::Serialize;

use crate::analysis::PlacedCost;
use crate::documents::{CostDoc, PlacementCosts, WorkPlace};
use crate::report::events::{self, EventRow};
use crate::report::header::{SiteFields, incomplete, site_fields};

/// The cost of an interrupt at every place and for every kind of work.
pub struct PlacementReport<'a> {
    pub(super) doc: &'a CostDoc,
    pub(super) costs: &'a PlacementCosts,
    pub(super) rows: Vec<PlacedCost>,
}

impl<'a> PlacementReport<'a> {
    /// The report of a stored measurement by placement. The measured CPU is the one that was interrupted.
    pub fn new(doc: &'a CostDoc, costs: &'a PlacementCosts) -> Self {
        Self { doc, costs, rows: PlacedCost::all(costs) }
    }

    /// The part of the request that is missing, if any.
    pub(super) fn incomplete(&self) -> Option<String> {
        let PlacementCosts { rounds, places, bodies, results, .. } = self.costs;
        let planned = (*rounds as usize).saturating_mul(places.len() * bodies.len());
        incomplete(self.doc, results.len(), planned, "measurements")
    }

    pub(super) fn document(&self) -> PlacementDocument<'a> {
        let events = event_rows(self);
        PlacementDocument {
            site: site_fields(self.doc),
            interrupted_cpu: self.doc.cpu,
            added_hz: self.costs.added_hz,
            cell_ns: self.costs.cell_ns,
            rounds: self.costs.rounds,
            seed: self.costs.seed,
            incomplete: self.incomplete(),
            missing: &self.costs.missing,
            rows: self.rows.iter().map(Object::new).collect(),
            events: events.iter().map(Object::new).collect(),
            not_counted: &self.costs.not_counted,
        }
    }
}

fn bound(row: &PlacedCost, end: fn(&crate::analysis::tick::RoundsInterval) -> f64) -> Option<Time> {
    row.cost.and_then(|cost| cost.bounds).and_then(|bounds| Time::rounded(end(&bounds)))
}

fields! {
    pub(super) ROW, placed: PlacedCost {
        PLACE = "place", "place", |row| row.place.name();
        CPU = catalogue::CPU, |row| match row.place {
            WorkPlace::Unbound => None,
            _ => Some(row.cpu),
        };
        BODY = "body", "body", |row| row.body.clone();
        COST_NS = "cost_ns", "cost of an interrupt",
            |row| row.cost.and_then(|cost| Time::rounded(cost.mean_ns));
        COST_NS_LOW = "cost_ns_low", "low", |row| bound(row, |bounds| bounds.low);
        COST_NS_HIGH = "cost_ns_high", "high", |row| bound(row, |bounds| bounds.high);
        ROUNDS = "rounds", "rounds", |row| row.cost.map_or(0, |cost| cost.rounds as u64);
        THERE_RATIO = "there_ratio", "on that CPU", |row| row.roamed.map(|(there, _)| Ratio(there));
        MOVES_HZ = "moves_hz", "moves", |row| row.roamed.map(|(_, moves)| Rate(moves));
    }
}

fields! {
    /// A column only of tables.
    placed_columns: PlacedCost {
        INTERVAL = "interval", "95 % CI",
            |row| interval(bound(row, |bounds| bounds.low), bound(row, |bounds| bounds.high));
    }
}

fields! {
    /// The fields of an event, except for its place.
    pub(super) EVENT, event: EventRow<PlacedCost> {
        PLACE = placed::PLACE => |row| &row.counted_in;
        CPU = placed::CPU => |row| &row.counted_in;
        BODY = placed::BODY => |row| &row.counted_in;
        EVENT = events::event();
        USER_PER_INTERRUPT = events::user("user_per_interrupt", "user, per interrupt");
        KERNEL_PER_INTERRUPT = events::kernel("kernel_per_interrupt", "kernel, per interrupt");
        COUNTED_RATIO = events::counted();
    }
}

/// The columns of the costs; those of unbound work only if there was any.
pub(super) fn shown(report: &PlacementReport<'_>) -> Vec<&'static Field<PlacedCost>> {
    let roamed = report.rows.iter().any(|row| row.roamed.is_some());
    let mut fields = vec![&placed::PLACE, &placed::CPU, &placed::BODY, &placed::COST_NS, &placed_columns::INTERVAL];
    fields.push(&placed::ROUNDS);
    fields.extend([&placed::THERE_RATIO, &placed::MOVES_HZ].into_iter().filter(|_| roamed));
    fields
}

pub(super) fn event_rows(report: &PlacementReport<'_>) -> Vec<EventRow<PlacedCost>> {
    let row = |cost: &PlacedCost, rate: &EventRate| EventRow { counted_in: cost.clone(), rate: rate.clone() };
    report.rows.iter().flat_map(|cost| cost.events.iter().map(move |rate| row(cost, rate))).collect()
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct PlacementDocument<'a> {
    #[serde(flatten)]
    site: SiteFields<'a>,
    interrupted_cpu: CpuId,
    added_hz: u32,
    cell_ns: i64,
    rounds: u32,
    seed: u64,
    incomplete: Option<String>,
    missing: &'a [String],
    rows: Vec<Object<PlacedCost>>,
    /// Counts of the processor that one more interrupt adds.
    events: Vec<Object<EventRow<PlacedCost>>>,
    not_counted: &'a [String],
}
