//! `becalm bench`: repetitions of a command on quiet CPUs, and the noise that disturbed them.

mod command;
mod repetitions;
pub(crate) mod report;
mod slow;

pub use command::BenchArgs;
pub use repetitions::{Judged, LostTo, Repetition, judge};
pub use report::{BenchReport, SeenBy};
