//! Documents of tuning: the changes of a plan, the outcome of each, and the findings of a check.
//!
//! A [`Plan`] is stored in the journal of its changes, so its serialized form must stay readable.

mod attempt;
mod boot;
mod change;
mod check;
mod finding;
mod gain;
mod knob;
mod plan;
mod text;

pub use attempt::{Attempt, Outcome, Stage};
pub use boot::BootParameter;
pub use change::Change;
pub use check::{Check, Chosen, CpuChoice, TickCount, TicksFrom};
pub use finding::{Area, Evidence, Finding, FindingCost, Fix, Severity, SourceCost};
pub use gain::{Gain, GainJob, Gains, PredictedSlowdown, StepGain};
pub use knob::{Knob, Meaning};
pub use plan::{Note, Plan};
