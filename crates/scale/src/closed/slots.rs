//! The books of the detours of a circle, and their costs in a replay.

use becalm_units::Nanos;

use crate::books::BookedTrace;
use crate::noise::NoiseTrace;

/// The time of one source in one detour of a circle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SlotEntry {
    root: u32,
    time: i64,
}

/// The books of the detours of one CPU on its circle: adjacent detours are merged, and parts outside of the window are cut off.
#[derive(Clone, Debug)]
pub(super) struct CpuBooks {
    /// The offset from a position on the circle to a time of the recording.
    pub begin: Nanos,
    /// The index of each detour's first entry, then the end.
    first: Vec<u32>,
    /// The entries of a detour add up to its duration.
    entries: Vec<SlotEntry>,
}

impl CpuBooks {
    /// Books for a trace that was made from `booked` without the sources marked in `out`. Unattributed time gets the number `nobody`.
    pub(super) fn new(trace: &NoiseTrace, booked: &BookedTrace, out: &[bool], nobody: u32) -> Self {
        let count = trace.len() as i64;
        let mut rows: Vec<(u32, SlotEntry)> = Vec::new();
        for detour in booked.left(out) {
            let start = detour.start - booked.begin();
            let from = start.max(Nanos::ZERO);
            let part = ((start + detour.left).min(booked.length()) - from).get();
            if part <= 0 {
                continue;
            }
            let slot = trace.first_ending_after(from.get()).rem_euclid(count) as u32;
            let left = detour.left.get();
            let entries = detour.entries.iter().filter(|entry| !entry.is_out(out));
            let mut split = Split::new(part, left);
            for entry in entries {
                let time = split.next(entry.self_time.get());
                rows.push((slot, SlotEntry { root: entry.root, time }));
            }
            rows.push((slot, SlotEntry { root: nobody, time: split.rest() }));
        }
        rows.retain(|(_, entry)| entry.time > 0);
        // Detours come in the order of the circle, so only the sources of each need sorting.
        rows.sort_by_key(|(slot, _)| *slot);
        rows.chunk_by_mut(|a, b| a.0 == b.0).for_each(|same| same.sort_unstable_by_key(|(_, entry)| entry.root));
        let mut first = vec![0_u32; trace.len() + 1];
        let mut entries: Vec<SlotEntry> = Vec::with_capacity(rows.len());
        for same in rows.chunk_by(|a, b| (a.0, a.1.root) == (b.0, b.1.root)) {
            let (slot, SlotEntry { root, .. }) = same[0];
            entries.push(SlotEntry { root, time: same.iter().map(|(_, entry)| entry.time).sum() });
            first[slot as usize + 1] += 1;
        }
        for slot in 1..first.len() {
            first[slot] += first[slot - 1];
        }
        Self { begin: booked.begin(), first, entries }
    }

    fn entries(&self, slot: usize) -> &[SlotEntry] {
        &self.entries[self.first[slot] as usize..self.first[slot + 1] as usize]
    }

    /// Splits a cost of a detour over its sources, in proportion to its books, to the nanosecond.
    pub(super) fn split(&self, slot: usize, cost: i64, duration: i64, mut to: impl FnMut(usize, i64)) {
        let mut split = Split::new(cost, duration);
        for entry in self.entries(slot) {
            to(entry.root as usize, split.next(entry.time));
        }
    }
}

/// Splits a cost in proportion to parts of a whole. All parts together get all of it; each gets its share of the whole multiples, plus a rounded
/// share of the rest.
struct Split {
    times: i64,
    rest: i64,
    whole: i64,
    parts: i64,
    given: i64,
    cost: i64,
    total: i64,
}

impl Split {
    fn new(cost: i64, whole: i64) -> Self {
        Self { times: cost / whole, rest: cost % whole, whole, parts: 0, given: 0, cost, total: 0 }
    }

    /// The share of the next part.
    fn next(&mut self, part: i64) -> i64 {
        self.parts += part;
        let given = match self.parts.checked_mul(self.rest) {
            Some(product) => product / self.whole,
            None => (i128::from(self.parts) * i128::from(self.rest) / i128::from(self.whole)) as i64,
        };
        let share = self.times * part + given - self.given;
        self.given = given;
        self.total += share;
        share
    }

    /// The cost that no part got.
    fn rest(&self) -> i64 {
        self.cost - self.total
    }
}

/// The time that phases lost to each detour of one CPU.
#[derive(Clone, Debug)]
pub(super) struct SlotCosts {
    /// The number of phases that met a detour completely, as changes from one detour to the next.
    changes: Vec<i64>,
    /// The time of phases that started within it.
    parts: Vec<i64>,
    /// The number of times that all detours were met, in whole laps.
    laps: i64,
}

impl SlotCosts {
    pub(super) fn new(trace: &NoiseTrace) -> Self {
        Self { changes: vec![0; trace.len() + 1], parts: vec![0; trace.len()], laps: 0 }
    }

    /// Adds a phase that starts at a position on the circle, with this number of whole laps and this rest of work.
    pub(super) fn add(&mut self, trace: &NoiseTrace, position: i64, laps: i64, rest: i64) {
        self.laps += laps;
        let count = trace.len() as i64;
        let met = trace.meet(position, rest);
        let mut at = met.first;
        if met.into > 0 {
            let slot = at.rem_euclid(count) as usize;
            self.parts[slot] += trace.durations_ns()[slot] - met.into;
            at += 1;
        }
        while at < met.after {
            let lap = at.div_euclid(count) * count;
            let end = met.after.min(lap + count);
            self.changes[(at - lap) as usize] += 1;
            self.changes[(end - lap) as usize] -= 1;
            at = end;
        }
    }

    /// The cost of each detour, in the order of the circle.
    pub(super) fn costs(&self, trace: &NoiseTrace) -> Vec<i64> {
        let mut whole = self.laps;
        let durations = trace.durations_ns().iter().zip(&self.changes).zip(&self.parts);
        durations
            .map(|((duration, change), part)| {
                whole += change;
                whole * duration + part
            })
            .collect()
    }
}
