//! Signals as readable events, so no handler interrupts a measuring thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::blocked_signals::BlockedSignals;

/// The signals that ask a recording to end.
const STOP: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// SIGINT, SIGTERM and SIGHUP, blocked in the calling thread and all that it starts, and read from a file descriptor.
///
/// Dropping it unblocks them in the calling thread. If one was taken, the process is ending anyway: later ones are dropped as well, and do not end it
/// before it has reported how it ended.
#[derive(Debug)]
pub struct StopSignals {
    blocked: BlockedSignals,
    /// The number of the signal taken last; zero for none.
    taken: AtomicI32,
}

impl StopSignals {
    /// Blocks the signals. Must be called before any thread is started. A SIGHUP that is ignored, as under nohup, remains ignored: the recording
    /// should outlive its terminal. Fails if the kernel has no signalfd or no file descriptor is left.
    pub fn block() -> io::Result<Self> {
        let signals = STOP.into_iter().filter(|signal| *signal != libc::SIGHUP || !is_ignored(*signal));
        Ok(Self { blocked: BlockedSignals::new(signals)?, taken: AtomicI32::new(0) })
    }

    /// Runs something with the previous signal mask in the calling thread, which programs started there inherit. A signal that arrives meanwhile is
    /// kept for [`Self::take`].
    pub fn let_through<T>(&self, run: impl FnOnce() -> T) -> T {
        // A signal to the process may be delivered to this thread now, and must not end it. Ignored signals remain ignored, as with nohup; started
        // programs get the default action back.
        let caught = STOP.map(|signal| (signal, caught_instead(signal)));
        let mut blocked = *self.blocked.previous();
        // SAFETY: sets the mask that `BlockedSignals` saved and fills in the current one; then the other way round.
        let result = unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::from_ref(self.blocked.previous()), &raw mut blocked);
            let result = run();
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, std::ptr::null_mut());
            result
        };
        for (signal, before) in caught {
            if let Some(before) = before {
                // SAFETY: restores the action that the kernel returned.
                unsafe { libc::sigaction(signal, &raw const before, std::ptr::null_mut()) };
            }
        }
        result
    }

    /// The number of a signal, if one has arrived.
    #[must_use]
    pub fn take(&self) -> Option<i32> {
        let signal = match CAUGHT.swap(0, Ordering::Relaxed) {
            0 => self.read(),
            caught => Some(caught),
        };
        if let Some(signal) = signal {
            self.taken.store(signal, Ordering::Relaxed);
        }
        signal
    }

    /// The number of the signal taken last, possibly by a recording; resets it, so `Self::drop` drops none of those that arrive later.
    #[must_use]
    pub fn take_last(&self) -> Option<i32> {
        Some(self.taken.swap(0, Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    fn read(&self) -> Option<i32> {
        self.blocked.take().map(|info| info.ssi_signo as i32)
    }
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.blocked.as_fd()
    }
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        if self.taken.load(Ordering::Relaxed) != 0 {
            while self.read().is_some() {}
        }
    }
}

/// A signal that arrived while unblocked; zero for none.
static CAUGHT: AtomicI32 = AtomicI32::new(0);

extern "C" fn catch(signal: libc::c_int) {
    CAUGHT.store(signal, Ordering::Relaxed);
}

/// Makes a handler store a signal with the default action in `CAUGHT`; returns the action to restore.
fn caught_instead(signal: libc::c_int) -> Option<libc::sigaction> {
    // SAFETY: all-zero bytes are a valid sigaction; the calls write to and read from it. The handler only stores to an atomic, which it may.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let asked = libc::sigaction(signal, std::ptr::null(), &raw mut before);
        if asked != 0 || before.sa_sigaction != libc::SIG_DFL {
            return None;
        }
        let mut noting: libc::sigaction = std::mem::zeroed();
        noting.sa_sigaction = catch as extern "C" fn(libc::c_int) as libc::sighandler_t;
        noting.sa_flags = libc::SA_RESTART;
        (libc::sigaction(signal, &raw const noting, std::ptr::null_mut()) == 0).then_some(before)
    }
}

