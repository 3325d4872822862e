//! The ring through which a loop hands its steps to the collector: one writer, one reader, no lock, no waiting.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use becalm_linux::memory::{LockedWords, MemoryError};
use becalm_units::Ticks;

use super::unstored::UnstoredSteps;

/// A counter alone on its cache lines (two, because the prefetcher loads adjacent lines together), so the reader's polling does not slow the writer.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Alone(AtomicU64);

/// A step: the counter before and after.
///
/// ```text
/// words:  | before 0 | after 0 | before 1 | after 1 | ...
/// ```
#[derive(Debug)]
pub struct Ring {
    words: LockedWords,
    mask: u64,
    /// Steps written since the start; only the loop writes it.
    written: Alone,
    /// Steps read since the start; only the collector writes it.
    read: Alone,
    /// The reading at which the loop started, 0 before; only the loop writes it.
    began: Alone,
    /// All steps up to this reading are in the ring; only the loop writes it.
    progress: Alone,
    /// Whether a step found the ring full; only the loop writes it.
    overflowed: AtomicBool,
    /// Whether the loop has ended; only the loop writes it.
    ended: AtomicBool,
    /// The reading at which the loop ends; 0 stops it at once.
    deadline: Alone,
    /// Steps that were counted instead of stored because the ring was nearly full.
    unstored: UnstoredSteps,
}

impl Ring {
    /// A ring for this many steps, rounded up to a power of two; 16 bytes each.
    pub fn new(steps: usize) -> Result<Self, MemoryError> {
        Self::for_node(steps, None)
    }

    /// Like [`Self::new`], in the memory of a NUMA node.
    pub fn for_node(steps: usize, node: Option<u32>) -> Result<Self, MemoryError> {
        let steps = steps.max(2).next_power_of_two();
        Ok(Self {
            words: LockedWords::for_node(steps * 2, node)?,
            mask: steps as u64 - 1,
            written: Alone::default(),
            read: Alone::default(),
            began: Alone::default(),
            progress: Alone::default(),
            overflowed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            deadline: Alone(AtomicU64::new(u64::MAX)),
            unstored: UnstoredSteps::default(),
        })
    }

    /// Whether the ring's memory could be locked.
    pub const fn is_locked(&self) -> bool {
        self.words.is_locked()
    }

    /// The number of steps that fit into the ring.
    pub const fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// The ring's memory; page faults in it are page faults of the loop.
    pub fn memory(&self) -> &[AtomicU64] {
        &self.words
    }

    /// For the loop: adds a step; `false` if the ring is full.
    #[inline]
    pub fn push(&self, before: Ticks, after: Ticks) -> bool {
        let written = self.written.0.load(Ordering::Relaxed);
        if written - self.read.0.load(Ordering::Acquire) > self.mask {
            self.overflowed.store(true, Ordering::Release);
            return false;
        }
        let at = ((written & self.mask) * 2) as usize;
        self.words[at].store(before.get(), Ordering::Relaxed);
        self.words[at + 1].store(after.get(), Ordering::Relaxed);
        self.written.0.store(written + 1, Ordering::Release);
        true
    }

    /// For the loop: the slot of the next step, below [`Self::capacity`]; `None` if the ring is full.
    #[inline]
    pub fn next_slot(&self) -> Option<usize> {
        let written = self.written.0.load(Ordering::Relaxed);
        let room = written - self.read.0.load(Ordering::Acquire) <= self.mask;
        room.then_some((written & self.mask) as usize)
    }

    /// For the loop: whether more than three quarters of the ring are used, so the rest is reserved for steps that must be stored.
    #[inline]
    pub fn is_nearly_full(&self) -> bool {
        let waiting = self.written.0.load(Ordering::Relaxed) - self.read.0.load(Ordering::Acquire);
        waiting >= self.capacity() - self.capacity().div_ceil(4)
    }

    /// The steps counted instead of stored since the ring was made or cleared.
    pub const fn unstored(&self) -> &UnstoredSteps {
        &self.unstored
    }

