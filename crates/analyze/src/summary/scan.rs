//! Counting: reads the rows of one node's tables, a batch at a time, and keeps sums.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use becalm_account::{BatchOwners, CpuAccount, SourceId, SourceIds};
use becalm_model::{Kind, unseen};
use becalm_scale::at_once::TimedDetours;
use becalm_scale::sampled::{PhaseLosses, PhaseSampler};
use becalm_units::{CpuId, Nanos};

use super::pieces::Worker;
use super::scale;
use crate::noise::window::Window;
use becalm_stats::periods::Times;
use becalm_stats::spectrum::{FilledStretch, Welch};
use becalm_stats::{LengthCells, Longest, Moments, Quantiles, TimeCells};

/// Consecutive rows of the table of detours.
#[derive(Clone, Copy)]
pub struct DetourColumns<'a, I> {
    /// The CPU of each.
    pub cpus: &'a [i32],
    /// The start of each, in nanoseconds.
    pub starts: &'a [i64],
    /// The length of each, in nanoseconds.
    pub durations: &'a [i64],
    /// Whether kernel events were dropped in the one in this row.
    pub incomplete: I,
}

/// Consecutive rows of the table of activities, with their sources as keys into a small table.
#[derive(Clone, Copy)]
pub struct ActivityColumns<'a, K> {
    /// The CPU of each.
    pub cpus: &'a [i32],
    /// The number of the detour of each.
    pub detours: &'a [i64],
    /// The start of each, in nanoseconds.
    pub starts: &'a [i64],
    /// The self time of each, in nanoseconds.
    pub self_times: &'a [i64],
    /// The names of the sources, indexed by key.
    pub sources: &'a [&'a str],
    /// The details, likewise.
    pub details: &'a [&'a str],
    /// The kind of the one in this row, the key of its source and that of its detail.
    pub keys: K,
}

/// The sums over the rows of one node.
///
/// Rows of a CPU come in order of time, with all its activities before its detours. Otherwise the order is free, but consecutive rows of one CPU make
/// it fast.
///
/// The time of becalm's own threads, with kernel entry and exit, is not the machine's noise: it is subtracted from the detours and kept separately,
/// unless requested.
#[derive(Debug)]
pub struct Scan {
    cpus: Vec<CpuScan>,
    places: BTreeMap<i32, usize>,
    names: SourceIds,
    activities: u64,
    unexpected: BTreeSet<i32>,
    searches_detours: bool,
    with_self: bool,
    /// The number of CPUs to expect.
    expected: usize,
    /// How phases are sampled; `None` if they are not.
    sampling: Option<Sampling>,
    spectrum: Welch,
    losses: PhaseLosses<u32>,
}

impl Default for Scan {
    fn default() -> Self {
        Self {
            cpus: Vec::new(),
            places: BTreeMap::new(),
            names: SourceIds::default(),
            activities: 0,
            unexpected: BTreeSet::new(),
            searches_detours: false,
            expected: 1,
            sampling: None,
            with_self: false,
            spectrum: Welch::default(),
            losses: PhaseLosses::new(scale::GRAIN),
        }
    }
}

/// When and where phases are sampled.
#[derive(Clone, Copy, Debug)]
struct Sampling {
    /// `None` if each CPU is sampled in its own time.
    window: Option<Window>,
    /// The number of sampled CPUs, including those of other nodes.
    cpus: usize,
}

/// The sums over the rows of one CPU.
#[derive(Debug)]
pub(super) struct CpuScan {
    pub(super) cpu: CpuId,
    /// All detours as stored, with becalm's own time.
    pub(super) stored: Moments,
    pub(super) account: CpuAccount,
    pub(super) durations: Moments,
    /// Those of at least 1 us.
    pub(super) long: Moments,
    pub(super) quantiles: Quantiles,
    /// `None` if the end of the CPU's loop is unknown.
    pub(super) cells: Option<TimeCells>,
    /// The number of detours by length; `None` if `cells` is.
    pub(super) lengths: Option<LengthCells>,
    pub(super) longest: Longest,
    /// `None` if `cells` is, and in short runs.
    stretch: Option<FilledStretch>,
    /// The first detours of each octave of length; empty if not needed.
    pub(super) octaves: Vec<Times>,
    pub(super) incomplete: u64,
    /// `None` if `cells` is.
    pub(super) worker: Option<Worker>,
    /// `None` if `cells` is, or if no phases are sampled.
    phases: Option<PhaseSampler>,
    /// Only those of its own sources: all CPUs times all sources would be more than there are rows.
    pub(super) sources: Vec<SourceScan>,
    /// The index of each source in there, by its number.
    slots: HashMap<SourceId, u32>,
}

