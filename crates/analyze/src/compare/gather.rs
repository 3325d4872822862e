//! Reading: accumulates one run's rows, batch after batch, into the data that a comparison needs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use becalm_account::{BatchOwners, CpuAccount, SourceIds};
use becalm_bundle::{ActivityBatch, Bundle, BundleError, DetourBatch};
use becalm_model::node::{NodeDoc, Rung};

use super::CompareError;
use super::gathered::{Gathered, SourceSample};
use super::ground::{ComparedRun, Ground, LoopSpan};
use super::sample::DetourSample;
use crate::summary::{SummaryError, runs};

/// Reads one of the runs.
///
/// becalm's own time counts if `with_self` is set; otherwise it is not part of the machine's detours.
pub(super) fn gather(
    bundle: &Bundle,
    ground: &Ground,
    run: &ComparedRun,
    with_self: bool,
) -> Result<Gathered, CompareError> {
    let read = Reading::new(ground, run, with_self).all(bundle);
    read.map_err(|cause| CompareError::Run { path: run.path.clone(), cause: SummaryError::Bundle(cause) })
}

/// A sample without detours for each compared node. As in the sample of the whole run, a loop's time counts from its own start.
fn node_samples(ground: &Ground, run: &ComparedRun) -> Vec<DetourSample> {
    if ground.nodes.is_empty() {
        return Vec::new();
    }
    let mut loops = run.loops.iter();
    let sample = |doc: &NodeDoc| {
        let lengths: Vec<i64> = loops.by_ref().take(doc.cpus.len()).map(|span| span.length).collect();
        let observed = lengths.iter().fold(0, |sum: i64, length| sum.saturating_add(*length));
        DetourSample::new(0, lengths.into_iter().max().unwrap_or(0), observed, ground.stretch_ns)
    };
    run.docs.iter().map(sample).collect()
}

struct Reading<'a> {
    ground: &'a Ground,
    run: &'a ComparedRun,
    with_self: bool,
    /// In the order of the loops.
    accounts: Vec<CpuAccount>,
    gathered: Gathered,
    /// Which detours of each CPU are kept, in the order of the loops.
    kept: Vec<KeptDetours>,
    /// The positions of a node's CPUs among the loops, by CPU number.
    at: HashMap<i32, usize>,
    /// The position of that node in the run.
    node: usize,
    /// The sources in order of appearance.
    sources: Vec<SourceSample>,
    source_ids: SourceIds,
}

impl<'a> Reading<'a> {
    fn new(ground: &'a Ground, run: &'a ComparedRun, with_self: bool) -> Self {
        let stretch = ground.stretch_ns;
        let several = ground.places.len() > 1;
        let sample = |span: &LoopSpan| DetourSample::new(span.start, span.length, span.length, stretch);
        let gathered = Gathered {
            all: DetourSample::new(0, run.length_ns, run.observed_ns, stretch),
            nodes: node_samples(ground, run),
            places: if several { run.loops.iter().map(sample).collect() } else { Vec::new() },
            sources: BTreeMap::new(),
            dropped: 0,
            dropped_ns: 0,
            incomplete: 0,
            summed: BTreeSet::new(),
        };
        let kept = vec![KeptDetours::default(); run.loops.len()];
        let accounts = vec![CpuAccount::new(with_self); run.loops.len()];
        let (at, sources, source_ids) = (HashMap::new(), Vec::new(), SourceIds::default());
        Self { ground, run, with_self, accounts, gathered, kept, at, node: 0, sources, source_ids }
    }

    fn all(mut self, bundle: &Bundle) -> Result<Gathered, BundleError> {
        if !self.with_self && self.run.rung == Rung::Tracepoints {
            let mut ids = SourceIds::default();
            self.each_node(|reading, node| {
                for batch in bundle.activities(node)? {
                    reading.own_activities(&batch?, &mut ids);
                }
                Ok(())
            })?;
        }
        // Both passes over the detours start from these accounts.
        let before_detours = self.accounts.clone();
        self.each_node(|reading, node| {
            for batch in bundle.detours(node)? {
                reading.detours::<true>(&batch?);
            }
            Ok(())
        })?;
        self.accounts = before_detours;
        self.gathered.all.set_levels();
        self.gathered.nodes.iter_mut().for_each(DetourSample::set_levels);
        self.gathered.places.iter_mut().for_each(DetourSample::set_levels);
        self.each_node(|reading, node| {
            for batch in bundle.detours(node)? {
                reading.detours::<false>(&batch?);
            }
            if reading.ground.has_sources() {
                for batch in bundle.activities(node)? {
                    reading.activities(&batch?);
                }
            }
            Ok(())
        })?;
        self.gathered.sources = self.source_ids.names().iter().cloned().zip(self.sources).collect();
        Ok(self.gathered)
    }

