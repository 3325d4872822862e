//! Statistics of requested and delivered detours, written into a thread's slot while its detours are made.

use crate::layout;
use crate::memory::Slot;

/// Records a detour that was due at this instant, in nanoseconds, with this length.
pub fn due(slot: Slot<'_>, at: u64, length: u64) {
    add(slot, layout::DUE, length);
    let last = slot.get(layout::LAST_DUE);
    if last != 0 {
        add(slot, layout::DUE_INTERVALS, at.saturating_sub(last));
    }
    slot.set(layout::LAST_DUE, at);
}

/// Records a detour that was due and started at these instants, in nanoseconds, and lasted this long.
pub fn delivered(slot: Slot<'_>, due: u64, start: u64, length: u64) {
    add(slot, layout::DELIVERED, length);
    let last = slot.get(layout::LAST_START);
    if last != 0 {
        add(slot, layout::INTERVALS, start.saturating_sub(last));
    }
    slot.set(layout::LAST_START, start);
    slot.add(layout::LATE + layout::late_bin(start.saturating_sub(due)), 1);
}

fn add(slot: Slot<'_>, at: usize, value: u64) {
    let count = slot.get(at) + 1;
    let squares = u128::from(slot.get(at + 3)) << 64 | u128::from(slot.get(at + 2));
    let squares = squares.saturating_add(u128::from(value) * u128::from(value));
    let (least, greatest) = (slot.get(at + 4), slot.get(at + 5));
    slot.set(at, count);
    slot.set(at + 1, slot.get(at + 1).saturating_add(value));
    slot.set(at + 2, squares as u64);
    slot.set(at + 3, (squares >> 64) as u64);
    slot.set(at + 4, if count == 1 { value } else { least.min(value) });
    slot.set(at + 5, greatest.max(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Shared;
    use crate::memory::tests::prepared;

    #[test]
    fn moments_are_sums_and_ends() {
        let words = prepared(&[]);
        let slot = Shared::new(&words).unwrap().slot(3).unwrap();
        let moments = || -> Vec<u64> { (0..layout::MOMENTS_WORDS).map(|word| slot.get(layout::DUE + word)).collect() };
        [5, 9, 2, 2, 7].into_iter().for_each(|value| add(slot, layout::DUE, value));
        assert_eq!(moments(), [5, 25, 25 + 81 + 4 + 4 + 49, 0, 2, 9]);
        // The squares of times from 4.3 s on take more than one word.
        add(slot, layout::DUE, 1 << 33);
        assert_eq!(moments(), [6, 25 + (1 << 33), 163, 4, 2, 1 << 33]);
    }

    #[test]
    fn intervals_are_from_start_to_start() {
        let words = prepared(&[]);
        let slot = Shared::new(&words).unwrap().slot(0).unwrap();
        for (at, late) in [(100, 3), (300, 0), (600, 50)] {
            due(slot, at, 20);
            delivered(slot, at, at + late, 21);
        }
        let ends = |at: usize| (slot.get(at), slot.get(at + 4), slot.get(at + 5));
        assert_eq!((ends(layout::DUE), ends(layout::DUE_INTERVALS)), ((3, 20, 20), (2, 200, 300)));
        assert_eq!((ends(layout::DELIVERED), ends(layout::INTERVALS)), ((3, 21, 21), (2, 197, 350)));
        for late in [3, 0, 50] {
            assert_eq!(slot.get(layout::LATE + layout::late_bin(late)), 1);
        }
    }
}
