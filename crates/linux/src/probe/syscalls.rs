//! The shortest system call, and a count of the system calls that a thread makes.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use super::ProbeError;
use crate::ftrace::Tracefs;
use crate::perf::attributes::{Attributes, TRACEPOINT};

/// Gets the process number by a system call. The C library's function of this name may answer from a cache.
#[inline(always)]
pub fn getpid() -> i32 {
    // SAFETY: the call takes nothing and only returns a number.
    unsafe { libc::syscall(libc::SYS_getpid) as i32 }
}

/// Counts the system calls of the thread that opened it, with the tracepoint `raw_syscalls:sys_enter`. While it is open, every system call of the
/// thread is slower.
#[derive(Debug)]
pub struct SyscallCount(OwnedFd);

impl SyscallCount {
    /// Opens the count for the calling thread. `root` is the root of the file system, `/` outside of tests. Fails if there is no tracefs or no such
    /// tracepoint, or the user may not count it (root or CAP_PERFMON may).
    pub fn open(root: &Path) -> Result<Self, ProbeError> {
        const WHAT: &str = "count system calls by the tracepoint raw_syscalls:sys_enter";
        let path = Tracefs::find(root)?.root().join("events/raw_syscalls/sys_enter/id");
        let text = std::fs::read_to_string(path).map_err(|error| ProbeError::new(WHAT, error))?;
        let id = text.trim().parse().map_err(|_| ProbeError::Tracepoint(text.trim().to_owned()))?;
        // It counts as soon as it is opened.
        let attributes = Attributes { flags: 0, ..Attributes::new(TRACEPOINT, id) };
        attributes.open_for_current_thread(None).map(Self).map_err(|error| ProbeError::new(WHAT, error))
    }

    /// The number of system calls that the thread makes in `body`.
    pub fn during(&self, body: impl FnOnce()) -> Result<u64, ProbeError> {
        let before = self.read()?;
        body();
        // The reading call itself has been counted.
        Ok((self.read()? - before).saturating_sub(1))
    }

    fn read(&self) -> Result<u64, ProbeError> {
        let mut count = 0_u64;
        // SAFETY: `count` has room for the eight bytes requested.
        let got = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        if got == 8 { Ok(count) } else { Err(ProbeError::last("read the count of system calls")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_its_number() {
        assert_eq!(getpid(), std::process::id() as i32);
    }

    #[test]
    #[allow(clippy::print_stderr)]
    fn calls_are_counted_one_by_one() {
        let count = match SyscallCount::open(Path::new("/")) {
            Ok(count) => count,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        assert_eq!(count.during(|| ()).unwrap(), 0);
        assert_eq!(count.during(|| (0..7).for_each(|_| assert!(getpid() > 0))).unwrap(), 7);
    }
}
