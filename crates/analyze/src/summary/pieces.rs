//! The duration of consecutive equal pieces of work on a CPU: the effect of noise on a program that does not communicate.

use becalm_stats::Quantiles;

use super::scale::GRAIN;

/// The reported quantile of the pieces' durations.
pub(super) const SHARE: f64 = 0.99;

/// With fewer pieces the longest percent is a single one.
pub(super) const PIECES_MIN: u64 = 200;

/// Finished pieces of work, on one CPU or on several.
#[derive(Clone, Default, Debug)]
pub(super) struct WorkPieces {
    undisturbed: u64,
    disturbed: u64,
    /// The noise of each disturbed piece, in nanoseconds.
    delays: Quantiles,
}

impl WorkPieces {
    fn finish(&mut self, delay: i64) {
        if delay == 0 {
            self.undisturbed += 1;
        } else {
            self.disturbed += 1;
            self.delays.add(delay);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.undisturbed += other.undisturbed;
        self.disturbed += other.disturbed;
        self.delays.merge(&other.delays);
    }

    /// The time in nanoseconds that 99 of 100 pieces do not exceed; `None` for fewer than 200 pieces.
    pub(super) fn p99_ns(&mut self) -> Option<i64> {
        let pieces = self.undisturbed + self.disturbed;
        if pieces < PIECES_MIN {
            return None;
        }
        let rank = (SHARE * pieces as f64).ceil() as u64;
        let delay = rank.checked_sub(self.undisturbed).filter(|rank| *rank > 0);
        let delay = delay.map_or(Some(0), |rank| self.delays.ranked(rank))?;
        Some(GRAIN.get().saturating_add(delay))
    }
}

/// A program that does one piece of work after another on a CPU.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) pieces: WorkPieces,
    /// The end of the last detour.
    at: i64,
    /// The remaining work of the current piece, and its noise so far.
    left: i64,
    delay: i64,
}

impl Worker {
    /// A worker that starts at this time in nanoseconds.
    pub(super) fn new(begin: i64) -> Self {
        Self { pieces: WorkPieces::default(), at: begin, left: GRAIN.get(), delay: 0 }
    }

    /// Adds a detour, in order of time.
    pub(super) fn detour(&mut self, start: i64, duration: i64) {
        self.work_until(start);
        self.delay = self.delay.saturating_add(duration);
        self.at = self.at.max(start).saturating_add(duration);
    }

    /// Works until the loop ends. The unfinished piece does not count.
    pub(super) fn work_until(&mut self, time: i64) {
        let work = time.saturating_sub(self.at).max(0);
        self.at = self.at.max(time);
        if work < self.left {
            self.left -= work;
            return;
        }
        let rest = work - self.left;
        self.pieces.finish(std::mem::take(&mut self.delay));
        self.pieces.undisturbed += (rest / GRAIN.get()) as u64;
        self.left = GRAIN.get() - rest % GRAIN.get();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEP: i64 = 50_000;

    /// Every 50 us of the time are work or noise.
    fn plain(noise: &[bool]) -> Vec<i64> {
        let (mut pieces, mut work, mut taken) = (Vec::new(), 0, 0);
        for is_noise in noise {
            taken += STEP;
            work += if *is_noise { 0 } else { STEP };
            if work == GRAIN.get() {
                pieces.push(taken);
                (work, taken) = (0, 0);
            }
        }
        pieces.sort_unstable();
        pieces
    }

    proptest! {
        #[test]
        fn pieces_take_what_a_count_of_steps_says(seed: u64, share in 1_u64..60) {
            let mut random = seed;
            let noise: Vec<bool> = (0..9_000).map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % 100 < share
            }).collect();
            let mut worker = Worker::new(0);
            for (at, _) in noise.iter().enumerate().filter(|(_, is_noise)| **is_noise) {
                worker.detour(at as i64 * STEP, STEP);
            }
            worker.work_until(noise.len() as i64 * STEP);
            let plain = plain(&noise);
            let mut pieces = worker.pieces;
            // A piece that ends where noise starts is finished before it.
            prop_assert!((pieces.undisturbed + pieces.disturbed).abs_diff(plain.len() as u64) <= 1);
            let expected = (plain.len() >= 200).then(|| plain[(0.99 * plain.len() as f64).ceil() as usize - 1]);
            prop_assert_eq!(pieces.p99_ns(), expected);
        }
    }

    #[test]
    fn a_quiet_cpu_takes_no_longer_than_the_work() {
        let mut worker = Worker::new(7);
        worker.work_until(1_000_000_007);
        assert_eq!((worker.pieces.undisturbed, worker.pieces.p99_ns()), (1_000, Some(1_000_000)));
    }
}
