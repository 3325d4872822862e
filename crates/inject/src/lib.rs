//! Known noise: detours of given lengths at given times on chosen CPUs.
//!
//! - [`schedule`]: when detours are due on one CPU, from the same circles that predictions replay.
//! - [`toll`]: what an injected detour costs beyond its own loop, measured on the CPU itself before anything is injected.
//! - `kinds`: that of many CPUs, measured once for all that are alike.
//! - [`grounds`]: what is known of the CPUs before, and what the kernel keeps from real-time threads.
//! - [`burst`]: several detours in the place of one.
//! - [`fit`]: how much of the noise must be possible.
//! - `place`: where on its circle each CPU or thread starts, and who starts together.
//! - [`preempt`]: real-time threads that take the CPUs from whoever runs there.
//! - `flood`: packets of this machine to itself, by which these threads burn the time where it is to be the network's.
//! - [`signal`]: the same inside of an unmodified program, by a signal in each of its threads.
//! - [`program`]: whether a program can be reached so.
//! - [`tally`]: what was delivered, beside what was asked for, and what that comes to as a document of the crate `model`.
//! - `document`, `total` and `report`: the result as a document, over all places, and in words.
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
