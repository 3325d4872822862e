//! What can go wrong around a guest.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

/// A guest that could not be prepared or did not come back.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// It ran for longer than it may: its limit, and the last lines of its console.
    #[error("the guest was still running after {0:?} and was ended; the end of its console:\n{1}")]
    Hang(Duration, String),
    /// It did not begin with its scenario in time: its limit, and the last lines of its console.
    #[error("the guest had not booted after {0:?} and was ended; the end of its console:\n{1}")]
    NoBoot(Duration, String),
    /// Anything else, in a whole sentence.
    #[error("{0}")]
    Other(String),
}

impl LabError {
    /// Turns an input or output error into one that says what was attempted on which path.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Other(format!("cannot {action} {}: {source}", path.display()))
    }

    /// A program of this machine could not be started.
    pub(crate) fn start(program: &str, package: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            Self::Other(format!("cannot start {program} (is Debian's package {package} installed?): {source}"))
        }
    }

    /// A package or program does not hold what the lab needs of it.
    pub(crate) fn lacks(holder: impl Display, what: &str) -> Self {
        Self::Other(format!("{holder} holds no {what}"))
    }

    /// A document of becalm is none, or lacks what must be in it.
    pub(crate) fn document(path: &Path) -> Self {
        Self::Other(format!("{} is no document as becalm writes it", path.display()))
    }

    /// The guest left no files: it did not boot, or it crashed.
    pub(crate) fn no_result(why: impl Display, console: &str) -> Self {
        Self::Other(format!("the guest left no result ({why}); the end of its console:\n{console}"))
    }
}
