//! Condenses detours and activities to the summary form of a recording, row by row and in bounded memory: histograms of their lengths, sums, the
//! delays of work, the noise in time slots, and the longest detours unchanged.
//!
//! The same code counts during a recording and when a stored one is condensed, so both give the same document.

#![forbid(unsafe_code)]

mod cpu;
mod delays;
mod histogram;
mod slots;

use std::collections::HashMap;

use becalm_account::{Owner, SourceId, SourceIds};
use becalm_model::digest::{DigestDoc, SCHEMA, SlotSet, SourceSlots};
use becalm_model::{Kind, NodeDoc};
use becalm_units::CpuId;

use cpu::CpuCounts;
use slots::{SlotGrid, halved};

/// Maximum number of distinct names of a node; further names are merged by kind. It bounds the memory, not the document.
const NAMES: usize = 1 << 14;

/// The number of sources per node that are stored with their time slots.
const MOMENTS: usize = 64;

/// An activity, as in the table of activities.
#[derive(Clone, Copy, Debug)]
pub struct ActivityRow {
    /// The number of its detour on its CPU; they must not decrease.
    pub detour: u64,
    /// Its start, since the run's origin, in nanoseconds.
    pub start_ns: i64,
    /// Its own time, in nanoseconds.
    pub self_ns: i64,
    /// Its owner, by the numbers of [`Condenser::sources`].
    pub owner: Owner,
}

/// Counts the rows of one node. The activities of a detour come before it; the detours of a CPU come in order of time.
#[derive(Debug)]
pub struct Condenser {
    /// The run's origin, in nanoseconds since 1970.
    origin_ns: i64,
    grid: SlotGrid,
    cpus: Vec<CpuCounts>,
    names: SourceIds,
    /// For the number of each source, the slots when it started anything; missing sources have none.
    moments: Vec<SlotSet>,
}

impl Condenser {
    /// For the CPUs of a recording with this origin, in nanoseconds since 1970. `traced` says whether activities will come.
    pub fn new(origin_ns: i64, cpus: impl IntoIterator<Item = CpuId>, traced: bool) -> Self {
        Self {
            origin_ns,
            grid: SlotGrid::default(),
            cpus: cpus.into_iter().map(|cpu| CpuCounts::new(cpu, traced)).collect(),
            names: SourceIds::with_limit(NAMES),
            moments: Vec::new(),
        }
    }

    /// The numbers of the sources of the node.
    pub const fn sources(&mut self) -> &mut SourceIds {
        &mut self.names
    }

    /// Takes an activity of the CPU at this index.
    pub fn activity(&mut self, place: usize, row: &ActivityRow) {
        if self.cpus[place].is_next_detour(row.detour) {
            self.close_detour(place);
        }
        self.cpus[place].activity(row);
    }

    /// Takes a detour of the CPU at this index.
    pub fn detour(&mut self, place: usize, start_ns: i64, duration_ns: i64, incomplete: bool) {
        self.close_detour(place);
        let begin = self.origin_ns.saturating_add(start_ns);
        self.reach(begin.saturating_add(duration_ns));
        let counted = self.cpus[place].detour(start_ns, duration_ns, incomplete);
        if let Some(lost_ns) = counted {
            self.cpus[place].add_to_slots(&self.grid, begin, lost_ns);
        }
    }

    /// Charges the activities of a detour to their roots, after the last of them.
    fn close_detour(&mut self, place: usize) {
        let Some(start_ns) = self.cpus[place].pending_start() else { return };
        let begin = self.origin_ns.saturating_add(start_ns);
        self.reach(begin);
        let slot = self.grid.slot_of(begin);
        let Self { cpus, moments, names, .. } = self;
        moments.resize(names.len(), SlotSet::default());
        cpus[place].close_detour(|root| moments[root.index()].set(slot));
    }

    /// Doubles the length of slots until one contains this instant.
    fn reach(&mut self, instant: i64) {
        while !self.grid.reaches(instant) {
            let odd = self.grid.double();
            self.cpus.iter_mut().for_each(|cpu| cpu.halve(odd));
            self.moments.iter_mut().for_each(|set| *set = halved(set, odd));
        }
    }

    /// The document of the rows so far, for a recording with the document `run` and the CPUs given to [`Self::new`].
    #[must_use]
    pub fn document(&mut self, run: NodeDoc) -> DigestDoc {
        for place in 0..self.cpus.len() {
            self.close_detour(place);
        }
        let slots = self.grid.used();
        let cpus = self.cpus.iter().map(|cpu| cpu.document(&self.names, slots)).collect();
        let mut wholes: HashMap<SourceId, i64> = HashMap::new();
        for (id, whole) in self.cpus.iter().flat_map(CpuCounts::wholes) {
            let sum = wholes.entry(id).or_default();
            *sum = sum.saturating_add(whole);
        }
        // becalm itself and entry/exit overhead are not listed as sources.
        let name = |id: SourceId| self.names.name(id);
        let told = |id: SourceId| !matches!(name(id).0, Kind::Becalm | Kind::Edge);
        let mut ranked: Vec<(SourceId, i64)> =
            wholes.into_iter().filter(|(id, whole)| told(*id) && *whole > 0).collect();
        ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| name(a.0).cmp(&name(b.0))));
        let moments = ranked.into_iter().take(MOMENTS).map(|(id, _)| SourceSlots {
            kind: name(id).0,
            source: name(id).1.to_owned(),
            slots: self.moments.get(id.index()).copied().unwrap_or_default(),
        });
        DigestDoc {
            schema: SCHEMA.to_owned(),
            run: NodeDoc { stored: None, clock: run.clock.without_pairs(), ..run },
            slot_ns: self.grid.slot_ns(),
            first_slot: self.grid.first(),
            slots,
            moments: moments.collect(),
            cpus,
        }
    }
}

#[cfg(test)]
mod tests;
