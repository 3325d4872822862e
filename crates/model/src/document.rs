//! Common parts of all documents of a node in a bundle.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A node's document: it names its schema and its node, and can check constraints beyond its types.
pub trait Document: Serialize + DeserializeOwned {
    /// The schema version that this program writes and reads.
    const SCHEMA: &'static str;

    /// The schema named in this document.
    fn schema(&self) -> &str;

    /// The node that this document describes.
    fn node(&self) -> &str;

    /// Checks constraints beyond the types.
    fn check(&self) -> Result<(), String>;
}
