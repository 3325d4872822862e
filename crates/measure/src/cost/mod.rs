//! What readings of the clock, traps and detours cost on this machine: the probes of [`becalm_linux::probe`], repeated and
//! timed on one CPU.
//!
//! - [`clocks`]: every way to read the time (B07 section 2).
//! - [`traps`]: system calls, faults, signals, switches (the trap of T07 section 2).
//! - [`detours()`]: the catalogue of B07 section 2, from a cache miss to a pre-emption.
//!
//! Every probe gives a [`Series`] of samples in rounds, none of which is dropped; reducing them to figures is the work of
//! the crate `analyze`. What cannot be measured here has its reason instead.

mod bench;
mod chase;
mod clock;
mod counting;
mod detours;
mod interrupt;
mod place;
mod preempt;
pub mod stored;
mod swap;
mod switch;
mod time_way;
mod trap;
mod turns;

pub use bench::{Instrument, ROUNDS, Series, into_rounds};
pub use clock::{ClockRow, Clocks, Counting, CrossReading, Path, Steps, clocks};
pub use detours::detours;
pub use place::{Place, Reason};
pub use trap::traps;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use becalm_linux::clock::Native;
use becalm_linux::clock::{Counter, MonotonicRaw, RateError, Source, calibrate, choose};
use becalm_linux::perf::Event;
use becalm_linux::sched::SchedError;

use crate::preflight::CpuError;

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

/// What all probes of a command gave.
#[derive(Clone, PartialEq, Debug)]
pub struct Probed<T> {
    /// Where they ran.
    pub place: Place,
    /// What timed them.
    pub instrument: Instrument,
    /// What they gave.
    pub result: T,
}

/// Why nothing could be measured at all.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The CPU cannot be used.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// The counter cannot be used.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The thread cannot be placed or get its scheduling class.
    #[error(transparent)]
    Sched(#[from] SchedError),
}

impl CostError {
    /// Whether another wording of the command would do.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Cpu(_))
    }
}

/// Told which probe comes next: how many are done, of how many, and its name. Says whether to go on with it; if not, what
/// was measured so far is the result.
pub type Progress<'a> = dyn FnMut(usize, usize, &str) -> bool + Send + 'a;

/// Work that is compiled for the counter that this machine has.
trait ForCounter {
    type Out: Send;
    fn run<C: Counter>(self, bench: &bench::Bench<C>) -> Self::Out;
}

/// Chooses the counter, and runs the work in a thread at its place.
fn run_at<W: ForCounter + Send>(place: Place, work: W) -> Result<Probed<W::Out>, CostError> {
    fn with<C: Counter, W: ForCounter + Send>(place: Place, work: W) -> Result<Probed<W::Out>, CostError> {
        let calibration = calibrate::<C>(bench::CALIBRATION)?;
        let (instrument, result) = place.run(|| {
            let bench = bench::Bench::<C>::new(&place, calibration, &Event::OF_PROCESSOR);
            let result = work.run(&bench);
            (bench.instrument(), result)
        })?;
        Ok(Probed { place, instrument, result })
    }
    match choose(place.root()).source {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        Source::Native => with::<Native, W>(place, work),
        _ => with::<MonotonicRaw, W>(place, work),
    }
}
