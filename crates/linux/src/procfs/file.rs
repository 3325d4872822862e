//! Reading the kernel's small text files below a root folder, with errors that name the file.
//!
//! Leaves out everything that is not plain text of a few pages, and all writing.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Why one of the kernel's files could not be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read.
    #[error("cannot read {what} from {}: {source}", path.display())]
    Read {
        /// What the file was to tell.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        r#source: io::Error,
    },
    /// It could be read, but its text is not what the kernel documents.
    #[error("cannot understand {what} in {}: {why}", path.display())]
    Format {
        /// What the file was to tell.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What is wrong with the text.
        why: FormatError,
    },
}

impl FileError {
    /// Whether the file, or the process that it describes, does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Read { source, .. } => is_gone(source),
            Self::Format { .. } => false,
        }
    }

    /// Whether the kernel refused the reading.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// A text that is not what the kernel writes: the place, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{expected}, but found '{found}'")]
pub struct FormatError {
    expected: &'static str,
    found: String,
}

impl FormatError {
    /// Quotes at most the first 60 characters of what was found.
    pub(crate) fn new(expected: &'static str, found: &str) -> Self {
        Self { expected, found: found.chars().take(60).collect() }
    }
}

/// The path of a kernel file below a root folder; `name` is relative, like `proc/stat`.
pub(crate) fn below(root: &Path, name: &str) -> PathBuf {
    root.join(name.trim_start_matches('/'))
}

/// The whole text of a file. Bytes that are not UTF-8 (a thread's name may hold any) become U+FFFD.
pub(crate) fn read(root: &Path, name: &str, what: &'static str) -> Result<String, FileError> {
    let path = below(root, name);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }),
        Err(source) => Err(FileError::Read { what, path, source }),
    }
}

/// A file through a parser.
pub(crate) fn parse<T>(
    root: &Path,
    name: &str,
    what: &'static str,
    parser: impl FnOnce(&str) -> Result<T, FormatError>,
) -> Result<T, FileError> {
    parser(&read(root, name, what)?).map_err(|why| FileError::Format { what, path: below(root, name), why })
}

/// The one value that a file holds.
pub(crate) fn value<T: FromStr>(root: &Path, name: &str, what: &'static str) -> Result<T, FileError> {
    parse(root, name, what, |text| {
        text.trim().parse().map_err(|_| FormatError::new("one value was expected", text.trim()))
    })
}

/// Nothing where the file does not exist, as the kernel or the machine lacks the feature.
pub(crate) fn optional<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an error says that a file, or the process behind it, is not there (any more).
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(libc::ESRCH)
}

/// Makes the files of a fake tree.
#[cfg(test)]
pub(crate) fn write_tree(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = below(root, name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_and_the_reason() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("value"), "seven\n").unwrap();
        let missing = value::<u32>(root.path(), "none", "the answer").unwrap_err();
        assert!(missing.is_missing() && !missing.is_denied());
        assert!(missing.to_string().starts_with("cannot read the answer from "), "{missing}");
        let wrong = value::<u32>(root.path(), "value", "the answer").unwrap_err();
        assert!(wrong.to_string().ends_with("/value: one value was expected, but found 'seven'"), "{wrong}");
        assert!(optional(Err::<u32, _>(missing)).unwrap().is_none());
        assert!(optional(Err::<u32, _>(wrong)).is_err());
    }
}
