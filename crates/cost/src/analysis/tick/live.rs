//! The cost of a tick from a campaign on a live machine.

use becalm_analyze::events::{EventRate, event_rates};
use becalm_model::event_count::EventCount;
use becalm_stats::median_high;
use becalm_units::counted;
use becalm_units::fault::{Fault, Wording};

use super::{Direct, RatePoint, RateSeries, Rounds, SeriesError};
use crate::documents::tick::{Campaign, CellKind, CellResult};

/// The result of the complete rounds of a campaign.
#[derive(Clone, PartialEq, Debug)]
pub struct CampaignAnalysis {
    /// The cost, and the intervals over the complete rounds.
    pub rounds: Rounds,
    /// The direct cost that it is based on.
    pub direct: Direct,
    /// The kernel's record of its handler compared with the model, one row per rate, ascending.
    pub handlers: Vec<HandlerRow>,
    /// Counts of the processor during the sorts, by rate and event; empty if it counts nothing.
    pub events: Vec<EventAtRate>,
}

/// An event at one rate: its frequency in a sort, and in its interruptions.
#[derive(Clone, PartialEq, Debug)]
pub struct EventAtRate {
    /// Interrupts per second added to the CPU's own.
    pub added_hz: u32,
    /// Interrupts per second that the kernel counted.
    pub rate_hz: f64,
    /// The frequency of the event in a sort.
    pub rate: EventRate,
}

/// The handler at one rate: as recorded by the kernel, and as modeled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HandlerRow {
    /// Interrupts per second added to the CPU's own.
    pub added_hz: u32,
    /// Interrupts per second that the kernel recorded.
    pub rate_hz: f64,
    /// The mean time from the handler's entry to its exit, in nanoseconds.
    pub handler_ns: f64,
    /// The recorded share of the CPU that the handler took.
    pub recorded_ratio: f64,
    /// The modeled share: the rate times the mean handler over all rates.
    pub model_ratio: f64,
    /// Events that the kernel lost meanwhile.
    pub lost_events: u64,
}

/// A campaign without a result yet.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum CampaignError {
    /// No round is complete.
    #[error("no round of the campaign is complete: {done} of its {planned} cells are measured; go on with it")]
    NoRound {
        /// Number of finished cells.
        done: usize,
        /// Number of planned cells.
        planned: usize,
    },
    /// The kernel recorded no timer interrupt.
    #[error("the kernel recorded no timer interrupt, so the direct cost is unknown")]
    NoHandler,
    /// The rates or times are unusable.
    #[error("the measurements with {} give no cost: {source}", counted((*copies).into(), "copy", "copies"))]
    Series {
        /// Number of copies that shared the CPU.
        copies: u32,
        /// The fault of their rates or times.
        r#source: SeriesError,
    },
}

impl Fault for CampaignError {
    fn hint(&self) -> Option<Wording> {
        matches!(self, Self::NoRound { .. }).then(|| Wording::new(" ({resume})"))
    }
}

impl CampaignAnalysis {
    /// Analyzes the complete rounds of a campaign. Fails if no round is complete, or the interrupt rates did not rise as requested.
    pub fn new(campaign: &Campaign) -> Result<Self, CampaignError> {
        let plan = &campaign.plan;
        let cells = plan.cells();
        let complete = |round: &u32| cells.iter().all(|(hz, kind)| campaign.find(*round, *hz, *kind).is_some());
        let numbers: Vec<u32> = (0..plan.rounds).filter(complete).collect();
        if numbers.is_empty() {
            return Err(CampaignError::NoRound { done: campaign.cells.len(), planned: campaign.cells_planned() });
        }
        let direct = direct(campaign).ok_or(CampaignError::NoHandler)?;
        let series = |round: u32, copies: u32| {
            let points =
                plan.rates_hz.iter().filter_map(|hz| match campaign.find(round, *hz, CellKind::Sorts { copies })? {
                    &CellResult::Sorts { sorts, elapsed_ns, interrupts, window_ns, .. } => Some(RatePoint {
                        rate_hz: interrupts as f64 * 1e9 / window_ns as f64,
                        work_ns: elapsed_ns as f64 / sorts as f64,
                    }),
                    _ => None,
                });
            RateSeries::new(copies, points.collect()).map_err(|source| CampaignError::Series { copies, source })
        };
        let rounds: Vec<Vec<RateSeries>> = numbers
            .iter()
            .map(|round| plan.copies.iter().map(|copies| series(*round, *copies)).collect())
            .collect::<Result<_, _>>()?;
        let rounds = Rounds::new(&campaign.machine.processor, direct, &rounds)
            .map_err(|source| CampaignError::Series { copies: plan.copies[0], source })?;
        Ok(Self { rounds, direct, handlers: handlers(campaign, direct), events: events(campaign) })
    }

