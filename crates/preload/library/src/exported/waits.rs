//! Calls that end for good when a handler has run, whatever its flags (signal(7)): our signal waits until they are over.
//! Noise takes nothing from a thread that sleeps.

use core::ffi::{c_int, c_uint, c_void};

use crate::abi::{SIG_BLOCK, SIG_UNBLOCK, SigSet, TimeSpec};
use crate::process::next::next;
use crate::process::{calls, state};
use crate::signals::bit;

/// Runs something with our signal blocked, and lets it through again unless the program has it blocked.
///
/// Should the program begin to use that very signal meanwhile, from another thread, it comes to this one after the wait.
pub fn undisturbed<T>(run: impl FnOnce() -> T) -> T {
    let ours = state::signal();
    if ours == 0 {
        return run();
    }
    let before = calls::mask(SIG_BLOCK, bit(ours));
    let result = run();
    if before & bit(ours) == 0 {
        let errno = calls::errno();
        calls::mask(SIG_UNBLOCK, bit(ours));
        calls::set_errno(errno);
    }
    result
}

/// A set with our signal in it; `None` for no set.
///
/// # Safety
/// The pointer is null or valid for reading.
unsafe fn with_ours(set: *const SigSet) -> Option<SigSet> {
    // SAFETY: the caller's promise.
    let mut set = *unsafe { set.as_ref() }?;
    match state::signal() {
        0 => {}
        ours => set.0[0] |= bit(ours),
    }
    Some(set)
}

fn pointer(set: &Option<SigSet>) -> *const SigSet {
    set.as_ref().map_or(core::ptr::null(), |set| &raw const *set)
}

macro_rules! waits {
    ($($name:ident = $text:literal ($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        /// Our signal does not interrupt it.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
            let next = next!($text as unsafe extern "C" fn($($kind),*) -> $result);
            // SAFETY: the C library's own function gets what the program gave.
            undisturbed(|| unsafe { next($($argument),*) })
        }
    )*};
}

waits! {
    poll = c"poll" (fds: *mut c_void, count: usize, timeout: c_int) -> c_int;
    __poll_chk = c"__poll_chk" (fds: *mut c_void, count: usize, timeout: c_int, size: usize) -> c_int;
    select = c"select" (count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, time: *mut c_void) -> c_int;
    epoll_wait = c"epoll_wait" (fd: c_int, events: *mut c_void, most: c_int, timeout: c_int) -> c_int;
    nanosleep = c"nanosleep" (time: *const TimeSpec, left: *mut TimeSpec) -> c_int;
    clock_nanosleep = c"clock_nanosleep" (clock: c_int, flags: c_int, time: *const TimeSpec, left: *mut TimeSpec) -> c_int;
    thrd_sleep = c"thrd_sleep" (time: *const TimeSpec, left: *mut TimeSpec) -> c_int;
    usleep = c"usleep" (time: c_uint) -> c_int;
    sleep = c"sleep" (time: c_uint) -> c_uint;
    pause = c"pause" () -> c_int;
    semop = c"semop" (id: c_int, operations: *mut c_void, count: usize) -> c_int;
    semtimedop = c"semtimedop" (id: c_int, operations: *mut c_void, count: usize, time: *const TimeSpec) -> c_int;
    msgsnd = c"msgsnd" (id: c_int, message: *const c_void, size: usize, flags: c_int) -> c_int;
    msgrcv = c"msgrcv" (id: c_int, message: *mut c_void, size: usize, kind: i64, flags: c_int) -> isize;
    sem_timedwait = c"sem_timedwait" (semaphore: *mut c_void, until: *const TimeSpec) -> c_int;
    sem_clockwait = c"sem_clockwait" (semaphore: *mut c_void, clock: c_int, until: *const TimeSpec) -> c_int;
}

/// Our signal does not end it.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn sigsuspend(mask: *const SigSet) -> c_int {
    let next = next!(c"sigsuspend" as unsafe extern "C" fn(*const SigSet) -> c_int);
    // SAFETY: as for the C library's function, the pointer is null or valid for reading.
    let mask = unsafe { with_ours(mask) };
    // SAFETY: the set is our own copy, which lives until the call is over, or null as the program's was.
    unsafe { next(pointer(&mask)) }
}

macro_rules! masked_waits {
    ($($name:ident = $text:literal ($($argument:ident: $kind:ty),*);)*) => {$(
        /// Our signal does not interrupt it.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $kind,)* mask: *const SigSet) -> c_int {
            let next = next!($text as unsafe extern "C" fn($($kind,)* *const SigSet) -> c_int);
            // SAFETY: as for the C library's function, the pointer is null or valid for reading.
            let with = unsafe { with_ours(mask) };
            // SAFETY: the set is our own copy, which lives until the call is over, or null as the program's was; the rest is
            // what the program gave.
            undisturbed(|| unsafe { next($($argument,)* pointer(&with)) })
        }
    )*};
}

masked_waits! {
    ppoll = c"ppoll" (fds: *mut c_void, count: usize, time: *const TimeSpec);
    epoll_pwait = c"epoll_pwait" (fd: c_int, events: *mut c_void, most: c_int, timeout: c_int);
    pselect = c"pselect" (
        count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, time: *const TimeSpec
    );
}
