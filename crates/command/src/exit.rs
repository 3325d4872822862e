//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a limit given by the user was exceeded.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use becalm_units::fault;

/// How a command ended, which determines the exit status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// The command succeeded.
    Done,
    /// The command failed.
    Failed,
    /// The arguments are invalid.
    Usage,
    /// The command succeeded, and a limit given by the user was exceeded.
    LimitExceeded,
    /// The result of a child command: its exit code, or 128 plus the number of the signal that ended it.
    As(u8),
}

impl Exit {
    /// The exit of a command with this status.
    pub fn from_status(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::As(u8::try_from(code).unwrap_or(1)),
            (None, signal) => Self::from_signal(signal.unwrap_or(0)),
        }
    }

    /// The exit code after a signal.
    pub fn from_signal(signal: i32) -> Self {
        Self::As(128 + u8::try_from(signal).unwrap_or(0))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::LimitExceeded => 3,
            Exit::As(code) => code,
        })
    }
}

/// The exit code of an error.
pub fn for_error(error: &fault::Error) -> Exit {
    if error.is_usage() { Exit::Usage } else { Exit::Failed }
}

/// Whether the reader closed the output (`becalm report RUN | head`), which is not an error.
pub fn is_broken_pipe(error: &fault::Error) -> bool {
    let mut io_errors = error.causes().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io_errors.any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
