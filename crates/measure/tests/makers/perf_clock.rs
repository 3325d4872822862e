//! A cpu-clock perf event: a high-resolution timer of the kernel that interrupts one CPU at a fixed rate.
//!
//! The timer interrupts through the local timer (`LOC`). Nothing is read from the event but its sum; it is bound to
//! the CPU, not to a process.

use becalm_linux::perf::{CpuClock, PerfError};
use becalm_units::{CpuId, Nanos, Ticks};

use super::now;

/// An event that runs until it is stopped or dropped.
pub struct PerfClock {
    event: CpuClock,
    started: Ticks,
}

/// What a stopped event says.
#[derive(Clone, Copy, Debug)]
pub struct PerfLog {
    /// The counter when it was started, and when it was stopped.
    pub start: Ticks,
    pub end: Ticks,
    /// How long it ran, by the kernel's clock.
    pub ran: Nanos,
}

/// Starts an event that interrupts a CPU `rate_hz` times a second. Needs CAP_PERFMON or root, and must not exceed
/// `kernel.perf_event_max_sample_rate`.
pub fn start(cpu: CpuId, rate_hz: u32) -> Result<PerfClock, PerfError> {
    let started = now();
    Ok(PerfClock { event: CpuClock::start(cpu, rate_hz)?, started })
}

impl PerfClock {
    /// Stops the event.
    pub fn stop(self) -> Result<PerfLog, PerfError> {
        let ran = self.event.stop()?;
        Ok(PerfLog { start: self.started, end: now(), ran })
    }
}
