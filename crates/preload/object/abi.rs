//! What the C library and the kernel look like on 64-bit Linux with glibc, as far as it is needed here. The layouts are held
//! against those of crate `libc` in the tests of crate `preload`.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A `sigset_t`: signal n is bit n - 1. The kernel knows the first word only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SigSet(pub [u64; 16]);

impl SigSet {
    /// None.
    pub const EMPTY: Self = Self([0; 16]);
    /// All.
    pub const FULL: Self = Self([u64::MAX; 16]);
}

/// A `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SigAction {
    pub handler: usize,
    pub mask: SigSet,
    pub flags: c_int,
    pub restorer: usize,
}

/// The beginning of a `siginfo_t`, with the fields that signals of timers have.
#[repr(C)]
pub struct SigInfo {
    pub signal: c_int,
    pub errno: c_int,
    pub code: c_int,
    pub gap: c_int,
    pub timer: c_int,
    pub overrun: c_int,
    pub value: usize,
    pub rest: [u64; 12],
}

/// A `struct sigevent` for a thread.
#[repr(C)]
pub struct SigEvent {
    pub value: usize,
    pub signal: c_int,
    pub notify: c_int,
    pub tid: c_int,
    pub rest: [c_int; 11],
}

/// A `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TimeSpec {
    pub seconds: i64,
    pub nanos: i64,
}

/// A `struct itimerspec`.
#[repr(C)]
pub struct TimerSpec {
    pub interval: TimeSpec,
    pub value: TimeSpec,
}

pub const SIG_DFL: usize = 0;
pub const SIG_IGN: usize = 1;
pub const SA_SIGINFO: c_int = 4;
pub const SA_ONSTACK: c_int = 0x0800_0000;
pub const SA_RESTART: c_int = 0x1000_0000;
/// The code of a timer's signal.
pub const SI_TIMER: c_int = -2;
const SIGEV_THREAD_ID: c_int = 4;
const TIMER_ABSTIME: c_int = 1;
pub const CLOCK_REALTIME: c_int = 0;
pub const CLOCK_MONOTONIC: c_int = 1;
pub const SIG_BLOCK: c_int = 0;
pub const SIG_UNBLOCK: c_int = 1;
pub const SIG_SETMASK: c_int = 2;
const ESRCH: c_int = 3;
const RTLD_NEXT: *mut c_void = -1_isize as *mut c_void;

/// Numbers of system calls.
#[cfg(target_arch = "x86_64")]
mod number {
    pub const RT_SIGPROCMASK: i64 = 14;
    pub const GETPID: i64 = 39;
    pub const GETTID: i64 = 186;
    pub const TIMER_CREATE: i64 = 222;
    pub const TIMER_SETTIME: i64 = 223;
    pub const TIMER_DELETE: i64 = 226;
    pub const EXIT_GROUP: i64 = 231;
    pub const TGKILL: i64 = 234;
    pub const KILL: i64 = 62;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub const EXIT_GROUP: i64 = 94;
    pub const TIMER_CREATE: i64 = 107;
    pub const TIMER_SETTIME: i64 = 110;
    pub const TIMER_DELETE: i64 = 111;
    pub const KILL: i64 = 129;
    pub const TGKILL: i64 = 131;
    pub const RT_SIGPROCMASK: i64 = 135;
    pub const GETPID: i64 = 172;
    pub const GETTID: i64 = 178;
}

#[link(name = "c")]
unsafe extern "C" {
    pub fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64;
    fn mmap(at: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn clock_gettime(clock: c_int, time: *mut TimeSpec) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    pub fn pthread_key_create(key: *mut u32, end: extern "C" fn(*mut c_void)) -> c_int;
    pub fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    pub fn __register_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
        owner: *const c_void,
    ) -> c_int;
}

