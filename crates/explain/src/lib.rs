//! `becalm explain`: why the slow spans of a program were slow.
//!
//! [`spans`] reads the intervals that a program or its tracer wrote, [`clocks`] puts them on the time of a recording of `becalm observe`, `joined` cuts
//! the `lives` of their threads at their ends, and [`excess`] divides what the slow ones have more than the ordinary ones among [`causes`].

#![forbid(unsafe_code)]

pub mod causes;
pub mod clocks;
mod command;
pub mod document;
pub mod excess;
pub mod joined;
pub mod lives;
pub mod perfetto;
pub mod report;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod spans;
mod summing;

pub use command::ExplainArgs;
