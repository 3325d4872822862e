//! Actions of signals, bypassing the functions with which this library overrides the C library's.

use core::ffi::{c_int, c_void};

use crate::abi::{SA_ONSTACK, SA_RESTART, SA_SIGINFO, SIG_DFL, SIG_IGN, SigAction, SigInfo, SigSet};
use crate::process::next::next;

/// A function that handles a signal.
pub type Handler = unsafe extern "C" fn(c_int, *const SigInfo, *mut c_void);

/// Reads and changes a signal's action, like the C library's function.
///
/// # Safety
/// Each pointer is null or valid, the first one for reading and the second one for writing. A new handler may run at any point of the program.
pub unsafe fn sigaction(signal: c_int, action: *const SigAction, before: *mut SigAction) -> c_int {
    type Function = unsafe extern "C" fn(c_int, *const SigAction, *mut SigAction) -> c_int;
    let next = next!(sigaction as Function);
    // SAFETY: the caller promises what the C library's function asks for.
    unsafe { next(signal, action, before) }
}

/// Whether a signal has its default action.
pub fn is_default(signal: c_int) -> bool {
    // Anything but the default action, in case the call fails.
    let mut before = SigAction::plain(SIG_IGN);
    // SAFETY: nothing is read through the null pointer, and the action is written during the call.
    let asked = unsafe { sigaction(signal, core::ptr::null(), &raw mut before) };
    asked == 0 && before.handler == SIG_DFL
}

/// Handles a signal with all signals blocked, on the alternate stack of threads that have one. Returns whether that was possible.
///
/// # Safety
/// The handler may run at any point of the program.
#[must_use]
pub unsafe fn handle(signal: c_int, handler: Handler) -> bool {
    let flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    let action = SigAction { handler: handler as usize, mask: SigSet::FULL, flags, restorer: 0 };
    // SAFETY: the action is read during the call. The handler has the type that the flags require, and may run at any point; the caller promises
    // that.
    unsafe { sigaction(signal, &raw const action, core::ptr::null_mut()) == 0 }
}

/// Gives a signal its default action.
pub fn reset(signal: c_int) {
    let action = SigAction::plain(SIG_DFL);
    // SAFETY: the action is read during the call, and has no handler.
    unsafe { sigaction(signal, &raw const action, core::ptr::null_mut()) };
}

/// Ignores a signal, which also discards pending ones of all threads.
pub fn ignore(signal: c_int) {
    let action = SigAction::plain(SIG_IGN);
    // SAFETY: the action is read during the call, and has no handler.
    unsafe { sigaction(signal, &raw const action, core::ptr::null_mut()) };
}
