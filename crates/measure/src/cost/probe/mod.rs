//! Probes of what a thread can bring about itself: [`traps`] and [`detours()`].

mod chase;
mod detours;
mod interrupt;
mod preempt;
mod swap;
mod switch;
mod trap;

pub use detours::detours;
pub use trap::traps;

use std::io;

use becalm_linux::probe::ProbeError;

use super::bench::Series;

/// A cost that was measured, or the reason why it could not be.
#[derive(Clone, PartialEq, Debug)]
pub struct Probe {
    /// Its stable name: `fault_cow`.
    pub name: &'static str,
    /// What it is, in a few words.
    pub what: &'static str,
    /// How it was measured.
    pub method: String,
    /// The samples, or why there are none.
    pub outcome: Result<Series, String>,
}

/// The reason why there is no second thread.
fn no_thread(error: io::Error) -> String {
    format!("cannot start a second thread: {error}")
}

fn text(error: ProbeError) -> String {
    error.to_string()
}
