//! Documents of nodes that need no tables, one a node. Each is replaced in one step, so that a killed program leaves the last one whole.

use std::path::{Path, PathBuf};

use crate::document::Stored;
use crate::{BundleError, document, nodes, place};

/// A node's document, and the bundle that holds it.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeDocument<D> {
    /// The bundle's folder, with its ending.
    pub bundle: PathBuf,
    /// The document.
    pub doc: D,
}

/// Makes a bundle, or joins the one of other nodes, and stores the document in it. Fails if the place is taken, its
/// parent is missing, the document is not valid, and if the system refuses. The place is then left as it was.
pub fn create<D: Stored>(bundle: &Path, doc: &D) -> Result<(), BundleError> {
    place::create(bundle, doc)?.keep();
    Ok(())
}

/// Stores the document in the bundle that [`create`] made, in place of what was stored before. Fails if the document is
/// not valid, and if the system refuses. The stored document is then unchanged.
pub fn replace<D: Stored>(bundle: &Path, doc: &D) -> Result<(), BundleError> {
    document::replace(bundle, doc.node(), doc)
}

/// Reads the document of a node, or that of the only one, from the bundle at `path`, or at `path` with
/// [`SUFFIX`](crate::SUFFIX). Fails if there is no bundle, it holds something else, no such node or several, and if the
/// document is damaged or of another version.
pub fn load<D: Stored>(path: &Path, node: Option<&str>) -> Result<NodeDocument<D>, BundleError> {
    let node = nodes::open_node(path, node)?;
    let doc = document::read(&node.document, &node.name)?;
    Ok(NodeDocument { bundle: node.bundle, doc })
}
