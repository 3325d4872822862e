//! `perf_event_open`: the kernel's description of an event, and the call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use becalm_units::CpuId;

/// Events of the processor, `PERF_TYPE_HARDWARE`.
pub const HARDWARE: u32 = 0;
/// Events that the kernel counts itself, `PERF_TYPE_SOFTWARE`.
pub const SOFTWARE: u32 = 1;
/// Tracepoints of the kernel, `PERF_TYPE_TRACEPOINT`.
pub const TRACEPOINT: u32 = 2;
/// Accesses to a cache by level, operation and outcome, `PERF_TYPE_HW_CACHE`.
pub const CACHE: u32 = 3;

/// `disabled` in the flags of `struct perf_event_attr`.
pub const DISABLED: u64 = 1 << 0;
/// `exclude_user`: count nothing in user space.
pub const EXCLUDE_USER: u64 = 1 << 4;
/// `exclude_kernel`: count nothing in the kernel.
pub const EXCLUDE_KERNEL: u64 = 1 << 5;
/// `exclude_hv`: count nothing in a hypervisor, if the processor can distinguish it.
pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// A group is read at once, with the times for which it was enabled and counting:
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_GROUP`.
pub const READ_GROUP: u64 = 1 | 2 | 8;

/// The request that starts an event, `PERF_EVENT_IOC_ENABLE`, which is `_IO('$', 0)`.
pub const ENABLE: libc::c_ulong = 0x2400;
/// The request that stops an event, `PERF_EVENT_IOC_DISABLE`, which is `_IO('$', 1)`.
pub const DISABLE: libc::c_ulong = 0x2401;
/// `PERF_IOC_FLAG_GROUP`: the request applies to all events of the group.
pub const WHOLE_GROUP: libc::c_ulong = 1;

/// `PERF_FLAG_FD_CLOEXEC`: a program that becalm starts does not inherit the event.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// `struct perf_event_attr` in its first published size, PERF_ATTR_SIZE_VER0 of 64 bytes, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
pub struct Attributes {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup_events: u32,
    pub bp_type: u32,
    pub config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64);

impl Attributes {
    /// An event of a kind, by its number there; it does not count until it is enabled.
    pub fn new(kind: u32, config: u64) -> Self {
        Self { kind, config, size: size_of::<Self>() as u32, flags: DISABLED, ..Self::default() }
    }

    /// Opens the event for all activity on a CPU.
    pub fn open_on(&self, cpu: CpuId) -> io::Result<OwnedFd> {
        let cpu = libc::c_int::try_from(cpu.get()).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
        self.open(-1, cpu, None)
    }

    /// Opens the event for the calling thread on any CPU, in the group of another event if given.
    pub fn open_for_current_thread(&self, group: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
        self.open(0, -1, group)
    }

    fn open(&self, thread: libc::pid_t, cpu: libc::c_int, group: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
        let group: libc::c_int = group.map_or(-1, |leader| leader.as_raw_fd());
        // SAFETY: the attributes are as large as they say and outlive the call; the rest are integers.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(self), thread, cpu, group, CLOSE_ON_EXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
    }
}

/// Sends a request that takes flags or nothing to an event.
pub fn control(event: BorrowedFd<'_>, request: libc::c_ulong, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these requests take an integer at most, and the descriptor is open.
    match unsafe { libc::ioctl(event.as_raw_fd(), request, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