/// Sleeps until one of the descriptors is readable or the time is over; returns which are readable. Fails if the kernel refuses to poll; an
/// interruption counts as nothing readable.
pub fn wait_readable<const N: usize>(fds: [Option<BorrowedFd<'_>>; N], timeout: Duration) -> io::Result<[bool; N]> {
    // poll skips negative descriptors.
    let mut polled =
        fds.map(|fd| libc::pollfd { fd: fd.map_or(-1, |fd| fd.as_raw_fd()), events: libc::POLLIN, revents: 0 });
    // Rounded up, so a wait for less than a millisecond does not become a busy one.
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

/// Whether a signal's number is that of SIGHUP, which asks a service to read its configuration again.
pub const fn is_hangup(signal: i32) -> bool {
    signal == libc::SIGHUP
}

/// Gives SIGHUP its default action, which nohup takes away: for a service that rereads its configuration on SIGHUP, and blocks it before a terminal
/// can end it.
pub fn heed_hangup() {
    // SAFETY: sets an action without a handler; all-zero bytes are a valid one, the default.
    unsafe { libc::sigaction(libc::SIGHUP, &std::mem::zeroed(), std::ptr::null_mut()) };
}

/// Makes this process ignore the keys with which a terminal ends programs (SIGINT, SIGQUIT) until this is dropped: while another program has the
/// terminal and decides what they mean.
#[derive(Debug)]
pub struct KeysIgnored([(libc::c_int, libc::sigaction); 2]);

impl KeysIgnored {
    /// Ignores them from the start of the other program on, which does not ignore them itself. Keys pressed meanwhile are also meant for that
    /// program.
    pub fn begin<T>(start: impl FnOnce() -> T) -> (T, Self) {
        const KEYS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];
        // SAFETY: all-zero bytes are valid signal sets and actions; the calls read and write only the local ones. The standard library starts
        // programs with no signal blocked.
        unsafe {
            let mut keys: libc::sigset_t = std::mem::zeroed();
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut keys);
            for key in KEYS {
                libc::sigaddset(&raw mut keys, key);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const keys, &raw mut blocked);
            let started = start();
            let before = KEYS.map(|key| {
                let mut before: libc::sigaction = std::mem::zeroed();
                let mut ignore: libc::sigaction = std::mem::zeroed();
                ignore.sa_sigaction = libc::SIG_IGN;
                libc::sigaction(key, &raw const ignore, &raw mut before);
                (key, before)
            });
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, std::ptr::null_mut());
            (started, Self(before))
        }
    }
}

impl Drop for KeysIgnored {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: restores the action that the kernel returned.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// Whether the process ignores a signal.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only reads the current action, into a place that is valid for it.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// A file descriptor that becomes readable when the process ends. Fails if the process is already gone or the kernel is older than 5.3.
pub fn process_end(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// Asks a process to end. Fails if it is gone or not ours.
pub fn terminate(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(pid, rustix::process::Signal::TERM)?)
}

/// Makes the kernel send SIGTERM to this process when the thread that started it ends. Fails if the kernel refuses, or if that has already ended.
pub fn end_with_parent() -> io::Result<()> {
    let parent = rustix::process::getppid();
    // SAFETY: the operation takes a plain number.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // It may have ended before the call.
    if rustix::process::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
}

/// The user and the group whose rights this process has.
pub fn effective_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

/// Stops the calling process as Ctrl-Z does, and returns when it continues.
pub fn suspend() -> io::Result<()> {
    // To the process alone: the terminal stops the rest of the job.
    Ok(rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a signal to the calling thread alone, which does not affect other tests of the process.
    fn raise(signal: i32) {
        // SAFETY: plain numbers.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    }

    #[test]
    fn signals_are_kept_for_the_one_who_asks() {
        let signals = StopSignals::block().unwrap();
        assert_eq!(signals.take(), None);
        raise(libc::SIGTERM);
        assert_eq!(signals.take(), Some(libc::SIGTERM));
        // If unblocked, it would end the process.
        let seen = signals.let_through(|| {
            raise(libc::SIGTERM);
            7
        });
        assert_eq!((seen, signals.take(), signals.take()), (7, Some(libc::SIGTERM), None));
        raise(libc::SIGINT);
        assert_eq!(signals.take(), Some(libc::SIGINT));
        assert_eq!((signals.take_last(), signals.take_last()), (Some(libc::SIGINT), None));
        raise(libc::SIGTERM);
        assert_eq!(signals.take(), Some(libc::SIGTERM));
        // Each later one would end this process if unblocked.
        raise(libc::SIGTERM);
        raise(libc::SIGINT);
        drop(signals);
    }
}
