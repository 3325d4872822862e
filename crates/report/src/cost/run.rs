//! A stored measurement of costs, whatever the command that made it: the documents and tables of `becalm cost clock`, `trap`,
//! `detours`, `scheduler` and `placement`.

use std::io;

use becalm_analyze::cost::PlacedCost;
use becalm_analyze::cost::{MeasuredCost, SchedulerCost};
use becalm_model::cost::{
    BY_SYSCALL, ClockCosts, ClockWayDoc, CostDoc, CostRun, InstrumentDoc, Measured, PlacementCosts, ProbeCosts,
    ProbeDoc, SchedulerCosts, SeriesDoc,
};
use becalm_model::node::Ended;
use serde::Serialize;

use super::clock::{ClockCost, ClockReport};
use super::placement::PlacementReport;
use super::probe::{CostHeader, CostKind, CostPlace, CostReport, CostRow};
use super::scheduler::SchedulerReport;
use crate::form::sheet::Sheet;
use crate::report::Report;

/// A stored measurement, as the command that made it has it.
pub enum CostRunReport {
    /// That of `becalm cost clock`.
    Clock(ClockReport),
    /// That of `becalm cost trap` or `detours`.
    Cost(CostReport),
    /// That of `becalm cost scheduler`.
    Scheduler(SchedulerReport),
    /// That of `becalm cost placement`.
    Placement(PlacementReport),
}

/// The document of one of four reports.
#[derive(Serialize)]
#[serde(untagged)]
enum OneDocument<A, B, C, D> {
    Clock(A),
    Cost(B),
    Scheduler(C),
    Placement(D),
}

impl CostRunReport {
    /// The report of a stored measurement.
    #[must_use]
    pub fn new(run: &CostRun) -> Self {
        let doc = &run.doc;
        match &doc.measured {
            Measured::Clock(costs) => Self::Clock(clocks(run, costs)),
            Measured::Trap(costs) => Self::Cost(probes(run, costs, CostKind::Trap)),
            Measured::Detours(costs) => Self::Cost(probes(run, costs, CostKind::Detours)),
            Measured::Scheduler(costs) => Self::Scheduler(scheduler(doc, costs)),
            Measured::Placement(costs) => Self::Placement(placement(doc, costs)),
        }
    }
}

impl Report for CostRunReport {
    fn schema(&self) -> &'static str {
        match self {
            Self::Clock(report) => report.schema(),
            Self::Cost(report) => report.schema(),
            Self::Scheduler(report) => report.schema(),
            Self::Placement(report) => report.schema(),
        }
    }

    fn document(&self) -> impl Serialize {
        match self {
            Self::Clock(report) => OneDocument::Clock(report.document()),
            Self::Cost(report) => OneDocument::Cost(report.document()),
            Self::Scheduler(report) => OneDocument::Scheduler(report.document()),
            Self::Placement(report) => OneDocument::Placement(report.document()),
        }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        match self {
            Self::Clock(report) => report.text(out),
            Self::Cost(report) => report.text(out),
            Self::Scheduler(report) => report.text(out),
            Self::Placement(report) => report.text(out),
        }
    }
}

fn place(doc: &CostDoc) -> CostPlace {
    CostPlace {
        node: doc.node.clone(),
        kernel: doc.machine.kernel.clone(),
        hypervisor: doc.machine.hypervisor.clone(),
        processor: doc.machine.processor.clone(),
        cpu: doc.cpu,
        cpu_reason: doc.cpu_reason.clone(),
        other_cpu: doc.other_cpu,
        class: doc.sched.clone(),
    }
}

fn header(doc: &CostDoc, instrument: Option<&InstrumentDoc>) -> CostHeader {
    let InstrumentDoc { counter, rate_hz, rate_error_ratio, overhead_ps, not_counted } =
        instrument.cloned().unwrap_or_default();
    CostHeader { place: place(doc), counter, rate_hz, rate_error_ratio, overhead_ps, events_not_counted: not_counted }
}

fn measured(run: &CostRun, name: &str, series: &SeriesDoc) -> Option<MeasuredCost> {
    MeasuredCost::of(series, run.rounds(name))
}

fn probes(run: &CostRun, costs: &ProbeCosts, kind: CostKind) -> CostReport {
    let row = |probe: &ProbeDoc| CostRow {
        name: probe.name.clone(),
        what: probe.what.clone(),
        method: probe.method.clone(),
        outcome: match &probe.series {
            Some(series) => measured(run, &probe.name, series).ok_or_else(|| "the probe gave no sample".to_owned()),
            None => Err(probe.not_measured.clone().unwrap_or_default()),
        },
    };
    let header = header(&run.doc, costs.instrument.as_ref());
    CostReport { kind, header, incomplete: cut_short(&run.doc), rows: costs.probes.iter().map(row).collect() }
}

fn clocks(run: &CostRun, costs: &ClockCosts) -> ClockReport {
    let row = |way: &ClockWayDoc| ClockCost {
        name: way.name.clone(),
        path: way.path.name().to_owned(),
        cost: measured(run, &way.name, &way.series),
        raw: way.by_syscall.as_ref().and_then(|of| measured(run, &format!("{}{BY_SYSCALL}", way.name), of)),
        stated_ns: way.stated_ns,
        smallest_step_ps: way.smallest_step_ps,
        median_step_ps: way.median_step_ps,
        readings: way.readings,
        backwards: way.backwards,
        compared: way.cross.map(|cross| cross.compared),
        cross_backwards: way.cross.map(|cross| cross.backwards),
        cross_largest_ps: way.cross.map(|cross| cross.largest_ps),
    };
    ClockReport {
        header: header(&run.doc, costs.instrument.as_ref()),
        rows: costs.clocks.iter().map(row).collect(),
        not_counted: costs.not_counted.clone(),
        incomplete: cut_short(&run.doc),
    }
}

/// What is to be said of probes after which others were to come.
fn cut_short(doc: &CostDoc) -> Option<String> {
    (doc.ended != Some(Ended::Duration)).then(|| "it was interrupted: the probes after these are missing".to_owned())
}

/// What is to be said of a measurement that did not come to its end, of which so much is there.
fn incomplete(doc: &CostDoc, done: usize, planned: usize, of: &str) -> Option<String> {
    let why = match doc.ended {
        _ if done >= planned => return None,
        Some(Ended::Signal) => "a signal ended it",
        Some(_) => "it ended early",
        None => "it did not end by itself",
    };
    Some(format!("{why}: {done} of {planned} {of} are there"))
}

fn scheduler(doc: &CostDoc, costs: &SchedulerCosts) -> SchedulerReport {
    SchedulerReport {
        place: place(doc),
        window_ns: costs.window_ns,
        rows: costs.rows.iter().map(SchedulerCost::of).collect(),
        no_trace: costs.no_trace.clone(),
        not_counted: costs.not_counted.clone(),
        incomplete: incomplete(doc, costs.rows.len(), costs.runnable.len(), "numbers of runnable threads"),
    }
}

fn placement(doc: &CostDoc, costs: &PlacementCosts) -> PlacementReport {
    let planned = (costs.rounds as usize).saturating_mul(costs.places.len() * costs.bodies.len());
    PlacementReport {
        place: place(doc),
        added_hz: costs.added_hz,
        cell_ns: costs.cell_ns,
        rounds: costs.rounds,
        seed: costs.seed,
        rows: PlacedCost::all(costs),
        missing: costs.missing.clone(),
        not_counted: costs.not_counted.clone(),
        incomplete: incomplete(doc, costs.results.len(), planned, "measurements"),
    }
}
