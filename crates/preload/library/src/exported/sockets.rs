//! Calls on sockets with a timeout (`SO_RCVTIMEO`, `SO_SNDTIMEO`), which return early after a handler has run, whatever its flags (signal(7)): our
//! signal waits until they are over.
//!
//! The calls that set a timeout show which sockets those are. This misses descriptors that are duplicates, or come from another program.

use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::abi::{SO_TIMEOUTS, SOL_SOCKET, TimeSpec};
use crate::exported::waits::undisturbed;
use crate::process::next::next;
use crate::process::{calls, state};

/// A bit for each descriptor that ever had a timeout. It may refer to another file by now.
static TIMED: [AtomicU64; 1_024] = [const { AtomicU64::new(0) }; 1_024];

/// The word and the bit of a descriptor; `None` for numbers higher than programs usually have.
fn place(fd: c_int) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    TIMED.get(fd / 64).map(|word| (word, 1 << (fd % 64)))
}

fn note(fd: c_int) {
    if let Some((word, bit)) = place(fd) {
        word.fetch_or(bit, Relaxed);
    }
}

/// Whether a descriptor is a socket with a timeout, as far as observed.
fn has_timeout(fd: c_int) -> bool {
    let Some((word, bit)) = place(fd).filter(|(word, bit)| word.load(Relaxed) & bit != 0) else { return false };
    let has = calls::has_timeout(fd);
    if !has {
        word.fetch_and(!bit, Relaxed);
    }
    has
}

/// Runs a call on a descriptor without interruption by our signal.
fn call_on<T>(fd: c_int, call: impl FnOnce() -> T) -> T {
    if state::signal() != 0 && has_timeout(fd) { undisturbed(call) } else { call() }
}

/// Records that a timeout is set.
///
/// # Safety
/// As for the C library's function.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    size: c_uint,
) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, c_uint) -> c_int;
    let next = next!(setsockopt as Function);
    // SAFETY: the C library's own function gets what the program gave.
    let result = unsafe { next(fd, level, option, value, size) };
    if result == 0 && level == SOL_SOCKET && SO_TIMEOUTS.contains(&option) {
        note(fd);
    }
    result
}

macro_rules! timed {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        /// On a socket with a timeout our signal does not interrupt it.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(fd: c_int, $($argument: $kind),*) -> $result {
            let next = next!($name as unsafe extern "C" fn(c_int, $($kind),*) -> $result);
            // SAFETY: the C library's own function gets what the program gave.
            call_on(fd, || unsafe { next(fd, $($argument),*) })
        }
    )*};
}

timed! {
    connect(address: *const c_void, size: c_uint) -> c_int;
    recv(buffer: *mut c_void, size: usize, flags: c_int) -> isize;
    __recv_chk(buffer: *mut c_void, size: usize, room: usize, flags: c_int) -> isize;
    recvfrom(buffer: *mut c_void, size: usize, flags: c_int, from: *mut c_void, length: *mut c_uint) -> isize;
    __recvfrom_chk(
        buffer: *mut c_void, size: usize, room: usize, flags: c_int, from: *mut c_void, length: *mut c_uint
    ) -> isize;
    recvmsg(message: *mut c_void, flags: c_int) -> isize;
    recvmmsg(messages: *mut c_void, count: c_uint, flags: c_int, time: *mut TimeSpec) -> c_int;
    send(buffer: *const c_void, size: usize, flags: c_int) -> isize;
    sendto(buffer: *const c_void, size: usize, flags: c_int, to: *const c_void, length: c_uint) -> isize;
    sendmsg(message: *const c_void, flags: c_int) -> isize;
    sendmmsg(messages: *mut c_void, count: c_uint, flags: c_int) -> c_int;
    read(buffer: *mut c_void, size: usize) -> isize;
    __read_chk(buffer: *mut c_void, size: usize, room: usize) -> isize;
    readv(parts: *const c_void, count: c_int) -> isize;
    write(buffer: *const c_void, size: usize) -> isize;
    writev(parts: *const c_void, count: c_int) -> isize;
}

macro_rules! accepts {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        /// On a socket with a timeout our signal does not interrupt it. The accepted socket has the same timeout.
        ///
        /// # Safety
        /// As for the C library's function.
        #[cfg_attr(preloaded, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(fd: c_int, $($argument: $kind),*) -> c_int {
            let next = next!($name as unsafe extern "C" fn(c_int, $($kind),*) -> c_int);
            let timed = has_timeout(fd);
            // SAFETY: the C library's own function gets what the program gave.
            let accepted = call_on(fd, || unsafe { next(fd, $($argument),*) });
            if timed {
                note(accepted);
            }
            accepted
        }
    )*};
}

accepts! {
    accept(address: *mut c_void, size: *mut c_uint);
    accept4(address: *mut c_void, size: *mut c_uint, flags: c_int);
}
