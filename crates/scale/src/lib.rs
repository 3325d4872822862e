//! What noise costs at scale: from the detours of one node to the slowdown of a job on any number of ranks.
//!
//! - [`noise`]: traces as circles, checked when they are made; [`spec`] makes them from a line of text, [`books`] takes
//!   single sources out of them.
//! - [`law`]: the closed forms of Tsafrir 2007, with the range in which they hold; [`lengths`] says where noise is such.
//! - [`delay`]: the delay that a phase suffers, as a function of where in the trace it starts; [`order`] gives the
//!   expected largest of any number of such delays.
//! - [`sampled`]: that, and what is left of it without each source, in one pass over detours that are not kept; [`at_once`] finds what came
//!   to several CPUs of a node at once.
//! - [`uncertainty`]: how far another recording of the same machine may lead to another slowdown.
//! - [`replay`]: bulk-synchronous phases with an instantaneous collective, plain and fast.
//! - [`machine`], [`collective`], [`network`]: per-rank clocks and messages that cost time.
//! - [`closed`]: whose time is in the added time of a replay, to the nanosecond.
//! - [`predict`] and [`blame`]: the two questions that users ask, answered with the above; [`phases`] says how the phases are spread,
//!   [`tolerance`] turns the questions round, [`watch`] says how far they are.
//!
//! Nothing here does input or output, reads a clock or starts randomness by itself: the same arguments give the same
//! numbers, on any machine and with any number of threads.

#![forbid(unsafe_code)]

pub mod at_once;
pub mod blame;
pub mod books;
pub mod closed;
mod coalesce;
pub mod collective;
pub mod delay;
mod envelope;
pub mod error;
pub mod estimate;
pub mod law;
pub mod lengths;
pub mod machine;
pub mod network;
pub mod noise;
pub mod order;
pub mod phases;
pub mod placement;
pub mod predict;
pub mod random;
pub mod replay;
pub mod sampled;
pub mod spec;
pub mod tolerance;
pub mod uncertainty;
pub mod watch;
mod workers;

pub use error::ScaleError;
pub use noise::{Alignment, NodeNoise, Noise, NoiseTrace, TraceError};
