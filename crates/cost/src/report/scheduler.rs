//! The scheduler's cost by the number of runnable threads: `becalm.cost-scheduler/1`, and as a table.

use std::io::{self, Write};

use becalm_analyze::events::EventRate;
use becalm_model::node::Warning;
use becalm_report::Report;
use becalm_report::catalogue;
use becalm_report::form::field::{Field, Object, columns, fields};
use becalm_report::form::figure::{Rate, Ratio, Share, Time};
use becalm_report::form::paragraph::paragraph;
use becalm_report::form::sheet::Sheet;
use becalm_report::form::table::Table;
use becalm_report::form::value::time as time_of;
use becalm_report::html::Page;
use serde::Serialize;

use crate::analysis::SchedulerCost;
use crate::documents::{CostDoc, SchedulerCosts};
use crate::report::events::{self, EventRow};
use crate::report::header::{self, SiteFields, incomplete, site_fields};
use crate::report::view;

/// What ticks and switches cost, by rising numbers of runnable threads.
pub struct SchedulerReport<'a> {
    pub(super) doc: &'a CostDoc,
    pub(super) costs: &'a SchedulerCosts,
    pub(super) rows: Vec<SchedulerCost>,
}

impl<'a> SchedulerReport<'a> {
    /// The report of a stored measurement of the scheduler.
    #[must_use]
    pub fn new(doc: &'a CostDoc, costs: &'a SchedulerCosts) -> Self {
        Self { doc, costs, rows: costs.rows.iter().map(SchedulerCost::new).collect() }
    }

    /// What shared the CPU.
    pub(super) const fn what(&self) -> &'static str {
        if self.costs.processes { "processes" } else { "threads" }
    }

    /// What is missing of what was asked for; `None` if nothing is.
    pub(super) fn incomplete(&self) -> Option<String> {
        let (done, planned) = (self.costs.rows.len(), self.costs.runnable.len());
        incomplete(self.doc, done, planned, &format!("numbers of runnable {}", self.what()))
    }
}

fields! {
    pub(super) ROW, switching: SchedulerCost {
        RUNNABLE = "runnable", "runnable", |row| row.runnable;
        TICKS_HZ = "ticks_hz", "ticks", |row| row.ticks_hz.map(Rate);
        TICK_MEAN_NS = "tick_mean_ns", "mean tick", |row| row.tick_mean_ns.and_then(Time::rounded);
        TICK_MAX_NS = "tick_max_ns", "max tick", |row| row.tick_max_ns.map(Time);
        PREEMPTIONS_HZ = "preemptions_hz", "pre-emptions", |row| row.preemptions_hz.map(Rate);
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
    /// The fields of an event beside the row of the threads in which it was counted.
    pub(super) EVENT, event: EventRow<SchedulerCost> {
        RUNNABLE = switching::RUNNABLE => |row| &row.counted_in;
        EVENT = events::event();
        USER_PER_YIELD = events::user("user_per_yield", "user, a yield");
        KERNEL_PER_YIELD = events::kernel("kernel_per_yield", "kernel, a yield");
        COUNTED_RATIO = events::counted();
    }
}

pub(super) fn event_rows(report: &SchedulerReport<'_>) -> Vec<EventRow<SchedulerCost>> {
    let row = |cost: &SchedulerCost, rate: &EventRate| EventRow { counted_in: cost.clone(), rate: rate.clone() };
    report.rows.iter().flat_map(|cost| cost.events.iter().map(move |rate| row(cost, rate))).collect()
}

impl Report for SchedulerReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.cost-scheduler/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        render(self, out)
    }

    fn page(&self, program: &str) -> Option<Page> {
        Some(view::scheduler::page(self, program))
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct SchedulerDocument<'a> {
    #[serde(flatten)]
    site: SiteFields<'a>,
    window_ns: i64,
    /// Whether processes shared the CPU; threads of one process otherwise.
    processes: bool,
    no_trace: Option<&'a str>,
    incomplete: Option<String>,
    rows: Vec<Object<SchedulerCost>>,
    /// What the processor counted in a call to give way.
    events: Vec<Object<EventRow<SchedulerCost>>>,
    not_counted: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [Warning],
}

/// The fields of `becalm.cost-scheduler/1`.
fn document<'a>(report: &'a SchedulerReport<'_>) -> SchedulerDocument<'a> {
    let events = event_rows(report);
    SchedulerDocument {
        site: site_fields(report.doc),
        window_ns: report.costs.window_ns,
        processes: report.costs.processes,
        no_trace: report.costs.no_trace.as_deref(),
        incomplete: report.incomplete(),
        rows: report.rows.iter().map(Object::new).collect(),
        events: events.iter().map(Object::new).collect(),
        not_counted: &report.costs.not_counted,
        warnings: &report.costs.warnings,
    }
}

fn render(report: &SchedulerReport<'_>, out: &mut Sheet<'_>) -> io::Result<()> {
    header::site(
        report.doc,
        &format!(
            "; each number of {} for {} with the kernel's trace and as long without",
            report.what(),
            time_of(report.costs.window_ns)
        ),
        out,
    )?;
    let fields = shown_fields(report);
    let mut table = Table::new(&fields);
    report.rows.iter().for_each(|row| table.row(&fields, row));
    table.print(out)?;
    let title = " in a call to give way of a thread: in the thread itself (user), and in the kernel";
    let fields: Vec<&Field<EventRow<SchedulerCost>>> = EVENT.iter().collect();
    events::table(title, Table::new(&fields), &fields, &event_rows(report), out)?;
    events::not_counted(&report.costs.not_counted, out)?;
    if let Some(why) = &report.costs.no_trace {
        paragraph(out, "  ! ", &format!("ticks and pre-emptions need the kernel's trace: {why}"))?;
    }
    for warning in &report.costs.warnings {
        paragraph(out, "  ! ", &warning.message)?;
        paragraph(out, "    \u{2192} ", &warning.advice)?;
    }
    report.incomplete().iter().try_for_each(|text| paragraph(out, "  ! ", text))?;
    writeln!(out)?;
    paragraph(out, "  ", &meaning(report))
}

/// The columns of the table.
pub(super) fn shown_fields(report: &SchedulerReport<'_>) -> Vec<&'static Field<SchedulerCost>> {
    let lost = report.rows.iter().any(|row| row.lost_events.is_some_and(|lost| lost > 0));
    // The parts of the share stand in the document: each is a product of two other columns.
    let left_out = |name: &&str| ["ticks_ratio", "switches_ratio"].contains(name) || !lost && *name == "lost_events";
    let names: Vec<&str> = ROW.iter().map(|field| field.name).filter(|name| !left_out(name)).collect();
    columns(ROW, &names)
}

/// What the columns mean.
pub(super) fn meaning(report: &SchedulerReport<'_>) -> String {
    format!(
        "ticks: the kernel's record of its timer handler while the {0} only count; pre-emptions: switches meanwhile. switch: time of \
         {0} that pass the CPU along by sched_yield, by the switches that the kernel counts; yield: by their calls; of the CPU: what \
         ticks and pre-emptions take together",
        report.what()
    )
}
