//! The data of one run that a comparison needs.

use std::collections::{BTreeMap, BTreeSet};

use becalm_model::Kind;
use becalm_stats::TimeCells;

use super::row::TestFamily;
use super::sample::DetourSample;

/// The data of a run.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    /// The detours of all compared CPUs.
    pub(super) all: DetourSample,
    /// Per node, if there are several.
    pub(super) nodes: Vec<DetourSample>,
    /// Per CPU, if there are several and the sides have the same ones.
    pub(super) places: Vec<DetourSample>,
    /// The sources over all CPUs, including those whose time is charged to others.
    pub(super) sources: BTreeMap<(Kind, String), SourceSample>,
    /// Detours below the compared length.
    pub(super) dropped: u64,
    pub(super) dropped_ns: i64,
    /// Kept detours with dropped kernel events.
    pub(super) incomplete: u64,
    /// Kinds with sources that are only known as a sum: an unknown source of such a kind may be part of it.
    pub(super) summed: BTreeSet<Kind>,
}

impl Gathered {
    /// The samples of each node, or of each CPU.
    pub(super) fn places(&self, family: TestFamily) -> &[DetourSample] {
        if family == TestFamily::Nodes { &self.nodes } else { &self.places }
    }
}

/// A source's activities per cell of time.
#[derive(Clone, Debug)]
pub(super) struct SourceSample {
    pub(super) times: TimeCells,
    pub(super) count: TimeCells,
}

impl SourceSample {
    /// No activity over `length` nanoseconds.
    pub(super) fn empty(length: i64) -> Self {
        let cells = TimeCells::new(0, length);
        Self { times: cells.clone(), count: cells }
    }
}
