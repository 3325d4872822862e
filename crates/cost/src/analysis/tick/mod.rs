//! The cost of a timer interrupt, direct and indirect, by the method of D. Tsafrir, *The context-switch overhead
//! inflicted by hardware interrupts (and the enigma of do-nothing loops)*, ExpCS 2007, section 2.
//!
//! The same work is timed at several interrupt rates and with several processes. Each pair of rates says what one more
//! interrupt a second costs in all; less the direct cost, that of the trap and of the handler, which are measured on their own,
//! what remains is the indirect cost: what an interruption does to the caches and predictors of whom it interrupts.
//!
//! [`Processor`] holds the measurements, [`read_tables`] takes them from two tables, [`Analysis`] is what follows from
//! them, [`Rounds`] the intervals where everything was measured several times, [`CampaignAnalysis`] all of it for a campaign.
//! Nothing here measures.

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

/// Percent of a CPU that 1,000 interrupts a second take when one costs this many nanoseconds.
pub fn percent_per_1000(cost_ns: f64) -> f64 {
    cost_ns * 1_000.0 / 1e9 * 100.0
}
