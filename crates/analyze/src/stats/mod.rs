//! The statistics that a report rests on: exact moments, quantiles, and the interval of a noise ratio.
//!
//! Everything here takes plain integers in nanoseconds, one at a time, and keeps a bounded amount of them: a run of
//! hours is summarized in the memory of a run of seconds. Nothing here knows of bundles, CPUs or sources.

mod cells;
mod interval;
mod moments;
mod quantiles;
mod sign;

pub use cells::TimeCells;
pub use interval::{CONFIDENCE, Interval, METHOD, RESAMPLES, SEED, TooLittle};
pub use moments::Moments;
pub use quantiles::Quantiles;
pub use sign::median_with_interval;
