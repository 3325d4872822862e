//! The bundle that a recording is written into, and its document while the recording is not complete.

use std::path::Path;

use becalm_attribute::Tally;
use becalm_bundle::{BundleError, BundleWriter};
use becalm_model::node::{CpuDoc, Ended, NodeDoc, Warning};

/// A segment with more rows than this ends before its time, so that a noisy machine does not fill the memory: 56 bytes
/// each.
pub const SEGMENT_ROWS: usize = 4 << 20;

/// How many rows of a CPU stand in one piece of memory: an allocation of less than half a megabyte.
pub const PART_ROWS: usize = 1 << 13;

/// A bundle in the making.
pub struct BundleOutput {
    /// Writes the segments and the document.
    pub writer: BundleWriter,
    started: NodeDoc,
}

impl BundleOutput {
    /// Creates the bundle at `path`, with the node's document as it is at the start.
    pub fn create(path: &Path, node: &NodeDoc) -> Result<Self, BundleError> {
        Ok(Self { writer: BundleWriter::create(path, node)?, started: node.clone() })
    }

    /// Goes on with a bundle of this node, whose document becomes `node`.
    pub fn resume(path: &Path, node: NodeDoc) -> Result<Self, BundleError> {
        Ok(Self { writer: BundleWriter::resume(path, &node)?, started: node })
    }

    /// Says in the document what the CPUs came to so far, in its order, so that a killed recording tells for how long it
    /// watched. CPUs of which nothing is known yet are `None`.
    pub fn note(&mut self, so_far: impl Iterator<Item = Option<CpuDoc>>) -> Result<(), BundleError> {
        for (doc, so_far) in self.started.cpus.iter_mut().zip(so_far) {
            if let Some(so_far) = so_far {
                *doc = so_far;
            }
        }
        self.writer.note_doc(&self.started)
    }

    /// The document of a CPU as it was written last.
    pub fn cpu(&self, index: usize) -> Option<&CpuDoc> {
        self.started.cpus.get(index)
    }

    /// Says in the document that the recording failed, and why.
    pub fn fail(&mut self, why: Warning) {
        self.started.ended = Some(Ended::Failed);
        self.started.warnings.push(why);
        // Should even this fail, the document of the start says that the recording did not end.
        let _ = self.writer.write_doc(&self.started);
    }
}

/// Switches, entries and exits that the trace of a CPU lacks.
pub fn enter_unmatched(doc: &mut CpuDoc, tally: &Tally) {
    doc.unmatched_events = tally.unmatched_switches + tally.unmatched_entries + tally.unmatched_exits;
    doc.missing_switch_ns = tally.missing_switch;
    doc.preempted_by_host = tally.preempted_by_host;
}