/// The sums over the activities that one source has on one CPU.
#[derive(Debug)]
pub(super) struct SourceScan {
    /// The source's number in `names`.
    pub(super) number: SourceId,
    pub(super) self_times: Moments,
    /// The time of all activities charged to it, in nanoseconds.
    pub(super) whole: i64,
    /// The start times of the first of them.
    pub(super) times: Times,
}

impl CpuScan {
    /// The index of a source among the CPU's, added if new.
    fn slot(&mut self, number: SourceId) -> u32 {
        let next = self.sources.len() as u32;
        let slot = *self.slots.entry(number).or_insert(next);
        if slot == next {
            self.sources.push(SourceScan { number, self_times: Moments::default(), whole: 0, times: Times::default() });
        }
        slot
    }
}

/// Detours of at least this length are not the processor's own; published ratios count those.
const LONG: i64 = unseen::SHORTEST_OF_SYSTEM.get();

/// The number of octaves of lengths.
const OCTAVES: usize = 63;

impl Scan {
    /// Keeps the times of the first detours of each length, to search for periods if no source is known.
    #[must_use]
    pub fn searching_detours(mut self, yes: bool) -> Self {
        self.searches_detours = yes;
        self
    }

    /// Counts becalm's own time like any other.
    #[must_use]
    pub fn with_self(mut self, yes: bool) -> Self {
        self.with_self = yes;
        self
    }

    /// Sets the number of CPUs to expect, on which the number of stretches that each contributes to the spectrum depends.
    #[must_use]
    pub const fn for_cpus(mut self, cpus: usize) -> Self {
        self.expected = cpus;
        self
    }

    /// Samples phases only while all CPUs were watched, like a prediction. `cpus` counts the CPUs of all nodes: the fewer there
    /// are, the denser the phases.
    #[must_use]
    pub(super) const fn sampling(mut self, window: Option<Window>, cpus: usize) -> Self {
        self.sampling = Some(Sampling { window, cpus });
        self
    }

    /// Adds a CPU, whose rows are skipped otherwise, with the cells of its run if its length is known.
    pub fn expect(&mut self, cpu: CpuId, cells: Option<TimeCells>) {
        let Ok(number) = i32::try_from(cpu.get()) else { return };
        self.places.insert(number, self.cpus.len());
        self.cpus.push(CpuScan {
            cpu,
            stored: Moments::default(),
            account: CpuAccount::new(self.with_self),
            durations: Moments::default(),
            long: Moments::default(),
            quantiles: Quantiles::default(),
            lengths: cells.as_ref().map(LengthCells::for_cells),
            longest: Longest::default(),
            stretch: cells.as_ref().and_then(|cells| FilledStretch::new(cells.start(), cells.length(), self.expected)),
            octaves: if self.searches_detours { vec![Times::default(); OCTAVES] } else { Vec::new() },
            worker: cells.as_ref().map(|cells| Worker::new(cells.start())),
            phases: cells.as_ref().zip(self.sampling).map(|(cells, sampling)| {
                let own = || Window { begin: Nanos::new(cells.start()), length: Nanos::new(cells.length()) };
                let Window { begin, length } = sampling.window.unwrap_or_else(own);
                PhaseSampler::new(begin, length, scale::GRAIN).for_cpus(sampling.cpus)
            }),
            cells,
            incomplete: 0,
            sources: Vec::new(),
            slots: HashMap::new(),
        });
    }

