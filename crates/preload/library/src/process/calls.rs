//! Calls into the kernel and the C library, as safe functions if nothing is left to promise.
//!
//! The calls used by a signal handler are async-signal-safe (signal-safety(7)): the clock, `syscall`, and the thread's `errno`; none of them takes a
//! lock or allocates memory.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::sync::atomic::AtomicU64;

use crate::abi::{
    AT_EMPTY_PATH, CLOCK_MONOTONIC, ESRCH, LOCK_SH_NB, MAP_SHARED, O_RDWR_CLOEXEC, PROT_READ_WRITE, RTLD_NEXT, S_IFMT,
    S_IFREG, SIGEV_THREAD_ID, SO_TIMEOUTS, SOL_SOCKET, STATX_BASIC_STATS, SigEvent, Statx, TIMER_ABSTIME, TimeSpec, TimerSpec, number,
};

#[cfg_attr(preloaded, link(name = "c"))]
unsafe extern "C" {
    fn getenv(name: *const c_char) -> *mut c_char;
    fn unsetenv(name: *const c_char) -> c_int;
    fn geteuid() -> u32;
    fn getsockopt(fd: c_int, level: c_int, option: c_int, value: *mut c_void, size: *mut u32) -> c_int;
    fn flock(fd: c_int, operation: c_int) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn mmap(at: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
    fn __errno_location() -> *mut c_int;
    fn pthread_key_create(key: *mut u32, end: unsafe extern "C" fn(*mut c_void)) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    fn __register_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
        owner: *const c_void,
    ) -> c_int;
}

/// The value of an environment variable; `None` if it is not set.
///
/// # Safety
/// The environment is not changed while the value is used.
pub unsafe fn environment<'a>(name: &CStr) -> Option<&'a CStr> {
    // SAFETY: the name ends with a zero. The caller promises that the environment is not written at the same time.
    let value = unsafe { getenv(name.as_ptr()) };
    // SAFETY: a pointer that is not null is a string that ends with a zero; the caller promises that it does not change.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Changes the value of an environment variable, if it is set: `keep` gets the value and returns how many of its bytes, from the first, remain. If
/// none remain, the variable is unset.
///
/// # Safety
/// The environment is not used elsewhere meanwhile.
pub unsafe fn shorten_environment(name: &CStr, keep: impl FnOnce(&mut [u8]) -> usize) {
    // SAFETY: the name ends with a zero. The caller promises that the environment is not written at the same time.
    let value = unsafe { getenv(name.as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: a pointer that is not null is a string that ends with a zero. The environment may be written, and the caller promises that there is no
    // other reference to it.
    let value = unsafe {
        let length = CStr::from_ptr(value).count_bytes();
        core::slice::from_raw_parts_mut(value.cast::<u8>(), length + 1)
    };
    let length = value.len() - 1;
    let kept = keep(&mut value[..length]).min(length);
    value[kept] = 0;
    if kept == 0 {
        // SAFETY: the name ends with a zero; otherwise as above.
        unsafe { unsetenv(name.as_ptr()) };
    }
}

/// Reasons why shared words are not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// Their maker, which kept them locked, has ended.
    Abandoned,
    /// They cannot be mapped, or another user could have put them there.
    Refused,
}

/// Maps a file of 64-bit words, for reading and writing, for the lifetime of the process. Fails if it is not a regular file that only this user can
/// write, if it is not locked, or if it cannot be mapped.
pub fn map_shared(path: &CStr) -> Result<&'static [AtomicU64], Unfit> {
    // SAFETY: the path ends with a zero, and the flags need no third argument.
    let fd = unsafe { open(path.as_ptr(), O_RDWR_CLOEXEC) };
    if fd < 0 {
        return Err(Unfit::Refused);
    }
    let mapped = map_descriptor(fd);
    // SAFETY: the descriptor was opened above and is used nowhere else. A mapping outlives it, a lock does not.
    unsafe { close(fd) };
    mapped
}

fn map_descriptor(fd: c_int) -> Result<&'static [AtomicU64], Unfit> {
    let mut found = Statx { before: [0; 5], user: 0, group: 0, mode: 0, gap: 0, inode: 0, size: 0, after: [0; 26] };
    let (flags, asked) = (c_long::from(AT_EMPTY_PATH), c_long::from(STATX_BASIC_STATS));
    // SAFETY: the path is empty and ends with a zero; the result has the kernel's layout and is written during the call.
    let known = unsafe { syscall(number::STATX, c_long::from(fd), c"".as_ptr(), flags, asked, &raw mut found) };
    // SAFETY: takes nothing and cannot fail.
    let own = found.user == unsafe { geteuid() };
    // Neither the group nor others (022) may write it.
    if known != 0 || !own || found.mode & S_IFMT != S_IFREG || found.mode & 0o022 != 0 {
        return Err(Unfit::Refused);
    }
    // SAFETY: takes integers.
    if unsafe { flock(fd, LOCK_SH_NB) } == 0 {
        return Err(Unfit::Abandoned);
    }
    let size = usize::try_from(found.size).unwrap_or(0);
    let mapped = match size {
        0 => core::ptr::null_mut(),
        // SAFETY: the kernel chooses an unused place, so no other memory changes.
        size => unsafe { mmap(core::ptr::null_mut(), size, PROT_READ_WRITE, MAP_SHARED, fd, 0) },
    };
    // A failure is -1.
    if mapped.is_null() || mapped.addr() == usize::MAX {
        return Err(Unfit::Refused);
    }
    // SAFETY: a page is aligned for words; the mapping has this many of them, and is never unmapped. It is written, by this process and the maker of
    // the noise too, but only atomically. Its maker never shortens the file.
    Ok(unsafe { core::slice::from_raw_parts(mapped.cast(), size / size_of::<u64>()) })
}

