//! Limits of the process, including those that end it by a signal unless it requests errors instead; and the free space of a directory.

use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::signal_sets::{action, set_action};

/// The stack size that the first thread may need, in KiB: several times the maximum seen in any command. Other threads have stacks of their own size.
const STACK_KIB: u64 = 1_024;

/// The first thread's stack may become too small (`ulimit -s`), and a signal would end the process at some point.
#[derive(Debug, thiserror::Error)]
#[error("a stack of {kib} KiB is too small: allow {STACK_KIB} with ulimit -s")]
pub struct SmallStack {
    kib: u64,
}

/// Checks that the first thread's stack may grow enough. Must be called before much of it is used.
pub fn check_stack() -> Result<(), SmallStack> {
    match getrlimit(Resource::Stack).current {
        Some(bytes) if bytes < STACK_KIB << 10 => Err(SmallStack { kib: bytes >> 10 }),
        _ => Ok(()),
    }
}

/// A limit of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Its name, as `prlimit` has it.
    pub name: &'static str,
    /// The current value; `None` if unlimited.
    pub now: Option<u64>,
    /// The maximum to which the process may raise it; `None` if unlimited.
    pub most: Option<u64>,
}

/// The limits that becalm may hit: bytes of a stack, of locked memory, of a file and of all memory; descriptors, processes, and the priority of
/// real-time threads.
pub fn process_limits() -> [Limit; 7] {
    [
        ("stack", Resource::Stack),
        ("memlock", Resource::Memlock),
        ("fsize", Resource::Fsize),
        ("as", Resource::As),
        ("nofile", Resource::Nofile),
        ("nproc", Resource::Nproc),
        ("rtprio", Resource::Rtprio),
    ]
    .map(|(name, resource)| {
        let limit = getrlimit(resource);
        Limit { name, now: limit.current, most: limit.maximum }
    })
}

/// How many bytes the process may still write below a directory. Fails if its file system cannot be queried.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// From now on, a write beyond the file size limit (`ulimit -f`) fails with an error instead of ending the process.
///
/// The signal gets a handler that does nothing. Ignoring it would do as well, but the programs that the process starts would inherit that; handlers
/// are reset to the default action.
pub fn report_file_size() {
    extern "C" fn nothing(_: libc::c_int) {}
    let nothing = action(nothing as extern "C" fn(libc::c_int) as libc::sighandler_t, libc::SA_RESTART);
    // SAFETY: the handler may run at any time, because it does nothing.
    let _ = unsafe { set_action(libc::SIGXFSZ, &nothing) };
}
