//! What the benchmarks share: the table of claims that each prints, figures over repetitions, the load that they run
//! under, and programs that they run beside themselves.
//!
//! Each question has its own program in `bin/`; the package's own program runs them all.

pub mod arrivals;
pub mod claims;
pub mod effort;
pub mod figures;
pub mod interrupts;
pub mod kernel_load;
pub mod large_bundle;
pub mod mersenne;
pub mod programs;
