//! The measuring loops, one per CPU, and their parts: rings that hand over the steps, a common start, and hardware counters.
//!
//! A `WatchLoop` reads the counter and keeps steps longer than a threshold ([`acquire`]). A `WorkLoop` does work, of a fixed amount or for a fixed
//! time ([`sampling`]).

pub mod acquire;
mod event_counts;
mod kind;
pub mod ring;
mod sample_ring;
pub mod sampling;
mod start;
mod steps;
mod threads;
pub mod unstored;
mod watch;
mod work;

pub use event_counts::{countable, event_count};
pub use kind::LoopError;
pub(crate) use kind::{Loop, LoopCalibration, LoopResult, StepRing};
pub use steps::StepProfile;
pub use threads::ThreadError;
pub(crate) use threads::{LOOP_NAME, Lanes, LoopLane};
pub(crate) use watch::WatchLoop;
pub(crate) use work::WorkLoop;
