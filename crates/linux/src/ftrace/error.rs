//! Errors of tracefs, with advice for the user.

use std::io;
use std::path::{Path, PathBuf};

use super::format::EventFormatError;
use crate::file::FileError;
use crate::rights::Need;

/// Tracing cannot be set up, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// No tracefs is mounted, or none is usable.
    #[error(
        "no tracefs is mounted: mount it with 'mount -t tracefs nodev /sys/kernel/tracing' as root; in a container, \
         pass the host's /sys/kernel/tracing"
    )]
    NotMounted,
    /// A system call on a file or directory of tracefs failed.
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// The attempted action: `read`, `write '1' to`.
        action: String,
        /// The file or directory that the action was for.
        path: PathBuf,
        /// The error of the system call.
        r#source: io::Error,
    },
    /// The kernel accepted a setting, but did something else: a whole sentence, with advice for the user.
    #[error("{0}")]
    Refused(String),
    /// The content of this kernel file is not as expected, for this reason.
    #[error("{path}: {1}", path = .0.display())]
    Content(PathBuf, String),
    /// The table of mounts cannot be read.
    #[error(transparent)]
    Mounts(#[from] FileError),
    /// A description of events cannot be read.
    #[error(transparent)]
    Format(#[from] EventFormatError),
}

becalm_units::fault::faultless!(TracefsError);

impl TracefsError {
    /// Whether the kernel has no memory for the request.
    pub(super) fn is_no_memory(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.raw_os_error() == Some(libc::ENOMEM))
    }

    pub(super) fn io(action: impl Into<String>, path: &Path, source: io::Error) -> Self {
        Self::Io { action: action.into(), path: path.to_owned(), source }
    }
}

/// Advice for the user about a failure in tracefs, to end a message; empty if there is none.
fn advice(error: &io::Error) -> String {
    let advice = match error.raw_os_error() {
        Some(libc::EACCES) => return format!("; {}", Need::Trace.advice()),
        Some(libc::EPERM) => {
            "; if this is root, kernel lockdown (see /sys/kernel/security/lockdown) or the container forbids tracing"
        }
        Some(libc::EROFS) => "; tracefs is mounted read-only, as in many containers: run becalm on the host",
        Some(libc::EBUSY) => "; another reader still has one of its files open",
        Some(libc::ENOMEM) => "; the kernel has no memory for the trace buffers: ask for smaller ones",
        Some(libc::ENODEV) => "; the kernel was built without tracing (CONFIG_TRACING, CONFIG_EVENT_TRACING)",
        _ => "",
    };
    advice.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_path_reason_and_way_out() {
        let at =
            |code| TracefsError::io("write '1' to", Path::new("/t/tracing_on"), io::Error::from_raw_os_error(code));
        let message = at(libc::EACCES).to_string();
        assert!(message.starts_with("cannot write '1' to /t/tracing_on: Permission denied"), "{message}");
        assert!(message.contains("CAP_DAC_OVERRIDE"), "{message}");
        assert!(at(libc::EPERM).to_string().contains("lockdown"));
        assert!(at(libc::EROFS).to_string().contains("container"));
        assert!(at(libc::EIO).to_string().ends_with("(os error 5)"));
    }
}
