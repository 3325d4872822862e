//! Bundles of one document per node and no tables.

use std::path::Path;

use super::{BundleError, Stored, document, nodes, place};

/// Opens the bundle at `path`, or at `path` with [`SUFFIX`](crate::SUFFIX), and reads the documents of all nodes, or of `node`. Fails if there is no
/// bundle, it has other contents or no such node, or if a document is damaged or of another version.
pub fn load_documents<D: Stored>(path: &Path, node: Option<&str>) -> Result<Vec<D>, BundleError> {
    if node.is_some() {
        let node = nodes::open_node(path, node)?;
        return Ok(vec![document::read(&node.document, &node.name)?]);
    }
    let (_, documents) = nodes::open(path)?;
    documents.iter().map(|(node, path)| document::read(path, node)).collect()
}

/// Writes a node's document: creates the bundle, or joins that of other nodes. Fails if the place is taken, its parent is missing, the document is
/// invalid, or the system refuses. The place is then unchanged.
pub fn store_document(path: &Path, doc: &impl Stored) -> Result<(), BundleError> {
    place::create(path, doc)?.keep();
    Ok(())
}
