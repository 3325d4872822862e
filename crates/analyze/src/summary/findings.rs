//! What a summary finds wrong with a run, as warnings: what, with its figures, and what to do.

use becalm_model::node::{CpuDoc, Ended, NodeDoc, Warning};
use becalm_units::{CpuId, CpuList, Nanos};

use super::{Books, NodeSummary};
use becalm_stats::Moments;

/// The warnings so far, each with its node.
#[derive(Default)]
pub(super) struct Findings(Vec<(String, Warning)>);

impl Findings {
    fn add(&mut self, node: &str, code: &str, message: String, advice: &str) {
        let warning = Warning { code: code.to_owned(), message, advice: advice.to_owned() };
        self.0.push((node.to_owned(), warning));
    }

    /// What the node's document alone tells.
    pub(super) fn of_document(&mut self, doc: &NodeDoc) {
        if doc.ended.is_none() {
            let message = "the recording did not end: it still runs, or was killed; what is shown is what was stored, and \
                the observed time is taken to end with the last stored detour";
            self.add(&doc.node, "not_ended", message.to_owned(), "record again for exact noise ratios");
        }
        // The recorder warns of these itself, unless it was killed before.
        let said = |code: &str| doc.warnings.iter().any(|warning| warning.code == code);
        let lost: u64 = doc.cpus.iter().map(|cpu| cpu.lost_events).sum();
        if lost > 0 && !said("lost_events") {
            let message =
                format!("the kernel lost {lost} trace events; the detours they touch are counted as incomplete");
            self.add(&doc.node, "lost_events", message, "record fewer CPUs at once, or leave one CPU unmeasured");
        }
        let cut: Vec<String> = doc.cpus.iter().filter(|cpu| cpu.cut_short).map(|cpu| cpu.cpu.to_string()).collect();
        if !cut.is_empty() && !said("cut_short") {
            let message = format!("the loop on CPU {} ended before the others", cut.join(", "));
            self.add(
                &doc.node,
                "cut_short",
                message,
                "raise --threshold if its buffer was full; see whether it went offline",
            );
        }
    }

    /// What the rows of a CPU tell beside its document.
    pub(super) fn of_rows(&mut self, doc: &NodeDoc, cpu: &CpuDoc, durations: &Moments) {
        // A run that failed may have counted detours that it could not store any more.
        if matches!(doc.ended, None | Some(Ended::Failed)) {
            return;
        }
        let (rows, total) = (durations.count(), Nanos::new(durations.total()));
        if rows != cpu.detours || total != cpu.total_ns {
            let message = format!(
                "the tables hold {rows} detours of CPU {}, {total} in all, but its loop counted {}, {} in all",
                cpu.cpu, cpu.detours, cpu.total_ns
            );
            let advice = "copy the whole bundle; if it is whole, this is a fault of the program that wrote it";
            self.add(&doc.node, "rows_differ", message, advice);
        }
    }

    /// CPUs with detours that the document does not list; `whole` if not only some CPUs were selected.
    pub(super) fn of_unlisted(&mut self, doc: &NodeDoc, unexpected: impl Iterator<Item = CpuId>, whole: bool) {
        let cpus: CpuList = unexpected.collect();
        if whole && !cpus.is_empty() {
            let message = format!("the tables hold detours of CPU {cpus}, which the run's document does not list");
            let advice = "they are left out here; this is a fault of the program that wrote the bundle";
            self.add(&doc.node, "rows_unlisted", message, advice);
        }
    }

    /// Detours whose activities do not add up, before everything else.
    pub(super) fn of_books(&mut self, books: &Books) {
        let Books::Open(open) = books else { return };
        for (at, book) in open.iter().enumerate() {
            // In whole nanoseconds, since that is what they differ by.
            let sum = format!("{} ns", book.activities_ns);
            let (cpu, detour) = (book.cpu, book.detour);
            let message = match book.duration_ns {
                Some(ns) => format!(
                    "the books do not close: detour {detour} of CPU {cpu} lasts {ns} ns, but its activities add up to {sum}"
                ),
                None => format!(
                    "the books do not close: activities of {sum} name detour {detour} of CPU {cpu}, which is not there"
                ),
            };
            let advice =
                "do not believe the sources; this is a fault of the program that wrote the bundle, please report it";
            let warning = Warning { code: "books_open".to_owned(), message, advice: advice.to_owned() };
            self.0.insert(at, (book.node.clone(), warning));
        }
    }

    /// These, and then what the recorder warned of.
    pub(super) fn with_the_recorders(mut self, nodes: &[NodeSummary]) -> Vec<(String, Warning)> {
        for node in nodes {
            self.0.extend(node.doc.warnings.iter().map(|warning| (node.doc.node.clone(), warning.clone())));
        }
        self.0
    }
}