/// The address of a function in the libraries after this one; zero if there is none of this name.
pub fn next_symbol(name: &CStr) -> usize {
    // SAFETY: the name ends with a zero; the handle means the libraries after the calling one.
    let found = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) }.addr();
    if found == 0 {
        // SAFETY: takes nothing. It clears the message, which the program would find otherwise.
        unsafe { dlerror() };
    }
    found
}

/// The calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the C library returns a valid place, which only the calling thread uses.
    unsafe { *__errno_location() }
}

/// Sets the calling thread's `errno`.
pub fn set_errno(errno: c_int) {
    // SAFETY: as for reading it.
    unsafe { *__errno_location() = errno }
}

/// A clock's time in nanoseconds.
#[inline]
pub fn clock_ns(clock: c_int) -> u64 {
    let mut time = TimeSpec { seconds: 0, nanos: 0 };
    // SAFETY: the place is valid for writing. A clock that does not exist leaves it unchanged.
    unsafe { clock_gettime(clock, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanos as u64
}

/// Whether a descriptor is a socket with a timeout, for receiving or for sending. Does not change `errno`.
pub fn has_timeout(fd: c_int) -> bool {
    let before = errno();
    let [receiving, sending, ..] = SO_TIMEOUTS;
    let has = [receiving, sending].into_iter().any(|option| {
        // Seconds and microseconds.
        let mut time = [0_i64; 2];
        let mut size = size_of_val(&time) as u32;
        // SAFETY: the time is written during the call, and as long as stated.
        let asked = unsafe { getsockopt(fd, SOL_SOCKET, option, (&raw mut time).cast(), &raw mut size) };
        asked == 0 && time != [0; 2]
    });
    set_errno(before);
    has
}

/// The number of this process, from the kernel because the C library may cache the parent's after a fork.
pub fn pid() -> c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { syscall(number::GETPID) as c_int }
}

/// The number of the calling thread.
pub fn tid() -> c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { syscall(number::GETTID) as c_int }
}

/// Whether this process exists. Does not change `errno`.
pub fn is_alive(pid: c_int) -> bool {
    let before = errno();
    // SAFETY: takes integers; signal 0 only checks, and is not sent.
    let asked = unsafe { syscall(number::KILL, c_long::from(pid), 0_i64) };
    let alive = asked == 0 || errno() != ESRCH;
    set_errno(before);
    alive
}

