//! Interrupts at a chosen rate, on a chosen CPU.

use becalm_linux::perf::{CpuClock, PerfError};
use becalm_units::CpuId;

/// Causes interrupts of the local timer until dropped.
pub struct Interrupts {
    _clock: CpuClock,
}

impl Interrupts {
    /// Interrupts a CPU `rate_hz` times per second. Fails without CAP_PERFMON or root, and if the rate is above
    /// `kernel.perf_event_max_sample_rate`.
    pub fn start(cpu: CpuId, rate_hz: u32) -> Result<Self, PerfError> {
        Ok(Self { _clock: CpuClock::start(cpu, rate_hz)? })
    }
}
