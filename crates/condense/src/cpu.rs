//! The counts of one CPU.

use std::collections::HashMap;

use becalm_account::{CpuAccount, SourceId, SourceIds};
use becalm_model::digest::{CpuDigest, LONGEST, LongDetour, OTHERS, SLOTS, SOURCES, SourceDigest, Sums};
use becalm_model::{Kind, unseen};
use becalm_units::CpuId;

use super::ActivityRow;
use super::delays::Delays;
use super::histogram::Lengths;
use super::slots::{self, SlotGrid};

/// Detours of at least this length are not caused by the processor itself.
const LONG: i64 = unseen::SHORTEST_OF_SYSTEM.get();

/// The counts of one CPU so far.
#[derive(Debug)]
pub(crate) struct CpuCounts {
    cpu: CpuId,
    traced: bool,
    stored: Sums,
    durations: Sums,
    long: Sums,
    account: CpuAccount,
    incomplete: u64,
    activities: u64,
    last_end: i64,
    lengths: Lengths,
    delays: Delays,
    noise: Vec<i64>,
    began: Vec<u64>,
    sources: Vec<SourceCounts>,
    places: HashMap<SourceId, u32>,
    /// The detour whose activities are arriving.
    pending: Option<Pending>,
    longest: Longest,
}

/// The counts of one source on the CPU.
#[derive(Clone, Debug)]
struct SourceCounts {
    id: SourceId,
    own: Sums,
    whole: i64,
    lengths: Lengths,
}

impl SourceCounts {
    fn new(id: SourceId) -> Self {
        Self { id, own: Sums::default(), whole: 0, lengths: Lengths::new(1) }
    }
}

/// A detour whose activities are arriving.
#[derive(Debug)]
struct Pending {
    detour: u64,
    start: i64,
    /// The time charged to each source, by its index on the CPU.
    parts: Vec<(u32, i64)>,
}

/// The longest detours, and at most as many more until the next cleanup.
#[derive(Debug, Default)]
struct Longest {
    kept: Vec<LongDetour>,
    /// Detours up to this length were removed.
    floor: i64,
}

impl Longest {
    fn add(&mut self, start_ns: i64, duration_ns: i64, parts: impl FnOnce() -> Vec<(u32, i64)>) {
        if duration_ns > self.floor {
            self.kept.push(LongDetour { start_ns, duration_ns, parts: parts() });
            if self.kept.len() >= 2 * LONGEST {
                let mut kept = std::mem::take(&mut self.kept);
                kept.sort_by_key(|detour| -detour.duration_ns);
                self.floor = kept[LONGEST].duration_ns;
                kept.truncate(LONGEST);
                self.kept = kept;
            }
        }
    }

    /// Only the longest detours, in order of time.
    fn sorted(&self) -> Vec<LongDetour> {
        let mut kept = self.kept.clone();
        kept.sort_by_key(|detour| (-detour.duration_ns, detour.start_ns));
        kept.truncate(LONGEST);
        kept.sort_by_key(|detour| detour.start_ns);
        kept
    }
}

impl CpuCounts {
    pub(crate) fn new(cpu: CpuId, traced: bool) -> Self {
        Self {
            cpu,
            traced,
            stored: Sums::default(),
            durations: Sums::default(),
            long: Sums::default(),
            account: CpuAccount::default(),
            incomplete: 0,
            activities: 0,
            last_end: 0,
            lengths: Lengths::new(2),
            delays: Delays::default(),
            noise: vec![0; SLOTS],
            began: vec![0; SLOTS],
            sources: Vec::new(),
            places: HashMap::new(),
            pending: None,
            longest: Longest::default(),
        }
    }

