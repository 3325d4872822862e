//! Calls into the kernel and the C library, as safe functions wherever nothing is left to promise.
//!
//! What a signal's handler calls of these is safe to be called there (signal-safety(7)): the clock, `syscall`, and the
//! thread's `errno`, none of which takes a lock or allocates memory.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::sync::atomic::AtomicU64;

use crate::abi::{
    CLOCK_MONOTONIC, ESRCH, MAP_SHARED, O_RDWR_CLOEXEC, PROT_READ_WRITE, RTLD_NEXT, SEEK_END, SIGEV_THREAD_ID, SigEvent,
    TIMER_ABSTIME, TimeSpec, TimerSpec, number,
};

#[cfg_attr(preloaded, link(name = "c"))]
unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64;
    fn mmap(at: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
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
#[must_use]
pub unsafe fn environment<'a>(name: &CStr) -> Option<&'a CStr> {
    // SAFETY: the name ends with a zero. That nobody writes to the environment at the same time is the caller's promise.
    let value = unsafe { getenv(name.as_ptr()) };
    // SAFETY: what is not null is a string that ends with a zero, and stays as it is, as the caller promises.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Maps a file of 64-bit words, for reading and writing, for as long as the process lives; `None` if it cannot be mapped.
#[must_use]
pub fn map_shared(path: &CStr) -> Option<&'static [AtomicU64]> {
    // SAFETY: the path ends with a zero, and the flags ask for no third argument.
    let fd = unsafe { open(path.as_ptr(), O_RDWR_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: takes plain numbers.
    let size = usize::try_from(unsafe { lseek(fd, 0, SEEK_END) }).unwrap_or(0);
    let mapped = match size {
        0 => core::ptr::null_mut(),
        // SAFETY: the kernel chooses a place where nothing is, so that no other memory changes.
        size => unsafe { mmap(core::ptr::null_mut(), size, PROT_READ_WRITE, MAP_SHARED, fd, 0) },
    };
    // SAFETY: the descriptor was opened above and is known to nobody else. A mapping outlives it.
    unsafe { close(fd) };
    // A failure is -1.
    if mapped.is_null() || mapped.addr() == usize::MAX {
        return None;
    }
    // SAFETY: a page is aligned for words; the mapping holds this many of them, and is never taken back. Others write to it,
    // this process and the maker of the noise included, but only atomically. Its maker never makes the file shorter.
    Some(unsafe { core::slice::from_raw_parts(mapped.cast(), size / size_of::<u64>()) })
}

/// The address of a function in the libraries that come after this one; zero where there is none of this name.
#[must_use]
pub fn next_symbol(name: &CStr) -> usize {
    // SAFETY: the name ends with a zero; the handle is the one that stands for the libraries after the calling one.
    unsafe { dlsym(RTLD_NEXT, name.as_ptr()) }.addr()
}

/// The calling thread's `errno`.
#[must_use]
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
#[must_use]
pub fn clock_ns(clock: c_int) -> u64 {
    let mut time = TimeSpec { seconds: 0, nanos: 0 };
    // SAFETY: the place is valid for writing. A clock that does not exist leaves it as it is.
    unsafe { clock_gettime(clock, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanos as u64
}

/// The number of this process. Asked of the kernel, as the C library may keep the parent's after a fork.
#[must_use]
pub fn pid() -> c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { syscall(number::GETPID) as c_int }
}

/// The number of the calling thread.
#[must_use]
pub fn tid() -> c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { syscall(number::GETTID) as c_int }
}

/// Whether there is such a process. Leaves `errno` as it is.
#[must_use]
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
