//! A signal that the thread sends to itself.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ProbeError;
use crate::sched::current_tid;
use crate::signal_sets::{self, mask, set_action, set_of};

/// How often the handler ran.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// The handler is per process, so there is one at a time.
static INSTALLED: Mutex<()> = Mutex::new(());

extern "C" fn caught(_: libc::c_int) {
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

/// A handler of a late real-time signal that becalm does not use otherwise (process emulators keep the last ones for themselves and do not deliver
/// them). Restores the previous action on drop. It stays in the thread that installed it.
pub struct Handler {
    action: libc::sigaction,
    mask: libc::sigset_t,
    process: libc::pid_t,
    thread: libc::pid_t,
    signal: libc::c_int,
    _one: MutexGuard<'static, ()>,
    _here: PhantomData<*const ()>,
}

impl Handler {
    /// Installs it, and unblocks the signal in the calling thread.
    pub fn install() -> Result<Self, ProbeError> {
        let one = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        let signal = libc::SIGRTMAX() - 8;
        let handler = signal_sets::action(caught as extern "C" fn(libc::c_int) as libc::sighandler_t, 0);
        // SAFETY: the handler only adds to an atomic, which is safe in a handler.
        let action = unsafe { set_action(signal, &handler) };
        let action = action.map_err(|error| ProbeError::new("handle a real-time signal", error))?;
        let mask = mask(libc::SIG_UNBLOCK, &set_of([signal]));
        let process = rustix::process::getpid().as_raw_nonzero().get();
        Ok(Self { action, mask, process, thread: current_tid(), signal, _one: one, _here: PhantomData })
    }

    /// Sends the signal to this thread; the handler has run when this returns.
    #[inline(always)]
    pub fn raise(&self) {
        // SAFETY: the thread is this one, where the signal has a handler.
        unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, self.signal) };
    }

    /// How often the handler has run in this process.
    pub fn caught(&self) -> u64 {
        CAUGHT.load(Ordering::Relaxed)
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        mask(libc::SIG_SETMASK, &self.mask);
        // SAFETY: restores the action that the kernel returned.
        let _ = unsafe { set_action(self.signal, &self.action) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_is_caught_before_the_call_returns() {
        for _ in 0..2 {
            let handler = Handler::install().unwrap();
            let before = handler.caught();
            for n in 1..=10 {
                handler.raise();
                assert_eq!(handler.caught() - before, n);
            }
        }
    }
}
