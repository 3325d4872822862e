//! A cpu-clock perf event: a high-resolution timer of the kernel that interrupts one CPU at a fixed rate, without a
//! kernel built for that rate.
//!
//! The timer interrupts through the CPU's own timer, as the tick does. It is bound to the CPU, not to a process. Nothing is
//! sampled into memory, so that the handler does little more than to set the timer again. Where two timers are due at
//! the same instant one interrupt serves both; how many there were is counted elsewhere, in /proc/interrupts.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use becalm_units::{CpuId, Nanos};

use crate::procfs::FileError;

/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_CPU_CLOCK`.
const CPU_CLOCK: u64 = 0;
/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`: `_IO('$', 0)` and `_IO('$', 1)`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `disabled` in the flags of `struct perf_event_attr`.
const DISABLED: u64 = 1;

/// `struct perf_event_attr` in its first published size, PERF_ATTR_SIZE_VER0 of 64 bytes, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64);

/// A perf event that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// The rate is none.
    #[error("cannot interrupt CPU {cpu} {rate_hz} times a second: a rate from 1 to {limit} is possible", limit = CpuClock::RATE_MAX_HZ)]
    Rate {
        /// Where.
        cpu: CpuId,
        /// The rate asked for.
        rate_hz: u32,
    },
    /// The kernel refuses it.
    #[error("cannot {action} the cpu-clock perf event of CPU {cpu}: {source}{}", hint(source))]
    System {
        /// What was attempted.
        action: &'static str,
        /// Where.
        cpu: CpuId,
        /// Why it failed.
        source: io::Error,
    },
    /// The kernel's limits cannot be read.
    #[error(transparent)]
    Limits(#[from] FileError),
    /// A limit that the kernel lowered cannot be put back.
    #[error("cannot put {rate_hz} back into {}: {source}; write it there as root", path.display())]
    Restore {
        /// The limit's file.
        path: PathBuf,
        /// What it was.
        rate_hz: u32,
        /// Why not.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            " (events of a whole CPU need root, CAP_PERFMON or kernel.perf_event_paranoid below 1)"
        }
        Some(libc::ENOSYS) => " (this kernel was built without perf events)",
        Some(libc::ENODEV | libc::EINVAL) => " (the CPU is offline or does not exist)",
        _ => "",
    }
}

/// An event that interrupts its CPU until it is stopped or dropped; also the end of the process ends it.
#[derive(Debug)]
pub struct CpuClock {
    event: OwnedFd,
    cpu: CpuId,
}

impl CpuClock {
    /// The kernel lets no such timer run faster than every 10 us.
    pub const RATE_MAX_HZ: u32 = 100_000;

    /// Starts to interrupt a CPU `rate_hz` times a second, besides its own ticks. Rates above
    /// [`SampleLimits::max_sample_rate_hz`](super::SampleLimits::max_sample_rate_hz) are throttled by the kernel without a word; the caller is to look.
    ///
    /// # Errors
    /// If the rate is none, the CPU is offline, or the caller lacks the privilege.
    pub fn start(cpu: CpuId, rate_hz: u32) -> Result<Self, PerfError> {
        if !(1..=Self::RATE_MAX_HZ).contains(&rate_hz) {
            return Err(PerfError::Rate { cpu, rate_hz });
        }
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: CPU_CLOCK,
            sample_period: 1_000_000_000 / u64::from(rate_hz),
            flags: DISABLED,
            ..Attributes::default()
        };
        // SAFETY: the attributes are as large as they say and outlive the call; the rest are integers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                -1 as libc::pid_t,
                cpu.get() as libc::c_int,
                -1 as libc::c_int,
                CLOSE_ON_EXEC,
            )
        };
        if fd < 0 {
            return Err(PerfError::System { action: "open", cpu, source: io::Error::last_os_error() });
        }
        // SAFETY: the kernel has just given us this descriptor, and nobody else owns it.
        let event = unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) };
        let clock = Self { event, cpu };
        clock.control("start", ENABLE)?;
        Ok(clock)
    }

    /// Stops it, and says for how long the CPU's clock ran by it.
    ///
    /// # Errors
    /// If the kernel does not let it be stopped or read.
    pub fn stop(self) -> Result<Nanos, PerfError> {
        self.control("stop", DISABLE)?;
        let mut sum = [0; 8];
        rustix::io::read(&self.event, &mut sum).map_err(|error| PerfError::System {
            action: "read",
            cpu: self.cpu,
            source: error.into(),
        })?;
        Ok(Nanos::new(i64::from_ne_bytes(sum)))
    }

    fn control(&self, action: &'static str, request: libc::c_ulong) -> Result<(), PerfError> {
        // SAFETY: these requests take no argument, and the descriptor is open.
        match unsafe { libc::ioctl(self.event.as_raw_fd(), request, 0) } {
            0 => Ok(()),
            _ => Err(PerfError::System { action, cpu: self.cpu, source: io::Error::last_os_error() }),
        }
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
