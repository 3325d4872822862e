//! Why a journal cannot be used.

use std::io;
use std::path::PathBuf;

/// A journal, or its folder, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file or folder refused.
    #[error("cannot {action} {}: {source}{}", path.display(), hint(source))]
    File {
        /// What was attempted, as it follows "cannot".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        r#source: io::Error,
    },
    /// Another becalm is changing or restoring settings.
    #[error("another becalm is changing or restoring settings at this moment: {} is locked by {}", path.display(), holder.as_deref().unwrap_or("it"))]
    Locked {
        /// The file that is the lock.
        path: PathBuf,
        /// The process that holds it, as far as the kernel tells.
        holder: Option<String>,
    },
    /// The line that says whose the journal is, or that was just written, makes no sense.
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
        /// What is wrong with it.
        why: String,
    },
    /// Another becalm wrote it.
    #[error("the journal {} is of version {version}, which this becalm does not know; restore with the becalm that wrote it", path.display())]
    Version {
        /// The file of the journal.
        path: PathBuf,
        /// The version that it names.
        version: u32,
    },
    /// Who runs this process cannot be found out.
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
