//! Errors around a guest.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

/// A guest that could not be prepared or did not return.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// It exceeded its time limit: the limit, and the last lines of its console.
    #[error("the guest was still running after {0:?} and was ended; the end of its console:\n{1}")]
    Hang(Duration, String),
    /// It did not start its scenario in time: the limit, and the last lines of its console.
    #[error("the guest had not booted after {0:?} and was ended; the end of its console:\n{1}")]
    NoBoot(Duration, String),
    /// Anything else: a whole sentence.
    #[error("{0}")]
    Other(String),
}

impl LabError {
    /// Converts an input or output error to one with the action and the path.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Other(format!("cannot {action} {}: {source}", path.display()))
    }

    /// A program of this machine could not be started.
    pub(crate) fn start(program: &str, package: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            Self::Other(format!("cannot start {program} (is Debian's package {package} installed?): {source}"))
        }
    }

    /// A package or program lacks something that the lab needs.
    pub(crate) fn lacks(holder: impl Display, what: &str) -> Self {
        Self::Other(format!("{holder} holds no {what}"))
    }

    /// A document of becalm is invalid or incomplete.
    pub(crate) fn document(path: &Path) -> Self {
        Self::Other(format!("{} is no document as becalm writes it", path.display()))
    }

    /// The guest left no files: it did not boot, or it crashed.
    pub(crate) fn no_result(why: impl Display, console: &str) -> Self {
        Self::Other(format!("the guest left no result ({why}); the end of its console:\n{console}"))
    }
}
