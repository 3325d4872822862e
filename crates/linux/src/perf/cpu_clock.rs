//! A cpu-clock perf event: a kernel high-resolution timer that interrupts one CPU at a fixed rate, without a kernel built for that rate.
//!
//! The timer interrupts through the CPU's own timer, like the tick. It is bound to the CPU, not to a process. Nothing is sampled into memory, so
//! the handler does little more than set the timer again. If two timers are due at the same instant, one interrupt serves both; /proc/interrupts
//! counts how many there were.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use becalm_units::{CpuId, Nanos};

use super::attributes::{Attributes, DISABLE, ENABLE, SOFTWARE, control};
use crate::file::FileError;
use crate::rights::Need;

/// The number of the event, `PERF_COUNT_SW_CPU_CLOCK`: a kernel timer that interrupts the CPU.
const CPU_CLOCK: u64 = 0;

/// A perf event that is not available.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// The CPU cannot be interrupted at this rate, in interrupts per second.
    #[error("cannot interrupt CPU {0} {1} times a second: a rate from 1 to {limit} is possible", limit = CpuClock::RATE_MAX_HZ)]
    Rate(CpuId, u32),
    /// A system call on the event of a CPU failed: to `open`, `start`, `stop` or `read` it.
    #[error("cannot {0} the cpu-clock perf event of CPU {1}: {2}{hint}", hint = hint(.2))]
    System(&'static str, CpuId, io::Error),
    /// The kernel's limits cannot be read.
    #[error(transparent)]
    Limits(#[from] FileError),
    /// The limit in this file, which the kernel lowered, cannot be restored to its old value.
    #[error("cannot put {1} back into {path}: {2}; write it there as root", path = .0.display())]
    Restore(PathBuf, u32, io::Error),
}

becalm_units::fault::faultless!(PerfError);

fn hint(error: &io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            return format!(" (for events of a whole CPU, {})", Need::CpuEvents.advice());
        }
        Some(libc::ENOSYS) => " (this kernel was built without perf events)",
        Some(libc::ENODEV | libc::EINVAL) => " (the CPU is offline or does not exist)",
        _ => "",
    };
    hint.to_owned()
}

/// An event that interrupts its CPU until it is stopped or dropped, or the process ends.
#[derive(Debug)]
pub struct CpuClock {
    event: OwnedFd,
    cpu: CpuId,
}

impl CpuClock {
    /// The kernel runs no such timer faster than every 10 us.
    pub const RATE_MAX_HZ: u32 = 100_000;

    /// Starts interrupting a CPU `rate_hz` times per second, in addition to its ticks. The kernel silently throttles rates above
    /// [`SampleLimits::max_sample_rate_hz`](super::SampleLimits::max_sample_rate_hz); the caller must check. Fails if the rate is zero, the CPU is
    /// offline, or the caller lacks the privilege.
    pub fn start(cpu: CpuId, rate_hz: u32) -> Result<Self, PerfError> {
        if !(1..=Self::RATE_MAX_HZ).contains(&rate_hz) {
            return Err(PerfError::Rate(cpu, rate_hz));
        }
        let attributes =
            Attributes { sample_period: 1_000_000_000 / u64::from(rate_hz), ..Attributes::new(SOFTWARE, CPU_CLOCK) };
        let event = attributes.open_on(cpu).map_err(|source| PerfError::System("open", cpu, source))?;
        let clock = Self { event, cpu };
        clock.control("start", ENABLE)?;
        Ok(clock)
    }

    /// Stops it, and returns how long the CPU's clock ran according to it. Fails if the kernel does not let it be stopped or read.
    pub fn stop(self) -> Result<Nanos, PerfError> {
        self.control("stop", DISABLE)?;
        self.read()
    }

    /// How long the CPU's clock has run. A call from another CPU interrupts the measured one.
    pub fn read(&self) -> Result<Nanos, PerfError> {
        let mut sum = [0; 8];
        rustix::io::read(&self.event, &mut sum).map_err(|error| PerfError::System("read", self.cpu, error.into()))?;
        Ok(Nanos::new(i64::from_ne_bytes(sum)))
    }

    fn control(&self, action: &'static str, request: libc::c_ulong) -> Result<(), PerfError> {
        control(self.event.as_fd(), request, 0).map_err(|source| PerfError::System(action, self.cpu, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_none_is_refused() {
        let cpu = CpuId::new(0);
        for rate_hz in [0, CpuClock::RATE_MAX_HZ + 1] {
            let error = CpuClock::start(cpu, rate_hz).unwrap_err();
            assert!(error.to_string().ends_with("a rate from 1 to 100000 is possible"), "{error}");
        }
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let error = CpuClock::start(CpuId::new(9_999), 1_000).unwrap_err();
        assert!(error.to_string().starts_with("cannot open the cpu-clock perf event of CPU 9999: "), "{error}");
    }
}
