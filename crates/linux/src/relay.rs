//! Signals for a program that this process runs: blocked here, read, and forwarded.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::blocked_signals::BlockedSignals;
use crate::signals::is_ignored;

/// The relayed signals. Not those for stopping and continuing: a terminal sends those to the program as well, and this process stops and continues
/// with it.
const RELAYED: [libc::c_int; 7] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];

/// The signals, blocked in the calling thread and all that it starts, and read from a file descriptor.
///
/// Dropping it unblocks them in the calling thread. If one was relayed, later ones that were not taken because the program had ended are dropped as
/// well: they must not end this process before it has reported how the program ended.
#[derive(Debug)]
pub struct Relay {
    blocked: BlockedSignals,
    taken: AtomicBool,
}

/// A signal sent to the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// The signal's number, such as `SIGINT`.
    pub signal: i32,
    /// Whether the kernel sent it, as for a key at the terminal: then the programs of the same job already have it.
    pub by_kernel: bool,
}

impl Relay {
    /// Blocks the signals. Must be called before any thread is started. A SIGHUP that is ignored, as under nohup, remains ignored. Fails if the
    /// kernel has no signalfd or no file descriptor is left.
    pub fn block() -> io::Result<Self> {
        let relayed = RELAYED.into_iter().filter(|signal| *signal != libc::SIGHUP || !is_ignored(*signal));
        Ok(Self { blocked: BlockedSignals::new(relayed)?, taken: AtomicBool::new(false) })
    }

    /// The next signal, if one has arrived.
    #[must_use]
    pub fn take(&self) -> Option<Incoming> {
        let incoming = self
            .blocked
            .take()
            .map(|info| Incoming { signal: info.ssi_signo as i32, by_kernel: info.ssi_code == libc::SI_KERNEL });
        self.taken.fetch_or(incoming.is_some(), Ordering::Relaxed);
        incoming
    }

    /// The signals that were blocked before.
    pub(crate) const fn previous(&self) -> libc::sigset_t {
        *self.blocked.previous()
    }
}

impl AsFd for Relay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.blocked.as_fd()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if self.taken.load(Ordering::Relaxed) {
            while self.take().is_some() {}
        }
    }
}

/// Whether a signal asks a program to end.
pub const fn ends(signal: i32) -> bool {
    matches!(signal, libc::SIGHUP | libc::SIGINT | libc::SIGQUIT | libc::SIGTERM)
}

/// Sends a signal to a process. Fails if it is gone or not ours.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: takes integers. A positive number means exactly one process.
    if pid > 0 && unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_with_their_senders() {
        let relay = Relay::block().unwrap();
        assert_eq!(relay.take(), None);
        // SAFETY: takes an integer; sends to the calling thread alone, which does not affect other tests of the process.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        assert_eq!(relay.take(), Some(Incoming { signal: libc::SIGUSR1, by_kernel: false }));
        assert_eq!(relay.take(), None);
        // If unblocked, it would end this process.
        // SAFETY: as above.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        drop(relay);
    }
}
