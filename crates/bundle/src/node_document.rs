//! Documents of nodes without tables, one per node. Each is replaced atomically, so a killed program leaves the last one complete.

use std::path::{Path, PathBuf};

use crate::document::Stored;
use crate::{BundleError, document, nodes, place};

/// A node's document, and the bundle that holds it.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeDocument<D> {
    /// The bundle's directory, including the suffix.
    pub bundle: PathBuf,
    /// The document.
    pub doc: D,
}

/// Creates a bundle, or joins that of other nodes, and stores the document in it. Fails if the place is taken, its parent is missing, the document is
/// invalid, or the system refuses. The place is then unchanged.
pub fn create<D: Stored>(bundle: &Path, doc: &D) -> Result<(), BundleError> {
    place::create(bundle, doc)?.keep();
    Ok(())
}

/// Replaces the document in the bundle that [`create`] made. Fails if the document is invalid, or the system refuses. The stored document is then
/// unchanged.
pub fn replace<D: Stored>(bundle: &Path, doc: &D) -> Result<(), BundleError> {
    document::replace(bundle, doc.node(), doc)
}

/// Reads the document of a node, or of the only one, from the bundle at `path`, or at `path` with [`SUFFIX`](crate::SUFFIX). Fails if there is no
/// bundle, it has other contents, no such node or several, or if the document is damaged or of another version.
pub fn load<D: Stored>(path: &Path, node: Option<&str>) -> Result<NodeDocument<D>, BundleError> {
    let node = nodes::open_node(path, node)?;
    let doc = document::read(&node.document, &node.name)?;
    Ok(NodeDocument { bundle: node.bundle, doc })
}
