//! A recording before a comparison reads its detours: full, or with its nodes in summary form.

use std::collections::BTreeMap;
use std::path::Path;

use becalm_bundle::{Bundle, BundleError, StoredNodes};
use becalm_model::digest::{CpuDigest, DigestDoc, SLOTS};
use becalm_model::node::{CpuDoc, NodeDoc};
use becalm_units::CpuId;

use crate::condense::digest;
use crate::summary::{Observed, Selection, SummaryError, keep_cpus, observed, spans};

/// The run times of loops, in nanoseconds, and how they are known.
pub(super) struct LoopLengths {
    pub(super) lengths: Vec<Option<i64>>,
    pub(super) observed: Observed,
}

/// The properties of a run that determine its common ground with others.
pub(super) trait Recording {
    /// The directory of the run's bundle.
    fn path(&self) -> &Path;

    /// The documents of the selected nodes, restricted to the selected CPUs.
    fn documents(&self, selection: &Selection) -> Result<Vec<NodeDoc>, SummaryError>;

    /// The run times of the loops on these CPUs, and how they are known.
    fn lengths(&self, doc: &NodeDoc) -> Result<LoopLengths, SummaryError>;

    /// The shortest detour of a node, in nanoseconds; `None` without detours.
    fn shortest_detour(&self, doc: &NodeDoc) -> Result<Option<i64>, SummaryError>;

    /// Whether it is compared in summary form.
    fn is_condensed(&self) -> bool;
}

impl Recording for Bundle {
    fn path(&self) -> &Path {
        self.path()
    }

    fn documents(&self, selection: &Selection) -> Result<Vec<NodeDoc>, SummaryError> {
        selection.documents(self)
    }

    fn lengths(&self, doc: &NodeDoc) -> Result<LoopLengths, SummaryError> {
        let spans = spans(self, doc)?;
        let lengths = doc.cpus.iter().map(|cpu| spans.length(cpu)).collect();
        Ok(LoopLengths { lengths, observed: spans.observed })
    }

    fn shortest_detour(&self, doc: &NodeDoc) -> Result<Option<i64>, SummaryError> {
        let mut least: Option<i64> = None;
        for batch in self.detours(&doc.node)? {
            least = batch?.durations().iter().copied().chain(least).min();
        }
        Ok(least)
    }

    fn is_condensed(&self) -> bool {
        false
    }
}

/// The nodes of a run in summary form: memory holds these facts of each; its document is read again later.
#[derive(Debug)]
pub(super) struct DigestedRun<'a> {
    pub(super) stored: &'a StoredNodes,
    nodes: BTreeMap<String, NodeFacts>,
    /// The maximum slot length of a node, in nanoseconds.
    pub(super) slot_ns: i64,
    pub(super) left_out: Vec<UnreadNode>,
}

/// A node that cannot be read.
#[derive(Debug)]
pub(super) struct UnreadNode {
    pub(super) node: String,
    pub(super) why: String,
}

#[derive(Debug)]
struct NodeFacts {
    doc: NodeDoc,
    loops: BTreeMap<CpuId, LoopFacts>,
    observed: Observed,
}

/// The loop of a CPU. Times are in nanoseconds.
#[derive(Debug)]
struct LoopFacts {
    /// Its run time.
    length: Option<i64>,
    /// Its shortest detour.
    shortest: Option<i64>,
}

impl NodeFacts {
    fn from_digest(digest: DigestDoc) -> Self {
        let how = |cpu: &CpuDoc, counts: &CpuDigest| observed(&digest.run, cpu, counts);
        let cpus = || digest.run.cpus.iter().zip(&digest.cpus);
        let facts = |(cpu, counts): (&CpuDoc, &CpuDigest)| {
            let least = (counts.durations.count > 0).then_some(counts.durations.min_ns);
            (cpu.cpu, LoopFacts { length: how(cpu, counts).0, shortest: least })
        };
        let observed = cpus().map(|(cpu, counts)| how(cpu, counts).1).next().unwrap_or(Observed::Document);
        Self { loops: cpus().map(facts).collect(), observed, doc: digest.run }
    }
}

impl<'a> DigestedRun<'a> {
    /// Reads the selected nodes once, one after another. Fails if there is no such node, or none can be read.
    pub(super) fn read(stored: &'a StoredNodes, selection: &Selection) -> Result<Self, SummaryError> {
        if selection.with_self {
            return Err(SummaryError::OwnTime { path: stored.path().to_owned() });
        }
        let mut run = Self { stored, nodes: BTreeMap::new(), slot_ns: 1, left_out: Vec::new() };
        let names: Vec<&str> = match &selection.node {
            None => stored.names().collect(),
            Some(node) if stored.names().any(|name| name == node) => vec![node],
            Some(node) => {
                let (bundle, node) = (stored.path().to_owned(), node.clone());
                let nodes = stored.names().collect::<Vec<_>>().join(", ");
                return Err(BundleError::NoSuchNode { bundle, node, nodes }.into());
            }
        };
        let mut failure = None;
        for node in names {
            match stored.read(node).map_err(SummaryError::from).and_then(digest) {
                Ok(digest) => {
                    run.slot_ns = run.slot_ns.max(slot_ns(&digest));
                    run.nodes.insert(node.to_owned(), NodeFacts::from_digest(digest));
                }
                Err(error) => {
                    run.left_out.push(UnreadNode { node: node.to_owned(), why: error.to_string() });
                    failure = failure.or(Some(error));
                }
            }
        }
        match failure {
            Some(error) if run.nodes.is_empty() => Err(error),
            _ => Ok(run),
        }
    }

    fn loops(&self, doc: &NodeDoc) -> impl Iterator<Item = &LoopFacts> {
        let loops = self.nodes.get(&doc.node).map(|facts| &facts.loops);
        doc.cpus.iter().filter_map(move |cpu| loops?.get(&cpu.cpu))
    }
}

/// The slot length of a node, in nanoseconds, that limits the number of slots if they also cover the time after its last detour.
fn slot_ns(digest: &DigestDoc) -> i64 {
    let watched = digest.run.cpus.iter().map(|cpu| cpu.start_ns.get().saturating_add(cpu.duration_ns.get())).max();
    let mut slot_ns = digest.slot_ns;
    while watched.unwrap_or(0) / slot_ns >= SLOTS as i64 {
        slot_ns *= 2;
    }
    slot_ns
}

impl Recording for DigestedRun<'_> {
    fn path(&self) -> &Path {
        self.stored.path()
    }

    fn documents(&self, selection: &Selection) -> Result<Vec<NodeDoc>, SummaryError> {
        let mut docs: Vec<NodeDoc> = self.nodes.values().map(|facts| facts.doc.clone()).collect();
        if let Some(cpus) = selection.measured_cpus(&docs)? {
            docs.iter_mut().for_each(|doc| keep_cpus(doc, cpus));
        }
        Ok(docs)
    }

    fn lengths(&self, doc: &NodeDoc) -> Result<LoopLengths, SummaryError> {
        let observed = self.nodes.get(&doc.node).map_or(Observed::Document, |facts| facts.observed);
        Ok(LoopLengths { lengths: self.loops(doc).map(|facts| facts.length).collect(), observed })
    }

    fn shortest_detour(&self, doc: &NodeDoc) -> Result<Option<i64>, SummaryError> {
        Ok(self.loops(doc).filter_map(|facts| facts.shortest).min())
    }

    fn is_condensed(&self) -> bool {
        true
    }
}
