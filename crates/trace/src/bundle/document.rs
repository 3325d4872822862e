//! The node's document as a JSON file.

use std::fs;
use std::io::Write;
use std::path::Path;

use becalm_units::{CpuId, Nanos};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::contents::Contents;
use super::draft::Draft;
use super::writer::{MadeFolders, make_bundle};
use super::{BundleError, layout};
use crate::NodeDoc;
use crate::node::CpuDoc;

/// A document that a node has in a bundle.
pub(crate) trait Document: Serialize + DeserializeOwned {
    /// What a bundle of it holds.
    const CONTENTS: Contents;

    /// The schema that it names.
    fn schema(&self) -> &str;

    /// The node that it is of.
    fn node(&self) -> &str;

    /// What the types do not say.
    ///
    /// # Errors
    /// Says what is wrong.
    fn check(&self) -> Result<(), String>;
}

/// Writes a document as the draft of a file, and returns its size in bytes.
pub(super) fn write<D: Document>(path: &Path, doc: &D) -> Result<(Draft, u64), BundleError> {
    check(path, doc.node(), doc)?;
    let mut text = serde_json::to_vec_pretty(doc)
        .map_err(|cause| BundleError::Document { path: path.to_owned(), why: cause.to_string() })?;
    text.push(b'\n');
    let draft = Draft::new(path.to_owned())?;
    draft.file().write_all(&text).map_err(BundleError::io("write", path))?;
    let size = draft.sync()?;
    Ok((draft, size))
}

/// Makes a bundle, or joins the one of other nodes, with this document. The folders that were made for it are removed
/// again unless they are kept.
pub(crate) fn create<D: Document>(bundle: &Path, doc: &D) -> Result<MadeFolders, BundleError> {
    layout::check_node_name(doc.node())?;
    let mut made = MadeFolders::default();
    make_bundle(bundle, D::CONTENTS, &mut made)?;
    let target = layout::document(bundle, doc.node());
    let (draft, _) = write(&target, doc)?;
    if draft.publish_new()? {
        return Ok(made);
    }
    // Whoever was faster needs the folders, whoever made them.
    made.keep();
    Err(BundleError::Recorded { bundle: bundle.to_owned(), node: doc.node().to_owned(), existing: target })
}

/// Replaces the document of a node.
pub(crate) fn replace<D: Document>(bundle: &Path, node: &str, doc: &D) -> Result<(), BundleError> {
    let target = layout::document(bundle, node);
    check(&target, node, doc)?;
    write(&target, doc)?.0.publish()
}

/// The one field that every version has, and that says how to read the others.
#[derive(Deserialize)]
struct Version {
    schema: String,
}

fn malformed(path: &Path) -> impl Fn(serde_json::Error) -> BundleError + '_ {
    |cause| BundleError::Document { path: path.to_owned(), why: cause.to_string() }
}

/// Reads the document of `node`.
pub(crate) fn read<D: Document>(path: &Path, node: &str) -> Result<D, BundleError> {
    let text = fs::read(path).map_err(BundleError::io("read", path))?;
    let version: Version = serde_json::from_slice(&text).map_err(malformed(path))?;
    check_version(path, version.schema, D::CONTENTS)?;
    let doc = serde_json::from_slice(&text).map_err(malformed(path))?;
    check(path, node, &doc)?;
    Ok(doc)
}

/// What the document says that its bundle holds.
pub(super) fn contents(path: &Path) -> Result<Contents, BundleError> {
    let text = fs::read(path).map_err(BundleError::io("read", path))?;
    let version: Version = serde_json::from_slice(&text).map_err(malformed(path))?;
    match Contents::of_schema(&version.schema) {
        Some(contents) => Ok(contents),
        // What is not known at all is most likely a later recording.
        None => Err(BundleError::Version {
            path: path.to_owned(),
            found: version.schema,
            known: Contents::Recording.schema(),
        }),
    }
}

fn check_version(path: &Path, found: String, wanted: Contents) -> Result<(), BundleError> {
    match Contents::of_schema(&found) {
        Some(contents) if contents == wanted => Ok(()),
        Some(contents) => {
            Err(BundleError::Contents { bundle: layout::bundle_of(path).to_owned(), found: contents, wanted })
        }
        None => Err(BundleError::Version { path: path.to_owned(), found, known: wanted.schema() }),
    }
}

/// The version and the name, and what the document itself checks.
fn check<D: Document>(path: &Path, node: &str, doc: &D) -> Result<(), BundleError> {
    check_version(path, doc.schema().to_owned(), D::CONTENTS)?;
    let wrong = |why| Err(BundleError::Document { path: path.to_owned(), why });
    if doc.node() != node {
        return wrong(format!("it is of node '{}'", doc.node()));
    }
    if let Err(error) = layout::check_node_name(node) {
        return wrong(error.to_string());
    }
    doc.check().or_else(wrong)
}

impl Document for NodeDoc {
    const CONTENTS: Contents = Contents::Recording;

    fn schema(&self) -> &str {
        &self.schema
    }

    fn node(&self) -> &str {
        &self.node
    }

    /// The order of the CPUs, and that no time is negative.
    fn check(&self) -> Result<(), String> {
        if let Some(pair) = self.cpus.windows(2).find(|pair| pair[0].cpu >= pair[1].cpu) {
            let [first, second] = [pair[0].cpu, pair[1].cpu];
            return Err(format!("its CPUs are not in rising order: {first} is followed by {second}"));
        }
        for cpu in &self.cpus {
            if cpu.cpu.get() >= CpuId::LIMIT {
                return Err(format!("CPU {} is above the limit of {}", cpu.cpu, CpuId::LIMIT - 1));
            }
            if let Some((field, time)) = times(cpu).into_iter().find(|(_, time)| *time < Nanos::ZERO) {
                return Err(format!("{field} of CPU {} is negative: {}", cpu.cpu, time.get()));
            }
        }
        Ok(())
    }
}

const fn times(cpu: &CpuDoc) -> [(&'static str, Nanos); 8] {
    [
        ("duration_ns", cpu.duration_ns),
        ("t_min_ns", cpu.t_min_ns),
        ("median_step_ns", cpu.median_step_ns),
        ("threshold_ns", cpu.threshold_ns),
        ("below_threshold_ns", cpu.below_threshold_ns),
        ("max_ns", cpu.max_ns),
        ("total_ns", cpu.total_ns),
        ("below_threshold_max_ns", cpu.below_threshold_max_ns),
    ]
}
