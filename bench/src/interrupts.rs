//! Interrupts at a chosen rate, on a chosen CPU: the noise maker of the root tests.

use std::io;

use becalm_linux::clock::{Counter, Native};
use becalm_units::{CpuId, Ticks};

#[expect(dead_code, reason = "the tests also read the maker's log")]
#[path = "../../crates/measure/tests/makers/perf_clock.rs"]
mod perf_clock;

/// The counter now, as the makers log it.
fn now() -> Ticks {
    Ticks::new(Native::read())
}

/// Interrupts of the local timer that come until this is dropped.
pub struct Interrupts {
    _clock: perf_clock::PerfClock,
}

impl Interrupts {
    /// Interrupts a CPU `rate_hz` times a second.
    ///
    /// # Errors
    /// Without CAP_PERFMON or root, and if the rate is above `kernel.perf_event_max_sample_rate`.
    pub fn start(cpu: CpuId, rate_hz: u32) -> io::Result<Self> {
        Ok(Self { _clock: perf_clock::start(cpu, rate_hz)? })
    }
}
