//! Collects the uncertainty of a machine's noise from sampled phases, without keeping the detours.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use becalm_units::Nanos;

use super::blocks::{BlockExtreme, Blocks, NodeBlocks};
use super::cells;
use super::extremes::{Extremes, MOST};
use super::{RecordingUncertainty, Tail};

/// The number of longest detours kept per CPU; more than needed, because some are close to longer ones.
const KEPT: usize = 4 * MOST;

/// The longest detours of one CPU so far.
#[derive(Clone, Default, Debug)]
pub(crate) struct LongestDetours(BinaryHeap<Reverse<(i64, i64)>>);

impl LongestDetours {
    /// Adds a detour: its start and its length in nanoseconds.
    pub(crate) fn add(&mut self, start: i64, length: i64) {
        if self.0.len() == KEPT {
            if self.0.peek().is_some_and(|Reverse((shortest, _))| *shortest >= length) {
                return;
            }
            self.0.pop();
        }
        self.0.push(Reverse((length, start)));
    }

    /// Starts and lengths, the longest first; none within `apart` of a longer one, because a phase can meet both.
    fn apart(self, apart: i64) -> Vec<(i64, i64)> {
        let mut taken = BTreeSet::new();
        let mut list = Vec::new();
        for Reverse((length, start)) in self.0.into_sorted_vec() {
            if list.len() == MOST {
                break;
            }
            let near = start.saturating_sub(apart)..=start.saturating_add(apart);
            if taken.range(near).next().is_none() {
                taken.insert(start);
                list.push((start, length));
            }
        }
        list
    }
}

/// Sampled phases of the CPUs of a machine by blocks of time, and its longest detours.
#[derive(Clone, Default, Debug)]
pub(crate) struct StreamedBlocks {
    grain: i64,
    nodes: Vec<NodeBlocks>,
    /// The longest detours of all CPUs, falling; each with its node and block, and the observation time of its CPU.
    longest: Vec<StreamedDetour>,
    /// The number of CPUs, and the longest observation time of one.
    cpus: u64,
    recorded: i64,
    /// The total observation time of all CPUs.
    watched: i64,
    /// All phases, including those without a detour.
    phases: f64,
}

#[derive(Clone, Copy, Debug)]
struct StreamedDetour {
    length: i64,
    node: usize,
    /// Its position in the time of its CPU, 0 to 1.
    at: f64,
    watched: i64,
}

impl StreamedBlocks {
    /// Empty, for phases with this much work.
    pub(crate) fn new(grain: Nanos) -> Self {
        Self { grain: grain.get(), ..Self::default() }
    }

    /// Counts phases of the current node by their lateness, and their start as a fraction of their CPU's time, 0 to 1.
    pub(crate) fn add(&mut self, at: f64, late: i64, phases: f64) {
        self.phases += phases;
        if late > 0 {
            if self.nodes.is_empty() {
                self.nodes.push(NodeBlocks::new());
            }
            self.nodes[0].add(at, cells::place(late), phases);
        }
    }

    /// Adds a CPU of the current node, observed from `begin` for `watched`.
    pub(crate) fn finish_cpu(&mut self, begin: i64, watched: i64, longest: LongestDetours) {
        if self.nodes.is_empty() {
            self.nodes.push(NodeBlocks::new());
        }
        self.nodes[0].cpus += 1;
        self.cpus += 1;
        self.recorded = self.recorded.max(watched);
        self.watched = self.watched.saturating_add(watched);
        let watched = watched.max(1);
        let detour = |(start, length): (i64, i64)| StreamedDetour {
            length,
            node: 0,
            at: (start - begin) as f64 / watched as f64,
            watched,
        };
        self.longest.extend(longest.apart(self.grain).into_iter().map(detour));
        self.keep_longest();
    }

    /// Adds the nodes of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        let first = self.nodes.len();
        self.nodes.extend(other.nodes.iter().cloned());
        self.longest.extend(other.longest.iter().map(|detour| StreamedDetour { node: first + detour.node, ..*detour }));
        self.keep_longest();
        self.cpus += other.cpus;
        self.recorded = self.recorded.max(other.recorded);
        self.watched = self.watched.saturating_add(other.watched);
        self.phases += other.phases;
        NodeBlocks::fold(&mut self.nodes);
    }

    fn keep_longest(&mut self) {
        self.longest.sort_by_key(|detour| Reverse(detour.length));
        self.longest.truncate(MOST);
    }

    /// The uncertainty from other recordings, which are drawn from the seed. `None` if nothing was sampled.
    pub(crate) fn uncertainty(&self, seed: u64) -> Option<RecordingUncertainty> {
        if self.phases <= 0.0 || self.cpus == 0 {
            return None;
        }
        let list = self.longest.iter().map(|detour| detour.length as f64).collect();
        let extremes = Extremes::new(list);
        let tail = if extremes.settled() { None } else { Tail::fit(extremes.delays()) };
        let rate = |detour: &StreamedDetour| {
            let rate = 1.0 / (detour.watched as f64 * self.cpus as f64);
            (detour.node, BlockExtreme { block: self.nodes[detour.node].block(detour.at), rate })
        };
        let blocks = Blocks::new(&self.nodes, self.phases, self.longest.iter().map(rate));
        let most = tail.as_ref().map_or(f64::INFINITY, Tail::threshold);
        Some(RecordingUncertainty {
            grain: self.grain as f64,
            recorded: Nanos::new(self.recorded),
            watched: self.watched as f64,
            blocks: blocks.for_memory_length(most),
            extremes,
            tail,
            seed,
        })
    }
}
