//! What `becalm cost` has to say: what clocks, traps, ticks, and switches between threads cost.

pub(crate) mod clock;
mod events;
mod header;
mod measured;
pub(crate) mod placement;
pub(crate) mod probe;
pub(crate) mod scheduler;
pub(crate) mod tick;
mod view;

use std::io;

use becalm_report::Report;
use becalm_report::form::sheet::Sheet;
use becalm_report::html::Page;
use serde::Serialize;

use crate::documents::{CostRun, Costs};

pub use self::tick::TickReport;

use self::clock::ClockReport;
use self::placement::PlacementReport;
use self::probe::{ProbeReport, Probes};
use self::scheduler::SchedulerReport;

/// A stored measurement, as the command that made it has it.
pub enum CostRunReport<'a> {
    /// The report of `becalm cost clock`.
    Clock(ClockReport<'a>),
    /// That of `becalm cost trap` or `detours`.
    Probe(ProbeReport<'a>),
    /// The report of `becalm cost scheduler`.
    Scheduler(SchedulerReport<'a>),
    /// The report of `becalm cost placement`.
    Placement(PlacementReport<'a>),
}

/// The document of one of four reports.
#[derive(Serialize)]
#[serde(untagged)]
enum OneDocument<A, B, C, D> {
    Clock(A),
    Probe(B),
    Scheduler(C),
    Placement(D),
}

impl<'a> CostRunReport<'a> {
    /// The report of a stored measurement.
    #[must_use]
    pub fn new(run: &'a CostRun) -> Self {
        let doc = &run.doc;
        match &doc.measured {
            Costs::Clock(costs) => Self::Clock(ClockReport::new(run, costs)),
            Costs::Trap(costs) => Self::Probe(ProbeReport::new(run, costs, Probes::Traps)),
            Costs::Detours(costs) => Self::Probe(ProbeReport::new(run, costs, Probes::Detours)),
            Costs::Scheduler(costs) => Self::Scheduler(SchedulerReport::new(doc, costs)),
            Costs::Placement(costs) => Self::Placement(PlacementReport::new(doc, costs)),
        }
    }
}

impl Report for CostRunReport<'_> {
    fn schema(&self) -> &'static str {
        match self {
            Self::Clock(report) => report.schema(),
            Self::Probe(report) => report.schema(),
            Self::Scheduler(report) => report.schema(),
            Self::Placement(report) => report.schema(),
        }
    }

    fn document(&self) -> impl Serialize {
        match self {
            Self::Clock(report) => OneDocument::Clock(report.document()),
            Self::Probe(report) => OneDocument::Probe(report.document()),
            Self::Scheduler(report) => OneDocument::Scheduler(report.document()),
            Self::Placement(report) => OneDocument::Placement(report.document()),
        }
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        match self {
            Self::Clock(report) => report.text(out),
            Self::Probe(report) => report.text(out),
            Self::Scheduler(report) => report.text(out),
            Self::Placement(report) => report.text(out),
        }
    }

    fn page(&self, program: &str) -> Option<Page> {
        match self {
            Self::Clock(report) => report.page(program),
            Self::Probe(report) => report.page(program),
            Self::Scheduler(report) => report.page(program),
            Self::Placement(report) => report.page(program),
        }
    }
}
