//! The statistics that a report rests on: exact moments, quantiles, and the interval of a noise ratio.
//!
//! Everything here takes plain integers in nanoseconds, one at a time, and keeps a bounded amount of them: a run of
//! hours is summarized in the memory of a run of seconds. Nothing here knows of bundles, CPUs or sources.

mod cells;
mod interval;
mod moments;
pub mod periods;
mod quantiles;
pub mod spectrum;

pub use cells::TimeCells;
pub(crate) use interval::{BLOCKS_MIN, below, block_length};
pub use interval::{CONFIDENCE, Interval, METHOD, RESAMPLES, SEED, TooLittle};
pub use moments::Moments;
pub use periods::Period;
pub use quantiles::Quantiles;
pub use spectrum::Spectrum;
