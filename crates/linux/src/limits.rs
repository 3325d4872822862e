//! Limits of the process, among them those that end it by a signal unless it asks for errors instead; and how much room a folder has.

use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// How large a stack the first thread may need, in KiB: several times what any command was seen to take of it. Other threads have
/// stacks of their own size.
const STACK_KIB: u64 = 1_024;

/// The first thread's stack may become too small (`ulimit -s`), which would end the process by a signal somewhere on its way.
#[derive(Debug, thiserror::Error)]
#[error("a stack of {kib} KiB is too small: allow {STACK_KIB} with ulimit -s")]
pub struct SmallStack {
    kib: u64,
}

/// Checks that the first thread's stack may become large enough. To be called before it is used much.
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
    /// What it is now; `None` if there is none.
    pub now: Option<u64>,
    /// How far the process may raise it; `None` if there is no bound.
    pub most: Option<u64>,
}

/// The limits that becalm may meet: bytes of a stack, of locked memory, of a file and of all memory; descriptors, processes, and the
/// priority of real-time threads.
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

/// How many bytes the process may still write below a folder. Fails if the folder's file system cannot be asked.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// From now on a write beyond the limit of a file's size (`ulimit -f`) fails with an error, and no longer ends the process.
///
/// The signal gets a handler that does nothing. To ignore it would do as well, but would be inherited by the programs that the process
/// starts; these get the default action back.
pub fn report_file_size() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all-zero bytes are a valid sigaction, and the handler may run at any time, as it does nothing. A refusal, of which there
    // is none for this signal, would leave all as it was.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}
