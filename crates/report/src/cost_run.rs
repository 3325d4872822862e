//! A stored measurement of costs, whatever the command that made it: the documents and tables of `becalm cost clock`, `trap`,
//! `detours`, `scheduler` and `placement`.

use std::io::{self, Write};

use becalm_analyze::cost::PlacedCost;
use becalm_analyze::cost::{MeasuredCost, SchedulerCost};
use becalm_model::cost::{
    BY_SYSCALL, ClockCosts, ClockWayDoc, CostDoc, CostRun, InstrumentDoc, Measured, PlacementCosts, ProbeCosts,
    ProbeDoc, SchedulerCosts, SeriesDoc,
};
use becalm_model::node::Ended;

use crate::cost::{CostHeader, CostKind, CostPlace, CostReport, CostRow, cost_json, render_cost};
use crate::cost_clock::{ClockCost, ClockReport, clock_json, render_clock};
use crate::tick::{
    PlacementReport, SchedulerReport, placement_json, render_placement, render_scheduler, scheduler_json,
};

/// A measurement on its way to its reader.
enum Report {
    Clock(ClockReport),
    Cost(CostReport),
    Scheduler(SchedulerReport),
    Placement(PlacementReport),
}

/// As the document of the command that measured it: `becalm.cost-trap/1` and its like.
#[must_use]
pub fn cost_run_json(run: &CostRun) -> String {
    match report(run) {
        Report::Clock(report) => clock_json(&report),
        Report::Cost(report) => cost_json(&report),
        Report::Scheduler(report) => scheduler_json(&report),
        Report::Placement(report) => placement_json(&report),
    }
}

/// As the tables of the command that measured it.
///
/// # Errors
/// If `out` cannot be written.
pub fn render_cost_run(run: &CostRun, out: &mut dyn Write) -> io::Result<()> {
    match report(run) {
        Report::Clock(report) => render_clock(&report, out),
        Report::Cost(report) => render_cost(&report, out),
        Report::Scheduler(report) => render_scheduler(&report, out),
        Report::Placement(report) => render_placement(&report, out),
    }
}

fn report(run: &CostRun) -> Report {
    let doc = &run.doc;
    match &doc.measured {
        Measured::Clock(costs) => Report::Clock(clocks(run, costs)),
        Measured::Trap(costs) => Report::Cost(probes(run, costs, CostKind::Trap)),
        Measured::Detours(costs) => Report::Cost(probes(run, costs, CostKind::Detours)),
        Measured::Scheduler(costs) => Report::Scheduler(scheduler(doc, costs)),
        Measured::Placement(costs) => Report::Placement(placement(doc, costs)),
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