    /// Excludes from the phases what counts on another CPU of the node: detours of each expected CPU, in order of time.
    pub(super) fn leaving_out(&mut self, repeated: Vec<TimedDetours>) {
        for (cpu, repeated) in self.cpus.iter_mut().zip(repeated) {
            cpu.phases = cpu.phases.take().map(|phases| phases.leaving_out(repeated));
        }
    }

    /// Adds rows of the table of detours.
    pub fn detours(&mut self, rows: &DetourColumns<'_, impl Fn(usize) -> bool>) {
        for range in runs(rows.cpus) {
            let Some(place) = self.places.get(&rows.cpus[range.start]) else {
                self.unexpected.insert(rows.cpus[range.start]);
                continue;
            };
            let cpu = &mut self.cpus[*place];
            for row in range {
                let (start, duration) = (rows.starts[row], rows.durations[row]);
                cpu.stored.add(duration);
                let Some(duration) = cpu.account.detour(duration) else { continue };
                cpu.durations.add(duration);
                if duration >= LONG {
                    cpu.long.add(duration);
                }
                cpu.quantiles.add(duration);
                cpu.longest.add(start, duration);
                if let Some((cells, lengths)) = cpu.cells.as_mut().zip(cpu.lengths.as_mut()) {
                    lengths.add(cells.place(start), duration);
                    cells.add(start, duration);
                }
                if let Some(worker) = &mut cpu.worker {
                    worker.detour(start, duration);
                }
                if let Some(stretch) = &mut cpu.stretch {
                    stretch.add(start, duration, &mut self.spectrum);
                }
                if let Some(times) = cpu.octaves.get_mut(octave(duration)) {
                    times.add(start);
                }
                cpu.incomplete += u64::from((rows.incomplete)(row));
            }
        }
    }

    /// Adds rows of the table of activities.
    pub fn activities(&mut self, rows: &ActivityColumns<'_, impl Fn(usize) -> (Kind, usize, usize)>) {
        let mut owners = BatchOwners::new(rows.sources, rows.details);
        // The slot of each source on a CPU, and the run of that CPU's rows for which it was looked up.
        let mut slots: Vec<(u32, u32)> = Vec::new();
        for (run, range) in (1..).zip(runs(rows.cpus)) {
            let Some(place) = self.places.get(&rows.cpus[range.start]).copied() else { continue };
            self.activities += range.len() as u64;
            for row in range {
                let (kind, source, detail) = (rows.keys)(row);
                let owner = owners.owner(&mut self.names, kind, source, detail);
                let self_time = rows.self_times[row];
                let cpu = &mut self.cpus[place];
                if !cpu.account.activity(rows.detours[row] as u64, self_time, owner) {
                    continue;
                }
                if let Some(phases) = &mut cpu.phases {
                    let (start, time) = (Nanos::new(rows.starts[row]), Nanos::new(self_time));
                    phases.part(rows.detours[row], start, owner.root.get(), time, &mut self.losses);
                }
                if slots.len() < self.names.len() {
                    slots.resize(self.names.len(), (0, 0));
                }
                let [source, root] = [owner.source, owner.root].map(|id| {
                    let (looked_up, slot) = &mut slots[id.index()];
                    if *looked_up != run {
                        (*looked_up, *slot) = (run, cpu.slot(id));
                    }
                    *slot as usize
                });
                let found = &mut cpu.sources[source];
                found.self_times.add(self_time);
                found.times.add(rows.starts[row]);
                let whole = &mut cpu.sources[root].whole;
                *whole = whole.saturating_add(self_time);
            }
        }
    }

    /// The spectrum of the noise of all CPUs, without rows added later.
    pub(super) fn spectrum(&mut self) -> &Welch {
        for stretch in self.cpus.iter_mut().filter_map(|cpu| cpu.stretch.take()) {
            stretch.finish(&mut self.spectrum);
        }
        &self.spectrum
    }

    /// Lets the workers finish what they can before the loops end. Rows added later do not count.
    pub(super) fn finish_work(&mut self) {
        for cpu in &mut self.cpus {
            if let Some((worker, cells)) = cpu.worker.as_mut().zip(cpu.cells.as_ref()) {
                worker.work_until(cells.start().saturating_add(cells.length()));
            }
        }
    }

