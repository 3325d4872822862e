//! Signals as readable events, so no handler interrupts a measuring thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use crate::blocked_signals::BlockedSignals;
use crate::signal_sets::{action, action_for, mask, set_action, set_of};
use crate::sockets::{Await, wait_ready};

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
        let blocked = mask(libc::SIG_SETMASK, self.blocked.previous());
        let result = run();
        mask(libc::SIG_SETMASK, &blocked);
        for (signal, before) in caught {
            // SAFETY: restores the action that the kernel returned.
            let _ = before.map(|before| unsafe { set_action(signal, &before) });
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
    let noting = action(catch as extern "C" fn(libc::c_int) as libc::sighandler_t, libc::SA_RESTART);
    // SAFETY: the handler only stores to an atomic, which it may.
    (action_for(signal).sa_sigaction == libc::SIG_DFL).then(|| unsafe { set_action(signal, &noting) })?.ok()
}

/// Sleeps until one of the descriptors is readable or the time is over; returns which are readable. Fails if the kernel refuses to poll; an
/// interruption counts as nothing readable.
pub fn wait_readable<const N: usize>(fds: [Option<BorrowedFd<'_>>; N], timeout: Duration) -> io::Result<[bool; N]> {
    let polled: Vec<_> = fds.iter().flatten().map(|fd| (*fd, Await::Readable)).collect();
    let mut ready = wait_ready(&polled, Some(timeout))?.into_iter();
    Ok(fds.map(|fd| fd.is_some() && ready.next() == Some(true)))
}

/// Whether a signal's number is that of SIGHUP, which asks a service to read its configuration again.
pub const fn is_hangup(signal: i32) -> bool {
    signal == libc::SIGHUP
}

/// Gives SIGHUP its default action, which nohup takes away: for a service that rereads its configuration on SIGHUP, and blocks it before a terminal
/// can end it.
pub fn heed_hangup() {
    // SAFETY: there is no handler.
    let _ = unsafe { set_action(libc::SIGHUP, &action(libc::SIG_DFL, 0)) };
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
        // The standard library starts programs with no signal blocked.
        let blocked = mask(libc::SIG_BLOCK, &set_of(KEYS));
        let started = start();
        let before = KEYS.map(|key| (key, action_for(key)));
        for key in KEYS {
            // SAFETY: there is no handler.
            let _ = unsafe { set_action(key, &action(libc::SIG_IGN, 0)) };
        }
        mask(libc::SIG_SETMASK, &blocked);
        (started, Self(before))
    }
}

impl Drop for KeysIgnored {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: restores the action that the kernel returned.
            let _ = unsafe { set_action(*signal, before) };
        }
    }
}

/// Whether the process ignores a signal.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    action_for(signal).sa_sigaction == libc::SIG_IGN
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
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
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
