//! Questions of the commands that only read, and the reports that answer them: `law`, `predict`, `compare`, `sources` and `report`.
//!
//! An [`Asker`] provides values and shows the report and the progress. The command line is one, the Python package another, so both answer
//! with the same documents and words. The only texts parsed here are noises and networks, whose syntax is common to all.

#![forbid(unsafe_code)]

mod asker;
pub mod compare;
pub mod law;
pub mod network;
pub mod noise;
pub mod open;
pub mod predict;
pub mod recording;
pub mod sources;

pub use asker::{Asker, Steps};
