//! Signals that are blocked in a thread and all that it starts, and read from a file descriptor instead.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Blocked signals. Dropping it unblocks them in the calling thread.
#[derive(Debug)]
pub(crate) struct BlockedSignals {
    fd: OwnedFd,
    previous: libc::sigset_t,
}

impl BlockedSignals {
    pub(crate) fn new(signals: impl IntoIterator<Item = libc::c_int>) -> io::Result<Self> {
        // SAFETY: all-zero bytes are valid signal sets; the calls write to them and read them.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut previous: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
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

    /// The next signal, if one has arrived.
    pub(crate) fn take(&self) -> Option<libc::signalfd_siginfo> {
        // SAFETY: all-zero bytes are a valid signalfd_siginfo.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes into `info`.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        (read == size as isize).then_some(info)
    }

    /// The signals that were blocked before.
    pub(crate) const fn previous(&self) -> &libc::sigset_t {
        &self.previous
    }
}

impl AsFd for BlockedSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `new` saved; the old set is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.previous, std::ptr::null_mut()) };
    }
}