/// Maps a file of 64-bit words for reading and writing.
///
/// # Safety
/// The path is a string that ends with a zero.
pub unsafe fn map_shared(path: *const c_char) -> Option<(*mut AtomicU64, usize)> {
    const O_RDWR_CLOEXEC: c_int = 2 | 0o2_000_000;
    const SEEK_END: c_int = 2;
    const PROT_READ_WRITE: c_int = 3;
    const MAP_SHARED: c_int = 1;
    // SAFETY: as the caller promises; the rest are plain numbers, and the kernel chooses where to map.
    unsafe {
        let fd = open(path, O_RDWR_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let size = usize::try_from(lseek(fd, 0, SEEK_END)).unwrap_or(0);
        let mapped = match size {
            0 => core::ptr::null_mut(),
            size => mmap(core::ptr::null_mut(), size, PROT_READ_WRITE, MAP_SHARED, fd, 0),
        };
        close(fd);
        (!mapped.is_null() && mapped as isize != -1).then_some((mapped.cast(), size / 8))
    }
}

/// A function of the library that comes after this one: the C library's own.
pub struct Next {
    name: &'static core::ffi::CStr,
    found: AtomicUsize,
}

impl Next {
    pub const fn new(name: &'static core::ffi::CStr) -> Self {
        Self { name, found: AtomicUsize::new(0) }
    }

    /// Its address; zero where there is none of that name.
    pub fn address(&self) -> usize {
        let found = self.found.load(Relaxed);
        if found != 0 {
            return found;
        }
        // SAFETY: the name ends with a zero.
        let found = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.found.store(found, Relaxed);
        found
    }
}

/// Calls the C library's function of a name and a type; ends the process where there is none, which no glibc lacks.
macro_rules! next {
    ($name:literal as $kind:ty) => {{
        static NEXT: $crate::abi::Next = $crate::abi::Next::new($name);
        let address = NEXT.address();
        if address == 0 {
            $crate::abi::exit_now(127);
        }
        // SAFETY: the C library's function of this name has this type.
        unsafe { core::mem::transmute::<usize, $kind>(address) }
    }};
}
pub(crate) use next;

pub fn errno() -> c_int {
    // SAFETY: the C library gives a valid place for the thread.
    unsafe { *__errno_location() }
}

pub fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *__errno_location() = errno }
}

/// A clock in nanoseconds.
#[inline]
pub fn clock_ns(clock: c_int) -> u64 {
    let mut time = TimeSpec { seconds: 0, nanos: 0 };
    // SAFETY: the place is valid; both clocks exist everywhere.
    unsafe { clock_gettime(clock, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanos as u64
}

pub fn pid() -> c_int {
    // SAFETY: takes nothing.
    unsafe { syscall(number::GETPID) as c_int }
}

pub fn tid() -> c_int {
    // SAFETY: takes nothing.
    unsafe { syscall(number::GETTID) as c_int }
}

/// Whether there is such a process.
pub fn is_alive(pid: c_int) -> bool {
    let errno = errno();
    // SAFETY: takes plain numbers, and sends nothing.
    let asked = unsafe { syscall(number::KILL, c_long::from(pid), 0_i64) };
    let alive = asked == 0 || self::errno() != ESRCH;
    set_errno(errno);
    alive
}

/// Ends the process without a word to anybody in it.
pub fn exit_now(status: c_int) -> ! {
    loop {
        // SAFETY: takes a plain number.
        unsafe { syscall(number::EXIT_GROUP, c_long::from(status)) };
    }
}

/// Sends a signal to the calling thread.
pub fn raise(signal: c_int) {
    // SAFETY: takes plain numbers.
    unsafe { syscall(number::TGKILL, c_long::from(pid()), c_long::from(tid()), c_long::from(signal)) };
}

/// Changes the calling thread's signal mask by its first 64 signals, and gives the one before.
pub fn mask(how: c_int, set: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: both sets are valid and of the kernel's size.
    unsafe { syscall(number::RT_SIGPROCMASK, c_long::from(how), &raw const set, &raw mut before, 8_usize) };
    before
}

/// The kernel's number of a new timer, which sends a signal with a value to a thread.
pub fn timer_create(signal: c_int, value: usize, tid: c_int) -> Option<c_int> {
    let event = SigEvent { value, signal, notify: SIGEV_THREAD_ID, tid, rest: [0; 11] };
    let mut timer: c_int = 0;
    // SAFETY: the event is read and the number written during the call.
    let made =
        unsafe { syscall(number::TIMER_CREATE, c_long::from(CLOCK_MONOTONIC), &raw const event, &raw mut timer) };
    (made == 0).then_some(timer)
}

/// Has the timer end at an instant; right now, where that is over.
pub fn timer_set(timer: c_int, at_ns: u64) {
    // A time of zero would stop it.
    let at = at_ns.max(1);
    let value = TimeSpec { seconds: (at / 1_000_000_000) as i64, nanos: (at % 1_000_000_000) as i64 };
    let spec = TimerSpec { interval: TimeSpec { seconds: 0, nanos: 0 }, value };
    let none = core::ptr::null_mut::<TimerSpec>();
    // SAFETY: the times are read during the call. A number that is none of a timer's is refused.
    unsafe { syscall(number::TIMER_SETTIME, c_long::from(timer), c_long::from(TIMER_ABSTIME), &raw const spec, none) };
}

pub fn timer_delete(timer: c_int) {
    // SAFETY: takes a plain number.
    unsafe { syscall(number::TIMER_DELETE, c_long::from(timer)) };
}

/// What the kernel does with a signal: the C library's `sigaction`, not the one that this library puts before it.
pub fn sigaction(signal: c_int, action: *const SigAction, before: *mut SigAction) -> c_int {
    type SigActionFn = unsafe extern "C" fn(c_int, *const SigAction, *mut SigAction) -> c_int;
    let next = next!(c"sigaction" as SigActionFn);
    // SAFETY: whoever calls gives null or valid pointers, as for the C library's own.
    unsafe { next(signal, action, before) }
}
