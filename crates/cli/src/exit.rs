//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a limit given by the user was exceeded.

use std::io;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It did what was asked.
    Done,
    /// It failed.
    Failed,
    /// It was asked for something that cannot be meant.
    Usage,
    /// It did what was asked, and a limit given by the user was exceeded.
    LimitExceeded,
    /// As the command that it ran did: its exit code, or 128 and the number of the signal that ended it.
    As(u8),
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

/// Arguments that parse but cannot be meant, found where they are used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The exit code of an error.
pub fn of_error(error: &anyhow::Error) -> Exit {
    if error.chain().any(|cause| cause.is::<UsageError>()) { Exit::Usage } else { Exit::Failed }
}

/// Whether the reader of our output went away (`becalm report RUN | head`), which is nothing to complain about.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(broken)
}
