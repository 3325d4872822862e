//! The reports of `becalm cost`: costs of clocks, traps, ticks, and switches between threads.

pub(crate) mod clock;
mod events;
mod header;
mod measured;
pub(crate) mod placement;
pub(crate) mod probe;
pub(crate) mod scheduler;
pub(crate) mod tick;
mod view;

use becalm_report::html::Page;
use becalm_report::{Form, Report};
use serde::Serialize;

use crate::documents::{CostRun, Costs};

pub use self::tick::TickReport;

use self::clock::{ClockDocument, ClockReport};
use self::placement::{PlacementDocument, PlacementReport};
use self::probe::{ProbeDocument, ProbeReport, Probes};
use self::scheduler::{SchedulerDocument, SchedulerReport};

/// A stored measurement in the form of the command that made it.
pub struct CostRunReport<'a> {
    schema: &'static str,
    document: CommandDocument<'a>,
    view: Page,
}

/// The document of the command that measured.
#[derive(Serialize)]
#[serde(untagged)]
enum CommandDocument<'a> {
    Clock(ClockDocument<'a>),
    Probe(ProbeDocument<'a>),
    Scheduler(SchedulerDocument<'a>),
    Placement(PlacementDocument<'a>),
}

impl<'a> CostRunReport<'a> {
    /// The report of a stored measurement.
    pub fn new(run: &'a CostRun) -> Self {
        let doc = &run.doc;
        let shown = |schema, document, view| Self { schema, document, view };
        let probes = |report: ProbeReport<'a>, schema| {
            shown(schema, CommandDocument::Probe(report.document()), view::probe::page(&report))
        };
        match &doc.measured {
            Costs::Clock(costs) => {
                let report = ClockReport::new(run, costs);
                shown("becalm.cost-clock/1", CommandDocument::Clock(report.document()), view::clock::page(&report))
            }
            Costs::Trap(costs) => probes(ProbeReport::new(run, costs, Probes::Traps), "becalm.cost-trap/1"),
            Costs::Detours(costs) => probes(ProbeReport::new(run, costs, Probes::Detours), "becalm.cost-detours/1"),
            Costs::Scheduler(costs) => {
                let report = SchedulerReport::new(doc, costs);
                let document = CommandDocument::Scheduler(report.document());
                shown("becalm.cost-scheduler/1", document, view::scheduler::page(&report))
            }
            Costs::Placement(costs) => {
                let report = PlacementReport::new(doc, costs);
                let document = CommandDocument::Placement(report.document());
                shown("becalm.cost-placement/1", document, view::placement::page(&report))
            }
        }
    }
}

impl Report for CostRunReport<'_> {
    fn schema(&self) -> &'static str {
        self.schema
    }

    fn document(&self) -> impl Serialize {
        &self.document
    }

    fn view(&self, _form: Form) -> Page {
        self.view.clone()
    }
}
