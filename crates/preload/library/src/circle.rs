//! A circle of noise: an ordered list of detours that repeats every lap.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// A circle with at least one detour. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Circle<'a> {
    length: u64,
    /// A start and a length for each detour.
    detours: &'a [AtomicU64],
}

impl<'a> Circle<'a> {
    /// Creates a circle from its length and two words per detour, its start and its length; `None` without a length or detours.
    pub fn new(length: u64, detours: &'a [AtomicU64]) -> Option<Self> {
        (length > 0 && detours.len() >= 2).then_some(Self { length, detours })
    }

    /// The length of a lap.
    pub fn length(self) -> u64 {
        self.length
    }

    /// The number of detours in a lap.
    pub fn count(self) -> usize {
        self.detours.len() / 2
    }

    /// The place on the circle where a detour starts, and its length.
    pub fn detour(self, index: usize) -> (u64, u64) {
        (self.detours[2 * index].load(Relaxed), self.detours[2 * index + 1].load(Relaxed))
    }

    /// Whether any detour is at least this long.
    pub fn has(self, length: u64) -> bool {
        (0..self.count()).any(|index| self.detour(index).1 >= length)
    }

    /// The first detour that starts at this place or later; the number of detours if all start earlier.
    pub fn first_from(self, place: u64) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            if self.detour(middle).0 < place {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_detour_from_a_place_is_the_one_that_a_look_at_all_finds() {
        let starts: [u64; 5] = [3, 10, 11, 40, 99];
        let words: Vec<AtomicU64> = starts.iter().flat_map(|start| [*start, 1]).map(AtomicU64::new).collect();
        for count in 1..=starts.len() {
            let circle = Circle::new(100, &words[..2 * count]).unwrap();
            for place in 0..=100 {
                let expected = starts[..count].iter().filter(|start| **start < place).count();
                assert_eq!(circle.first_from(place), expected, "{place} among {count}");
            }
        }
    }
}
