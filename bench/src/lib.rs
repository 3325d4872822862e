//! The benchmarks, one file per question, and their shared parts: the table of claims, figures over repetitions, synthetic load, and child
//! processes.

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
pub mod switching;
