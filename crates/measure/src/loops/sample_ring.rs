//! The ring of a loop that does work: steps with the iterations done in each.

use std::sync::atomic::Ordering;

use becalm_linux::memory::{LockedWords, MemoryError};
use becalm_units::Ticks;

use super::kind::StepRing;
use super::ring::Ring;

/// A ring of samples: the readings before and after each, and its work.
#[derive(Debug)]
pub struct SampleRing {
    readings: Ring,
    /// The work of the step in each slot.
    work: LockedWords,
}

impl SampleRing {
    /// Allocates a ring for this many samples (24 bytes each), rounded up to a power of two, on the given NUMA node if any.
    pub fn for_node(samples: usize, node: Option<u32>) -> Result<Self, MemoryError> {
        let readings = Ring::for_node(samples, node)?;
        let work = LockedWords::for_node(readings.capacity() as usize, node)?;
        Ok(Self { readings, work })
    }

    /// For the loop: adds a sample; `false` if the ring is full.
    #[inline]
    pub fn push(&self, before: Ticks, after: Ticks, work: u64) -> bool {
        // An unread slot must not change.
        if let Some(slot) = self.readings.next_slot() {
            self.work[slot].store(work, Ordering::Relaxed);
        }
        self.readings.push(before, after)
    }
}

impl StepRing for SampleRing {
    fn with_bytes(bytes: usize, node: Option<u32>) -> Result<Self, MemoryError> {
        Self::for_node(bytes / 24, node)
    }

    fn readings(&self) -> &Ring {
        &self.readings
    }

    fn is_locked(&self) -> bool {
        self.readings.is_locked() && self.work.is_locked()
    }

    fn take_some(&self, most: u64, mut take: impl FnMut(Ticks, Ticks, Option<u64>)) {
        self.readings.drain_slots(most, |slot, before, after| {
            take(before, after, Some(self.work[slot].load(Ordering::Relaxed)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_keep_their_work() {
        let ring = SampleRing::for_node(2, None).unwrap();
        let push = |before: u64, work| ring.push(Ticks::new(before), Ticks::new(before + 1), work);
        for round in 0..3 {
            assert!(push(round, 10 * round) && push(round + 1, 7));
            assert!(!push(9, 9));
            let mut seen = Vec::new();
            ring.take_some(u64::MAX, |before, after, work| seen.push((before.get(), after.get(), work)));
            assert_eq!(seen, [(round, round + 1, Some(10 * round)), (round + 1, round + 2, Some(7))]);
        }
    }
}
