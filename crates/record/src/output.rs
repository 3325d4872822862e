//! The bundle of a recording, and its document while the recording is incomplete.

use std::path::Path;

use becalm_attribute::Tally;
use becalm_bundle::{BundleError, BundleWriter};
use becalm_model::node::{CpuDoc, Ended, NodeDoc, Warning};

/// A segment with more rows than this ends early, so a noisy machine does not exhaust memory: 56 bytes per row.
pub const SEGMENT_ROWS: usize = 4 << 20;

/// The number of rows of a CPU per allocation, which is less than half a megabyte.
pub const PART_ROWS: usize = 1 << 13;

/// A bundle being written.
pub struct BundleOutput {
    /// Writes the segments and the document.
    pub writer: BundleWriter,
    started: NodeDoc,
}

impl BundleOutput {
    /// Creates the bundle at `path`, with the node's document at the start.
    pub fn create(path: &Path, node: &NodeDoc) -> Result<Self, BundleError> {
        Ok(Self { writer: BundleWriter::create(path, node)?, started: node.clone() })
    }

    /// Continues a bundle of this node, and replaces its document with `node`.
    pub fn resume(path: &Path, node: NodeDoc) -> Result<Self, BundleError> {
        Ok(Self { writer: BundleWriter::resume(path, &node)?, started: node })
    }

    /// Stores the documents of the CPUs so far, in order, so a killed recording shows how long it observed. `None` for CPUs without data.
    pub fn note(&mut self, so_far: impl Iterator<Item = Option<CpuDoc>>) -> Result<(), BundleError> {
        for (doc, so_far) in self.started.cpus.iter_mut().zip(so_far) {
            if let Some(so_far) = so_far {
                *doc = so_far;
            }
        }
        self.writer.note_doc(&self.started)
    }

    /// The last stored document of a CPU.
    pub fn cpu(&self, index: usize) -> Option<&CpuDoc> {
        self.started.cpus.get(index)
    }

    /// Stores in the document that the recording failed, with the reason.
    pub fn fail(&mut self, why: Warning) {
        self.started.ended = Some(Ended::Failed);
        self.started.warnings.push(why);
        // If even this fails, the document of the start shows that the recording did not end.
        let _ = self.writer.write_doc(&self.started);
    }
}

/// Stores the switches, entries and exits that the trace of a CPU lacks.
pub fn enter_unmatched(doc: &mut CpuDoc, tally: &Tally) {
    doc.unmatched_events = tally.unmatched_switches + tally.unmatched_entries + tally.unmatched_exits;
    doc.missing_switch_ns = tally.missing_switch;
    doc.preempted_by_host = tally.preempted_by_host;
}
