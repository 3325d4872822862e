//! The ring through which a loop hands its steps to the collector: one writer, one reader, no lock, no waiting.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use becalm_linux::memory::{LockedWords, MemoryError};

/// A counter alone on its cache lines (two, as adjacent lines are fetched together), so that the reader's polling does
/// not slow the writer.
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
    /// The work of each step, where the ring is one of samples.
    work: Option<LockedWords>,
    mask: u64,
    /// Steps written since the start; only the loop stores it.
    written: Alone,
    /// Steps read since the start; only the collector stores it.
    read: Alone,
    /// The reading at which the loop began; only the loop stores it. Zero until then.
    began: Alone,
    /// The reading of the counter up to which all steps are in the ring; only the loop stores it.
    progress: Alone,
    /// Whether a step found no room; only the loop stores it.
    overflowed: AtomicBool,
    /// The reading at which the loop shall end; zero asks it to end now.
    deadline: Alone,
}

impl Ring {
    /// A ring for this many steps, rounded up to a power of two; 16 bytes each.
    ///
    /// # Errors
    /// If there is not so much memory.
    pub fn new(steps: usize) -> Result<Self, MemoryError> {
        let steps = steps.max(2).next_power_of_two();
        Ok(Self {
            words: LockedWords::new(steps * 2)?,
            work: None,
            mask: steps as u64 - 1,
            written: Alone::default(),
            read: Alone::default(),
            began: Alone::default(),
            progress: Alone::default(),
            overflowed: AtomicBool::new(false),
            deadline: Alone(AtomicU64::new(u64::MAX)),
        })
    }

    /// A ring for this many samples, rounded up to a power of two: steps, each with the work that was done in it; 24
    /// bytes each.
    ///
    /// # Errors
    /// If there is not so much memory.
    pub fn of_samples(samples: usize) -> Result<Self, MemoryError> {
        let mut ring = Self::new(samples)?;
        ring.work = Some(LockedWords::new(ring.capacity() as usize)?);
        Ok(ring)
    }

    /// Whether the ring's memory could be locked.
    #[must_use]
    pub const fn is_locked(&self) -> bool {
        self.words.is_locked()
            && match &self.work {
                Some(work) => work.is_locked(),
                None => true,
            }
    }

    /// Whether the ring keeps the work of its steps.
    #[must_use]
    pub const fn is_of_samples(&self) -> bool {
        self.work.is_some()
    }

    /// How many steps fit.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// The ring's memory; a page fault in it is a page fault of the loop.
    #[must_use]
    pub fn memory(&self) -> &[AtomicU64] {
        &self.words
    }

    /// For the loop: adds a step. Returns whether there was room.
    #[inline]
    pub fn push(&self, before: u64, after: u64) -> bool {
        let written = self.written.0.load(Ordering::Relaxed);
        if written - self.read.0.load(Ordering::Acquire) > self.mask {
            self.overflowed.store(true, Ordering::Release);
            return false;
        }
        let at = ((written & self.mask) * 2) as usize;
        self.words[at].store(before, Ordering::Relaxed);
        self.words[at + 1].store(after, Ordering::Relaxed);
        self.written.0.store(written + 1, Ordering::Release);
        true
    }

    /// For the loop: adds a step and its work, which is forgotten where the ring is not one of samples. Returns whether
    /// there was room.
    #[inline]
    pub fn push_sample(&self, before: u64, after: u64, work: u64) -> bool {
        if let Some(words) = &self.work {
            // A slot that is still to be read must stay as it is, so room is looked for first.
            let written = self.written.0.load(Ordering::Relaxed);
            if written - self.read.0.load(Ordering::Acquire) <= self.mask {
                words[(written & self.mask) as usize].store(work, Ordering::Relaxed);
            }
        }
        self.push(before, after)
    }

