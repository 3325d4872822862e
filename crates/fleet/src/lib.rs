//! `becalm fleet`: ranks many nodes by their noise, names outliers, and computes the cost of the noise for jobs.

#![forbid(unsafe_code)]

mod command;
mod heat;
mod jobs;
mod report;
pub mod sacct;
#[cfg(feature = "schemas")]
pub mod schemas;
mod survey;
mod together;

pub use command::FleetArgs;
pub use jobs::{FleetCost, fleet_cost};
pub use report::FleetReport;
pub use report::jobs::{FleetCostReport, FleetSweepReport};
pub use survey::{Fleet, survey};
