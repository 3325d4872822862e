//! The scheduler's cost by the number of runnable threads: `becalm.cost-scheduler/1`, and as a table.

use becalm_analyze::events::EventRate;
use becalm_model::node::Warning;
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Object, columns, fields};
use becalm_report::form::figure::{Rate, Ratio, Share, Time};
use serde::Serialize;

use crate::analysis::SchedulerCost;
use crate::documents::{CostDoc, SchedulerCosts};
use crate::report::events::{self, EventRow};
use crate::report::header::{SiteFields, incomplete, site_fields};

/// The costs of ticks and switches, by ascending numbers of runnable threads.
pub struct SchedulerReport<'a> {
    pub(super) doc: &'a CostDoc,
    pub(super) costs: &'a SchedulerCosts,
    pub(super) rows: Vec<SchedulerCost>,
}

impl<'a> SchedulerReport<'a> {
    /// The report of a stored measurement of the scheduler.
    pub fn new(doc: &'a CostDoc, costs: &'a SchedulerCosts) -> Self {
        Self { doc, costs, rows: costs.rows.iter().map(SchedulerCost::new).collect() }
    }

    /// The kind of task that shared the CPU.
    pub(super) const fn what(&self) -> &'static str {
        if self.costs.processes { "processes" } else { "threads" }
    }

    /// The part of the request that is missing, if any.
    pub(super) fn incomplete(&self) -> Option<String> {
        let (done, planned) = (self.costs.rows.len(), self.costs.runnable.len());
        incomplete(self.doc, done, planned, &format!("numbers of runnable {}", self.what()))
    }

    pub(super) fn document(&self) -> SchedulerDocument<'a> {
        let events = event_rows(self);
        SchedulerDocument {
            site: site_fields(self.doc),
            window_ns: self.costs.window_ns,
            processes: self.costs.processes,
            no_trace: self.costs.no_trace.as_deref(),
            incomplete: self.incomplete(),
            rows: self.rows.iter().map(Object::new).collect(),
            events: events.iter().map(Object::new).collect(),
            not_counted: &self.costs.not_counted,
            warnings: &self.costs.warnings,
        }
    }
}

fields! {
    pub(super) ROW, switching: SchedulerCost {
        RUNNABLE = "runnable", "runnable", |row| row.runnable;
        TICKS_HZ = "ticks_hz", "ticks", |row| row.ticks_hz.map(Rate);
        TICK_MEAN_NS = "tick_mean_ns", "mean tick", |row| row.tick_mean_ns.and_then(Time::rounded);
        TICK_MAX_NS = "tick_max_ns", "max tick", |row| row.tick_max_ns.map(Time);
        PREEMPTIONS_HZ = "preemptions_hz", "preemptions", |row| row.preemptions_hz.map(Rate);
        SWITCH_NS = "switch_ns", "switch", |row| row.switch_ns.and_then(Time::rounded);
        YIELD_NS = "yield_ns", "yield", |row| row.yield_ns.and_then(Time::rounded);
        SWITCHED_RATIO = "switched_ratio", "yields that switch",
            |row| row.switched_ratio.map(Share);
        TICKS_RATIO = "ticks_ratio", "in ticks", |row| row.ticks_ratio.map(Ratio);
        SWITCHES_RATIO = "switches_ratio", "in switches", |row| row.switches_ratio.map(Ratio);
        OVERHEAD_RATIO = "overhead_ratio", "of the CPU", |row| row.overhead_ratio().map(Ratio);
        LOST_EVENTS = catalogue::LOST_EVENTS, |row| row.lost_events;
    }
}

fields! {
    /// The fields of an event, except for the row of its threads.
    pub(super) EVENT, event: EventRow<SchedulerCost> {
        RUNNABLE = switching::RUNNABLE => |row| &row.counted_in;
        EVENT = events::event();
        USER_PER_YIELD = events::user("user_per_yield", "user, per yield");
        KERNEL_PER_YIELD = events::kernel("kernel_per_yield", "kernel, per yield");
        COUNTED_RATIO = events::counted();
    }
}

pub(super) fn event_rows(report: &SchedulerReport<'_>) -> Vec<EventRow<SchedulerCost>> {
    let row = |cost: &SchedulerCost, rate: &EventRate| EventRow { counted_in: cost.clone(), rate: rate.clone() };
    report.rows.iter().flat_map(|cost| cost.events.iter().map(move |rate| row(cost, rate))).collect()
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct SchedulerDocument<'a> {
    #[serde(flatten)]
    site: SiteFields<'a>,
    window_ns: i64,
    /// True if processes shared the CPU; threads of one process otherwise.
    processes: bool,
    no_trace: Option<&'a str>,
    incomplete: Option<String>,
    rows: Vec<Object<SchedulerCost>>,
    /// Counts of the processor in a call to give way.
    events: Vec<Object<EventRow<SchedulerCost>>>,
    not_counted: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [Warning],
}

/// The columns of the table.
pub(super) fn shown_fields(report: &SchedulerReport<'_>) -> Vec<&'static Field<SchedulerCost>> {
    let lost = report.rows.iter().any(|row| row.lost_events.is_some_and(|lost| lost > 0));
    // The parts of the share are only in the document: each is a product of two other columns.
    let left_out = |name: &&str| ["ticks_ratio", "switches_ratio"].contains(name) || !lost && *name == "lost_events";
    let names: Vec<&str> = ROW.iter().map(|field| field.name).filter(|name| !left_out(name)).collect();
    columns(ROW, &names)
}
