//! Known noise: detours of given lengths at given times on chosen CPUs.
//!
//! - [`schedule`]: when detours are due on one CPU, from the same circles that predictions replay.
//! - [`toll`]: the cost of an injected detour beyond its own loop, measured on the CPU before anything is injected.
//! - `kinds`: the tolls of many CPUs, measured once for all that are alike.
//! - [`grounds`]: facts about the CPUs, and how much the kernel withholds from real-time threads.
//! - [`burst`]: several detours in place of one.
//! - [`fit`]: how much of the noise must be possible.
//! - `place`: where on its circle each CPU or thread starts, and which start together.
//! - [`preempt`]: real-time threads that take the CPUs from other threads.
//! - `flood`: packets over loopback, with which these threads burn the time in the network stack.
//! - [`signal`]: noise inside an unmodified program, by a signal in each of its threads.
//! - [`program`]: whether a program can be given such noise.
//! - [`tally`]: delivered and requested detours, and the document of the crate `model` that they become.
//! - `document`, `total` and `report`: the result as a document, over all places, and as text.
//! - `command`: `becalm inject` with its arguments; nothing else parses or prints.

#![forbid(unsafe_code)]

pub mod burst;
mod command;
mod document;
pub mod error;
pub mod fit;
mod flood;
pub mod grounds;
mod kinds;
mod place;
pub mod preempt;
pub mod program;
mod report;
pub mod schedule;
#[cfg(feature = "schemas")]
pub mod schemas;
pub mod signal;
pub mod tally;
pub mod toll;
mod total;

pub use burst::Burst;
pub use command::InjectArgs;
pub use document::{
    FairServerDoc, InjectDoc, Injected, InjectedPlace, InjectionWay, NoisePlace, SharedToll, Shortfall, SignalCounts,
    Together,
};
pub use error::InjectError;
pub use fit::Fit;
pub use grounds::Grounds;
pub use kinds::KnownTolls;
pub use place::coalesced;
pub use preempt::{CpuDelivery, DeliveredDetour, Injection, PreemptPlan};
pub use signal::{DeliveredSignals, SignalNoise, SignalPlan};
