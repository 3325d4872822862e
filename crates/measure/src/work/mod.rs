//! Work: loops that do something, of a known amount, again and again (Tsafrir 2007, sections 2 to 4; Radojković et al.
//! 2008). What interrupts them shows in how long they take (fixed work) or how far they get (fixed time).
//!
//! What is done is a [`Body`]; [`Work`] is one ready to run on a CPU; [`calibrate`] finds how much of it takes the grain;
//! [`crate::loops::sampling`] has the measuring loops.

mod body;
mod calibration;
mod core_clock;
mod decile;
mod repetitions;
mod sort;
mod stream;

pub use body::{Body, CacheSize, ParseBodyError, Unsupported, Work};
pub use calibration::{WorkSize, calibrate, calibrate_unit};
pub use core_clock::core_clock;
pub use decile::third_decile_mean;
pub use repetitions::AccumulatedMean;
pub use sort::{introsort, sequence};
