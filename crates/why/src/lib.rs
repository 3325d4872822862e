//! `becalm why`: who requested the interrupts, softirqs and work items of a recording, and who woke its threads.
//!
//! `index` finds the cause of an activity, [`sums`] adds up the time of what each cause brought about, and [`report`] shows it.

#![forbid(unsafe_code)]

mod command;
pub mod document;
mod index;
pub mod report;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod sums;

pub use command::WhyArgs;
