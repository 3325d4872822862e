//! Detours that a loop counted instead of storing, because the ring between it and the collector was nearly full.

use std::sync::atomic::{AtomicU64, Ordering};

use becalm_units::Ticks;

/// One class per bit length.
const CLASSES: usize = u64::BITS as usize;

/// The number and the sum of steps by length; each class is twice as long as the one before. Only the loop writes; any thread may read meanwhile.
#[derive(Debug)]
pub struct UnstoredSteps {
    steps: [AtomicU64; CLASSES],
    totals: [AtomicU64; CLASSES],
}

/// Steps of similar length that were counted and not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LengthClass {
    /// The shortest length of the class, a power of two. The class ends before twice this length.
    pub from: Ticks,
    /// The number of steps; not 0.
    pub steps: u64,
    /// The sum of their lengths.
    pub total: Ticks,
}

impl Default for UnstoredSteps {
    fn default() -> Self {
        Self { steps: [const { AtomicU64::new(0) }; CLASSES], totals: [const { AtomicU64::new(0) }; CLASSES] }
    }
}

impl UnstoredSteps {
    /// For the loop, the only writer: counts a step. A step of length zero counts as one tick.
    #[inline]
    pub fn add(&self, step: Ticks) {
        let class = (step.get() | 1).ilog2() as usize;
        let grow = |word: &AtomicU64, amount: u64| word.store(word.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
        grow(&self.totals[class], step.get());
        grow(&self.steps[class], 1);
    }

    /// The classes that contain steps, the shortest first. While the loop runs, a sum may be ahead of its count by one step.
    pub fn length_classes(&self) -> Vec<LengthClass> {
        let class = |bits: usize| LengthClass {
            from: Ticks::new(1 << bits),
            steps: self.steps[bits].load(Ordering::Relaxed),
            total: Ticks::new(self.totals[bits].load(Ordering::Relaxed)),
        };
        (0..CLASSES).map(class).filter(|class| class.steps > 0).collect()
    }

    /// Resets all counts. The loop must not run meanwhile.
    pub(super) fn clear(&self) {
        for word in self.steps.iter().chain(&self.totals) {
            word.store(0, Ordering::Relaxed);
        }
    }
}
