//! Signals as readable events, so that no handler interrupts a measuring thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// SIGINT, SIGTERM and SIGHUP, blocked in the calling thread and all that it starts, and read from a file descriptor.
///
/// Dropping it unblocks them again in the calling thread.
#[derive(Debug)]
pub struct StopSignals {
    fd: OwnedFd,
    previous: libc::sigset_t,
}

impl StopSignals {
    /// Blocks the signals. To be called before any thread is started.
    ///
    /// # Errors
    /// If the kernel has no signalfd or no file descriptor is left.
    pub fn block() -> io::Result<Self> {
        // SAFETY: all-zero bytes are valid signal sets; the calls write to them and read them.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut previous: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut previous);
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                let error = io::Error::last_os_error();
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const previous, std::ptr::null_mut());
                return Err(error);
            }
            Ok(Self { fd: OwnedFd::from_raw_fd(fd), previous })
        }
    }

    /// The number of a signal that has come, if one has.
    #[must_use]
    pub fn take(&self) -> Option<i32> {
        // SAFETY: all-zero bytes are a valid signalfd_siginfo.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes into `info`.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        (read == size as isize).then_some(info.ssi_signo as i32)
    }
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `block` saved; the old set is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.previous, std::ptr::null_mut()) };
    }
}

/// Sleeps until one of the descriptors is readable or the time is over; tells which are readable.
///
/// # Errors
/// If the kernel refuses to poll; an interruption counts as nothing readable.
pub fn wait_readable<const N: usize>(fds: [Option<BorrowedFd<'_>>; N], timeout: Duration) -> io::Result<[bool; N]> {
    // A negative descriptor is skipped by poll.
    let mut polled =
        fds.map(|fd| libc::pollfd { fd: fd.map_or(-1, |fd| fd.as_raw_fd()), events: libc::POLLIN, revents: 0 });
    // Rounded up, so that a wait for less than a millisecond does not become a busy one.
    let milliseconds = i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX);
    // SAFETY: `polled` holds N valid entries.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, milliseconds) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(polled.map(|entry| ready > 0 && entry.revents != 0))
}

/// A file descriptor that becomes readable when the process ends.
///
/// # Errors
/// If the process is gone already or the kernel is older than 5.3.
pub fn process_end(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// Asks a process to end.
///
/// # Errors
/// If it is gone or not ours.
pub fn terminate(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(pid, rustix::process::Signal::TERM)?)
}
