//! Perf events: those with which becalm causes interrupts, and the kernel's limits on them; and counters of the processor and the kernel for a
//! thread.

pub(crate) mod attributes;
mod counters;
mod cpu_clock;
mod limits;

pub use counters::{CountedEvent, Counters, CountersError, PerfEvent, Space, UncountedEvent};
pub use cpu_clock::{CpuClock, PerfError};
pub use limits::SampleLimits;
