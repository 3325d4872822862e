//! Signals that are blocked in a thread and all that it starts, and read from a file descriptor instead.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::signal_sets::{mask, set_of};

/// Blocked signals. Dropping it unblocks them in the calling thread.
#[derive(Debug)]
pub(crate) struct BlockedSignals {
    fd: OwnedFd,
    previous: libc::sigset_t,
}

impl BlockedSignals {
    pub(crate) fn new(signals: impl IntoIterator<Item = libc::c_int>) -> io::Result<Self> {
        let set = set_of(signals);
        let previous = mask(libc::SIG_BLOCK, &set);
        // SAFETY: reads the set.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            mask(libc::SIG_SETMASK, &previous);
            return Err(error);
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, previous })
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
        mask(libc::SIG_SETMASK, &self.previous);
    }
}
