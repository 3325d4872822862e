//! Calls into the kernel and the C library, as safe functions wherever nothing is left to promise.
//!
//! What a signal's handler calls of these is safe to be called there (signal-safety(7)): the clock, `syscall`, and the
//! thread's `errno`, none of which takes a lock or allocates memory.

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
/// Nobody changes the environment while the value is used.
pub unsafe fn environment<'a>(name: &CStr) -> Option<&'a CStr> {
    // SAFETY: the name ends with a zero. That nobody writes to the environment at the same time is the caller's promise.
    let value = unsafe { getenv(name.as_ptr()) };
    // SAFETY: what is not null is a string that ends with a zero, and stays as it is, as the caller promises.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Changes the value of an environment variable, if it is set: the function gets the value and tells how many of its bytes, from
/// the first, stay. Without any the variable is no longer set.
///
/// # Safety
/// Nobody else uses the environment meanwhile.
pub unsafe fn shorten_environment(name: &CStr, keep: impl FnOnce(&mut [u8]) -> usize) {
    // SAFETY: the name ends with a zero. That nobody writes to the environment at the same time is the caller's promise.
    let value = unsafe { getenv(name.as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: what is not null is a string that ends with a zero. The environment may be written, and nobody else has a
    // reference to it, as the caller promises.
    let value = unsafe {
        let length = CStr::from_ptr(value).count_bytes();
        core::slice::from_raw_parts_mut(value.cast::<u8>(), length + 1)
    };
    let length = value.len() - 1;
    let kept = keep(&mut value[..length]).min(length);
    value[kept] = 0;
    if kept == 0 {
        // SAFETY: the name ends with a zero; for the rest, as above.
        unsafe { unsetenv(name.as_ptr()) };
    }
}

/// Why shared words are not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// Their maker, who held them locked, is gone.
    Abandoned,
    /// They cannot be mapped, or another user could have put them there.
    Refused,
}

/// Maps a file of 64-bit words, for reading and writing, for as long as the process lives. Fails if the file is not one
/// that only this user can write, if nobody holds it locked, or if it cannot be mapped.
pub fn map_shared(path: &CStr) -> Result<&'static [AtomicU64], Unfit> {
    // SAFETY: the path ends with a zero, and the flags ask for no third argument.
    let fd = unsafe { open(path.as_ptr(), O_RDWR_CLOEXEC) };
    if fd < 0 {
        return Err(Unfit::Refused);
    }
    let mapped = map_descriptor(fd);
    // SAFETY: the descriptor was opened above and is known to nobody else. A mapping outlives it, a lock does not.
    unsafe { close(fd) };
    mapped
}

fn map_descriptor(fd: c_int) -> Result<&'static [AtomicU64], Unfit> {
    let mut found = Statx { before: [0; 5], user: 0, group: 0, mode: 0, gap: 0, inode: 0, size: 0, after: [0; 26] };
    let (flags, asked) = (c_long::from(AT_EMPTY_PATH), c_long::from(STATX_BASIC_STATS));
    // SAFETY: the path is empty and ends with a zero; the result is of the kernel's layout and written during the call.
    let known = unsafe { syscall(number::STATX, c_long::from(fd), c"".as_ptr(), flags, asked, &raw mut found) };
    // SAFETY: takes nothing and cannot fail.
    let own = found.user == unsafe { geteuid() };
    // Neither the group nor others (022) may write it.
    if known != 0 || !own || found.mode & S_IFMT != S_IFREG || found.mode & 0o022 != 0 {
        return Err(Unfit::Refused);
    }
    // SAFETY: takes plain numbers.
    if unsafe { flock(fd, LOCK_SH_NB) } == 0 {
        return Err(Unfit::Abandoned);
    }
    let size = usize::try_from(found.size).unwrap_or(0);
    let mapped = match size {
        0 => core::ptr::null_mut(),
        // SAFETY: the kernel chooses a place where nothing is, so that no other memory changes.
        size => unsafe { mmap(core::ptr::null_mut(), size, PROT_READ_WRITE, MAP_SHARED, fd, 0) },
    };
    // A failure is -1.
    if mapped.is_null() || mapped.addr() == usize::MAX {
        return Err(Unfit::Refused);
    }
    // SAFETY: a page is aligned for words; the mapping holds this many of them, and is never taken back. Others write to it,
    // this process and the maker of the noise included, but only atomically. Its maker never makes the file shorter.
    Ok(unsafe { core::slice::from_raw_parts(mapped.cast(), size / size_of::<u64>()) })
}

/// The address of a function in the libraries that come after this one; zero where there is none of this name.
pub fn next_symbol(name: &CStr) -> usize {
    // SAFETY: the name ends with a zero; the handle is the one that stands for the libraries after the calling one.
    let found = unsafe { dlsym(RTLD_NEXT, name.as_ptr()) }.addr();
    if found == 0 {
        // SAFETY: takes nothing. It takes the message away, which the program would find otherwise.
        unsafe { dlerror() };
    }
    found
}

