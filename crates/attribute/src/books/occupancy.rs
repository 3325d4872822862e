//! The occupants of a CPU over time, with running sums: the share of each occupant in any stretch costs at most a few hundred steps, however long
//! the stretch is.

use std::collections::VecDeque;
use std::hash::Hash;

use becalm_units::{Nanos, NumberMap};

/// The sums are kept at every entry whose number is a multiple of this.
const EVERY: u64 = 512;

/// A time on the CPU, until the next entry.
#[derive(Clone, Copy, Debug)]
struct OccupancyEntry {
    start: Nanos,
    occupant: u32,
    /// Whether the occupant came, instead of going on after an interruption.
    is_visit: bool,
}

/// The time and the visits of an occupant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Share {
    pub time: Nanos,
    pub visits: u64,
}

/// The times of occupants of type `T` on one CPU, without gaps.
#[derive(Clone, Debug)]
pub(super) struct Occupancy<T> {
    entries: VecDeque<OccupancyEntry>,
    /// The number of the first kept entry.
    first: u64,
    /// The sums before the kept entries whose numbers are multiples of [`EVERY`].
    sums: VecDeque<Vec<Share>>,
    /// The sums before the last entry.
    running: Vec<Share>,
    occupants: Vec<T>,
    places: NumberMap<T, u32>,
    /// The occupants of the stretch being summed up, and their shares; empty between calls.
    touched: Vec<u32>,
    shares: Vec<Share>,
}

impl<T: Copy + Eq + Hash> Default for Occupancy<T> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            sums: VecDeque::new(),
            running: Vec::new(),
            occupants: Vec::new(),
            places: NumberMap::default(),
            touched: Vec::new(),
            shares: Vec::new(),
        }
    }
}

impl<T: Copy + Eq + Hash> Occupancy<T> {
    /// An occupant has the CPU from `at` on, no earlier than the one before.
    pub fn enter(&mut self, at: Nanos, occupant: T, is_visit: bool) {
        if let Some(last) = self.entries.back() {
            let sum = &mut self.running[last.occupant as usize];
            sum.time += at - last.start;
            sum.visits += u64::from(last.is_visit);
        }
        let occupant = self.place(occupant);
        if (self.first + self.entries.len() as u64).is_multiple_of(EVERY) {
            self.sums.push_back(self.running.clone());
        }
        self.entries.push_back(OccupancyEntry { start: at, occupant, is_visit });
    }

    /// The last occupant.
    pub fn last(&self) -> Option<T> {
        self.entries.back().map(|last| self.occupants[last.occupant as usize])
    }

    /// Forgets everything before this instant, which is no earlier than the last entry.
    pub fn restart(&mut self, at: Nanos) {
        if let (Some(last), Some(occupant)) = (self.entries.back().copied(), self.last()) {
            *self = Self::default();
            self.enter(at, occupant, last.is_visit && last.start >= at);
        }
    }

    /// Names the last occupant differently, from its start.
    pub fn rename_last(&mut self, occupant: T) {
        let occupant = self.place(occupant);
        if let Some(last) = self.entries.back_mut() {
            last.occupant = occupant;
        }
    }

