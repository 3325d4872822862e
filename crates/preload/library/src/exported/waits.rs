//! Calls that return early after a handler has run, whatever its flags (signal(7)): our signal waits until they are over. Noise takes nothing from a
//! sleeping thread.

use core::ffi::{c_int, c_uint, c_void};

use crate::abi::{ENOSYS, SIG_BLOCK, SIG_UNBLOCK, SigSet, TimeSpec};
use crate::process::next::{self, next};
use crate::process::{calls, guard, state};
use crate::signals::{REALTIME, bit};

/// Runs something with our signal blocked, and unblocks it afterwards unless the program has it blocked.
///
/// If the program starts to use that very signal meanwhile, from another thread, this thread gets it after the wait.
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

/// A copy of a set with our signal added; `None` for a null pointer.
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
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        /// Our signal does not interrupt it.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
            let next = next!($name as unsafe extern "C" fn($($kind),*) -> $result);
            // SAFETY: the C library's own function gets what the program gave.
            undisturbed(|| unsafe { next($($argument),*) })
        }
    )*};
}

waits! {
    poll(fds: *mut c_void, count: usize, timeout: c_int) -> c_int;
    __poll_chk(fds: *mut c_void, count: usize, timeout: c_int, size: usize) -> c_int;
    select(count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, time: *mut c_void) -> c_int;
    epoll_wait(fd: c_int, events: *mut c_void, most: c_int, timeout: c_int) -> c_int;
    nanosleep(time: *const TimeSpec, left: *mut TimeSpec) -> c_int;
    clock_nanosleep(clock: c_int, flags: c_int, time: *const TimeSpec, left: *mut TimeSpec) -> c_int;
    thrd_sleep(time: *const TimeSpec, left: *mut TimeSpec) -> c_int;
    usleep(time: c_uint) -> c_int;
    sleep(time: c_uint) -> c_uint;
    pause() -> c_int;
    semop(id: c_int, operations: *mut c_void, count: usize) -> c_int;
    semtimedop(id: c_int, operations: *mut c_void, count: usize, time: *const TimeSpec) -> c_int;
    msgsnd(id: c_int, message: *const c_void, size: usize, flags: c_int) -> c_int;
    msgrcv(id: c_int, message: *mut c_void, size: usize, kind: i64, flags: c_int) -> isize;
    sem_timedwait(semaphore: *mut c_void, until: *const TimeSpec) -> c_int;
    aio_suspend(requests: *const c_void, count: c_int, time: *const TimeSpec) -> c_int;
    aio_suspend64(requests: *const c_void, count: c_int, time: *const TimeSpec) -> c_int;
    sem_clockwait(semaphore: *mut c_void, clock: c_int, until: *const TimeSpec) -> c_int;
}

/// Our signal does not end it.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn sigsuspend(mask: *const SigSet) -> c_int {
    let next = next!(sigsuspend as unsafe extern "C" fn(*const SigSet) -> c_int);
    // SAFETY: as for the C library's function, the pointer is null or valid for reading.
    let mask = unsafe { with_ours(mask) };
    // SAFETY: the set is our own copy, which lives until the call is over, or null as the program's was.
    unsafe { next(pointer(&mask)) }
}

/// `sigsuspend` for a mask with only the first 32 signals, as BSD programs pass it.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn sigpause(mask: c_int) -> c_int {
    let mut set = SigSet::EMPTY;
    set.0[0] = u64::from(mask.cast_unsigned());
    // SAFETY: the set is our own, and lives until the call is over.
    unsafe { sigsuspend(&raw const set) }
}

/// Our signal does not end it, unless the call waits for it.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn __xpg_sigpause(signal: c_int) -> c_int {
    if REALTIME.contains(&signal) {
        guard::named(bit(signal));
    }
    let next = next!(__xpg_sigpause as unsafe extern "C" fn(c_int) -> c_int);
    // SAFETY: the C library's own function gets what the program gave. It waits with the mask of the thread, less the signal.
    undisturbed(|| unsafe { next(signal) })
}

macro_rules! masked_waits {
    ($($name:ident($($argument:ident: $kind:ty),*; mask $(, $last:ident: $last_kind:ty)?);)*) => {$(
        /// Our signal does not interrupt it. An older C library does not have this call.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $kind,)* mask: *const SigSet $(, $last: $last_kind)?) -> c_int {
            type Function = unsafe extern "C" fn($($kind,)* *const SigSet $(, $last_kind)?) -> c_int;
            if next::$name.find() == 0 {
                calls::set_errno(ENOSYS);
                return -1;
            }
            let next = next!($name as Function);
            // SAFETY: as for the C library's function, the pointer is null or valid for reading.
            let waited_mask = unsafe { with_ours(mask) };
            // SAFETY: the set is our own copy, which lives until the call is over, or null as the program's was; the rest is
            // what the program gave.
            undisturbed(|| unsafe { next($($argument,)* pointer(&waited_mask) $(, $last)?) })
        }
    )*};
}

masked_waits! {
    ppoll(fds: *mut c_void, count: usize, time: *const TimeSpec; mask);
    __ppoll_chk(fds: *mut c_void, count: usize, time: *const TimeSpec; mask, size: usize);
    epoll_pwait(fd: c_int, events: *mut c_void, most: c_int, timeout: c_int; mask);
    epoll_pwait2(fd: c_int, events: *mut c_void, most: c_int, time: *const TimeSpec; mask);
    pselect(count: c_int, read: *mut c_void, write: *mut c_void, except: *mut c_void, time: *const TimeSpec; mask);
}
