//! Types and constants of the C library and the kernel, for 64-bit Linux with glibc, as far as the library needs them. A test compares them with
//! those of the crate `libc`, which this crate does not use (see `Cargo.toml`).

use core::ffi::{c_int, c_void};

/// A `sigset_t`: signal n is bit n - 1. The kernel uses only the first word.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SigSet(pub [u64; 16]);

impl SigSet {
    /// The empty set.
    pub const EMPTY: Self = Self([0; 16]);
    /// The set of all signals.
    pub const FULL: Self = Self([u64::MAX; 16]);
}

/// The C library's `struct sigaction`: what a signal does.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SigAction {
    /// [`SIG_DFL`], [`SIG_IGN`] or the address of a function.
    pub handler: usize,
    /// The signals to block while the handler runs.
    pub mask: SigSet,
    /// The `SA_` flags, as bits.
    pub flags: c_int,
    /// Filled in by the C library.
    pub restorer: usize,
}

impl SigAction {
    /// An action without flags that blocks no further signals.
    pub const fn plain(handler: usize) -> Self {
        Self { handler, mask: SigSet::EMPTY, flags: 0, restorer: 0 }
    }
}

/// The start of a `siginfo_t`, with the fields used by timers.
#[repr(C)]
#[derive(Debug)]
pub struct SigInfo {
    /// The number of the signal.
    pub signal: c_int,
    /// The error of the signal; timers do not set it.
    pub errno: c_int,
    /// The origin; [`SI_TIMER`] for timers.
    pub code: c_int,
    /// The union that follows is aligned to 8 bytes.
    pub gap: c_int,
    /// The kernel's number of the timer that sent the signal.
    pub timer: c_int,
    /// The number of expirations that this signal represents, less 1.
    pub overrun: c_int,
    /// The value given when the timer was created.
    pub value: usize,
    /// Fields of other kinds of signals.
    pub rest: [u64; 12],
}

/// A `struct sigevent` that sends a signal to a thread.
#[repr(C)]
#[derive(Debug)]
pub struct SigEvent {
    /// Passed to the handler as [`SigInfo::value`].
    pub value: usize,
    /// The number of the signal that the timer sends.
    pub signal: c_int,
    /// The notification method: [`SIGEV_THREAD_ID`].
    pub notify: c_int,
    /// The kernel's number of the thread that gets the signal.
    pub tid: c_int,
    /// Fields of other kinds of events.
    pub rest: [c_int; 11],
}

/// The C library's `struct timespec`: a time or an instant.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TimeSpec {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nanos: i64,
}

/// The C library's `struct itimerspec`: when a timer sends signals.
#[repr(C)]
#[derive(Debug)]
pub struct TimerSpec {
    /// The time from one signal to the next; zero for a single one.
    pub interval: TimeSpec,
    /// The time of the first one; zero stops the timer.
    pub value: TimeSpec,
}

/// The kernel's `struct statx`: information about a file.
#[repr(C)]
#[derive(Debug)]
pub struct Statx {
    /// The bit mask of the fields that are filled in, and unused fields.
    pub before: [u32; 5],
    /// The file's owner.
    pub user: u32,
    /// The file's group.
    pub group: u32,
    /// Its type and permissions.
    pub mode: u16,
    /// The next field is aligned to 8 bytes.
    pub gap: u16,
    /// Its inode number.
    pub inode: u64,
    /// Its length, in bytes.
    pub size: u64,
    /// Unused fields.
    pub after: [u64; 26],
}

/// The default action of a signal.
pub const SIG_DFL: usize = 0;
/// The action of a signal that is ignored.
pub const SIG_IGN: usize = 1;
/// The handler takes a [`SigInfo`].
pub const SA_SIGINFO: c_int = 4;
/// The handler runs on the thread's alternate stack, if it has one.
pub const SA_ONSTACK: c_int = 0x0800_0000;
/// System calls that the handler interrupts are restarted, if possible.
pub const SA_RESTART: c_int = 0x1000_0000;
/// [`SigInfo::code`] of a timer's signal.
pub const SI_TIMER: c_int = -2;
/// [`SigEvent::notify`] for a signal to one thread.
pub const SIGEV_THREAD_ID: c_int = 4;
/// The timer's first signal is at an absolute instant, not after a delay.
pub const TIMER_ABSTIME: c_int = 1;
/// The wall clock, which can be set.
pub const CLOCK_REALTIME: c_int = 0;
/// The clock that cannot be set.
pub const CLOCK_MONOTONIC: c_int = 1;
/// Adds signals to a mask.
pub const SIG_BLOCK: c_int = 0;
/// Takes signals from a mask.
pub const SIG_UNBLOCK: c_int = 1;
/// Sets the mask to a set of signals.
pub const SIG_SETMASK: c_int = 2;
/// There is no such process.
pub const ESRCH: c_int = 3;
/// Flags for opening a file for reading and writing, which started programs do not inherit.
pub const O_RDWR_CLOEXEC: c_int = 2 | 0o2_000_000;
/// There is no such call.
pub const ENOSYS: c_int = 38;
/// The level of options that all sockets have.
pub const SOL_SOCKET: c_int = 1;
/// Options of sockets: the timeouts for receiving and for sending, then the same for programs whose times differ in size.
pub const SO_TIMEOUTS: [c_int; 4] = [20, 21, 66, 67];
/// A shared lock without waiting.
pub const LOCK_SH_NB: c_int = 1 | 4;
/// `statx` looks at the descriptor itself.
pub const AT_EMPTY_PATH: c_int = 0x1000;
/// `statx` fills in the fields that `stat` has.
pub const STATX_BASIC_STATS: c_int = 0x7ff;
/// The bits of [`Statx::mode`] with the file type.
pub const S_IFMT: u16 = 0o170_000;
/// The type of a regular file.
pub const S_IFREG: u16 = 0o100_000;
/// Memory may be read and written.
pub const PROT_READ_WRITE: c_int = 3;
/// Writes to the memory are visible to all who map the same file.
pub const MAP_SHARED: c_int = 1;
/// `dlsym` looks in the libraries after the calling one.
pub const RTLD_NEXT: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);

/// Numbers of system calls.
#[cfg(target_arch = "x86_64")]
pub mod number {
    #![allow(missing_docs)]
    pub const RT_SIGPROCMASK: i64 = 14;
    pub const GETPID: i64 = 39;
    pub const KILL: i64 = 62;
    pub const GETTID: i64 = 186;
    pub const TIMER_CREATE: i64 = 222;
    pub const TIMER_SETTIME: i64 = 223;
    pub const TIMER_DELETE: i64 = 226;
    pub const EXIT_GROUP: i64 = 231;
    pub const TGKILL: i64 = 234;
    pub const STATX: i64 = 332;
}

/// Numbers of system calls.
#[cfg(target_arch = "aarch64")]
pub mod number {
    #![allow(missing_docs)]
    pub const EXIT_GROUP: i64 = 94;
    pub const TIMER_CREATE: i64 = 107;
    pub const TIMER_SETTIME: i64 = 110;
    pub const TIMER_DELETE: i64 = 111;
    pub const KILL: i64 = 129;
    pub const TGKILL: i64 = 131;
    pub const RT_SIGPROCMASK: i64 = 135;
    pub const GETPID: i64 = 172;
    pub const GETTID: i64 = 178;
    pub const STATX: i64 = 291;
}
