//! The kernel's trace beside the loops: how it is set up, what its clock, its events and its threads mean.

mod event_clock;
mod names;
mod occurrences;
mod setup;
mod softirqs;
mod standing;
mod translate;

pub use event_clock::EventClock;
pub use names::Names;
pub use occurrences::{EventNames, Occurrences, Window, Windows};
pub use setup::Tracing;
pub use standing::{Disturbance, Drained, StandingTrace};
pub use translate::{SOFTIRQS, Translator, UNTRACED_TIMER, function_source};

/// So few events that the kernel counted may lack in a trace, ...
const FEW: u64 = 10;
/// ... or this part of all: one may lie at the edge of a reading, or of a lost page.
const ONE_IN: u64 = 100;

/// Whether so many events lack in a trace that it is not what was set up.
pub fn is_much(missing: u64, counted: u64) -> bool {
    missing > FEW.max(counted / ONE_IN)
}
