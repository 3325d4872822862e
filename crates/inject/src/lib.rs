//! Known noise: detours of given lengths at given times on chosen CPUs.
//!
//! - [`schedule`]: when detours are due on one CPU, from the same circles that predictions replay.
//! - [`toll`]: what an injected detour costs beyond its own loop, measured on the CPU itself before anything is injected.
//! - [`preempt`]: real-time threads that take the CPUs from whoever runs there.
//! - [`signal`]: the same inside of an unmodified program, by a signal in each of its threads.
//! - [`program`]: whether a program can be reached so.
//! - [`tally`]: what was delivered, beside what was asked for, and what that comes to as a document of the crate `model`.
//!
//! Nothing here parses arguments or prints.

#![forbid(unsafe_code)]

pub mod error;
pub mod preempt;
pub mod program;
pub mod schedule;
pub mod signal;
pub mod tally;
pub mod toll;

pub use error::InjectError;
pub use preempt::{Delivered, DeliveredDetour, Injection, PreemptPlan};
pub use signal::{DeliveredSignals, SignalNoise, SignalPlan};
