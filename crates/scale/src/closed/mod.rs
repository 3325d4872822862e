//! Closed books at scale: attributes the time that noise adds to a job, to the nanosecond, from one replay.
//!
//! In every phase the latest rank decides when all continue, and its delay is the sum of the detours that it met. The books of these detours, with
//! the whole cost of each at its root, are the books of the delay; summed over the phases they are the books of all added time. They are additive:
//! the sources together are the added time, and none is counted twice. Removing a source is a different question ([`crate::blame`]), because then
//! another rank may be the latest.
//!
//! A phase that starts within a detour loses the rest of it, which is attributed to the detour's sources in proportion to its books. Time without
//! entries in the books stays unattributed.
//!
//! This holds for the ideal collective. With messages, the time is attributed along a path through many ranks: `path`.

mod latest;
mod path;
mod slots;
#[cfg(test)]
mod tests;

use becalm_model::Estimate;
use becalm_units::Nanos;

use self::latest::LatestFinder;
pub(crate) use self::path::books_along_the_path;
use self::slots::{CpuBooks, SlotCosts};
use crate::ScaleError;
use crate::books::BookedNoise;
use crate::delay::DelayTable;
use crate::estimate::from_replicas;
use crate::noise::{Noise, NoiseTrace};
use crate::placement::Placement;
use crate::predict::{Question, together};
use crate::replay::{Method, ReplayOutcome, replay_indexed, sorted_offsets};
use crate::watch::ReplayWatch;
use crate::workers::side_by_side;

/// The books of the detours of all CPUs, as replayed.
#[derive(Clone, Debug)]
pub struct DetourBooks {
    cpus: Vec<CpuBooks>,
    sources: usize,
}

impl DetourBooks {
    /// The books of `noise`, which is `booked` without the sources marked in `out`.
    pub fn new(booked: &BookedNoise, noise: &Noise, out: &[bool]) -> Self {
        let sources = booked.sources().len();
        let cpus = booked.cpus().zip(noise.traces());
        let cpus = cpus.map(|(booked, trace)| CpuBooks::new(trace, booked, out, sources as u32)).collect();
        Self { cpus, sources }
    }
}

/// One replay with its books.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicaBooks {
    /// The result of the replay.
    pub outcome: ReplayOutcome,
    /// The time of the job without noise: its grains for the ideal collective.
    pub quiet: Nanos,
    /// The time added by each source, followed by the unattributed time. The sum is the time of the phases beyond `quiet`, plus `hidden`.
    pub added: Vec<Nanos>,
    /// The part of the attributed time that the job would have waited even without noise; negative if noise put messages into a more expensive order.
    /// Zero for the ideal collective.
    pub hidden: Nanos,
}

impl ReplicaBooks {
    /// Its duration relative to that without noise.
    pub fn slowdown(&self) -> f64 {
        self.outcome.total.get() as f64 / self.quiet.get() as f64
    }
}

/// A detour of the recording, and its cost for the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DearDetour {
    /// The number of its CPU, in the order of [`Noise::traces`].
    pub cpu: usize,
    /// Its start, in the time of the recording.
    pub start: Nanos,
    /// Its duration.
    pub duration: Nanos,
    /// The time that it added to the phases of all replicas together.
    pub cost: Nanos,
    /// The sources of that cost, the largest part first.
    pub sources: Vec<CostPart>,
}

/// The part of a cost that one source caused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostPart {
    /// The number of the source; `None` for unattributed time.
    pub source: Option<usize>,
    /// The time of the source.
    pub time: Nanos,
}

/// The contribution of one source to a job.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SourceShare {
    /// Its number; `None` for unattributed time.
    pub source: Option<usize>,
    /// Its contribution to the slowdown: its time over the useful work, with the interval over the replicas.
    pub added: Estimate,
    /// The time that it added in all replicas together.
    pub cost: Nanos,
    /// The same as a share of all added time, between 0 and 1.
    pub share: f64,
}

/// The books of a job at one number of ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct ClosedBooks {
    /// Ranks of the job.
    pub ranks: u64,
    /// Each replay with its books.
    pub replicas: Vec<ReplicaBooks>,
    /// The most expensive detours, in falling order.
    pub dearest: Vec<DearDetour>,
}