    /// The lateness of phases on the CPUs, by the numbers of the sources, without rows added later.
    pub(super) fn losses(&mut self) -> &PhaseLosses<u32> {
        for mut phases in self.cpus.iter_mut().filter_map(|cpu| cpu.phases.take()) {
            phases.finish(&mut self.losses);
        }
        &self.losses
    }

    /// The CPUs with inexact accounting.
    pub fn open_books(&self) -> impl Iterator<Item = CpuId> {
        self.cpus.iter().filter(|cpu| !cpu.account.is_closed()).map(|cpu| cpu.cpu)
    }

    /// The number of activities of the expected CPUs.
    pub const fn count_activities(&self) -> u64 {
        self.activities
    }

    /// CPUs with detours that were not expected.
    pub fn unexpected(&self) -> impl Iterator<Item = CpuId> {
        self.unexpected.iter().map(|number| CpuId::new(*number as u32))
    }

    /// The CPUs in the expected order, each with its sources in the order of their numbers. No rows may be added later.
    pub(super) fn cpus(&mut self) -> &mut [CpuScan] {
        for cpu in &mut self.cpus {
            cpu.slots.clear();
            cpu.sources.sort_by_key(|source| source.number);
        }
        &mut self.cpus
    }

    /// Kind and name of each source, by its number.
    pub(super) fn names(&self) -> &[(Kind, String)] {
        self.names.names()
    }
}

/// Lengths from 2^k to below 2^(k+1) nanoseconds have the number k, those below 1 the number 0.
#[inline]
const fn octave(duration: i64) -> usize {
    if duration < 1 { 0 } else { duration.ilog2() as usize }
}

