//! Studies: several configurations of a machine recorded in turns, their cost to a job of many ranks, and whether they differ from the
//! baseline (De 2009).
//!
//! - `configuration`: the configurations, and the CPUs that each measures.
//! - `record_command`: the command that records one.
//! - `document`, `file`: `study.json`, which names the recordings.
//! - `analysis`: the figures of each configuration, computed from the recordings.
//! - `report`: the same for a terminal, as JSON and as a page.
//! - `command`: `becalm study`, which records each configuration in its own process.

mod analysis;
mod command;
mod configuration;
mod document;
mod file;
mod record_command;
pub(crate) mod report;

pub use analysis::{Studied, Turn, study};
pub use command::StudyArgs;
pub use configuration::Configuration;
pub use document::{BASELINE, ConfigurationDoc, ConfigurationOutcome, SCHEMA, StudyDoc};
pub use file::{load, store};
pub use report::StudyReport;