impl ClosedBooks {
    /// The attributed time of all replicas together: added by noise, or hidden.
    pub fn added(&self) -> Nanos {
        self.replicas.iter().flat_map(|replica| replica.added.iter().copied()).sum()
    }

    /// The hidden part, in all replicas together.
    pub fn hidden(&self) -> Nanos {
        self.replicas.iter().map(|replica| replica.hidden).sum()
    }

    /// The hidden part relative to the time without noise: the mean over replicas.
    pub fn hidden_ratio(&self) -> f64 {
        let ratio = |replica: &ReplicaBooks| replica.hidden.get() as f64 / replica.quiet.get() as f64;
        self.replicas.iter().map(ratio).sum::<f64>() / self.replicas.len().max(1) as f64
    }

    /// The contributions of the sources, the largest first, without those that add nothing. On ties the lower number comes first.
    pub fn sources(&self) -> Vec<SourceShare> {
        let count = self.replicas.first().map_or(0, |replica| replica.added.len());
        let all = self.added().get() as f64;
        let mut shares: Vec<SourceShare> = (0..count)
            .filter_map(|number| {
                let cost: Nanos = self.replicas.iter().map(|replica| replica.added[number]).sum();
                let ratio = |replica: &ReplicaBooks| replica.added[number].get() as f64 / replica.quiet.get() as f64;
                let added = from_replicas(&self.replicas.iter().map(ratio).collect::<Vec<_>>())?;
                let added = crate::estimate::not_below(added, 0.0);
                let source = (number + 1 < count).then_some(number);
                (cost > Nanos::ZERO).then(|| SourceShare { source, added, cost, share: cost.get() as f64 / all })
            })
            .collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.cost));
        shares
    }
}

/// The replays of a question at one number of ranks, with their books and the `dearest` most expensive detours.
///
/// `watch` is notified of the phases.
///
/// Fails for no ranks, more than can be replayed, or times that do not fit.
pub fn closed_books(
    table: &DelayTable<'_>,
    noise: &Noise,
    books: &DetourBooks,
    question: &Question,
    ranks: u64,
    dearest: usize,
    watch: ReplayWatch<'_>,
) -> Result<ClosedBooks, ScaleError> {
    let table = &*table.for_ranks(ranks)?;
    let job = Job { table, noise, books, question, ranks, method: None, by_bounds: None };
    let replicas: Vec<u64> = (0..question.replicas).collect();
    let traces: Vec<&NoiseTrace> = noise.traces().collect();
    let mut done = Vec::with_capacity(replicas.len());
    for some in replicas.chunks(together(ranks, question.replicas)) {
        done.extend(side_by_side(some, |replica| job.replica(*replica, watch))?);
    }
    Ok(sum_replicas(books, &traces, ranks, dearest, done))
}

/// One replica with its books, and the cost of each detour of each CPU.
struct BookedReplica {
    books: ReplicaBooks,
    costs: Vec<Vec<i64>>,
}

/// The books of all replicas together.
fn sum_replicas(
    books: &DetourBooks,
    traces: &[&NoiseTrace],
    ranks: u64,
    dearest: usize,
    replicas: impl IntoIterator<Item = BookedReplica>,
) -> ClosedBooks {
    let mut costs: Vec<Vec<i64>> = traces.iter().map(|trace| vec![0; trace.len()]).collect();
    let mut done = Vec::new();
    for BookedReplica { books: replica, costs: more } in replicas {
        done.push(replica);
        for (sum, more) in costs.iter_mut().flatten().zip(more.iter().flatten()) {
            *sum += more;
        }
    }
    ClosedBooks { ranks, replicas: done, dearest: books.dearest(traces, &costs, dearest) }
}

/// The input that all replicas share.
struct Job<'j, 'a> {
    table: &'j DelayTable<'a>,
    noise: &'j Noise,
    books: &'j DetourBooks,
    question: &'j Question,
    ranks: u64,
    /// Tests force each method of the replay and of finding the latest rank.
    method: Option<Method>,
    by_bounds: Option<bool>,
}

