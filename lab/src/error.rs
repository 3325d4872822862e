//! What can go wrong around a guest.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A guest that could not be prepared or did not come back.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file of the lab could not be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was attempted, as an infinitive.
        action: &'static str,
        /// The file or folder of which it was attempted.
        path: PathBuf,
        /// What the operating system said.
        r#source: io::Error,
    },
    /// A program of this machine could not be started.
    #[error("cannot start {program} (is Debian's package {package} installed?): {source}")]
    Start {
        /// The name of the program that was to be started.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
        /// What the operating system said.
        r#source: io::Error,
    },
    /// A program of this machine failed.
    #[error("{command} ended with {status}: {message}")]
    Program {
        /// The program and what it was asked for.
        command: String,
        /// How it ended: `exit status: 1`.
        status: String,
        /// What it wrote to standard error.
        message: String,
    },
    /// A package does not hold what the lab needs of it.
    #[error("{package} holds no {what}")]
    Package {
        /// The name of Debian's package.
        package: String,
        /// What was looked for.
        what: String,
    },
    /// A document of becalm that a guest left is none, or lacks what must be in it.
    #[error("{} is no document as becalm writes it", path.display())]
    Document {
        /// The file.
        path: PathBuf,
    },
    /// There is no scenario of that name.
    #[error("there is no scenario '{name}'; choose one of {names}", names = names.join(", "))]
    NoScenario {
        /// The name that was asked for.
        name: String,
        /// Those that there are.
        names: Vec<String>,
    },
    /// The first lines of a scenario, which say what it shows and which machine it wants, cannot be understood.
    #[error("the scenario {path} {what}", path = path.display())]
    Header {
        /// The script of the scenario.
        path: PathBuf,
        /// What is wrong, as the rest of a sentence.
        what: String,
    },
    /// A guest ran for longer than it may.
    #[error("the guest was still running after {limit:?} and was ended; the end of its console:\n{console}")]
    Hang {
        /// How long it was given.
        limit: Duration,
        /// The last lines of its console.
        console: String,
    },
    /// A guest did not begin with its scenario in time.
    #[error("the guest had not booted after {limit:?} and was ended; the end of its console:\n{console}")]
    NoBoot {
        /// How long it was given.
        limit: Duration,
        /// The last lines of its console.
        console: String,
    },
    /// A guest ended without leaving its files: it did not boot, or it crashed.
    #[error("the guest left no result ({why}); the end of its console:\n{console}")]
    NoResult {
        /// What the emulator or the unpacking said.
        why: String,
        /// The last lines of its console.
        console: String,
    },
}

impl LabError {
    /// Turns an input or output error into one that says what was attempted on which path.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }
}
