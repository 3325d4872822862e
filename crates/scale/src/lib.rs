//! The cost of noise at scale: from the detours of one node to the slowdown of a job on any number of ranks.
//!
//! - [`noise`]: traces as circles, validated on construction; [`spec`] makes them from a line of text, [`books`] removes single sources from them.
//! - [`law`]: the closed forms of Tsafrir 2007, with their range of validity; [`lengths`] decides where they apply.
//! - [`delay`]: the delay of a phase, a function of its start in the trace; [`order`] gives the expected maximum of any number of such delays.
//! - [`sampled`]: the same, with and without each source, in one pass over detours that are not kept; [`at_once`] finds detours that hit several CPUs
//!   of a node at once.
//! - [`uncertainty`]: how much the slowdown may differ with another recording of the same machine.
//! - [`replay`]: bulk-synchronous phases with an instantaneous collective, plain and fast.
//! - [`machine`], [`collective`], [`network`]: per-rank clocks and messages that cost time.
//! - [`closed`]: attributes the added time of a replay to sources, to the nanosecond.
//! - [`predict`] and [`blame`]: the two questions that users ask, answered with the above; [`phases`] has the distribution of the phases,
//!   [`tolerance`] inverts the questions, [`watch`] reports progress.
//!
//! Nothing here does input or output, reads a clock or creates randomness: the same arguments give the same numbers, on any machine and with any
//! number of threads.

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