impl Job<'_, '_> {
    fn replica(&self, replica: u64, watch: ReplayWatch<'_>) -> Result<BookedReplica, ScaleError> {
        let (table, question) = (self.table, self.question);
        let placement =
            Placement { ranks: self.ranks, per_node: question.per_node, synchronized: question.synchronized };
        let index = sorted_offsets(table, &placement.draw(table, question.seed, replica)?);
        let finder = LatestFinder::new(table, &index, self.by_bounds);
        let traces: Vec<&NoiseTrace> = self.noise.traces().collect();
        // The index of each unit's traces in the noise.
        let number = |trace: &NoiseTrace| traces.iter().position(|other| std::ptr::eq(*other, trace)).unwrap_or(0);
        let cpus: Vec<Vec<usize>> =
            table.kinds().iter().map(|kind| kind.traces.iter().map(|trace| number(trace)).collect()).collect();
        let mut costs: Vec<SlotCosts> = traces.iter().map(|trace| SlotCosts::new(trace)).collect();
        let mut now = 0;
        let mut count = watch.count(self.ranks, 1);
        let outcome = replay_indexed(table, &index, question.phases, self.method, |delay| {
            let delay = delay.get();
            if let Some(latest) = (delay > 0).then(|| finder.find(now, delay)).flatten() {
                let cpu = cpus[latest.kind][latest.trace];
                let laps = finder.laps(latest.kind, latest.trace);
                costs[cpu].add(traces[cpu], latest.position, laps.whole, laps.rest);
            }
            now += question.grain.get() + delay;
            count.phase();
        })?;
        let costs: Vec<Vec<i64>> = costs.iter().zip(&traces).map(|(costs, trace)| costs.costs(trace)).collect();
        let added = self.books.by_source(&traces, &costs);
        let quiet = Nanos::new(question.grain.get() * question.phases as i64);
        debug_assert_eq!(added.iter().copied().sum::<Nanos>(), outcome.total - quiet, "the books close");
        Ok(BookedReplica { books: ReplicaBooks { outcome, quiet, added, hidden: Nanos::ZERO }, costs })
    }
}

impl DetourBooks {
    /// Splits the costs of detours into costs of sources and unattributed time.
    fn by_source(&self, traces: &[&NoiseTrace], costs: &[Vec<i64>]) -> Vec<Nanos> {
        let mut added = vec![0_i64; self.sources + 1];
        for ((books, trace), costs) in self.cpus.iter().zip(traces).zip(costs) {
            for (slot, (cost, duration)) in costs.iter().zip(trace.durations_ns()).enumerate() {
                if *cost > 0 {
                    books.split(slot, *cost, *duration, |source, time| added[source] += time);
                }
            }
        }
        added.into_iter().map(Nanos::new).collect()
    }

    fn dearest(&self, traces: &[&NoiseTrace], costs: &[Vec<i64>], most: usize) -> Vec<DearDetour> {
        let all = costs.iter().enumerate().flat_map(|(cpu, costs)| {
            costs.iter().enumerate().filter(|(_, cost)| **cost > 0).map(move |(slot, cost)| (*cost, cpu, slot))
        });
        let mut all: Vec<(i64, usize, usize)> = all.collect();
        all.sort_unstable_by_key(|(cost, cpu, slot)| (std::cmp::Reverse(*cost), *cpu, *slot));
        all.truncate(most);
        let detour = |(cost, cpu, slot): (i64, usize, usize)| {
            let (books, trace) = (&self.cpus[cpu], traces[cpu]);
            let duration = trace.durations_ns()[slot];
            let mut sources = Vec::new();
            books.split(slot, cost, duration, |source, time| {
                let source = (source < self.sources).then_some(source);
                sources.push(CostPart { source, time: Nanos::new(time) });
            });
            sources.sort_by_key(|part| std::cmp::Reverse(part.time));
            let start = books.begin + Nanos::new(trace.starts_ns()[slot]);
            DearDetour { cpu, start, duration: Nanos::new(duration), cost: Nanos::new(cost), sources }
        };
        all.into_iter().map(detour).collect()
    }
}
