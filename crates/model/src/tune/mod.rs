//! Tuning: what a plan changes, what came of each change, and what a check of a machine found.
//!
//! A [`Plan`] is stored in the journal of the settings that it changed, so that its serialized form has to stay readable.

mod attempt;
mod boot;
mod change;
mod check;
mod finding;
mod gain;
mod knob;
mod plan;
mod profile;
mod text;

pub use crate::family::Family;
pub use attempt::{Attempt, Outcome, Stage};
pub use boot::BootParameter;
pub use change::Change;
pub use check::{Check, Chosen, CpuChoice, TickCount, TicksFrom};
pub use finding::{Area, Evidence, Finding, FindingCost, Fix, Severity, SourceCost};
pub use gain::{Gain, GainJob, Gains, JobSlowdown, PredictedSlowdown, StepGain};
pub use knob::{Knob, Meaning};
pub use plan::{Note, Plan};
pub use profile::Profile;