    /// For the collector: whether a step found no room, which ended the loop.
    #[must_use]
    pub fn overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Acquire)
    }

    /// For the loop: all steps up to this reading are in the ring.
    #[inline(always)]
    pub fn set_progress(&self, reading: u64) {
        self.progress.0.store(reading, Ordering::Release);
    }

    /// For the loop: its first reading.
    pub fn set_began(&self, reading: u64) {
        self.began.0.store(reading, Ordering::Release);
    }

    /// For the collector: the loop's first reading, once it has begun.
    #[must_use]
    pub fn began(&self) -> Option<u64> {
        Some(self.began.0.load(Ordering::Acquire)).filter(|reading| *reading > 0)
    }

    /// Makes the ring as new. Neither loop nor collector may use it meanwhile.
    pub fn clear(&self) {
        self.drain(|_, _| {});
        self.overflowed.store(false, Ordering::Release);
        self.began.0.store(0, Ordering::Release);
        self.progress.0.store(0, Ordering::Release);
        self.set_deadline(u64::MAX);
    }

    /// For the loop: the reading at which to end.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> u64 {
        self.deadline.0.load(Ordering::Relaxed)
    }

    /// For the collector: sets the reading at which the loop shall end.
    pub fn set_deadline(&self, reading: u64) {
        self.deadline.0.store(reading, Ordering::Relaxed);
    }

    /// For the collector: asks the loop to end now.
    pub fn stop(&self) {
        self.set_deadline(0);
    }

    /// For the collector: the reading up to which all steps are in the ring, to be asked for before [`Self::drain`].
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.progress.0.load(Ordering::Acquire)
    }

    /// For the collector: how many steps wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.written.0.load(Ordering::Acquire) - self.read.0.load(Ordering::Relaxed)
    }

    /// For the collector: takes all steps that wait, in order.
    pub fn drain(&self, mut take: impl FnMut(u64, u64)) {
        self.drain_samples(|before, after, _| take(before, after));
    }

    /// For the collector: takes all steps that wait, in order, with their work; 0 where the ring is not one of samples.
    pub fn drain_samples(&self, mut take: impl FnMut(u64, u64, u64)) {
        let written = self.written.0.load(Ordering::Acquire);
        let read = self.read.0.load(Ordering::Relaxed);
        for step in read..written {
            let at = ((step & self.mask) * 2) as usize;
            let work = self.work.as_ref().map_or(0, |work| work[at / 2].load(Ordering::Relaxed));
            take(self.words[at].load(Ordering::Relaxed), self.words[at + 1].load(Ordering::Relaxed), work);
        }
        // Only now may the loop overwrite them.
        self.read.0.store(written, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_ring_refuses_and_keeps_what_it_has() {
        let ring = Ring::new(3).unwrap();
        assert_eq!(ring.capacity(), 4);
        for step in 0..4 {
            assert!(ring.push(step, step + 1));
        }
        assert!(!ring.overflowed());
        assert!(!ring.push(9, 9));
        assert!(ring.overflowed());
        let mut seen = Vec::new();
        ring.drain(|before, _| seen.push(before));
        assert_eq!(seen, [0, 1, 2, 3]);
        assert!(ring.push(4, 5));
        assert_eq!(ring.waiting(), 1);
    }

    #[test]
    fn two_threads_see_every_step_once_and_in_order() {
        const STEPS: u64 = 200_000;
        let ring = Ring::new(64).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in 0..STEPS {
                    while !ring.push(step, step * 2) {
                        std::thread::yield_now();
                    }
                }
            });
            let mut expected = 0;
            while expected < STEPS {
                ring.drain(|before, after| {
                    assert_eq!((before, after), (expected, expected * 2));
                    expected += 1;
                });
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn samples_keep_their_work() {
        let ring = Ring::of_samples(2).unwrap();
        for round in 0..3 {
            assert!(ring.push_sample(round, round + 1, 10 * round) && ring.push_sample(round + 1, round + 2, 7));
            assert!(!ring.push_sample(9, 9, 9));
            let mut seen = Vec::new();
            ring.drain_samples(|before, after, work| seen.push((before, after, work)));
            assert_eq!(seen, [(round, round + 1, 10 * round), (round + 1, round + 2, 7)]);
        }
        let plain = Ring::new(2).unwrap();
        assert!(plain.push_sample(1, 2, 3));
        plain.drain_samples(|before, after, work| assert_eq!((before, after, work), (1, 2, 0)));
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_bounded_queue(size in 2_usize..20, actions in proptest::collection::vec(any::<bool>(), 0..200)) {
            let ring = Ring::new(size).unwrap();
            let mut queue = std::collections::VecDeque::new();
            for (i, push) in actions.into_iter().enumerate() {
                let i = i as u64;
                if push {
                    let room = (queue.len() as u64) < ring.capacity();
                    prop_assert_eq!(ring.push(i, i + 7), room);
                    if room {
                        queue.push_back((i, i + 7));
                    }
                } else {
                    let mut drained = Vec::new();
                    ring.drain(|before, after| drained.push((before, after)));
                    prop_assert_eq!(drained, queue.drain(..).collect::<Vec<_>>());
                }
            }
        }
    }
}
