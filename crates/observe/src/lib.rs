//! `becalm observe`: where the time of running threads goes, to the nanosecond, from the recording to the report.
//!
//! A `recorder` takes the kernel's trace of all CPUs and looks at `/proc`; nothing is decoded meanwhile. Then `replay` merges the events by time and
//! feeds them to the [books](becalm_attribute::books), `summing` makes the document, and [`report`] shows it.

#![forbid(unsafe_code)]

mod accounts;
mod choice;
mod command;
pub mod document;
mod lanes;
mod look;
mod recorder;
mod replay;
pub mod report;
#[cfg(feature = "schemas")]
pub mod schemas;
mod spool;
mod summing;
pub mod words;

pub use command::{ObserveArgs, report_stored};
