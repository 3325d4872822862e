//! The cost of a timer interrupt, direct and indirect, by the method of D. Tsafrir, *The context-switch overhead
//! inflicted by hardware interrupts (and the enigma of do-nothing loops)*, ExpCS 2007, section 2.
//!
//! The same work is timed at several interrupt rates and with several processes. Each pair of rates gives the total cost of one more
//! interrupt per second. Trap and handler, the direct cost, are measured separately. The rest is the indirect cost: the effect of an
//! interruption on the caches and predictors of the interrupted program.
//!
//! [`Processor`] holds the measurements, [`read_tables`] reads them from two tables, [`Analysis`] is the result, [`Rounds`] adds intervals
//! for repeated measurements, [`CampaignAnalysis`] does all of it for a campaign. Nothing here measures.

mod analysis;
mod csv;
mod direct;
mod line;
mod live;
mod modes;
mod pair;
mod processor;
mod rounds;

pub use analysis::{Analysis, FittedPoint, TRIMMED};
pub use csv::{TableError, TableFile, read_tables};
pub use line::FittedLine;
pub use live::{CampaignAnalysis, CampaignError, EventAtRate, HandlerRow};
pub use modes::{Contribution, HandlerMode};
pub use pair::RatePair;
pub use processor::{Direct, MEASURED, OtherHandler, Processor, RatePoint, RateSeries, SeriesError};
pub use rounds::{Rounds, RoundsInterval};

/// Percent of a CPU for 1,000 interrupts per second, at this cost in nanoseconds.
pub fn percent_per_1000(cost_ns: f64) -> f64 {
    cost_ns * 1_000.0 / 1e9 * 100.0
}
