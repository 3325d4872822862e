//! Wall-clock time slots that double in length whenever there would be too many.

use becalm_model::digest::{SLOT_BITS, SLOTS, SlotSet};

/// The first slot's number since 1970, and the length of slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotGrid {
    /// `None` before the first instant.
    first: Option<i64>,
    /// The number of doublings.
    doubled: u32,
    /// The number of slots up to the last used one.
    used: usize,
}

impl SlotGrid {
    /// The length of a slot, in nanoseconds.
    pub(crate) const fn slot_ns(&self) -> i64 {
        1 << self.bits()
    }

    const fn bits(&self) -> u32 {
        SLOT_BITS + self.doubled
    }

    /// The number of the first slot.
    pub(crate) fn first(&self) -> i64 {
        self.first.unwrap_or(0)
    }

    /// The number of slots.
    pub(crate) const fn used(&self) -> usize {
        self.used
    }

    /// Whether a slot contains this instant, which then counts as used. Earlier instants belong to the first slot.
    pub(crate) fn reaches(&mut self, instant: i64) -> bool {
        let first = *self.first.get_or_insert(instant >> self.bits());
        let at = usize::try_from((instant >> self.bits()).saturating_sub(first)).unwrap_or(0);
        // The length of longer slots would overflow.
        if at >= SLOTS && self.bits() < 62 {
            return false;
        }
        self.used = self.used.max(at.min(SLOTS - 1) + 1);
        true
    }

    /// The index of the slot that contains an instant.
    pub(crate) fn slot_of(&self, instant: i64) -> usize {
        let at = (instant >> self.bits()).saturating_sub(self.first());
        usize::try_from(at).unwrap_or(0).min(SLOTS - 1)
    }

    /// The end of the slot at this index.
    pub(crate) fn end_of(&self, slot: usize) -> i64 {
        let number = self.first().saturating_add(slot as i64 + 1);
        number.saturating_mul(self.slot_ns())
    }

    /// Doubles the length of slots; returns whether the first one becomes the second half of its new slot.
    pub(crate) fn double(&mut self) -> bool {
        let odd = self.first() & 1 == 1;
        self.first = self.first.map(|first| first >> 1);
        self.doubled += 1;
        self.used = (self.used + usize::from(odd)).div_ceil(2);
        odd
    }
}

/// Adds up the values of each two slots that are merged.
pub(crate) fn halve<T: Copy + Default>(values: &mut Vec<T>, odd: bool, add: impl Fn(T, T) -> T) {
    let shift = usize::from(odd);
    let mut halved = vec![T::default(); (values.len() + shift).div_ceil(2)];
    for (at, value) in values.iter().enumerate() {
        let sum = &mut halved[(at + shift) / 2];
        *sum = add(*sum, *value);
    }
    *values = halved;
}

/// The merged slots of a set.
pub(crate) fn halved(set: &SlotSet, odd: bool) -> SlotSet {
    let mut halved = SlotSet::default();
    set.slots().for_each(|slot| halved.set((slot + usize::from(odd)) / 2));
    halved
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However often slots are merged, each instant is in the slot with its number.
    #[test]
    fn slots_stay_where_they_are_by_the_clock() {
        for begin in [0_i64, 1 << 50, (1 << 50) + (3 << 24)] {
            let mut grid = SlotGrid::default();
            let (mut counts, mut set) = (vec![0_u64; SLOTS], SlotSet::default());
            let instants: Vec<i64> = (0..4_000).map(|at| begin + at * 19_000_001).collect();
            for instant in &instants {
                while !grid.reaches(*instant) {
                    let odd = grid.double();
                    halve(&mut counts, odd, |a, b| a + b);
                    counts.resize(SLOTS, 0);
                    set = halved(&set, odd);
                }
                counts[grid.slot_of(*instant)] += 1;
                set.set(grid.slot_of(*instant));
            }
            assert_eq!(grid.slot_ns(), 1 << 28, "4,000 x 19 ms are 283 slots of 268 ms");
            let mut plain = vec![0_u64; SLOTS];
            instants
                .iter()
                .for_each(|instant| plain[(instant / grid.slot_ns() - begin / grid.slot_ns()) as usize] += 1);
            assert_eq!(counts, plain);
            let used: Vec<usize> = (0..SLOTS).filter(|slot| plain[*slot] > 0).collect();
            assert_eq!((set.slots().collect::<Vec<_>>(), grid.used()), (used.clone(), used.len()));
        }
    }
}
