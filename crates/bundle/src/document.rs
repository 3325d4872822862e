//! The nodes' documents as JSON files.

use std::io::{Read, Write};
use std::path::Path;

use becalm_linux::file::{open_regular, read_regular};
use becalm_model::digest::DigestDoc;
use becalm_model::phases::PhasesDoc;
use becalm_model::{Document, NodeDoc};
use serde::Deserialize;

use super::contents::Contents;
use super::draft::Draft;
use super::held::HeldFolder;
use super::{BundleError, layout, nodes};

/// The largest document, in bytes: that of a campaign of millions of cells, and already much for memory.
pub(crate) const LARGEST: u64 = 256 << 20;

/// A document that starts with its schema has it within this many bytes.
const BEGIN: u64 = 256;

/// A document stored in bundles.
pub trait Stored: Document {
    /// The contents of its bundles.
    const CONTENTS: Contents;
    /// Whether to write it without line breaks, because it is mostly numbers.
    const DENSE: bool = false;
}

impl Stored for NodeDoc {
    const CONTENTS: Contents = Contents::Recording;
}

impl Stored for DigestDoc {
    const CONTENTS: Contents = Contents::Summary;
    const DENSE: bool = true;
}

impl Stored for PhasesDoc {
    const CONTENTS: Contents = Contents::Phases;
}

/// Writes a document as a draft of a file of the bundle, and returns its size in bytes.
pub(super) fn write<D: Stored>(bundle: &HeldFolder, path: &Path, doc: &D) -> Result<(Draft, u64), BundleError> {
    check(path, doc.node(), doc)?;
    let text = if D::DENSE { serde_json::to_vec(doc) } else { serde_json::to_vec_pretty(doc) };
    let mut text = text.map_err(|cause| BundleError::document(path, cause))?;
    text.push(b'\n');
    let draft = Draft::for_held(bundle, path.to_owned())?;
    draft.file().write_all(&text).map_err(BundleError::io("write", path))?;
    let size = draft.sync()?;
    Ok((draft, size))
}

pub(crate) fn replace<D: Stored>(bundle: &Path, node: &str, doc: &D) -> Result<(), BundleError> {
    let target = layout::document(bundle, node);
    check(&target, node, doc)?;
    let held = HeldFolder::open(bundle).map_err(BundleError::io("create", &target))?;
    write(&held, &target, doc)?.0.publish()
}

/// The only field in every version; it determines how to read the others.
#[derive(Deserialize)]
struct Version {
    schema: String,
}

/// The version of a document. If it comes first and unescaped, as becalm writes it, the rest need not be parsed.
fn version(path: &Path, text: &[u8]) -> Result<Version, BundleError> {
    match first_schema(text) {
        Some(schema) => Ok(Version { schema: schema.to_owned() }),
        None => serde_json::from_slice(text).map_err(malformed(path)),
    }
}

/// The version of a document that starts with it, unescaped.
fn first_schema(text: &[u8]) -> Option<&str> {
    const FIRST: &[u8] = br#"{"schema":""#;
    let rest = text.strip_prefix(FIRST)?;
    let named = rest.get(..rest.iter().position(|byte| *byte == b'"')?)?;
    std::str::from_utf8(named).ok().filter(|named| !named.contains('\\'))
}

/// Whether a document starts like those of kind `D`. Documents of summaries start with their schema, and are long.
pub(super) fn begins_as<D: Stored>(path: &Path) -> Result<bool, BundleError> {
    let file = open_regular(path).map_err(BundleError::io("read", path))?;
    let mut text = Vec::new();
    file.take(BEGIN).read_to_end(&mut text).map_err(BundleError::io("read", path))?;
    Ok(first_schema(&text).is_some_and(|schema| schema == D::SCHEMA))
}

/// The bytes of a document.
pub(super) fn read_text(path: &Path) -> Result<Vec<u8>, BundleError> {
    read_regular(path, LARGEST).map_err(BundleError::io("read", path))
}

fn malformed(path: &Path) -> impl Fn(serde_json::Error) -> BundleError + '_ {
    |cause| BundleError::document(path, cause)
}

/// Reads the document of `node`.
pub(crate) fn read<D: Stored>(path: &Path, node: &str) -> Result<D, BundleError> {
    parse(path, node, &read_text(path)?)
}

/// Reads the document of `node` from its bytes.
pub(super) fn parse<D: Stored>(path: &Path, node: &str, text: &[u8]) -> Result<D, BundleError> {
    check_version(path, version(path, text)?.schema, D::CONTENTS)?;
    let doc = serde_json::from_slice(text).map_err(malformed(path))?;
    check(path, node, &doc)?;
    Ok(doc)
}

impl Contents {
    /// Determines the contents of the bundle at `path`, or at `path` with [`SUFFIX`](super::SUFFIX), from its first readable document. Fails if there
    /// is no bundle, if it has no node, or if all documents are damaged or of another version.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let (_, documents) = nodes::open(path)?;
        let mut failure = None;
        for document in documents.values() {
            match contents(document) {
                Ok(contents) => return Ok(contents),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.expect("an open bundle has a document"))
    }
}

/// The contents of the bundle according to a document.
pub(super) fn contents(path: &Path) -> Result<Contents, BundleError> {
    contents_of(path, &read_text(path)?)
}

/// The same, from the bytes of a document.
pub(super) fn contents_of(path: &Path, text: &[u8]) -> Result<Contents, BundleError> {
    let version = version(path, text)?;
    match Contents::from_schema(&version.schema) {
        Some(contents) => Ok(contents),
        // An unknown schema is most likely a newer recording.
        None => Err(BundleError::Version {
            path: path.to_owned(),
            found: version.schema,
            known: Contents::Recording.schema(),
        }),
    }
}

fn check_version(path: &Path, found: String, wanted: Contents) -> Result<(), BundleError> {
    match Contents::from_schema(&found) {
        Some(contents) if contents == wanted => Ok(()),
        Some(contents) => {
            Err(BundleError::Contents { bundle: layout::bundle_of(path).to_owned(), found: contents, wanted })
        }
        None => Err(BundleError::Version { path: path.to_owned(), found, known: wanted.schema() }),
    }
}

/// Checks the version, the name and the document's own rules.
fn check<D: Stored>(path: &Path, node: &str, doc: &D) -> Result<(), BundleError> {
    check_version(path, doc.schema().to_owned(), D::CONTENTS)?;
    let wrong = |why: String| Err(BundleError::document(path, why));
    if doc.node() != node {
        return wrong(format!("it is of node '{}'", doc.node()));
    }
    if let Err(error) = layout::check_node_name(node) {
        return wrong(error.to_string());
    }
    doc.check().or_else(wrong)
}
