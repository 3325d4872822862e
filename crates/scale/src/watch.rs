//! The progress of a long prediction.

use std::fmt;

/// Called with a number of ranks and the number of further replayed phases for it, of any replica.
type Listener<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Receives the number of finished phases now and then, from any thread; or nothing.
#[derive(Clone, Copy, Default)]
pub struct ReplayWatch<'a>(Option<Listener<'a>>);

impl<'a> ReplayWatch<'a> {
    /// A watch without a listener.
    pub const NOBODY: Self = Self(None);

    /// Calls `listener` with a number of ranks and of finished phases.
    pub fn new(listener: Listener<'a>) -> Self {
        Self(Some(listener))
    }

    /// Starts counting the phases of one replica. Each takes about as long as visiting a rank `steps` times.
    pub(crate) fn count(self, ranks: u64, steps: u64) -> PhaseCounter<'a> {
        PhaseCounter { watch: self, ranks, untold: 0, often: (WORTH / steps.max(1)).max(1) }
    }
}

impl fmt::Debug for ReplayWatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ReplayWatch::new(..)" } else { "ReplayWatch::NOBODY" })
    }
}

/// Report after this many visits of a rank: they take a millisecond, a report a microsecond.
const WORTH: u64 = 1 << 16;

/// The phases of one replica. Unreported ones are reported on drop.
pub(crate) struct PhaseCounter<'a> {
    watch: ReplayWatch<'a>,
    ranks: u64,
    untold: u64,
    often: u64,
}

impl PhaseCounter<'_> {
    /// Counts one more phase.
    #[inline]
    pub fn phase(&mut self) {
        self.untold += 1;
        if self.untold >= self.often {
            self.tell();
        }
    }

    /// Counts several at once.
    pub fn phases(&mut self, more: u64) {
        self.untold += more;
        self.tell();
    }

    fn tell(&mut self) {
        if let ReplayWatch(Some(told)) = self.watch {
            told(self.ranks, self.untold);
        }
        self.untold = 0;
    }
}

impl Drop for PhaseCounter<'_> {
    fn drop(&mut self) {
        if self.untold > 0 {
            self.tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_phase_is_told_and_none_twice() {
        for ranks in [1, 1 << 10, 1 << 20] {
            let (phases, times) = (AtomicU64::new(0), AtomicU64::new(0));
            let told = |asked, more| {
                assert_eq!(asked, ranks);
                phases.fetch_add(more, Ordering::Relaxed);
                times.fetch_add(1, Ordering::Relaxed);
            };
            let mut count = ReplayWatch::new(&told).count(ranks, ranks);
            (0..100).for_each(|_| count.phase());
            drop(count);
            assert_eq!(phases.into_inner(), 100);
            assert_eq!(
                times.into_inner(),
                if ranks == 1 << 20 {
                    100
                } else if ranks == 1 {
                    1
                } else {
                    2
                }
            );
        }
    }
}
