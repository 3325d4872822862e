//! Errors of bundles: the attempt, the path and the cause.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use becalm_units::fault::{Fault, Wording};
use parquet::errors::ParquetError;

use super::Contents;

/// A bundle, or a file in it, that could not be written or read.
///
/// The messages contain the cause, so it is not repeated as the error's source.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The operating system refused: the attempt (`create the directory`, `write`), the path and the system's error.
    #[error("cannot {0} {path}: {2}", path = .1.display())]
    Io(&'static str, PathBuf, io::Error),
    /// The bundle has other contents than expected.
    #[error("{} holds {} and not {}", bundle.display(), found.words(), wanted.words())]
    Contents {
        /// The directory of the opened bundle.
        bundle: PathBuf,
        /// The contents of the bundle.
        found: Contents,
        /// The expected contents.
        wanted: Contents,
    },
    /// The bundle has several nodes where one is expected.
    #[error("{} holds the nodes {nodes}", bundle.display())]
    SeveralNodes {
        /// The directory of the opened bundle.
        bundle: PathBuf,
        /// The bundle's nodes, separated by commas.
        nodes: String,
    },
    /// The bundle has no such node.
    #[error("{} holds no node '{node}'; it holds {nodes}", bundle.display())]
    NoSuchNode {
        /// The directory of the opened bundle.
        bundle: PathBuf,
        /// The requested node.
        node: String,
        /// The bundle's nodes, separated by commas.
        nodes: String,
    },
    /// A file of an unknown version.
    #[error("{} has the schema '{found}', but this program reads '{known}'; read it with the program that wrote it",
        path.display())]
    Version {
        /// The file that names it.
        path: PathBuf,
        /// The schema named in the file.
        found: String,
        /// The schema that this program reads.
        known: &'static str,
    },
    /// A table with columns or rows that contradict the schema; when writing, rows that would.
    #[error("{} is not a table of {table}: {why}", path.display())]
    Table {
        /// The segment that was read or written.
        path: PathBuf,
        /// The name of its table: `detours`, `activities`.
        table: &'static str,
        /// The column or row, and the reason.
        why: String,
    },
    /// A path, a name or a file's contents are invalid: a whole sentence.
    #[error("{0}")]
    Other(String),
}

impl BundleError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::Io(action, path, cause)
    }

    /// A file that cannot be decoded.
    pub(super) fn parquet(path: &Path, cause: &ParquetError) -> Self {
        Self::Other(format!("cannot read {} as Parquet: {}", path.display(), plain_words(cause)))
    }

    /// A node's invalid document.
    pub(super) fn document(path: &Path, why: impl Display) -> Self {
        Self::Other(format!("cannot read {} as a node's document: {why}", path.display()))
    }

    pub(super) fn not_a_bundle(path: &Path, why: &str) -> Self {
        Self::Other(format!("cannot open {} as a run bundle: {why}", path.display()))
    }

    /// The bundle already has a recording of this node.
    pub(super) fn recorded(bundle: &Path, node: &str, existing: &Path) -> Self {
        let (bundle, existing) = (bundle.display(), existing.display());
        Self::Other(format!(
            "cannot record node '{node}' into {bundle}: {existing} is there already; choose another path, or remove the old recording"
        ))
    }

    /// A segment is missing although a later one exists, or one of its two files is missing.
    pub(super) fn missing(path: &Path, witness: &Path) -> Self {
        let (path, witness) = (path.display(), witness.display());
        Self::Other(format!("{path} is missing, although {witness} is there; copy the whole bundle"))
    }

    /// Whether the disk, or the user's share of it, is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io(_, _, cause)
            if matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

impl Fault for BundleError {
    fn hint(&self) -> Option<Wording> {
        let help = match self {
            Self::Contents { found: Contents::Summary, .. } => "; record without {summary!} for this command",
            Self::Contents { found: Contents::Distribution, .. } => {
                "; it has no single events, which this needs: see what it has with becalm report"
            }
            Self::Contents { .. } => "; see it with becalm report",
            Self::SeveralNodes { .. } => "; choose one with {node}",
            _ => return None,
        };
        Some(Wording::new(help))
    }
}

/// The message of a decoder or encoder, without the names of its layers.
pub(super) fn plain_words(cause: &ParquetError) -> String {
    const LAYERS: [&str; 3] = ["External: ", "Parquet error: ", "EOF: "];
    let text = cause.to_string();
    let mut words = text.as_str();
    while let Some(inner) = LAYERS.iter().find_map(|layer| words.strip_prefix(layer)) {
        words = inner;
    }
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_wrong_without_the_layers() {
        let inner = ParquetError::General("a page is cut off".to_owned());
        let nested = ParquetError::External(Box::new(inner));
        assert_eq!(nested.to_string(), "External: Parquet error: a page is cut off");
        assert_eq!(plain_words(&nested), "a page is cut off");
    }
}
