//! What is kept of one run for a comparison.

use std::collections::{BTreeMap, BTreeSet};

use becalm_model::Kind;
use becalm_stats::TimeCells;

use super::row::TestFamily;
use super::sample::DetourSample;

/// What is kept of a run.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    /// The detours of all compared CPUs.
    pub(super) all: DetourSample,
    /// Each node, where there are several.
    pub(super) nodes: Vec<DetourSample>,
    /// Each CPU, where there are several and they stand against those of the other run.
    pub(super) places: Vec<DetourSample>,
    /// The sources over all CPUs, also those whose time belongs to others.
    pub(super) sources: BTreeMap<(Kind, String), SourceSample>,
    /// Detours that are shorter than what is compared.
    pub(super) dropped: u64,
    pub(super) dropped_ns: i64,
    /// Kept detours in which kernel events were lost.
    pub(super) incomplete: u64,
    /// Kinds of which some sources are only known as a sum of several: a source of such a kind that is not known may be among them.
    pub(super) summed: BTreeSet<Kind>,
}

impl Gathered {
    /// What is kept of each node, or of each CPU.
    pub(super) fn places(&self, family: TestFamily) -> &[DetourSample] {
        if family == TestFamily::Nodes { &self.nodes } else { &self.places }
    }
}

/// A source's activities over the cells of time.
#[derive(Clone, Debug)]
pub(super) struct SourceSample {
    pub(super) times: TimeCells,
    pub(super) count: TimeCells,
}

impl SourceSample {
    /// Without any activity, over `length` nanoseconds.
    pub(super) fn empty(length: i64) -> Self {
        let cells = TimeCells::new(0, length);
        Self { times: cells.clone(), count: cells }
    }
}
