//! The cost of timer interrupts, as text and as `becalm.cost-tick/1`.

mod charts;
mod figures;
mod panel;
mod view;

use becalm_report::form::field::Object;
use becalm_report::html::Page;
use becalm_report::{Form, Report};
use serde::Serialize;

use crate::analysis::tick::{
    Analysis, CampaignAnalysis, CampaignError, Contribution, EventAtRate, FittedPoint, HandlerRow, RatePair,
    RoundsInterval,
};
use crate::documents::tick::Campaign;
use figures::ModeRow;

/// The cost of a timer interrupt on one processor.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TickRow {
    /// The result of its measurements.
    pub analysis: Analysis,
    /// The interval of the indirect cost, if the measurements have rounds.
    pub indirect: Option<RoundsInterval>,
    /// The interval of the total cost.
    pub sum: Option<RoundsInterval>,
}

/// The cost of a tick on some processors.
#[derive(Clone, PartialEq, Debug)]
pub struct TickReport {
    /// One row per processor; a single one for a campaign.
    rows: Vec<TickRow>,
    /// Their campaign, if any.
    live: Option<(Campaign, CampaignAnalysis)>,
}

impl TickReport {
    /// The report of measurements without rounds.
    pub fn from_tables(analyses: Vec<Analysis>) -> Self {
        let row = |analysis| TickRow { analysis, indirect: None, sum: None };
        Self { rows: analyses.into_iter().map(row).collect(), live: None }
    }

    /// The report of a campaign. Fails if no round is complete, or its rounds give no cost.
    pub fn from_campaign(campaign: Campaign) -> Result<Self, CampaignError> {
        let live = CampaignAnalysis::new(&campaign)?;
        let rounds = &live.rounds;
        let analysis = rounds.analysis.clone();
        let row = TickRow { analysis, indirect: rounds.indirect_percent, sum: rounds.sum_percent };
        Ok(Self { rows: vec![row], live: Some((campaign, live)) })
    }
}

impl Report for TickReport {
    fn schema(&self) -> &'static str {
        "becalm.cost-tick/1"
    }

    fn document(&self) -> impl Serialize {
        document(self)
    }

    fn view(&self, _form: Form) -> Page {
        view::page(self)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub(crate) struct TickDocument<'a> {
    processors: Vec<ProcessorDoc>,
    campaign: Option<CampaignDoc<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct ProcessorDoc {
    #[serde(flatten)]
    figures: Object<TickRow>,
    /// Costs of an interrupt with each handler, the one that ran meanwhile first.
    modes: Vec<Object<ModeRow>>,
    /// Shares of its parts at each rate, by handler.
    contributions: Vec<Object<Contribution>>,
    results: Vec<Object<RatePair>>,
    model: Vec<Object<FittedPoint>>,
    /// Interrupts a second, and the share of the CPU that they take by the model, up to where that is all of it.
    predicted: Vec<[f64; 2]>,
}

/// The lowest rate of the model's curve, and its points per decade.
const CURVE_FROM_HZ: f64 = 100.0;
const CURVE_POINTS: i32 = 8;

/// The model's curve; empty if interrupts cost nothing.
fn predicted(analysis: &Analysis) -> Vec<[f64; 2]> {
    let limit_hz = 1.0 / analysis.overhead_ratio(1.0);
    if !limit_hz.is_finite() || limit_hz <= CURVE_FROM_HZ {
        return Vec::new();
    }
    // Whole rates, the same on every machine.
    let rates = (0..).map(|step| (CURVE_FROM_HZ * 10_f64.powf(f64::from(step) / f64::from(CURVE_POINTS))).round());
    let below = rates.take_while(|rate| *rate < limit_hz).map(|rate| [rate, analysis.overhead_ratio(rate)]);
    below.chain([[limit_hz, 1.0]]).collect()
}

/// The shares of the parts of an interrupt at each rate: first with the handler that ran meanwhile, then with the others.
fn contributions(analysis: &Analysis) -> Vec<Contribution> {
    let rates = analysis.rates_hz();
    analysis.modes().iter().flat_map(|mode| rates.iter().map(|rate_hz| mode.contribution(*rate_hz))).collect()
}

/// The costs with each handler.
fn modes(analysis: &Analysis) -> Vec<ModeRow> {
    analysis.modes().into_iter().map(|mode| ModeRow { processor: analysis.name.clone(), mode }).collect()
}

#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct CampaignDoc<'a> {
    node: &'a str,
    kernel: &'a str,
    hypervisor: Option<&'a str>,
    cpu: u32,
    sched: &'a str,
    /// True if the copies were processes; threads otherwise.
    processes: bool,
    seed: u64,
    rounds: u32,
    rounds_complete: usize,
    cell_ns: i64,
    array_bytes: u64,
    max_sample_rate_hz: u32,
    cpu_time_max_percent: Option<u32>,
    trap_ns: f64,
    handler_ns: f64,
    handler_residual_max_ratio: Option<f64>,
    handlers: Vec<Object<HandlerRow>>,
    /// Counts of the processor in the sorts.
    events: Vec<Object<EventAtRate>>,
    not_counted: &'a [String],
    warnings: &'a [String],
}

/// The report as the document `becalm.cost-tick/1`.
fn document(report: &TickReport) -> TickDocument<'_> {
    let processor = |row| -> ProcessorDoc {
        let TickRow { analysis, .. }: &TickRow = row;
        ProcessorDoc {
            figures: Object::new(row),
            modes: modes(analysis).iter().map(Object::new).collect(),
            contributions: contributions(analysis).iter().map(Object::new).collect(),
            results: analysis.pairs.iter().map(Object::new).collect(),
            model: analysis.comparisons.iter().map(Object::new).collect(),
            predicted: predicted(analysis),
        }
    };
    let campaign = report.live.as_ref().map(|(campaign, live)| CampaignDoc {
        node: &campaign.node,
        kernel: &campaign.machine.kernel,
        hypervisor: campaign.machine.hypervisor.as_deref(),
        cpu: campaign.plan.cpu.get(),
        sched: &campaign.plan.sched,
        processes: campaign.plan.processes,
        seed: campaign.plan.seed,
        rounds: campaign.plan.rounds,
        rounds_complete: live.rounds.count,
        cell_ns: campaign.plan.cell_ns,
        array_bytes: campaign.array_bytes,
        max_sample_rate_hz: campaign.max_sample_rate_hz,
        cpu_time_max_percent: campaign.cpu_time_max_percent,
        trap_ns: live.direct.trap_ns,
        handler_ns: live.direct.handler_ns,
        handler_residual_max_ratio: live.handler_residual_max_ratio(),
        handlers: live.handlers.iter().map(Object::new).collect(),
        events: live.events.iter().map(Object::new).collect(),
        not_counted: &campaign.not_counted,
        warnings: &campaign.warnings,
    });
    TickDocument { processors: report.rows.iter().map(processor).collect(), campaign }
}
