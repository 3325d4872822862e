//! Why a journal cannot be used.

use std::io;
use std::path::PathBuf;

/// A journal, or its directory, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// An operation on a file or directory failed.
    #[error("cannot {action} {}: {source}{}", path.display(), hint(source))]
    File {
        /// The operation, in words that follow "cannot".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        r#source: io::Error,
    },
    /// Another becalm is changing or restoring settings.
    #[error("another becalm is changing or restoring settings at this moment: {} is locked by {}", path.display(), holder.as_deref().unwrap_or("it"))]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, if known.
        holder: Option<String>,
    },
    /// The line that names the owner, or the one just written, is invalid.
    #[error(
        "line {line} of the journal {} is damaged: {why}. Nothing can be restored from the file without it. Bring back by hand \
         the values that its lines 'original' hold, or reboot; then remove the file",
        path.display()
    )]
    Damaged {
        /// The file of the journal.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The kind of damage.
        why: String,
    },
    /// The journal is from another version of becalm.
    #[error("the journal {} is of version {version}, which this becalm does not know; restore with the becalm that wrote it", path.display())]
    Version {
        /// The file of the journal.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The process cannot be identified.
    #[error("cannot find out who changes the settings: {0}")]
    Identity(String),
}

becalm_units::fault::faultless!(JournalError);

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; changing settings needs root",
        _ => "",
    }
}
