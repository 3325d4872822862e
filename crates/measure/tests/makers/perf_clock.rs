//! A cpu-clock perf event: a high-resolution timer of the kernel that interrupts one CPU at a fixed rate.
//!
//! The timer interrupts through the local timer (`LOC`). Nothing is read from the event but its sum; it is bound to
//! the CPU, not to a process.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use becalm_units::{CpuId, Nanos};

use super::now;

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

/// An event that runs until it is stopped or dropped.
pub struct PerfClock {
    event: OwnedFd,
    started: becalm_units::Ticks,
}

/// What a stopped event says.
#[derive(Clone, Copy, Debug)]
pub struct PerfLog {
    /// The counter when it was started, and when it was stopped.
    pub start: becalm_units::Ticks,
    pub end: becalm_units::Ticks,
    /// How long it ran, by the kernel's clock.
    pub ran: Nanos,
}

/// Starts an event that interrupts a CPU `rate_hz` times a second. Needs CAP_PERFMON or root, and must not exceed
/// `kernel.perf_event_max_sample_rate`.
pub fn start(cpu: CpuId, rate_hz: u32) -> io::Result<PerfClock> {
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
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else owns it.
    let event = unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) };
    let started = now();
    control(&event, ENABLE)?;
    Ok(PerfClock { event, started })
}

fn control(event: &OwnedFd, request: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these requests take no argument, and the descriptor is open.
    match unsafe { libc::ioctl(event.as_raw_fd(), request, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl PerfClock {
    /// Stops the event.
    pub fn stop(self) -> io::Result<PerfLog> {
        control(&self.event, DISABLE)?;
        let end = now();
        let mut sum = [0; 8];
        rustix::io::read(&self.event, &mut sum)?;
        Ok(PerfLog { start: self.started, end, ran: Nanos::new(i64::from_ne_bytes(sum)) })
    }
}
