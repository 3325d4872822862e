//! `becalm run-quiet`: repetitions of a command on quiet CPUs, and the noise that disturbed them.

mod command;
mod repetitions;
pub(crate) mod report;

pub use command::RunQuietArgs;
pub use repetitions::{Judged, LostTo, Repetition, judge};
pub use report::{RunQuietReport, SeenBy};
