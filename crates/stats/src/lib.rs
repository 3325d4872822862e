//! Statistics behind the reports: exact moments, quantiles, confidence intervals, the tail of the longest detours, periods and spectrum,
//! and outliers among peers.
//!
//! All of it takes integers in nanoseconds one at a time and keeps a bounded number of them, so a run of hours needs no more memory than
//! one of seconds. This crate does not know bundles, CPUs or sources.

#![forbid(unsafe_code)]

mod cells;
pub mod chance;
mod clusters;
mod distributions;
pub mod fourier;
mod interval;
mod lengths;
mod longest;
mod mean;
pub mod modes;
mod moments;
mod order;
pub mod outliers;
mod pareto;
pub mod periods;
mod quantiles;
mod sign;
pub mod spectrum;
pub mod splitmix;
pub mod tail;
mod woodruff;

pub use cells::TimeCells;
pub use distributions::{fisher_tail, student_quantile, student_tail};
pub use interval::{BLOCKS_MIN, ROUGH_BLOCKS_MIN, below, blocks, circular_sums, run_for_blocks};
pub use interval::{CONFIDENCE, Interval, METHOD, RESAMPLES, SEED, TooLittle};
pub use lengths::LengthCells;
pub use longest::{LONGEST, Longest};
pub use mean::mean_with_half_width;
pub use moments::Moments;
pub use order::{Ordered, median_high, median_low, median_mid, nearest_rank, trimmed_mean};
pub use periods::Period;
pub use quantiles::Quantiles;
pub use sign::median_with_interval;
pub use spectrum::Spectrum;
pub use tail::{NoTail, ReturnLevel, Tail};
pub use woodruff::QuantileBounds;