/// Ends the process at once: no more code of the program runs.
pub fn exit_now(status: c_int) -> ! {
    loop {
        // SAFETY: takes an integer. It does not return.
        unsafe { syscall(number::EXIT_GROUP, c_long::from(status)) };
    }
}

/// Sends a signal to the calling thread.
pub fn raise(signal: c_int) {
    // SAFETY: takes integers, and the thread is the calling one, so it exists.
    unsafe { syscall(number::TGKILL, c_long::from(pid()), c_long::from(tid()), c_long::from(signal)) };
}

/// Changes the calling thread's mask by the signals 1 to 64, which are all that Linux has, and returns the previous mask.
pub fn mask(how: c_int, set: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: both sets are valid during the call and have the stated size. The call bypasses the C library, which would leave out the signals that
    // it reserves for itself: while one of those is blocked, its sender waits.
    unsafe { syscall(number::RT_SIGPROCMASK, c_long::from(how), &raw const set, &raw mut before, size_of::<u64>()) };
    before
}

/// Creates a timer that sends a signal with a value to a thread of this process. Returns the kernel's number of it; `None` if the kernel provides no
/// more.
#[must_use]
pub fn timer_create(signal: c_int, value: usize, tid: c_int) -> Option<c_int> {
    let event = SigEvent { value, signal, notify: SIGEV_THREAD_ID, tid, rest: [0; 11] };
    let mut timer: c_int = 0;
    // SAFETY: the event is read and the number written during the call; both have the kernel's layout.
    let made =
        unsafe { syscall(number::TIMER_CREATE, c_long::from(CLOCK_MONOTONIC), &raw const event, &raw mut timer) };
    (made == 0).then_some(timer)
}

/// Makes a timer send its signal at an instant of the monotonic clock, in nanoseconds; at once if that has passed.
pub fn timer_set(timer: c_int, at_ns: u64) {
    // A time of zero would stop it.
    let at = at_ns.max(1);
    let value = TimeSpec { seconds: (at / 1_000_000_000) as i64, nanos: (at % 1_000_000_000) as i64 };
    let spec = TimerSpec { interval: TimeSpec { seconds: 0, nanos: 0 }, value };
    let none = core::ptr::null_mut::<TimerSpec>();
    // SAFETY: the times are read during the call, and nothing is written through a null pointer. The kernel refuses the number of a timer that does
    // not exist.
    unsafe { syscall(number::TIMER_SETTIME, c_long::from(timer), c_long::from(TIMER_ABSTIME), &raw const spec, none) };
}

/// Deletes a timer. Its signal may have been sent already.
pub fn timer_delete(timer: c_int) {
    // SAFETY: takes an integer; the kernel refuses the number of a timer that does not exist.
    unsafe { syscall(number::TIMER_DELETE, c_long::from(timer)) };
}

/// Creates a key under which each thread has its own value. At the end of a thread with a non-null value, the function is called with it. `None` if
/// the C library has no more keys.
///
/// # Safety
/// The function may be called with every value passed to [`set_thread_value`] for the key.
#[must_use]
pub unsafe fn thread_key(end: unsafe extern "C" fn(*mut c_void)) -> Option<u32> {
    let mut key = 0;
    // SAFETY: the key is written during the call. The function lives as long as this library, which is never unloaded; the caller promises that it
    // may be called with the values.
    (unsafe { pthread_key_create(&raw mut key, end) } == 0).then_some(key)
}

/// Sets the calling thread's value of a key. Returns whether that was possible.
#[must_use]
pub fn set_thread_value(key: u32, value: usize) -> bool {
    // SAFETY: the C library refuses the number of a key that does not exist, and only stores the value.
    unsafe { pthread_setspecific(key, core::ptr::without_provenance(value)) == 0 }
}

/// Makes every forked child call a function before the program continues there.
pub fn at_fork_in_child(run: extern "C" fn()) {
    // SAFETY: the function lives as long as this library, which is never unloaded; without an owner it is never unregistered.
    unsafe { __register_atfork(None, None, Some(run), core::ptr::null()) };
}
