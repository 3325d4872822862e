//! The number of repetitions until the mean of work is known: the FAME rule (Vera et al. 2007, as used by Radojković et al. 2008).
//!
//! A benchmark is repeated at least five times, until its accumulated mean is within MAIV, the maximum allowable variation, of its steady state. The
//! steady state itself is unknown; it counts as reached when the accumulated mean has stayed within MAIV of its current value over the whole later
//! half of the repetitions.

use std::collections::VecDeque;

/// The minimum number of repetitions.
pub const LEAST: u64 = 5;

/// Follows the mean of the samples, to find when it no longer moves.
#[derive(Clone, Debug)]
pub struct AccumulatedMean {
    maiv: f64,
    count: u64,
    sum: f64,
    /// The accumulated means that may yet be the smallest of a window, with their numbers, ascending; and the largest, descending.
    smallest: VecDeque<(u64, f64)>,
    largest: VecDeque<(u64, f64)>,
}

impl AccumulatedMean {
    /// For a maximum allowable variation, a fraction of 1.
    pub const fn new(maiv: f64) -> Self {
        Self { maiv, count: 0, sum: 0.0, smallest: VecDeque::new(), largest: VecDeque::new() }
    }

    /// Adds a repetition of this duration. Returns whether the repetitions are enough: after `n` of them, `n` at least 5, whether the accumulated
    /// means of repetitions `n` / 2 (rounded up) to `n` are all within the variation of the last.
    pub fn add(&mut self, duration: f64) -> bool {
        self.count += 1;
        self.sum += duration;
        let mean = self.mean();
        while self.smallest.back().is_some_and(|(_, other)| *other >= mean) {
            self.smallest.pop_back();
        }
        while self.largest.back().is_some_and(|(_, other)| *other <= mean) {
            self.largest.pop_back();
        }
        let window = self.count.div_ceil(2);
        for queue in [&mut self.smallest, &mut self.largest] {
            queue.push_back((self.count, mean));
            while queue.front().is_some_and(|(number, _)| *number < window) {
                queue.pop_front();
            }
        }
        let allowed = self.maiv * mean.abs();
        let within = |queue: &VecDeque<(u64, f64)>| queue.front().is_some_and(|(_, far)| (far - mean).abs() <= allowed);
        self.count >= LEAST && within(&self.smallest) && within(&self.largest)
    }

    /// The mean so far; 0 before the first.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The number of samples so far.
    pub const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule as stated.
    fn plain(durations: &[f64], maiv: f64) -> bool {
        let n = durations.len();
        let mean = |count: usize| durations[..count].iter().fold(0.0, |sum, x| sum + x) / count as f64;
        n >= 5 && (n.div_ceil(2)..=n).all(|count| (mean(count) - mean(n)).abs() <= maiv * mean(n).abs())
    }

    #[test]
    fn steady_work_takes_five_repetitions() {
        let mut rule = AccumulatedMean::new(0.01);
        let answers: Vec<bool> = (0..6).map(|_| rule.add(1e6)).collect();
        assert_eq!(answers, [false, false, false, false, true, true]);
        assert_eq!((rule.count(), rule.mean()), (6, 1e6));
    }

    #[test]
    fn a_cold_start_is_waited_for() {
        // The first repetition takes ten times as long: its share in the mean falls as 9/n.
        let mut rule = AccumulatedMean::new(0.01);
        let stopped = (1..=10_000).find(|number| rule.add(if *number == 1 { 10.0 } else { 1.0 })).unwrap();
        // |mean(n/2) - mean(n)| = 9/n, within 1 % of 1 + 9/n, so at n = 891, and a little earlier by rounding.
        assert!((880..=895).contains(&stopped), "{stopped}");
    }

    proptest! {
        #[test]
        fn agrees_with_the_wording(
            durations in proptest::collection::vec(prop_oneof![1.0..2.0, 1.0..1.05, Just(9.0)], 0..120),
            maiv in prop_oneof![Just(0.01), 0.0..0.2],
        ) {
            let mut rule = AccumulatedMean::new(maiv);
            for n in 1..=durations.len() {
                prop_assert_eq!(rule.add(durations[n - 1]), plain(&durations[..n], maiv), "after {}", n);
            }
        }
    }
}
