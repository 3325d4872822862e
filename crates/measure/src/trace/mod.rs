//! The kernel's trace beside the loops: how it is set up, what its clock, its events and its threads mean.

mod event_clock;
mod names;
mod occurrences;
mod setup;
mod standing;
mod translate;

pub use event_clock::EventClock;
pub use names::Names;
pub use occurrences::{EventNames, Occurrences, Window, Windows};
pub use setup::Tracing;
pub use standing::{Drained, StandingTrace};
pub use translate::{SOFTIRQS, Translator};
