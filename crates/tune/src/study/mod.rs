//! Studies: a machine recorded under several configurations, one after another.
//!
//! Each configuration is recorded by a process of its own; nothing of the study runs on the measured CPUs meanwhile but its waiting.
//! Which command records is for the caller to say, and what the recordings come to is computed elsewhere.

mod configuration;
mod recording;

pub use configuration::{Configuration, Cpus, Means, planned};
pub use recording::{RecordingEnd, StudyError, record};
