//! The benchmarks, a file a question, and what they share: the table of claims that each prints, figures over repetitions, the
//! load that they run under, and programs that they run beside themselves.

pub mod arrivals;
pub mod benchmarks;
pub mod claims;
pub mod effort;
pub mod figures;
pub mod interrupts;
pub mod kernel_load;
pub mod large_bundle;
pub mod mersenne;
pub mod programs;
