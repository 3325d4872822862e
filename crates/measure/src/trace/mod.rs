//! The kernel's trace during the loops: its setup, and the interpretation of its clock, events and threads.

mod event_clock;
mod names;
mod occurrences;
mod requests;
mod setup;
mod softirqs;
mod standing;
mod translate;

pub use event_clock::EventClock;
pub use names::Names;
pub use occurrences::{EventNames, Occurrences, Window, Windows};
pub use requests::{RawCauses, RawTrace, RequestTrace, name_all_threads};
pub use setup::{TraceRequest, Tracing};
pub use standing::{Disturbance, Drained, StandingTrace};
pub use translate::{SOFTIRQS, Translator, UNTRACED_TIMER, accounted_time, function_source};

/// A trace may lack this many events that the kernel counted, ...
const FEW: u64 = 10;
/// ... or this fraction of them: some may be at the edge of a read or of a lost page.
const ONE_IN: u64 = 100;

/// Whether a trace lacks so many events that it is not the one that was set up.
pub fn is_much(missing: u64, counted: u64) -> bool {
    missing > FEW.max(counted / ONE_IN)
}
