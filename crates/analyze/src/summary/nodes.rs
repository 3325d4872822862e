//! Sums over the nodes of a summary, for both full recordings and summary forms.

use std::collections::BTreeMap;
use std::path::Path;

use becalm_model::Kind;
use becalm_model::node::{CpuDoc, NodeDoc, Rung};
use becalm_stats::chance::run_again_for;
use becalm_stats::{Interval, Moments};
use becalm_units::CpuId;

use super::checked::{Checked, Measuring};
use super::findings::ClosingWarnings;
use super::peers::Peers;
use super::{Books, CpuSummary, Figures, NodeSummary, Observed, SampledPhases, SourceSummary, Summary};

/// The time of a source.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    /// Its own activities.
    pub(super) own: Moments,
    /// All activities charged to it, in nanoseconds.
    pub(super) whole: i64,
}

/// The times of sources, by kind and name.
#[derive(Default)]
pub(super) struct SourceTimes(BTreeMap<(Kind, String), Times>);

impl SourceTimes {
    pub(super) fn add(&mut self, kind: Kind, source: String, times: Times) {
        let sum = self.0.entry((kind, source)).or_default();
        sum.own.merge(&times.own);
        sum.whole = sum.whole.saturating_add(times.whole);
    }

    fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|((kind, source), times)| self.add(*kind, source.clone(), *times));
    }

    /// The largest total first, then the largest own time; equal ones by name, then by kind. Shares are relative to `noise` and `observed`; `elapsed`
    /// is the duration of the recording.
    pub(super) fn ranked(
        self,
        place: Option<&(String, CpuId)>,
        noise: i64,
        observed: Option<i64>,
        elapsed: Option<i64>,
    ) -> Vec<SourceSummary> {
        let share = |times: &Times, all: i64| (all > 0).then(|| times.whole as f64 / all as f64);
        let summary = |((kind, source), times): ((Kind, String), Times)| SourceSummary {
            place: place.cloned(),
            share: share(&times, noise),
            time_ratio: observed.and_then(|ns| share(&times, ns)),
            run_at_least_ns: elapsed.and_then(|ns| run_again_for(times.own.count(), ns)),
            source,
            kind,
            times: times.own,
            whole_ns: times.whole,
        };
        let mut sources: Vec<SourceSummary> = self.0.into_iter().map(summary).collect();
        sources.sort_by(|a, b| {
            let wholes = b.whole_ns.cmp(&a.whole_ns).then_with(|| b.times.total().cmp(&a.times.total()));
            wholes.then_with(|| a.source.cmp(&b.source)).then_with(|| a.kind.name().cmp(b.kind.name()))
        });
        sources
    }
}

/// The noise of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeNoise {
    /// The share of its CPUs' time that is lost.
    pub ratio: f64,
    /// The 95 % interval of the share.
    pub interval: Interval,
}

/// The nodes read so far.
#[derive(Default)]
pub(super) struct GatheredNodes {
    pub(super) nodes: Vec<NodeSummary>,
    pub(super) cpus: Vec<CpuSummary>,
    pub(super) warnings: ClosingWarnings,
    sources: SourceTimes,
    cpu_sources: Vec<SourceSummary>,
    peers: Peers,
}

impl GatheredNodes {
    /// Adds a CPU of the current node, with the durations of all its stored detours.
    pub(super) fn add_cpu(
        &mut self,
        doc: &NodeDoc,
        cpu: &CpuDoc,
        stored: &Moments,
        times: SourceTimes,
        figures: Figures,
    ) {
        self.warnings.compare_rows(doc, cpu, stored);
        self.sources.merge(&times);
        let place = (doc.node.clone(), cpu.cpu);
        let observed = figures.duration_ns;
        self.cpu_sources.extend(times.ranked(Some(&place), figures.durations.total(), observed, observed));
        self.cpus.push(CpuSummary { node: place.0, cpu: place.1, figures });
    }

    /// Adds a node, after all of its CPUs; without `noise` it is not compared with other nodes.
    pub(super) fn add_node(&mut self, node: NodeSummary, noise: Option<NodeNoise>) {
        self.peers.compare_cpus(&node.doc.node, node_cpus(&self.cpus, &node.doc.node));
        if let Some(noise) = noise {
            self.peers.add_node(&node.doc.node, noise);
        }
        self.nodes.push(node);
    }

    /// The summary of all nodes, without anatomy, periods and spectrum.
    pub(super) fn summary(
        mut self,
        path: &Path,
        mut total: Figures,
        books: Books,
        phases: Option<SampledPhases>,
        observed: Observed,
    ) -> Summary {
        self.warnings.add_books(&books);
        // All CPUs are observed at the same time.
        let elapsed = self.cpus.iter().filter_map(|cpu| cpu.figures.duration_ns).max();
        let sources = self.sources.ranked(None, total.durations.total(), total.duration_ns, elapsed);
        super::tails::hold_together(&mut total, &sources, &mut self.cpus, &self.cpu_sources);
        let peers = self.peers.compare_nodes();
        let rung = self.nodes.iter().map(|node| node.doc.rung).min().unwrap_or(Rung::Loop);
        let docs = || self.nodes.iter().map(|node| &node.doc);
        let activities = self.nodes.iter().map(|node| node.activities).sum();
        let phases = phases.map(|phases| phases.for_run(rung, activities, total.duration_ns, observed));
        Summary {
            path: path.to_owned(),
            checked: Checked::from_nodes(docs()),
            measuring: Measuring::from_nodes(docs(), total.duration_ns),
            warnings: self.warnings.with_the_recorders(&self.nodes),
            nodes: self.nodes,
            cpus: self.cpus,
            total,
            sources,
            cpu_sources: self.cpu_sources,
            anatomy: None,
            at_scale: None,
            phases,
            periods: Vec::new(),
            outliers: peers.outliers,
            peers: peers.compared,
            spectrum: None,
            books,
            rung,
        }
    }
}

/// The CPUs of the last node.
pub(super) fn node_cpus<'a>(cpus: &'a [CpuSummary], node: &str) -> &'a [CpuSummary] {
    let others = cpus.iter().rposition(|cpu| cpu.node != node).map_or(0, |last| last + 1);
    &cpus[others..]
}
