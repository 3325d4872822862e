//! Reading in summary form: accumulates one run's nodes, one after another, into the data that a comparison needs.
//!
//! The slots of a node start at multiples of their length in wall-clock time and end with its last detour. Here they cover the whole time that its
//! loops ran, because time without a detour counts too. Nodes are aligned at their own starts, as in full recordings.

use std::collections::{BTreeMap, BTreeSet};

use becalm_model::Kind;
use becalm_model::digest::{CpuDigest, DigestDoc, LENGTH_BITS, OTHERS, SLOTS};
use becalm_model::node::NodeDoc;
use becalm_stats::{Moments, Quantiles, TimeCells};

use super::CompareError;
use super::gathered::{Gathered, SourceSample};
use super::ground::{ComparedRun, Ground};
use super::recording::{DigestedRun, Recording};
use super::sample::{ABOVE, Condensed, DetourSample};
use crate::condense;
use crate::summary::{SummaryError, middles, moments};

/// The sums of several CPUs.
#[derive(Default)]
struct Sums {
    observed: i64,
    durations: Moments,
    lengths: BTreeMap<i64, u64>,
    /// Per slot.
    noise: Vec<i64>,
    began: Vec<i64>,
}

impl Sums {
    /// Adds another set, slot by slot.
    fn take(&mut self, other: &Self) {
        self.observed = self.observed.saturating_add(other.observed);
        self.durations.merge(&other.durations);
        for (length, count) in &other.lengths {
            let sum = self.lengths.entry(*length).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (sums, more) in [(&mut self.noise, &other.noise), (&mut self.began, &other.began)] {
            sums.resize(sums.len().max(more.len()), 0);
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        }
    }

    fn sample(self, slot_ns: i64) -> DetourSample {
        let mut quantiles = Quantiles::from_counts(self.lengths, self.durations.max().unwrap_or(0));
        DetourSample::from_condensed(Condensed {
            observed: self.observed,
            durations: self.durations,
            levels: ABOVE.map(|above| quantiles.at(1.0 - above)),
            noise: TimeCells::from_sums(slot_ns, self.noise),
            count: TimeCells::from_sums(slot_ns, self.began),
        })
    }
}

/// Rereads one of the runs.
pub(super) fn gather(
    recording: &DigestedRun<'_>,
    ground: &Ground,
    run: &ComparedRun,
) -> Result<Gathered, CompareError> {
    let failed = |cause: SummaryError| CompareError::Run { path: recording.path().to_owned(), cause };
    let (with_nodes, with_places) = (!ground.nodes.is_empty(), ground.places.len() > 1);
    let (mut all, mut nodes, mut places) = (Sums::default(), Vec::new(), Vec::new());
    let mut sources: BTreeMap<(Kind, String), (i64, u64)> = BTreeMap::new();
    let mut left = LeftOut::default();
    let mut lengths = run.loops.iter().map(|span| span.length);
    for doc in &run.docs {
        let digest =
            recording.stored.read(&doc.node).map_err(SummaryError::from).and_then(condense::digest).map_err(failed)?;
        let slots = Slots::new(&digest, doc, recording.slot_ns);
        let mut node = Sums::default();
        for (cpu, length) in doc.cpus.iter().zip(lengths.by_ref()) {
            let Some(counts) = digest.cpus.iter().find(|counts| counts.cpu == cpu.cpu) else { continue };
            let mut sums = left.cut(counts, ground.shortest_ns);
            sums.observed = length;
            (sums.noise, sums.began) = (slots.laid(&sums.noise), slots.laid(&sums.began));
            left.incomplete = left.incomplete.saturating_add(counts.incomplete);
            for source in counts.sources.iter().filter(|_| ground.has_sources()) {
                let sum = sources.entry((source.kind, source.source.clone())).or_default();
                sum.0 = sum.0.saturating_add(source.whole_ns);
                sum.1 = sum.1.saturating_add(source.own.count);
            }
            node.take(&sums);
            if with_places {
                places.push(sums.sample(recording.slot_ns));
            }
        }
        all.take(&node);
        if with_nodes {
            nodes.push(node.sample(recording.slot_ns));
        }
    }
    let summed = sources.keys().filter(|(_, name)| name == OTHERS).map(|(kind, _)| *kind).collect::<BTreeSet<Kind>>();
    sources.retain(|(kind, _), _| *kind != Kind::Becalm);
    let sample = |(name, (whole, count)): ((Kind, String), (i64, u64))| {
        let cell = |sum: i64| TimeCells::from_sums(run.length_ns, vec![sum]);
        (name, SourceSample { times: cell(whole), count: cell(i64::try_from(count).unwrap_or(i64::MAX)) })
    };
    Ok(Gathered {
        all: all.sample(recording.slot_ns),
        nodes,
        places,
        sources: sources.into_iter().map(sample).collect(),
        dropped: left.dropped,
        dropped_ns: left.dropped_ns,
        incomplete: left.incomplete,
        summed,
    })
}

/// Detours excluded from the comparison.
#[derive(Default)]
struct LeftOut {
    dropped: u64,
    dropped_ns: i64,
    incomplete: u64,
}

impl LeftOut {
    /// The detours of a CPU of at least this length. Shorter ones are known only by their number per length, so they are subtracted evenly over time.
    fn cut(&mut self, counts: &CpuDigest, shortest_ns: i64) -> Sums {
        let whole = moments(&counts.durations);
        let began = counts.began.iter().map(|count| i64::try_from(*count).unwrap_or(i64::MAX)).collect();
        let sums = Sums {
            durations: whole,
            lengths: middles(&counts.lengths, LENGTH_BITS).collect(),
            noise: counts.noise_ns.clone(),
            began,
            observed: 0,
        };
        if whole.min().is_none_or(|least| least >= shortest_ns) {
            return sums;
        }
        let (short, long): (Vec<_>, Vec<_>) = sums.lengths.into_iter().partition(|(length, _)| *length < shortest_ns);
        let count: u64 = short.iter().map(|(_, count)| count).sum();
        let total = short.iter().fold(0, |sum: i64, (length, count)| {
            sum.saturating_add(length.saturating_mul(i64::try_from(*count).unwrap_or(i64::MAX)))
        });
        let total = total.min(whole.total());
        self.dropped = self.dropped.saturating_add(count);
        self.dropped_ns = self.dropped_ns.saturating_add(total);
        let squares: f64 = long.iter().map(|(length, count)| (*length as f64).powi(2) * *count as f64).sum();
        let ends = (long.first().map_or(0, |(length, _)| *length), whole.max().unwrap_or(0));
        let rest = whole.count().saturating_sub(count);
        let durations = match rest {
            0 => Moments::EMPTY,
            _ => Moments::from_parts(rest, i128::from(whole.total() - total), squares as u128, ends),
        };
        let part = |kept: f64, all: f64| if all > 0.0 { kept / all } else { 0.0 };
        let (time, number) =
            (part((whole.total() - total) as f64, whole.total() as f64), part(rest as f64, whole.count() as f64));
        let scaled =
            |values: &[i64], factor: f64| values.iter().map(|value| (*value as f64 * factor).round() as i64).collect();
        Sums {
            observed: 0,
            durations,
            noise: scaled(&sums.noise, time),
            began: scaled(&sums.began, number),
            lengths: long.into_iter().collect(),
        }
    }
}

/// The slots of a node over the time that its loops ran, as long as the longest slots of the run.
struct Slots {
    /// The number of the first slot since 1970.
    first: i64,
    /// The number of slots.
    count: usize,
    /// The number of the node's own first slot, and how many of its slots make up one.
    own_first: i64,
    fold: i64,
}

impl Slots {
    fn new(digest: &DigestDoc, doc: &NodeDoc, slot_ns: i64) -> Self {
        let fold = (slot_ns / digest.slot_ns).max(1);
        let origin = i64::try_from(doc.origin_ns()).unwrap_or(0);
        let own_end = digest.first_slot.saturating_add(digest.slots as i64);
        let number = |ns: i64| origin.saturating_add(ns).div_euclid(slot_ns);
        let begin = doc.cpus.iter().map(|cpu| cpu.start_ns.get()).min().map(number);
        let end = doc.cpus.iter().map(|cpu| cpu.start_ns.get().saturating_add(cpu.duration_ns.get() - 1)).max();
        let (mut first, mut last) = (begin.unwrap_or(0), end.map_or(0, number));
        if digest.slots > 0 {
            first = first.min(digest.first_slot.div_euclid(fold));
            last = last.max((own_end - 1).div_euclid(fold));
        }
        // A damaged document may contain any times: limit the slots to `SLOTS` plus one at either end.
        let count = last.saturating_sub(first).clamp(0, SLOTS as i64 + 1) as usize + 1;
        Self { first, count, own_first: digest.first_slot, fold }
    }

    fn laid(&self, values: &[i64]) -> Vec<i64> {
        let mut laid = vec![0_i64; self.count];
        for (at, value) in values.iter().enumerate() {
            let number = self.own_first.saturating_add(at as i64).div_euclid(self.fold).saturating_sub(self.first);
            let at = usize::try_from(number).unwrap_or(0).min(self.count - 1);
            laid[at] = laid[at].saturating_add(*value);
        }
        laid
    }
}
