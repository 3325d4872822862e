//! What all documents that a node has in a bundle have in common.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A node's document: it names its schema and its node, and can check what its types do not say.
pub trait Document: Serialize + DeserializeOwned {
    /// The version of its schema that this program writes and reads.
    const SCHEMA: &'static str;

    /// The schema that this document names.
    fn schema(&self) -> &str;

    /// The node that this document tells of.
    fn node(&self) -> &str;

    /// Checks what the types do not say.
    fn check(&self) -> Result<(), String>;
}
