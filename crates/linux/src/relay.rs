//! Signals that are meant for a program which this process runs: blocked here, read, and sent on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::signals::is_ignored;

/// What is relayed. Stopping and going on are not: a terminal sends those to the program as well, and this process stops and
/// goes on with it.
const RELAYED: [libc::c_int; 7] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];

/// The signals, blocked in the calling thread and all that it starts, and read from a file descriptor.
///
/// Dropping it unblocks them again in the calling thread. If one was relayed, those that came after it and that nobody took,
/// as the program had ended, are dropped as well: they do not end this process before it has said how the program ended.
#[derive(Debug)]
pub struct Relay {
    fd: OwnedFd,
    previous: libc::sigset_t,
    /// Whether one was taken.
    taken: AtomicBool,
}

/// A signal that came to the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// The signal's number, such as `SIGINT`.
    pub signal: i32,
    /// Whether the kernel sent it, as for a key at the terminal: then the programs of the same job have it already.
    pub by_kernel: bool,
}

impl Relay {
    /// Blocks the signals. To be called before any thread is started. A SIGHUP that is ignored, as under nohup, stays so.
    ///
    /// # Errors
    /// If the kernel has no signalfd or no file descriptor is left.
    pub fn block() -> io::Result<Self> {
        // SAFETY: all-zero bytes are valid signal sets; the calls write to them and read them.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut previous: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in RELAYED {
                if signal != libc::SIGHUP || !is_ignored(signal) {
                    libc::sigaddset(&raw mut set, signal);
                }
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
            Ok(Self { fd: OwnedFd::from_raw_fd(fd), previous, taken: AtomicBool::new(false) })
        }
    }

    /// The next signal that has come, if one has.
    #[must_use]
    pub fn take(&self) -> Option<Incoming> {
        // SAFETY: all-zero bytes are a valid signalfd_siginfo.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes into `info`.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        let incoming = Incoming { signal: info.ssi_signo as i32, by_kernel: info.ssi_code == libc::SI_KERNEL };
        let incoming = (read == size as isize).then_some(incoming);
        self.taken.fetch_or(incoming.is_some(), Ordering::Relaxed);
        incoming
    }

    /// The signals that were blocked before.
    pub(crate) const fn previous(&self) -> libc::sigset_t {
        self.previous
    }
}

impl AsFd for Relay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if self.taken.load(Ordering::Relaxed) {
            while self.take().is_some() {}
        }
        // SAFETY: restores the mask that `block` saved; the old set is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.previous, std::ptr::null_mut()) };
    }
}

/// Whether a signal is one by which a program is asked to end.
#[must_use]
pub const fn ends(signal: i32) -> bool {
    matches!(signal, libc::SIGHUP | libc::SIGINT | libc::SIGQUIT | libc::SIGTERM)
}

/// Sends a signal to a process.
///
/// # Errors
/// If it is gone or not ours.
pub fn send(pid: u32, signal: i32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: plain numbers. No other process than one is meant by a positive one.
    if pid > 0 && unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_with_their_senders() {
        let relay = Relay::block().unwrap();
        assert_eq!(relay.take(), None);
        // SAFETY: a plain number; to the calling thread alone, which other tests of the process do not notice.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        assert_eq!(relay.take(), Some(Incoming { signal: libc::SIGUSR1, by_kernel: false }));
        assert_eq!(relay.take(), None);
        // Let through, it would end this process.
        // SAFETY: as above.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        drop(relay);
    }
}
