//! Problems that a summary finds in a run, as warnings: what, with numbers, and what to do.

use becalm_model::node::{CpuDoc, NodeDoc, Warning};
use becalm_model::warning;
use becalm_units::{CpuId, CpuList, Nanos};

use super::{Books, NodeSummary};
use becalm_stats::Moments;

/// The warnings so far, each with its node.
#[derive(Default)]
pub(super) struct ClosingWarnings(Vec<(String, Warning)>);

impl ClosingWarnings {
    fn add(&mut self, node: &str, warning: Warning) {
        self.0.push((node.to_owned(), warning));
    }

    /// Adds the warnings from the node's document alone.
    pub(super) fn add_document(&mut self, doc: &NodeDoc) {
        if doc.ended.is_none() {
            self.add(&doc.node, warning::not_ended());
        }
        // The recorder itself warns of these, unless it was killed before.
        let said = |code: &str| doc.warnings.iter().any(|warning| warning.code == code);
        let lost: u64 = doc.cpus.iter().map(|cpu| cpu.lost_events).fold(0, u64::saturating_add);
        if lost > 0 && !said("lost_events") {
            self.add(&doc.node, warning::lost_events_untold(lost));
        }
        let cut: Vec<CpuId> = doc.cpus.iter().filter(|cpu| cpu.cut_short).map(|cpu| cpu.cpu).collect();
        if !cut.is_empty() && !said("cut_short") {
            self.add(&doc.node, warning::cut_short_untold(&cut));
        }
    }

    /// Adds the warnings from comparing the rows of a CPU with its document.
    pub(super) fn compare_rows(&mut self, doc: &NodeDoc, cpu: &CpuDoc, durations: &Moments) {
        // A failed run may have counted detours that it could no longer store.
        if !doc.is_complete() {
            return;
        }
        let (rows, total) = (durations.count(), Nanos::new(durations.total()));
        if rows != cpu.detours || total != cpu.total_ns {
            self.add(&doc.node, warning::rows_differ(cpu, rows, total));
        }
    }

    /// CPUs with detours that the document does not list; `whole` if all CPUs were selected.
    pub(super) fn add_unlisted(&mut self, doc: &NodeDoc, unexpected: impl Iterator<Item = CpuId>, whole: bool) {
        let cpus: CpuList = unexpected.collect();
        if whole && !cpus.is_empty() {
            self.add(&doc.node, warning::rows_unlisted(&cpus));
        }
    }

    /// Detours whose activities do not add up, before everything else.
    pub(super) fn add_books(&mut self, books: &Books) {
        let Books::Open(open) = books else { return };
        for (at, book) in open.iter().enumerate() {
            let warning = warning::books_open(book.cpu, book.detour, book.duration_ns, book.activities_ns);
            self.0.insert(at, (book.node.clone(), warning));
        }
    }

    /// These, followed by the recorder's warnings.
    pub(super) fn with_the_recorders(mut self, nodes: &[NodeSummary]) -> Vec<(String, Warning)> {
        for node in nodes {
            self.0.extend(node.doc.warnings.iter().map(|warning| (node.doc.node.clone(), warning.clone())));
        }
        self.0
    }
}
