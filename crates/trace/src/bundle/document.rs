//! The node's document as a JSON file.

use std::fs;
use std::io::Write;
use std::path::Path;

use becalm_units::{CpuId, Nanos};
use serde::Deserialize;

use super::draft::Draft;
use super::{BundleError, layout};
use crate::NodeDoc;
use crate::node::{CpuDoc, SCHEMA};

/// Writes a document as the draft of a file, and returns its size in bytes.
pub(super) fn write(path: &Path, doc: &NodeDoc) -> Result<(Draft, u64), BundleError> {
    check(path, &doc.node, doc)?;
    let mut text = serde_json::to_vec_pretty(doc)
        .map_err(|cause| BundleError::Document { path: path.to_owned(), why: cause.to_string() })?;
    text.push(b'\n');
    let draft = Draft::new(path.to_owned())?;
    draft.file().write_all(&text).map_err(BundleError::io("write", path))?;
    let size = draft.sync()?;
    Ok((draft, size))
}

/// The one field that every version has, and that says how to read the others.
#[derive(Deserialize)]
struct Version {
    schema: String,
}

/// Reads the document of `node`.
pub(super) fn read(path: &Path, node: &str) -> Result<NodeDoc, BundleError> {
    let text = fs::read(path).map_err(BundleError::io("read", path))?;
    let malformed = |cause: serde_json::Error| BundleError::Document { path: path.to_owned(), why: cause.to_string() };
    let version: Version = serde_json::from_slice(&text).map_err(malformed)?;
    check_version(path, version.schema)?;
    let doc = serde_json::from_slice(&text).map_err(malformed)?;
    check(path, node, &doc)?;
    Ok(doc)
}

fn check_version(path: &Path, found: String) -> Result<(), BundleError> {
    if found == SCHEMA { Ok(()) } else { Err(BundleError::Version { path: path.to_owned(), found, known: SCHEMA }) }
}

/// What the types do not say: the version, the name, the order of the CPUs, and that no time is negative.
fn check(path: &Path, node: &str, doc: &NodeDoc) -> Result<(), BundleError> {
    check_version(path, doc.schema.clone())?;
    let wrong = |why| Err(BundleError::Document { path: path.to_owned(), why });
    if doc.node != node {
        return wrong(format!("it is of node '{}'", doc.node));
    }
    if let Err(error) = layout::check_node_name(node) {
        return wrong(error.to_string());
    }
    if let Some(pair) = doc.cpus.windows(2).find(|pair| pair[0].cpu >= pair[1].cpu) {
        return wrong(format!("its CPUs are not in rising order: {} is followed by {}", pair[0].cpu, pair[1].cpu));
    }
    for cpu in &doc.cpus {
        if cpu.cpu.get() >= CpuId::LIMIT {
            return wrong(format!("CPU {} is above the limit of {}", cpu.cpu, CpuId::LIMIT - 1));
        }
        if let Some((field, time)) = times(cpu).into_iter().find(|(_, time)| *time < Nanos::ZERO) {
            return wrong(format!("{field} of CPU {} is negative: {}", cpu.cpu, time.get()));
        }
    }
    Ok(())
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
