//! `becalm explain`: why the slow spans of a program were slow.
//!
//! [`spans`] reads the intervals that a program or its tracer wrote, [`clocks`] puts them on the time of a recording of `becalm observe` or `becalm record`, `joined`
//! cuts the `lives` of their threads or CPUs at their ends, and [`excess`] divides what the slow ones have more than the ordinary ones among [`causes`].

#![forbid(unsafe_code)]

pub mod causes;
pub mod clocks;
mod command;
pub mod document;
pub mod excess;
pub mod joined;
pub mod lives;
mod measured;
pub mod perfetto;
mod phases;
pub mod repetitions;
pub mod report;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod spans;
pub mod subjects;
mod summing;

pub use command::ExplainArgs;
