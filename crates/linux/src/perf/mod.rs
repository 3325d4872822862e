//! Perf events that becalm causes interrupts with, and the kernel's limits on them.

mod cpu_clock;
mod limits;

pub use cpu_clock::{CpuClock, PerfError};
pub use limits::SampleLimits;
