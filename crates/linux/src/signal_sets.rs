//! The C library's calls on signal sets and actions.

use std::io;
use std::mem::zeroed;
use std::ptr::{null, null_mut};

pub(crate) fn set_of(signals: impl IntoIterator<Item = libc::c_int>) -> libc::sigset_t {
    // SAFETY: all-zero bytes are a valid set, which the calls fill in.
    unsafe {
        let mut set = zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

/// The set of all signals.
pub(crate) fn all() -> libc::sigset_t {
    // SAFETY: as above.
    unsafe {
        let mut set = zeroed();
        libc::sigfillset(&raw mut set);
        set
    }
}

/// Changes the signal mask of the calling thread by `SIG_BLOCK`, `SIG_UNBLOCK` or `SIG_SETMASK`, and returns the previous one. Other ways would fail.
pub(crate) fn mask(how: libc::c_int, set: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: reads one set and fills in another one.
    unsafe {
        let mut before = zeroed();
        libc::pthread_sigmask(how, set, &raw mut before);
        before
    }
}

/// An action with a handler, `SIG_DFL` or `SIG_IGN`.
pub(crate) fn action(handler: libc::sighandler_t, flags: libc::c_int) -> libc::sigaction {
    // SAFETY: all-zero bytes are a valid action.
    libc::sigaction { sa_sigaction: handler, sa_flags: flags, ..unsafe { zeroed() } }
}

pub(crate) fn action_for(signal: libc::c_int) -> libc::sigaction {
    let mut action = action(libc::SIG_DFL, 0);
    // SAFETY: only fills in the action.
    unsafe { libc::sigaction(signal, null(), &raw mut action) };
    action
}

/// Sets the action of the process for a signal, and returns the previous one.
///
/// # Safety
/// The handler may run at any time, in any thread.
pub(crate) unsafe fn set_action(signal: libc::c_int, new: &libc::sigaction) -> io::Result<libc::sigaction> {
    let before = action_for(signal);
    // SAFETY: the caller vouches for the handler.
    match unsafe { libc::sigaction(signal, new, null_mut()) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}
