//! Why something cannot be probed.

use std::io;

/// A probe that the system refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
pub struct ProbeError {
    /// What was attempted, as it follows "cannot": `give pages back`.
    what: &'static str,
    /// The error of the system call.
    r#source: io::Error,
}

impl ProbeError {
    /// With the error of the system call that failed last in this thread.
    pub(super) fn last(what: &'static str) -> Self {
        Self { what, source: io::Error::last_os_error() }
    }

    /// With an error that does not come from the last system call.
    pub(super) const fn new(what: &'static str, source: io::Error) -> Self {
        Self { what, source }
    }
}
