//! Randomness that is the same forever: xoshiro256++ streams, split by purpose and replica.
//!
//! Only integer arithmetic is used, so that a seed gives the same numbers on any machine.

use becalm_stats::splitmix::scramble;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What a stream of numbers is for. Streams of different purposes are independent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Where on its trace each rank or node starts, and which trace it replays.
    Offsets = 1,
    /// The detours of a noise specification.
    Detours = 2,
    /// What else a recording might have held.
    Recording = 3,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of a seed, for a purpose and a replica (0 where there is only one).
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose, replica: u64) -> Self {
        // Each step scrambles all bits (SplitMix64), so that neighboring seeds share nothing.
        let mixed = scramble(scramble(scramble(seed) ^ purpose as u64) ^ replica);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// A number in `0..bound`, each with the same probability (Lemire 2019, with rejection).
    ///
    /// # Panics
    /// With a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a range holds at least one number");
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number between 0 and 1, neither of them.
    pub fn unit(&mut self) -> f64 {
        (self.below(1 << 52) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A number of the exponential distribution of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_give_the_same_numbers_for_ever() {
        let draw = |seed, purpose, replica| {
            let mut stream = Stream::new(seed, purpose, replica);
            [stream.below(1_000_000), stream.below(1_000_000), stream.below(7)]
        };
        assert_eq!(draw(1, Purpose::Offsets, 0), PINNED);
        assert_ne!(draw(1, Purpose::Offsets, 0), draw(1, Purpose::Offsets, 1));
        assert_ne!(draw(1, Purpose::Offsets, 0), draw(1, Purpose::Detours, 0));
        assert_ne!(draw(1, Purpose::Offsets, 0), draw(2, Purpose::Offsets, 0));
    }

    /// What the first release drew.
    const PINNED: [u64; 3] = [258_492, 373_304, 1];

    #[test]
    fn every_number_is_as_likely() {
        let mut stream = Stream::new(7, Purpose::Offsets, 0);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            seen[stream.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (9_600..10_400).contains(n)), "{seen:?}");
    }
}