    fn place(&mut self, occupant: T) -> u32 {
        let Self { occupants, places, running, shares, .. } = self;
        *places.entry(occupant).or_insert_with(|| {
            occupants.push(occupant);
            running.push(Share::default());
            shares.push(Share::default());
            occupants.len() as u32 - 1
        })
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the entries that ended before this instant.
    pub fn forget_before(&mut self, at: Nanos) {
        let ended = self.position(at) as u64;
        // Whole groups, so the first kept entry has sums.
        let groups = (self.first + ended) / EVERY - self.first / EVERY;
        self.entries.drain(..(groups * EVERY) as usize);
        self.sums.drain(..groups as usize);
        self.first += groups * EVERY;
    }

    /// The place of the entry at this instant; the first one if it is later.
    fn position(&self, at: Nanos) -> usize {
        // Most waits are short: in growing steps from the end, which stays in the processor's cache, then between the last two.
        let is_later = |place: usize| self.entries[place].start > at;
        let (mut before, mut after, mut step) = (0, self.entries.len(), 1);
        while step <= self.entries.len() {
            let place = self.entries.len() - step;
            if !is_later(place) {
                before = place + 1;
                break;
            }
            after = place;
            step *= 2;
        }
        while before < after {
            let middle = usize::midpoint(before, after);
            if is_later(middle) { after = middle } else { before = middle + 1 }
        }
        before.saturating_sub(1)
    }

    /// Passes the share of each occupant from `from` to `to`, which is no earlier than the last entry. An occupant that was there at the start
    /// counts as one visit, even if it only went on. Also passes how often it came within.
    pub fn shares(&mut self, from: Nanos, to: Nanos, mut pass: impl FnMut(T, Share, u64)) {
        let (begin, end) = (self.position(from), self.position(to));
        // Numbers of groups of entries, each with sums before it.
        let group = |place: usize| (self.first + place as u64) / EVERY - self.first / EVERY;
        let (after_begin, until_end) = (group(begin) + 1, group(end));
        if until_end > after_begin {
            let place = |group: u64| (group * EVERY) as usize;
            self.walk(begin..place(after_begin), from, to);
            self.jump(after_begin as usize, until_end as usize);
            self.walk(place(until_end)..end + 1, from, to);
        } else {
            self.walk(begin..end + 1, from, to);
        }
        for place in self.touched.drain(..) {
            let share = std::mem::take(&mut self.shares[place as usize]);
            if share.time > Nanos::ZERO {
                let counted = Share { visits: share.visits.max(1), ..share };
                pass(self.occupants[place as usize], counted, share.visits);
            }
        }
    }

    fn walk(&mut self, places: std::ops::Range<usize>, from: Nanos, to: Nanos) {
        for place in places {
            let Some(entry) = self.entries.get(place).copied() else { break };
            let until = self.entries.get(place + 1).map_or(to, |next| next.start.min(to));
            let length = until - entry.start.max(from);
            if length > Nanos::ZERO {
                let is_visit = entry.is_visit && entry.start >= from;
                self.add(entry.occupant, Share { time: length, visits: u64::from(is_visit) });
            }
        }
    }

    /// Adds all entries of the groups from `begin` until `end`.
    fn jump(&mut self, begin: usize, end: usize) {
        for place in 0..self.sums[end].len() {
            let (after, before) = (self.sums[end][place], self.sums[begin].get(place).copied().unwrap_or_default());
            if after.time > before.time {
                let share = Share { time: after.time - before.time, visits: after.visits - before.visits };
                self.add(place as u32, share);
            }
        }
    }

    fn add(&mut self, place: u32, more: Share) {
        let share = &mut self.shares[place as usize];
        if share.time == Nanos::ZERO {
            self.touched.push(place);
        }
        share.time += more.time;
        share.visits += more.visits;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    /// The shares by definition: all entries, cut to the stretch.
    fn plain(entries: &[(i64, u8, bool)], from: i64, to: i64) -> BTreeMap<u8, (i64, u64)> {
        let mut shares: BTreeMap<u8, (i64, u64)> = BTreeMap::new();
        for (place, (start, occupant, is_visit)) in entries.iter().enumerate() {
            let end = entries.get(place + 1).map_or(to, |next| next.0.min(to));
            let length = end - (*start).max(from);
            if length > 0 {
                let share = shares.entry(*occupant).or_default();
                share.0 += length;
                share.1 += u64::from(*is_visit && *start >= from);
            }
        }
        shares.values_mut().for_each(|share| share.1 = share.1.max(1));
        shares
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn shares_are_those_of_all_entries_cut_to_the_stretch(
            steps in proptest::collection::vec((0_i64..20, 0_u8..9, any::<bool>()), 1..3_000),
            asked in proptest::collection::vec((0_usize..3_000, 0_i64..30), 1..6),
            forgotten in proptest::option::of(0_usize..3_000),
        ) {
            let mut occupancy = Occupancy::default();
            let (mut entries, mut now) = (Vec::new(), 0);
            for (length, occupant, is_visit) in steps {
                now += length;
                entries.push((now, occupant, is_visit));
                occupancy.enter(Nanos::new(now), occupant, is_visit);
            }
            let oldest = forgotten.map_or(0, |place| entries[place.min(entries.len() - 1)].0);
            occupancy.forget_before(Nanos::new(oldest));
            for (place, more) in asked {
                let from = entries[place.min(entries.len() - 1)].0.max(oldest);
                // Entries without length at one instant have no order.
                let to = now.max(from) + more;
                let mut shares = BTreeMap::new();
                occupancy.shares(Nanos::new(from), Nanos::new(to), |occupant, share, _| {
                    shares.insert(occupant, (share.time.get(), share.visits));
                });
                let expected = plain(&entries, from, to);
                let times = |shares: &BTreeMap<u8, (i64, u64)>| shares.iter().map(|(who, share)| (*who, share.0)).collect::<Vec<_>>();
                prop_assert_eq!(times(&shares), times(&expected));
                prop_assert_eq!(shares.values().map(|share| share.0).sum::<i64>(), to - from);
            }
        }
    }

    #[test]
    fn a_visit_that_interrupts_cut_is_one() {
        let mut occupancy = Occupancy::default();
        occupancy.enter(Nanos::new(0), 'a', true);
        for tick in 0..10 {
            occupancy.enter(Nanos::new(100 * tick + 50), 'i', true);
            occupancy.enter(Nanos::new(100 * tick + 60), 'a', false);
        }
        let mut shares = Vec::new();
        occupancy.shares(Nanos::new(20), Nanos::new(1_020), |who, share, _| {
            shares.push((who, share.time.get(), share.visits))
        });
        assert_eq!(shares, [('a', 900, 1), ('i', 100, 10)]);
    }
}
