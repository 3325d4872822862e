//! What was asked for and what was delivered, written into a thread's slot while its detours are made.

use crate::layout;
use crate::memory::Slot;

/// Books a detour that was due at this instant, in nanoseconds, with this length.
pub fn due(slot: Slot<'_>, at: u64, length: u64) {
    add(slot, layout::DUE, length);
    let last = slot.get(layout::LAST_DUE);
    if last != 0 {
        add(slot, layout::DUE_INTERVALS, at.saturating_sub(last));
    }
    slot.set(layout::LAST_DUE, at);
}

/// Books a detour that was due and began at these instants, in nanoseconds, and lasted this long.
pub fn delivered(slot: Slot<'_>, due: u64, start: u64, length: u64) {
    add(slot, layout::DELIVERED, length);
    let last = slot.get(layout::LAST_START);
    if last != 0 {
        add(slot, layout::INTERVALS, start.saturating_sub(last));
    }
    slot.set(layout::LAST_START, start);
    slot.add(layout::LATE + layout::late_bin(start.saturating_sub(due)), 1);
}

/// Adds a value to moments (Welford 1962): count, mean, sum of squared differences from the mean, least and greatest value.
fn add(slot: Slot<'_>, at: usize, value: u64) {
    let count = slot.get(at) + 1;
    let (mean, squares) = (f64::from_bits(slot.get(at + 1)), f64::from_bits(slot.get(at + 2)));
    let off = value as f64 - mean;
    let mean = mean + off / count as f64;
    let squares = squares + off * (value as f64 - mean);
    let (least, most) = (slot.get(at + 3), slot.get(at + 4));
    slot.set(at, count);
    slot.set(at + 1, mean.to_bits());
    slot.set(at + 2, squares.to_bits());
    slot.set(at + 3, if count == 1 { value } else { least.min(value) });
    slot.set(at + 4, if count == 1 { value } else { most.max(value) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Shared;
    use crate::memory::tests::prepared;

    #[test]
    fn moments_are_those_of_the_plain_way() {
        let words = prepared(&[]);
        let slot = Shared::new(&words).unwrap().slot(3).unwrap();
        let values = [5_u64, 9, 2, 2, 7];
        values.iter().for_each(|value| add(slot, layout::DUE, *value));
        let words: Vec<u64> = (0..layout::MOMENTS_WORDS).map(|word| slot.get(layout::DUE + word)).collect();
        assert_eq!((words[0], words[3], words[4]), (5, 2, 9));
        let squares: f64 = values.iter().map(|value| (*value as f64 - 5.0).powi(2)).sum();
        assert!((f64::from_bits(words[1]) - 5.0).abs() < 1e-12);
        assert!((f64::from_bits(words[2]) - squares).abs() < 1e-9);
    }

    #[test]
    fn intervals_are_from_start_to_start() {
        let words = prepared(&[]);
        let slot = Shared::new(&words).unwrap().slot(0).unwrap();
        for (at, late) in [(100, 3), (300, 0), (600, 50)] {
            due(slot, at, 20);
            delivered(slot, at, at + late, 21);
        }
        let ends = |at: usize| (slot.get(at), slot.get(at + 3), slot.get(at + 4));
        assert_eq!((ends(layout::DUE), ends(layout::DUE_INTERVALS)), ((3, 20, 20), (2, 200, 300)));
        assert_eq!((ends(layout::DELIVERED), ends(layout::INTERVALS)), ((3, 21, 21), (2, 197, 350)));
        for late in [3, 0, 50] {
            assert_eq!(slot.get(layout::LATE + layout::late_bin(late)), 1);
        }
    }
}
