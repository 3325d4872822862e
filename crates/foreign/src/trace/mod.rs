//! Traces of the kernel that another program recorded become detours: no loop of becalm measured them, so that what is a detour
//! follows from what is in the trace.
//!
//! - Of a CPU: its *interruptions*, in which interrupts, softirqs and kernel threads had it, as [`Presence`] finds them.
//! - Of a thread: the times in which it was on its CPU or could have been, and something else had the CPU, as `ThreadDetours` finds
//!   them. Their books close as those of a loop do, by the same [`Attributor`].
//! - Of the loop of the kernel's own tracer osnoise, whose gaps are in its trace: these gaps, split as those of becalm's own loop are.
//!
//! But for the last, what the events do not tell is in neither: the way into an interrupt and out of it, what a hypervisor or the firmware takes, and what a
//! thread waits for between being woken and running.
//!
//! [`Attributor`]: becalm_attribute::Attributor
//! [`Presence`]: becalm_attribute::Presence

mod clock;
mod facts;
mod find;
mod gaps;
mod held;
mod osnoise;
mod paged;
mod perf;
mod programs;
mod run;
mod search;
mod span;
mod text;
mod thread;
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
pub use thread::Whereabouts;
use thread::{ThreadDetours, ThreadTime};
use whole::Wholeness;

/// A trace that is read CPU by CPU, as often as it takes.
pub trait KernelTrace {
    /// The CPUs that it holds events of, in rising order.
    fn cpus(&self) -> Vec<CpuId>;

    /// Gives the events of a CPU, by its number among those of [`Self::cpus`], each later than the one before. Fails if
    /// the trace is damaged; and those of `take`.
    fn each(&mut self, index: usize, names: &mut Names, take: &mut Take<'_>) -> Result<(), TraceError>;

    /// How often a time stamp lay before the one in front of it, as far as was read.
    fn backwards(&self) -> u64;
}

/// Takes an event.
pub type Take<'a> = dyn FnMut(&Event, &mut Names) -> Result<(), TraceError> + 'a;

/// A trace cannot become a run.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The run cannot be stored.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// It cannot be searched for a thread.
    #[error("the trace does not tell which thread ran: record it with sched:sched_switch")]
    NoSwitches,
}

impl Fault for TraceError {
    fn hint(&self) -> Option<Wording> {
        match self {
            Self::Read(error) => error.hint(),
            Self::Bundle(error) => error.hint(),
            Self::NoSwitches => Some(Wording::new(", or leave {thread} out")),
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