    /// For the collector: whether a step found the ring full, which ended the loop.
    pub fn overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Acquire)
    }

    /// For the loop: all steps up to this reading are in the ring.
    #[inline(always)]
    pub fn set_progress(&self, reading: Ticks) {
        self.progress.0.store(reading.get(), Ordering::Release);
    }

    /// For the loop, at its end: the last reported progress is final.
    pub fn set_ended(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// For the collector: whether the loop has ended, so [`Self::progress`] is its last reading.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// For the loop: its first reading.
    pub fn set_began(&self, reading: Ticks) {
        self.began.0.store(reading.get(), Ordering::Release);
    }

    /// For the collector: the loop's first reading; `None` before it.
    pub fn began(&self) -> Option<Ticks> {
        Some(self.began.0.load(Ordering::Acquire)).filter(|reading| *reading > 0).map(Ticks::new)
    }

    /// Resets the ring. Neither loop nor collector may use it meanwhile.
    pub fn clear(&self) {
        self.drain(|_, _| {});
        self.overflowed.store(false, Ordering::Release);
        self.ended.store(false, Ordering::Release);
        self.began.0.store(0, Ordering::Release);
        self.progress.0.store(0, Ordering::Release);
        self.unstored.clear();
        self.set_deadline(Ticks::new(u64::MAX));
    }

    /// For the loop: the reading at which to end.
    #[inline(always)]
    pub fn deadline(&self) -> Ticks {
        Ticks::new(self.deadline.0.load(Ordering::Relaxed))
    }

    /// For the collector: sets the reading at which the loop ends.
    pub fn set_deadline(&self, reading: Ticks) {
        self.deadline.0.store(reading.get(), Ordering::Relaxed);
    }

    /// For the collector: moves the reading at which the loop ends, unless the loop was asked to stop.
    pub fn renew_deadline(&self, reading: Ticks) {
        let renewed = |deadline| (deadline != 0).then_some(reading.get());
        // A stop request is kept.
        let _ = self.deadline.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, renewed);
    }

    /// For the collector: stops the loop now.
    pub fn stop(&self) {
        self.set_deadline(Ticks::new(0));
    }

    /// For the collector: all steps up to this reading are in the ring. Read it before [`Self::drain`].
    pub fn progress(&self) -> Ticks {
        Ticks::new(self.progress.0.load(Ordering::Acquire))
    }

    /// For the collector: the number of waiting steps.
    pub fn waiting(&self) -> u64 {
        self.written.0.load(Ordering::Acquire) - self.read.0.load(Ordering::Relaxed)
    }

    /// For the collector: takes all waiting steps, in order.
    pub fn drain(&self, mut take: impl FnMut(Ticks, Ticks)) {
        self.drain_slots(u64::MAX, |_, before, after| take(before, after));
    }

    /// For the collector: takes at most this many waiting steps, the oldest first, each with its slot.
    pub fn drain_slots(&self, most: u64, mut take: impl FnMut(usize, Ticks, Ticks)) {
        let read = self.read.0.load(Ordering::Relaxed);
        let written = self.written.0.load(Ordering::Acquire).min(read.saturating_add(most));
        for step in read..written {
            let slot = (step & self.mask) as usize;
            let word = |at: usize| Ticks::new(self.words[at].load(Ordering::Relaxed));
            take(slot, word(slot * 2), word(slot * 2 + 1));
        }
        // Only now may the loop overwrite them.
        self.read.0.store(written, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn push(ring: &Ring, before: u64, after: u64) -> bool {
        ring.push(Ticks::new(before), Ticks::new(after))
    }

    #[test]
    fn a_deadline_is_renewed_until_the_loop_was_asked_to_end() {
        let ring = Ring::new(2).unwrap();
        ring.renew_deadline(Ticks::new(7));
        assert_eq!(ring.deadline(), Ticks::new(7));
        ring.stop();
        ring.renew_deadline(Ticks::new(9));
        assert_eq!(ring.deadline(), Ticks::new(0));
    }

    #[test]
    fn a_full_ring_refuses_and_keeps_what_it_has() {
        let ring = Ring::new(3).unwrap();
        assert_eq!(ring.capacity(), 4);
        for step in 0..4 {
            assert!(push(&ring, step, step + 1));
        }
        assert!(!ring.overflowed());
        assert!(!push(&ring, 9, 9));
        assert!(ring.overflowed());
        let mut seen = Vec::new();
        ring.drain(|before, _| seen.push(before.get()));
        assert_eq!(seen, [0, 1, 2, 3]);
        assert!(push(&ring, 4, 5));
        assert_eq!(ring.waiting(), 1);
    }

    #[test]
    fn two_threads_see_every_step_once_and_in_order() {
        const STEPS: u64 = 200_000;
        let ring = Ring::new(64).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in 0..STEPS {
                    while !push(&ring, step, step * 2) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut expected = 0;
            while expected < STEPS {
                ring.drain(|before, after| {
                    assert_eq!((before.get(), after.get()), (expected, expected * 2));
                    expected += 1;
                });
                std::thread::yield_now();
            }
        });
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_bounded_queue(size in 2_usize..20, actions in proptest::collection::vec(any::<bool>(), 0..200)) {
            let ring = Ring::new(size).unwrap();
            let mut queue = std::collections::VecDeque::new();
            for (i, pushes) in actions.into_iter().enumerate() {
                let i = i as u64;
                if pushes {
                    let room = (queue.len() as u64) < ring.capacity();
                    prop_assert_eq!(push(&ring, i, i + 7), room);
                    if room {
                        queue.push_back((i, i + 7));
                    }
                } else {
                    // Alternates between draining all and some of the waiting steps.
                    let most = if i.is_multiple_of(3) { u64::MAX } else { i % 7 };
                    let mut drained = Vec::new();
                    ring.drain_slots(most, |_, before, after| drained.push((before.get(), after.get())));
                    let taken = queue.len().min(most as usize);
                    prop_assert_eq!(drained, queue.drain(..taken).collect::<Vec<_>>());
                }
            }
        }
    }
}