    pub(crate) fn is_next_detour(&self, detour: u64) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.detour != detour)
    }

    pub(crate) fn pending_start(&self) -> Option<i64> {
        self.pending.as_ref().map(|pending| pending.start)
    }

    /// Takes an activity of the pending detour, or of the next.
    pub(crate) fn activity(&mut self, row: &ActivityRow) {
        self.activities += 1;
        if !self.account.activity(row.detour, row.self_ns, row.owner) {
            return;
        }
        let source = self.place(row.owner.source);
        self.sources[source as usize].own.add(row.self_ns);
        let root = self.place(row.owner.root);
        let pending = self.pending.get_or_insert_with(|| Pending {
            detour: row.detour,
            start: row.start_ns,
            parts: Vec::with_capacity(4),
        });
        match pending.parts.iter_mut().find(|part| part.0 == root) {
            Some((_, sum)) => *sum = sum.saturating_add(row.self_ns),
            None => pending.parts.push((root, row.self_ns)),
        }
    }

    fn place(&mut self, id: SourceId) -> u32 {
        let next = self.sources.len() as u32;
        let place = *self.places.entry(id).or_insert(next);
        if place == next {
            self.sources.push(SourceCounts::new(id));
        }
        place
    }

    /// Charges pending activities to their roots, and calls `visit_root` with each root.
    pub(crate) fn close_detour(&mut self, mut visit_root: impl FnMut(SourceId)) {
        let Some(Pending { start, parts, .. }) = self.pending.take() else { return };
        let mut length = 0_i64;
        for (place, ns) in &parts {
            let source = &mut self.sources[*place as usize];
            visit_root(source.id);
            source.whole = source.whole.saturating_add(*ns);
            source.lengths.add(*ns);
            length = length.saturating_add(*ns);
        }
        self.delays.add(start, length, &parts);
        self.longest.add(start, length, || parts);
    }

    /// Takes a detour and returns its time without becalm's own, unless nothing is left.
    pub(crate) fn detour(&mut self, start: i64, duration: i64, incomplete: bool) -> Option<i64> {
        self.stored.add(duration);
        self.last_end = self.last_end.max(start.saturating_add(duration));
        let lost = self.account.detour(duration)?;
        self.durations.add(lost);
        if lost >= LONG {
            self.long.add(lost);
        }
        self.lengths.add(lost);
        self.incomplete += u64::from(incomplete);
        if !self.traced {
            self.delays.add(start, lost, &[]);
            self.longest.add(start, lost, Vec::new);
        }
        Some(lost)
    }

    /// Adds a detour to the slots that it spans.
    pub(crate) fn add_to_slots(&mut self, grid: &SlotGrid, mut begin: i64, lost: i64) {
        let end = begin.saturating_add(lost);
        let (first, last) = (grid.slot_of(begin), grid.slot_of(end.saturating_sub(1)).max(grid.slot_of(begin)));
        self.began[first] += 1;
        for slot in first..=last {
            let until = if slot == last { end } else { grid.end_of(slot) };
            self.noise[slot] = self.noise[slot].saturating_add(until.saturating_sub(begin));
            begin = until;
        }
    }

    /// Merges each two slots into one.
    pub(crate) fn halve(&mut self, odd: bool) {
        slots::halve(&mut self.noise, odd, i64::saturating_add);
        slots::halve(&mut self.began, odd, u64::saturating_add);
        self.noise.resize(SLOTS, 0);
        self.began.resize(SLOTS, 0);
    }

    /// The total time charged to each source, by its number.
    pub(crate) fn wholes(&self) -> impl Iterator<Item = (SourceId, i64)> + '_ {
        self.sources.iter().map(|source| (source.id, source.whole))
    }

    pub(crate) fn document(&self, names: &SourceIds, slots: usize) -> CpuDigest {
        let (sources, places) = self.largest(names);
        let mut longest = self.longest.sorted();
        for detour in &mut longest {
            let mut parts: Vec<(u32, i64)> = Vec::with_capacity(detour.parts.len());
            for (place, ns) in &detour.parts {
                let place = places[*place as usize];
                match parts.iter_mut().find(|part| part.0 == place) {
                    Some((_, sum)) => *sum = sum.saturating_add(*ns),
                    None => parts.push((place, *ns)),
                }
            }
            detour.parts = parts;
        }
        CpuDigest {
            cpu: self.cpu,
            stored: self.stored,
            durations: self.durations,
            long: self.long,
            own_ns: self.account.own_ns(),
            own_longest_ns: self.account.own_longest_ns(),
            incomplete: self.incomplete,
            activities: self.activities,
            books_closed: self.activities == 0 || self.account.is_closed(),
            last_end_ns: self.last_end,
            lengths: self.lengths.document(),
            delays: self.delays.document(&places),
            noise_ns: self.noise[..slots].to_vec(),
            began: self.began[..slots].to_vec(),
            sources,
            longest,
        }
    }

    /// The largest sources, then the others of each kind; and the index of each source in that list.
    fn largest(&self, names: &SourceIds) -> (Vec<SourceDigest>, Vec<u32>) {
        let name = |place: usize| names.name(self.sources[place].id);
        let mut ranked: Vec<usize> = (0..self.sources.len()).collect();
        ranked.sort_by(|a, b| {
            let (one, other) = (&self.sources[*a], &self.sources[*b]);
            let times = (other.whole, other.own.total_ns).cmp(&(one.whole, one.own.total_ns));
            times.then_with(|| name(*a).cmp(&name(*b)))
        });
        let mut kept: Vec<(Kind, &str, SourceCounts)> = Vec::new();
        let mut places = vec![0_u32; self.sources.len()];
        for (rank, place) in ranked.into_iter().enumerate() {
            let ((kind, source), counts) = (name(place), &self.sources[place]);
            let source = if rank < SOURCES { source } else { OTHERS };
            let same = kept.iter().position(|name| name.0 == kind && name.1 == source);
            places[place] = same.unwrap_or(kept.len()) as u32;
            match same {
                None => kept.push((kind, source, counts.clone())),
                Some(same) => {
                    let sum = &mut kept[same].2;
                    sum.own.merge(&counts.own);
                    sum.whole = sum.whole.saturating_add(counts.whole);
                    sum.lengths.merge(&counts.lengths);
                }
            }
        }
        let sources = kept.into_iter().map(|(kind, source, counts)| SourceDigest {
            kind,
            source: source.to_owned(),
            own: counts.own,
            whole_ns: counts.whole,
            lengths: counts.lengths.document(),
        });
        (sources.collect(), places)
    }
}
