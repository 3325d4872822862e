//! Reports of `becalm tune`: findings, plans, and the outcome of changes.

pub(crate) mod check;
pub(crate) mod done;
mod knob;
pub(crate) mod plan;

pub use check::TuneCheckReport;
pub use done::{TuneDoing, TuneDoneReport};
pub use plan::TunePlanReport;