    /// The largest deviation of the recorded handler's share from the model's, relative to the latter.
    pub fn handler_residual_max_ratio(&self) -> Option<f64> {
        let residual = |row: &HandlerRow| (row.recorded_ratio / row.model_ratio - 1.0).abs();
        self.handlers.iter().filter(|row| row.model_ratio > 0.0).map(residual).reduce(f64::max)
    }
}

/// The median trap over all rounds, and the mean handler over all recorded interrupts.
fn direct(campaign: &Campaign) -> Option<Direct> {
    let mut traps: Vec<f64> = Vec::new();
    let (mut count, mut total) = (0, 0);
    for cell in &campaign.cells {
        match cell.measured {
            CellResult::Trap { call_ns, .. } => traps.push(call_ns),
            CellResult::Handler { interrupts, handler_ns, .. } => {
                count += interrupts;
                total += handler_ns;
            }
            CellResult::Sorts { .. } | CellResult::Events { .. } => {}
        }
    }
    let trap_ns = median_high(&mut traps)?;
    (count > 0).then(|| Direct { trap_ns, handler_ns: total as f64 / count as f64 })
}

fn handlers(campaign: &Campaign, direct: Direct) -> Vec<HandlerRow> {
    let of_rate = |added_hz: &u32| {
        let (mut count, mut total, mut window, mut lost_events) = (0_u64, 0_i64, 0_i64, 0_u64);
        for cell in campaign.cells.iter().filter(|cell| cell.added_hz == *added_hz) {
            if let CellResult::Handler { interrupts, handler_ns, window_ns, lost_events: lost } = cell.measured {
                count += interrupts;
                total += handler_ns;
                window += window_ns;
                lost_events += lost;
            }
        }
        (count > 0 && window > 0).then(|| {
            let rate_hz = count as f64 * 1e9 / window as f64;
            HandlerRow {
                added_hz: *added_hz,
                rate_hz,
                handler_ns: total as f64 / count as f64,
                recorded_ratio: total as f64 / window as f64,
                model_ratio: rate_hz * direct.handler_ns / 1e9,
                lost_events,
            }
        })
    };
    campaign.plan.rates_hz.iter().filter_map(of_rate).collect()
}

/// The events of all rounds, by rate.
fn events(campaign: &Campaign) -> Vec<EventAtRate> {
    let mut rows = Vec::new();
    for added_hz in &campaign.plan.rates_hz {
        let (mut all, mut interrupts, mut window) = (0_u64, 0_u64, 0_i64);
        let mut counted: Vec<EventCount> = Vec::new();
        for cell in campaign.cells.iter().filter(|cell| cell.added_hz == *added_hz) {
            if let CellResult::Events { sorts, interrupts: taken, window_ns, counts } = &cell.measured {
                all += sorts;
                interrupts += taken;
                window += window_ns;
                counted.extend_from_slice(counts);
            }
        }
        let rate_hz = interrupts as f64 * 1e9 / window.max(1) as f64;
        rows.extend(event_rates(&counted, all).into_iter().map(|rate| EventAtRate {
            added_hz: *added_hz,
            rate_hz,
            rate,
        }));
    }
    rows
}
