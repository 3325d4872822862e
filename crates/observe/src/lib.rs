//! `becalm observe`: where the time of running threads goes, to the nanosecond, from the recording to the report.
//!
//! A `recorder` takes the kernel's trace of all CPUs and looks at `/proc`; nothing is decoded meanwhile. Then `replay` decodes it, [`merge`] brings the
//! events into order and feeds them to the [books](becalm_attribute::books), [`summing`] makes the document, and [`report`] shows it. The crate `foreign`
//! takes the same way with traces of other programs.

#![forbid(unsafe_code)]

mod accounts;
mod choice;
mod command;
mod compare;
pub mod detours;
pub mod document;
mod lanes;
mod live;
mod look;
pub mod merge;
pub mod places;
mod recorder;
mod replay;
pub mod report;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod summing;
mod totals;
pub mod words;

pub use choice::{Choice, ChoiceArgs, ThreadArgs};
pub use command::{ObserveArgs, report_stored};
pub use compare::{CompareQuestion, are_observed, not_for_threads};
pub use live::{LEAST_INTERVAL, LiveObservation, LivePlan};
pub use totals::is_helper;