    fn each_node(
        &mut self,
        mut read: impl FnMut(&mut Self, &str) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        let mut first = 0;
        let run = self.run;
        for (place, doc) in run.docs.iter().enumerate() {
            self.node = place;
            let number = |cpu: &becalm_model::node::CpuDoc| cpu.cpu.get() as i32;
            self.at = doc.cpus.iter().map(number).zip(first..).collect();
            first += doc.cpus.len();
            read(self, &doc.node)?;
        }
        Ok(())
    }

    /// Records how much of each detour is becalm's own.
    fn own_activities(&mut self, batch: &ActivityBatch, ids: &mut SourceIds) {
        let details = batch.detail_values();
        let sources = batch.source_values();
        let mut owners = BatchOwners::new(&sources, &details);
        for range in runs(batch.cpus()) {
            let Some(at) = self.at.get(&batch.cpus()[range.start]).copied() else { continue };
            for row in range {
                let owner = owners.owner(ids, batch.kind(row), batch.source_key(row), batch.detail_key(row));
                self.accounts[at].activity(batch.detours()[row] as u64, batch.self_times()[row], owner);
            }
        }
    }

    /// Adds detours: all in the first pass, those above the levels in the second.
    fn detours<const FIRST: bool>(&mut self, batch: &DetourBatch) {
        let add = if FIRST { DetourSample::add } else { DetourSample::add_above };
        for range in runs(batch.cpus()) {
            let Some(at) = self.at.get(&batch.cpus()[range.start]).copied() else { continue };
            let origin = self.run.loops[at].start;
            for row in range {
                let start = batch.starts()[row];
                let duration = self.accounts[at].detour(batch.durations()[row]);
                let kept = duration.filter(|duration| *duration >= self.ground.shortest_ns);
                if FIRST {
                    self.count(at, duration, kept.is_some() && batch.incomplete(row));
                }
                let Some(duration) = kept else { continue };
                add(&mut self.gathered.all, start.saturating_sub(origin), duration);
                if let Some(node) = self.gathered.nodes.get_mut(self.node) {
                    add(node, start.saturating_sub(origin), duration);
                }
                if let Some(place) = self.gathered.places.get_mut(at) {
                    add(place, start, duration);
                }
            }
        }
    }

    /// Counts a detour of a loop; `None` if all of it is becalm's own.
    fn count(&mut self, at: usize, duration: Option<i64>, incomplete: bool) {
        let dropped = duration.filter(|duration| *duration < self.ground.shortest_ns);
        self.kept[at].push(duration.is_some() && dropped.is_none());
        self.gathered.dropped += u64::from(dropped.is_some());
        self.gathered.dropped_ns = self.gathered.dropped_ns.saturating_add(dropped.unwrap_or(0));
        self.gathered.incomplete += u64::from(incomplete);
    }

    /// Counts each activity, and adds its time to its root.
    fn activities(&mut self, batch: &ActivityBatch) {
        let (sources, details) = (batch.source_values(), batch.detail_values());
        let mut owners = BatchOwners::new(&sources, &details);
        for range in runs(batch.cpus()) {
            let Some(at) = self.at.get(&batch.cpus()[range.start]).copied() else { continue };
            let origin = self.run.loops[at].start;
            for row in range {
                if !self.kept[at].holds(batch.detours()[row] as u64) {
                    continue;
                }
                let (kind, source, detail) = (batch.kind(row), batch.source_key(row), batch.detail_key(row));
                let owner = owners.owner(&mut self.source_ids, kind, source, detail);
                if owner.is_becalms && !self.with_self {
                    continue;
                }
                let empty = || SourceSample::empty(self.run.length_ns);
                self.sources.resize_with(self.source_ids.len(), empty);
                let (start, self_time) = (batch.starts()[row].saturating_sub(origin), batch.self_times()[row]);
                self.sources[owner.source.index()].count.add(start, 1);
                self.sources[owner.root.index()].times.add(start, self_time);
            }
        }
    }
}

/// Which detours of a CPU are kept, one bit each.
#[derive(Clone, Default, Debug)]
struct KeptDetours {
    bits: Vec<u64>,
    count: u64,
}

impl KeptDetours {
    fn push(&mut self, keep: bool) {
        let (word, bit) = (self.count / 64, self.count % 64);
        if bit == 0 {
            self.bits.push(0);
        }
        self.bits[word as usize] |= u64::from(keep) << bit;
        self.count += 1;
    }

    /// Whether detour `number` exists and is kept.
    fn holds(&self, number: u64) -> bool {
        number < self.count && self.bits[(number / 64) as usize] >> (number % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_kept_is_a_list_of_flags(flags in proptest::collection::vec(proptest::bool::ANY, 0..300)) {
            let mut kept = KeptDetours::default();
            flags.iter().for_each(|flag| kept.push(*flag));
            for (number, flag) in flags.iter().enumerate() {
                prop_assert_eq!(kept.holds(number as u64), *flag);
            }
            prop_assert!(!kept.holds(flags.len() as u64) && !kept.holds(u64::MAX));
        }
    }
}
