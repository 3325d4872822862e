//! The costs of readings of the clock, traps, detours, timer interrupts and the scheduler on this machine.
//!
//! - [`clock`]: every way to read the time (B07 section 3.1).
//! - [`probe`]: traps (system calls, faults, signals, switches: T07 section 2), and the catalogue of detours of B07 section 2, from a cache
//!   miss to preemption. They are the probes of [`becalm_linux::probe`], repeated and timed on one CPU.
//! - [`tick`]: the same work at several interrupt rates (T07 section 2).
//! - [`scheduler`]: ticks and thread switches with many runnable threads.
//! - [`placement`]: the cost of an interrupt for work on other hardware threads than the interrupted one (Radojković et al. 2008).
//!
//! The results are documents, with all samples in a separate table; [`crate::analysis`] reduces them to figures. Probes that cannot run
//! here carry the reason instead.

mod bench;
pub mod clock;
mod counting;
mod error;
pub mod placement;
pub mod probe;
mod processes;
pub mod scheduler;
mod site;
pub mod tick;

pub use bench::CostProgress;
pub use error::CostError;
pub use processes::JoinedCosts;
pub use site::{Reason, Site};
