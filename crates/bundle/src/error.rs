//! What can go wrong with a bundle: what was attempted, on which path, why.

use std::io;
use std::path::PathBuf;

use becalm_units::fault::{Fault, Wording};
use parquet::errors::ParquetError;

use super::Contents;

/// A bundle, or a file in it, that could not be written or read.
///
/// The messages are whole: they hold the cause, which is therefore not repeated as the error's source.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The operating system refused.
    #[error("cannot {action} {}: {cause}", path.display())]
    Io {
        /// What was attempted: `create the folder`, `write`, `read`.
        action: &'static str,
        /// The file or folder of which it was attempted.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The folder in which the bundle should be made is missing.
    #[error("cannot create {}: the folder {} does not exist; create it first, or choose another place",
        path.display(), parent.display())]
    NoParent {
        /// The bundle that was asked for.
        path: PathBuf,
        /// The folder that is missing.
        parent: PathBuf,
    },
    /// The place for a new bundle is taken by something else.
    #[error("cannot record into {}: {what}; choose another path, or remove it", path.display())]
    Occupied {
        /// Where the bundle was to go.
        path: PathBuf,
        /// What stands there already.
        what: &'static str,
    },
    /// The bundle holds a recording of this node already.
    #[error("cannot record node '{node}' into {}: {} is there already; choose another path, or remove the old recording",
        bundle.display(), existing.display())]
    Recorded {
        /// The folder of the bundle that was to be recorded into.
        bundle: PathBuf,
        /// The node whose part is there already.
        node: String,
        /// What was found of it.
        existing: PathBuf,
    },
    /// The bundle holds something else than what was looked for.
    #[error("{} holds {} and not {}", bundle.display(), found.words(), wanted.words())]
    Contents {
        /// The folder of the bundle that was opened.
        bundle: PathBuf,
        /// What the bundle holds.
        found: Contents,
        /// What was looked for.
        wanted: Contents,
    },
    /// The bundle holds several nodes where one is meant.
    #[error("{} holds the nodes {nodes}", bundle.display())]
    SeveralNodes {
        /// The folder of the bundle that was opened.
        bundle: PathBuf,
        /// The nodes that it holds, separated by commas.
        nodes: String,
    },
    /// A name that cannot become a part of file names.
    #[error("'{name}' cannot be the name of a node: {why}")]
    NodeName {
        /// The name that was refused.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no bundle at the path.
    #[error("cannot open {} as a run bundle: {why}", path.display())]
    NotABundle {
        /// The path as it was given.
        path: PathBuf,
        /// What is there instead.
        why: &'static str,
    },
    /// The bundle holds no such node.
    #[error("{} holds no node '{node}'; it holds {nodes}", bundle.display())]
    NoSuchNode {
        /// The folder of the bundle that was opened.
        bundle: PathBuf,
        /// The node that was asked for.
        node: String,
        /// The nodes that it holds, separated by commas.
        nodes: String,
    },
    /// A file of a version that this program does not know.
    #[error("{} has the schema '{found}', but this program reads '{known}'; read it with the program that wrote it",
        path.display())]
    Version {
        /// The file that names it.
        path: PathBuf,
        /// The schema that the file names.
        found: String,
        /// The schema that this program reads.
        known: &'static str,
    },
    /// A node's document that is not what it should be.
    #[error("cannot read {} as a node's document: {why}", path.display())]
    Document {
        /// The file that was read, `runs/node=HOST.json` in the bundle.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file that is damaged, or not Parquet at all.
    #[error("cannot read {} as Parquet: {why}", path.display())]
    Parquet {
        /// The segment of a table that was read.
        path: PathBuf,
        /// What the decoder said.
        why: String,
    },
    /// A Parquet file that could not be written for a reason other than the operating system's.
    #[error("cannot write {}: {why}", path.display())]
    Encoding {
        /// The file that was to be written.
        path: PathBuf,
        /// What the encoder said.
        why: String,
    },
    /// A table whose columns or rows contradict the schema; when writing, rows that would.
    #[error("{} is not a table of {table}: {why}", path.display())]
    Table {
        /// The segment of a table that was read or was to be written.
        path: PathBuf,
        /// What it should hold: `detours`, `activities`.
        table: &'static str,
        /// The column or row, and what is wrong with it.
        why: String,
    },
    /// A segment is missing although a later one is there, or one of its two files is.
    #[error("{} is missing, although {} is there; copy the whole bundle", path.display(), witness.display())]
    Missing {
        /// The file that should be there.
        path: PathBuf,
        /// The file that says so.
        witness: PathBuf,
    },
    /// The tables of a node hold other rows than were stored by its document.
    #[error("{} holds {found} {table} of node '{node}', but {stored} were recorded; copy the whole recording", folder.display())]
    Incomplete {
        /// The folder of the table that was counted.
        folder: PathBuf,
        /// What its rows are: `detours`, `samples`, `activities`.
        table: &'static str,
        /// The node whose rows they are.
        node: String,
        /// How many are there.
        found: u64,
        /// How many there were by the document.
        stored: u64,
    },
}

impl BundleError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::Io { action, path, cause }
    }

    /// A file that cannot be decoded.
    pub(super) fn parquet(path: impl Into<PathBuf>, cause: &ParquetError) -> Self {
        Self::Parquet { path: path.into(), why: plain_words(cause) }
    }

    /// Whether the disk, or the user's share of it, is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { cause, .. }
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

/// What a decoder or encoder says, without the names of the layers through which it went.
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