/// The ranges of consecutive rows of one CPU.
pub(crate) fn runs(cpus: &[i32]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    cpus.chunk_by(|a, b| a == b).map(move |run| {
        let range = start..start + run.len();
        start = range.end;
        range
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    struct Row {
        cpu: i32,
        /// Kind, source and detail as indices into the tables below, and the time.
        parts: Vec<(usize, usize, usize, i64)>,
        incomplete: bool,
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let part = (0_usize..5, 0_usize..4, 0_usize..4, 0_i64..1 << 30);
        let row = (0_i32..4, proptest::collection::vec(part, 0..4), proptest::bool::ANY);
        proptest::collection::vec(row.prop_map(|(cpu, parts, incomplete)| Row { cpu, parts, incomplete }), 0..60)
    }

    const KINDS: [Kind; 5] = [Kind::Irq, Kind::Softirq, Kind::Irq, Kind::Edge, Kind::Becalm];
    const SOURCES: [&str; 4] = ["timer", "net_rx", "timer", "sshd"];
    const DETAILS: [&str; 4] = ["", "irq:timer", "self:sshd", "vector 236"];

    /// The root of a part, according to the tables.
    fn root((kind, source, detail, _): &(usize, usize, usize, i64)) -> (Kind, &'static str) {
        becalm_model::root::row_root(KINDS[*kind], SOURCES[*source], DETAILS[*detail])
    }

    /// Feeds the rows in batches of `size`.
    fn scan(rows: &[Row], size: usize, with_self: bool) -> Scan {
        let mut scan = Scan::default().with_self(with_self);
        (0..3).for_each(|cpu| scan.expect(CpuId::new(cpu), Some(TimeCells::new(0, 1 << 20))));
        let mut numbers = [0_i64; 4];
        let mut parts = Vec::new();
        for row in rows {
            let number = &mut numbers[row.cpu as usize];
            parts.extend(row.parts.iter().map(|part| (row.cpu, *number, *part)));
            *number += 1;
        }
        for batch in parts.chunks(size) {
            let cpus: Vec<i32> = batch.iter().map(|part| part.0).collect();
            let detours: Vec<i64> = batch.iter().map(|part| part.1).collect();
            let self_times: Vec<i64> = batch.iter().map(|part| part.2.3).collect();
            let starts: Vec<i64> = (0..).take(batch.len()).collect();
            scan.activities(&ActivityColumns {
                cpus: &cpus,
                detours: &detours,
                starts: &starts,
                self_times: &self_times,
                sources: &SOURCES,
                details: &DETAILS,
                keys: |row: usize| (KINDS[batch[row].2.0], batch[row].2.1, batch[row].2.2),
            });
        }
        for batch in rows.chunks(size) {
            let cpus: Vec<i32> = batch.iter().map(|row| row.cpu).collect();
            let starts: Vec<i64> = (0..).map(|n| n * 100).take(batch.len()).collect();
            let durations: Vec<i64> = batch.iter().map(|row| row.parts.iter().map(|part| part.3).sum()).collect();
            let incomplete = |row: usize| batch[row].incomplete;
            scan.detours(&DetourColumns { cpus: &cpus, starts: &starts, durations: &durations, incomplete });
        }
        scan
    }

    proptest! {
        #[test]
        fn equals_the_plain_way(rows in rows(), size in 1_usize..20, with_self in proptest::bool::ANY) {
            let mut scan = scan(&rows, size, with_self);
            prop_assert_eq!(scan.open_books().count(), 0);
            let names = scan.names().to_vec();
            let counts = |part: &&(usize, usize, usize, i64)| with_self || root(part).0 != Kind::Becalm;
            for cpu in scan.cpus() {
                let own: Vec<&Row> = rows.iter().filter(|row| row.cpu as u32 == cpu.cpu.get()).collect();
                let all = |row: &Row| row.parts.iter().map(|part| part.3).sum::<i64>();
                let left = |row: &Row| row.parts.iter().filter(counts).map(|part| part.3).sum::<i64>();
                prop_assert_eq!(cpu.stored.count(), own.len() as u64);
                prop_assert_eq!(cpu.stored.total(), own.iter().map(|row| all(row)).sum::<i64>());
                // A detour that is entirely becalm's own is none.
                let kept: Vec<&&Row> = own.iter().filter(|row| left(row) > 0 || all(row) == 0).collect();
                prop_assert_eq!(cpu.durations.count(), kept.len() as u64);
                prop_assert_eq!(cpu.long.count(), kept.iter().filter(|row| left(row) >= 1_000).count() as u64);
                prop_assert_eq!(cpu.incomplete, kept.iter().filter(|row| row.incomplete).count() as u64);
                let noise: i64 = own.iter().map(|row| left(row)).sum();
                prop_assert_eq!(cpu.durations.total(), noise);
                prop_assert_eq!(cpu.account.own_ns(), cpu.stored.total() - noise);
                prop_assert_eq!(cpu.account.own_longest_ns(), own.iter().map(|row| all(row) - left(row)).max().unwrap_or(0));
                prop_assert_eq!(cpu.cells.as_ref().unwrap().noise().iter().sum::<i64>(), noise);
                let mut plain: BTreeMap<(Kind, &str), (Moments, i64)> = BTreeMap::new();
                for part in own.iter().flat_map(|row| &row.parts).filter(counts) {
                    plain.entry((KINDS[part.0], SOURCES[part.1])).or_default().0.add(part.3);
                    plain.entry(root(part)).or_default().1 += part.3;
                }
                // The sum over the roots is the noise.
                prop_assert_eq!(plain.values().map(|(_, whole)| whole).sum::<i64>(), noise);
                let found: BTreeMap<(Kind, &str), (Moments, i64)> = cpu.sources.iter()
                    .map(|found| (&names[found.number.index()], (found.self_times, found.whole)))
                    .map(|((kind, source), times)| ((*kind, source.as_str()), times)).collect();
                prop_assert_eq!(found, plain);
            }
        }
    }

    #[test]
    fn a_wrong_self_time_opens_the_books_of_its_cpu() {
        let rows = vec![Row { cpu: 1, parts: vec![(0, 0, 0, 50)], incomplete: false }];
        let mut scan = scan(&rows, 1, false);
        let durations: &[i64] = &[7];
        scan.detours(&DetourColumns { cpus: &[2], starts: &[0], durations, incomplete: |_| false });
        assert_eq!(scan.open_books().collect::<Vec<_>>(), [CpuId::new(2)]);
    }
}
