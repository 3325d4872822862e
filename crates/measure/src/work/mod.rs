//! Work: loops that repeat a known amount of work (Tsafrir 2007, sections 2 to 4; Radojković et al. 2008). Interruptions show in their duration
//! (fixed work) or in their progress (fixed time).
//!
//! A [`Body`] is the kind of work; a [`Work`] is one ready to run on a CPU; [`calibrate`] finds how much of it takes the grain;
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
