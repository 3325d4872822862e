//! Calls that name signals. As long as the program does not name our signal, it sees that signal's default action; when it does, we switch to another
//! one first.

use core::ffi::c_int;

use crate::abi::{SIG_DFL, SIG_UNBLOCK, SigAction, SigInfo, SigSet, TimeSpec};
use crate::exported::waits::undisturbed;
use crate::process::next::next;
use crate::process::{actions, guard, state};
use crate::signals::{RequestedAction, Course, REALTIME, bit, course, named_by_mask};

/// The real-time signals of a set; none for a null pointer.
unsafe fn signals_of(set: *const SigSet) -> u64 {
    // SAFETY: the caller's promise. The kernel knows the first word only.
    unsafe { set.as_ref() }.map_or(0, |set| set.0[0])
}

/// Decides how to handle a call for a signal; gives ours up if the call uses it.
fn decided(signal: c_int, asked: RequestedAction) -> Course {
    let course = course(state::signal(), signal, asked);
    if course == Course::Use {
        guard::named(bit(signal));
    }
    course
}

fn asked(handler: usize) -> RequestedAction {
    if handler == SIG_DFL { RequestedAction::Default } else { RequestedAction::Other }
}

/// For our signal, the program sees the default action, and setting that changes nothing.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn sigaction(signal: c_int, action: *const SigAction, before: *mut SigAction) -> c_int {
    // SAFETY: as for the C library's function, the pointer is null or valid for reading.
    let asked = unsafe { action.as_ref() }.map_or(RequestedAction::Look, |action| asked(action.handler));
    if decided(signal, asked) == Course::Conceal {
        // SAFETY: as for the C library's function, the pointer is null or valid for writing.
        if let Some(before) = unsafe { before.as_mut() } {
            *before = SigAction::plain(SIG_DFL);
        }
        return 0;
    }
    // SAFETY: the C library's own function gets what the program gave.
    unsafe { actions::sigaction(signal, action, before) }
}

/// Functions that set a handler and return the previous one.
macro_rules! handlers {
    ($($name:ident),*) => {$(
        /// For our signal, the program sees the default action, and setting that changes nothing.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(signal: c_int, handler: usize) -> usize {
            if decided(signal, asked(handler)) == Course::Conceal {
                return SIG_DFL;
            }
            let next = next!($name as unsafe extern "C" fn(c_int, usize) -> usize);
            // SAFETY: the C library's own function gets what the program gave.
            unsafe { next(signal, handler) }
        }
    )*};
}

handlers!(
    signal, bsd_signal, ssignal, sysv_signal, __sysv_signal, sigset
);

/// Functions that do something else to a signal.
macro_rules! uses {
    ($($name:ident($($argument:ident: $kind:ty),*)),*) => {$(
        /// Naming our signal gives it up.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(signal: c_int $(, $argument: $kind)*) -> c_int {
            if REALTIME.contains(&signal) {
                guard::named(bit(signal));
            }
            let next = next!($name as unsafe extern "C" fn(c_int $(, $kind)*) -> c_int);
            // SAFETY: the C library's own function gets what the program gave.
            unsafe { next(signal $(, $argument)*) }
        }
    )*};
}

uses!(sigignore(), siginterrupt(flag: c_int), sighold());

/// Functions that change a thread's mask.
macro_rules! masks {
    ($($name:ident),*) => {$(
        /// Blocking our signal but not all others gives it up.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(how: c_int, set: *const SigSet, before: *mut SigSet) -> c_int {
            // SAFETY: as for the C library's function, the pointer is null or valid for reading.
            guard::named(named_by_mask(how == SIG_UNBLOCK, unsafe { signals_of(set) }));
            let next = next!($name as unsafe extern "C" fn(c_int, *const SigSet, *mut SigSet) -> c_int);
            // SAFETY: the C library's own function gets what the program gave.
            unsafe { next(how, set, before) }
        }
    )*};
}

masks!(sigprocmask, pthread_sigmask);

/// Functions that wait for signals instead of handling them.
macro_rules! takers {
    ($($name:ident($($argument:ident: $kind:ty),*)),*) => {$(
        /// Waiting for our signal gives it up.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(set: *const SigSet $(, $argument: $kind)*) -> c_int {
            // SAFETY: as for the C library's function, the pointer is null or valid for reading.
            guard::named(unsafe { signals_of(set) });
            let next = next!($name as unsafe extern "C" fn(*const SigSet $(, $kind)*) -> c_int);
            // SAFETY: the C library's own function gets what the program gave.
            undisturbed(|| unsafe { next(set $(, $argument)*) })
        }
    )*};
}

takers!(
    sigwait(taken: *mut c_int),
    sigwaitinfo(info: *mut SigInfo),
    sigtimedwait(info: *mut SigInfo, patience: *const TimeSpec)
);

/// Requesting our signal gives it up.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn signalfd(fd: c_int, set: *const SigSet, flags: c_int) -> c_int {
    // SAFETY: as for the C library's function, the pointer is null or valid for reading.
    guard::named(unsafe { signals_of(set) });
    let next = next!(signalfd as unsafe extern "C" fn(c_int, *const SigSet, c_int) -> c_int);
    // SAFETY: the C library's own function gets what the program gave.
    unsafe { next(fd, set, flags) }
}

/// Our signal is never pending.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn sigpending(set: *mut SigSet) -> c_int {
    let next = next!(sigpending as unsafe extern "C" fn(*mut SigSet) -> c_int);
    // SAFETY: the C library's own function gets what the program gave.
    let result = unsafe { next(set) };
    let ours = state::signal();
    // SAFETY: the C library's function has just written to it, or it is null.
    if let Some(set) = unsafe { set.as_mut() }.filter(|_| result == 0 && ours != 0) {
        set.0[0] &= !bit(ours);
    }
    result
}
