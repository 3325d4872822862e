//! Errors of probes.

use std::io;

use crate::ftrace::TracefsError;

/// A probe that the system refused.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A system call failed: the attempted action, to follow "cannot", and the error.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
    /// The tracepoint of system calls cannot be reached.
    #[error("cannot count system calls: {0}")]
    Tracefs(#[from] TracefsError),
    /// The number of the tracepoint of system calls is not one.
    #[error("cannot count system calls: the kernel's number of their tracepoint is '{0}'")]
    Tracepoint(String),
}

impl ProbeError {
    /// An error with the last failed system call of this thread.
    pub(super) fn last(what: &'static str) -> Self {
        Self::new(what, io::Error::last_os_error())
    }

    /// An error that does not come from the last system call.
    pub(super) const fn new(what: &'static str, source: io::Error) -> Self {
        Self::System(what, source)
    }
}
