//! Turns kernel traces that another program recorded into detours. No loop of becalm measured them, so the trace decides what a detour is:
//!
//! - For a CPU: its *interruptions* by interrupts, softirqs and kernel threads, as [`Presence`] finds them.
//! - For the loop of the kernel's own tracer osnoise, whose gaps are in its trace: these gaps, split like those of becalm's own loop.
//!
//! Except for the last, detours lack everything that no event shows: interrupt entry and exit, the time of a hypervisor or the firmware.
//!
//! For chosen threads, a trace becomes an observation: the [`Books`] of their lives, waits included, like those of `becalm observe`.
//!
//! [`Books`]: becalm_attribute::books::Books
//! [`Presence`]: becalm_attribute::Presence

mod clock;
mod facts;
mod find;
mod gaps;
mod held;
mod log;
mod observed;
mod osnoise;
mod paged;
mod perf;
mod programs;
mod run;
mod search;
mod span;
mod text;
mod whole;

use std::convert::Infallible;

use becalm_bundle::BundleError;
use becalm_measure::Names;
use becalm_model::Event;
use becalm_units::CpuId;
use becalm_units::fault::{Fault, Wording};

use crate::read::ReadError;

pub use clock::StampClock;
pub use find::{FoundDetours, TraceRequest, find};
use held::HeldTrace;
pub use log::{Entrance, ThreadLog};
pub use observed::{FoundThreads, books_of_all_threads, observe};
use osnoise::TracerLoop;
pub use osnoise::{NoiseNamer, NoiseTrace};
pub use paged::PagedTrace;
pub use perf::PerfTrace;
use programs::ThreadTimes;
use run::TraceFindings;
pub use run::store;
pub use search::DetourSearch;
use span::CpuSpan;
pub use text::TextNamer;
use whole::Wholeness;

/// A trace that is read CPU by CPU, repeatedly if need be.
pub trait KernelTrace {
    /// The CPUs with events, in rising order.
    fn cpus(&self) -> Vec<CpuId>;

    /// Starts again with the first event of a CPU, by its index in [`Self::cpus`].
    fn rewind(&mut self, index: usize);

    /// Passes the next events of a CPU, each later than the one before; `false` if there are no more. Fails if the trace is damaged.
    fn more(&mut self, index: usize, names: &mut Names, pass: &mut dyn FnMut(Event)) -> Result<bool, TraceError>;

    /// Gives all events of a CPU. Fails if the trace is damaged, and with the errors of `take`.
    fn each(&mut self, index: usize, names: &mut Names, take: &mut Take<'_>) -> Result<(), TraceError> {
        self.rewind(index);
        let mut events = Vec::new();
        while self.more(index, names, &mut |event| events.push(event))? {
            events.drain(..).try_for_each(|event| take(&event, names))?;
        }
        Ok(())
    }

    /// The threads of the trace besides their events. Fails if the trace is damaged.
    fn threads(&mut self, names: &mut Names) -> Result<ThreadLog, TraceError>;

    /// The number of time stamps read so far that are earlier than the one before.
    fn backwards(&self) -> u64;
}

/// Takes an event.
pub type Take<'a> = dyn FnMut(&Event, &mut Names) -> Result<(), TraceError> + 'a;

/// Why a trace cannot become a run.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The trace is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The run cannot be stored.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The trace has no switches, so threads cannot be observed in it.
    #[error("the trace does not tell which thread ran: record it with sched:sched_switch")]
    NoSwitches,
}

impl Fault for TraceError {
    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Read(error) => error.hint(),
            Self::Bundle(error) => error.hint(),
            Self::NoSwitches => Some(Wording::new(", or leave {pid} and {comm} out")),
        }
    }
}

impl From<Infallible> for TraceError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests;