/// The calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the C library gives a valid place, which only the calling thread uses.
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
    // SAFETY: the place is valid for writing. A clock that does not exist leaves it as it is.
    unsafe { clock_gettime(clock, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanos as u64
}

/// Whether a descriptor is a socket with a timeout, for receiving or for sending. Leaves `errno` as it is.
pub fn has_timeout(fd: c_int) -> bool {
    let before = errno();
    let [receiving, sending, ..] = SO_TIMEOUTS;
    let has = [receiving, sending].into_iter().any(|option| {
        // Seconds and microseconds.
        let mut time = [0_i64; 2];
        let mut size = size_of_val(&time) as u32;
        // SAFETY: the time is written during the call, and as long as is told.
        let asked = unsafe { getsockopt(fd, SOL_SOCKET, option, (&raw mut time).cast(), &raw mut size) };
        asked == 0 && time != [0; 2]
    });
    set_errno(before);
    has
}

/// The number of this process. Asked of the kernel, as the C library may keep the parent's after a fork.
pub fn pid() -> c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { syscall(number::GETPID) as c_int }
}

/// The number of the calling thread.
pub fn tid() -> c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { syscall(number::GETTID) as c_int }
}

/// Whether there is such a process. Leaves `errno` as it is.
pub fn is_alive(pid: c_int) -> bool {
    let before = errno();
    // SAFETY: takes plain numbers; signal 0 is only looked for, and not sent.
    let asked = unsafe { syscall(number::KILL, c_long::from(pid), 0_i64) };
    let alive = asked == 0 || errno() != ESRCH;
    set_errno(before);
    alive
}

/// Ends the process at once: nothing of the program runs any more.
pub fn exit_now(status: c_int) -> ! {
    loop {
        // SAFETY: takes a plain number. It does not return.
        unsafe { syscall(number::EXIT_GROUP, c_long::from(status)) };
    }
}

/// Sends a signal to the calling thread.
pub fn raise(signal: c_int) {
    // SAFETY: takes plain numbers, and the thread exists, as it is the calling one.
    unsafe { syscall(number::TGKILL, c_long::from(pid()), c_long::from(tid()), c_long::from(signal)) };
}

/// Changes the calling thread's mask by the signals 1 to 64, which are all that Linux has, and gives the mask before.
pub fn mask(how: c_int, set: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: both sets are valid during the call and of the size that is told. The call goes past the C library, which
    // would leave out the signals that it keeps for itself: while one of those is blocked, whoever sent it waits.
    unsafe { syscall(number::RT_SIGPROCMASK, c_long::from(how), &raw const set, &raw mut before, size_of::<u64>()) };
    before
}

/// Makes a timer that sends a signal with a value to a thread of this process. Returns the kernel's number of it; `None` if
/// the kernel gives no more.
#[must_use]
pub fn timer_create(signal: c_int, value: usize, tid: c_int) -> Option<c_int> {
    let event = SigEvent { value, signal, notify: SIGEV_THREAD_ID, tid, rest: [0; 11] };
    let mut timer: c_int = 0;
    // SAFETY: the event is read and the number written during the call; both are of the kernel's layout.
    let made =
        unsafe { syscall(number::TIMER_CREATE, c_long::from(CLOCK_MONOTONIC), &raw const event, &raw mut timer) };
    (made == 0).then_some(timer)
}

/// Lets a timer send its signal at an instant of the monotonic clock, in nanoseconds; at once if that is over.
pub fn timer_set(timer: c_int, at_ns: u64) {
    // A time of zero would stop it.
    let at = at_ns.max(1);
    let value = TimeSpec { seconds: (at / 1_000_000_000) as i64, nanos: (at % 1_000_000_000) as i64 };
    let spec = TimerSpec { interval: TimeSpec { seconds: 0, nanos: 0 }, value };
    let none = core::ptr::null_mut::<TimerSpec>();
    // SAFETY: the times are read during the call, and nothing is written through a null pointer. The kernel refuses a number
    // that is no timer's.
    unsafe { syscall(number::TIMER_SETTIME, c_long::from(timer), c_long::from(TIMER_ABSTIME), &raw const spec, none) };
}

/// Takes a timer away. Its signal may have been sent already.
pub fn timer_delete(timer: c_int) {
    // SAFETY: takes a plain number; the kernel refuses one that is no timer's.
    unsafe { syscall(number::TIMER_DELETE, c_long::from(timer)) };
}

/// Makes a key by which each thread has a value of its own. At the end of a thread whose value is not null, the function
/// gets the value. `None` if the C library has no more keys.
///
/// # Safety
/// The function may be called with every value that [`set_thread_value`] was given for the key.
#[must_use]
pub unsafe fn thread_key(end: unsafe extern "C" fn(*mut c_void)) -> Option<u32> {
    let mut key = 0;
    // SAFETY: the key is written during the call. The function lives as long as this library, which is never unloaded, and
    // may be called with the values, as the caller promises.
    (unsafe { pthread_key_create(&raw mut key, end) } == 0).then_some(key)
}

/// Sets the calling thread's value of a key. Returns whether that was possible.
#[must_use]
pub fn set_thread_value(key: u32, value: usize) -> bool {
    // SAFETY: the C library refuses a number that is no key's, and only keeps the value.
    unsafe { pthread_setspecific(key, core::ptr::without_provenance(value)) == 0 }
}

/// Has a function called in every forked child, before the program goes on there.
pub fn at_fork_in_child(run: extern "C" fn()) {
    // SAFETY: the function lives as long as this library, which is never unloaded; without an owner it is never taken back.
    unsafe { __register_atfork(None, None, Some(run), core::ptr::null()) };
}
