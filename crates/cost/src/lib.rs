//! `becalm cost`: the costs of interruptions, traps and clocks, from the documents to the command.

#![forbid(unsafe_code)]

pub mod analysis;
mod command;
pub mod documents;
pub mod measure;
pub mod report;
#[cfg(feature = "schemas")]
pub mod schemas;

pub use command::{CostArgs, report_stored};
