//! Finds a bundle and the nodes with a document in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{BundleError, SUFFIX, layout};

/// Finds a bundle and the documents of its nodes, sorted by node; at least one.
pub(super) fn open(path: &Path) -> Result<(PathBuf, BTreeMap<String, PathBuf>), BundleError> {
    let path = find(path)?;
    let documents = documents(&path)?;
    if documents.is_empty() {
        let why = "it holds no node's document, as if a run died at its start";
        return Err(BundleError::not_a_bundle(&path, why));
    }
    Ok((path, documents))
}

/// Nodes whose document cannot be read, with the error.
pub type LeftOut = Vec<(String, BundleError)>;

/// Reads the documents of nodes. Skips unreadable ones if at least one can be read.
pub(super) fn readable<D>(
    documents: BTreeMap<String, PathBuf>,
    read_node: impl Fn(&str, &Path) -> Result<D, BundleError>,
) -> Result<(Vec<D>, LeftOut), BundleError> {
    let (mut read, mut left_out) = (Vec::new(), Vec::new());
    for (node, path) in documents {
        match read_node(&node, &path) {
            Ok(doc) => read.push(doc),
            Err(error) => left_out.push((node, error)),
        }
    }
    if read.is_empty() && !left_out.is_empty() {
        return Err(left_out.swap_remove(0).1);
    }
    Ok((read, left_out))
}

/// The documents in a bundle's directory, by node.
pub(super) fn documents(bundle: &Path) -> Result<BTreeMap<String, PathBuf>, BundleError> {
    let runs = bundle.join(layout::RUNS);
    let mut documents = BTreeMap::new();
    for entry in fs::read_dir(&runs).map_err(BundleError::io("read the directory", &runs))? {
        let name = entry.map_err(BundleError::io("read the directory", &runs))?.file_name();
        if let Some(node) = name.to_str().and_then(layout::node_of_document) {
            documents.insert(node.to_owned(), runs.join(&name));
        }
    }
    Ok(documents)
}

pub(crate) struct BundleNode {
    pub bundle: PathBuf,
    pub name: String,
    /// The path of its document.
    pub document: PathBuf,
}

/// Finds the requested node, or the only one.
pub(crate) fn open_node(path: &Path, node: Option<&str>) -> Result<BundleNode, BundleError> {
    let (path, mut documents) = open(path)?;
    let nodes = documents.keys().cloned().collect::<Vec<_>>().join(", ");
    let meant = match node {
        Some(node) => documents.remove_entry(node).ok_or(node),
        None if documents.len() == 1 => documents.pop_first().ok_or(""),
        None => return Err(BundleError::SeveralNodes { bundle: path, nodes }),
    };
    match meant {
        Ok((name, document)) => Ok(BundleNode { bundle: path, name, document }),
        Err(node) => Err(BundleError::NoSuchNode { bundle: path, node: node.to_owned(), nodes }),
    }
}

/// The bundle's directory, with or without the suffix.
fn find(path: &Path) -> Result<PathBuf, BundleError> {
    let mut suffixed = path.as_os_str().to_owned();
    suffixed.push(SUFFIX);
    for candidate in [path.to_owned(), PathBuf::from(suffixed)] {
        if candidate.join(layout::RUNS).is_dir() {
            return Ok(candidate);
        }
    }
    let why = match fs::metadata(path) {
        Ok(found) if found.is_dir() => "it is a directory without the subdirectory 'runs' of a bundle",
        Ok(_) => "it is a file, and a bundle is a directory",
        Err(cause) => return Err(BundleError::io("open", path)(cause)),
    };
    Err(BundleError::not_a_bundle(path, why))
}
