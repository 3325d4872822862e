//! Randomness that stays the same forever: xoshiro256++ streams, split by purpose and replica.
//!
//! Only integer arithmetic is used, so a seed gives the same numbers on any machine.

use std::f64::consts::TAU;

use becalm_stats::splitmix::scramble;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The purpose of a stream of numbers. Streams of different purposes are independent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The trace of each rank or node, and its start on it.
    Offsets = 1,
    /// The detours of a noise specification.
    Detours = 2,
    /// Other possible recordings.
    Recording = 3,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of a seed, for a purpose and a replica (0 if there is only one).
    pub fn new(seed: u64, purpose: Purpose, replica: u64) -> Self {
        // Each step scrambles all bits (SplitMix64), so neighboring seeds share nothing.
        let mixed = scramble(scramble(scramble(seed) ^ purpose as u64) ^ replica);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// A number in `0..bound`, each with the same probability (Lemire 2019, with rejection). Panics with a bound of 0.
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

    /// A number between 0 and 1, both exclusive.
    pub fn unit(&mut self) -> f64 {
        (self.below(1 << 52) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A number from the exponential distribution of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }

    /// A number from the gamma distribution of this shape (above 0), which is also its mean: G. Marsaglia, W. W. Tsang, *A simple method for
    /// generating gamma variables*, ACM Trans. Math. Softw. 26 (2000).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            return self.gamma(shape + 1.0) * libm::pow(self.unit(), 1.0 / shape);
        }
        let scale = shape - 1.0 / 3.0;
        loop {
            // Box and Muller.
            let normal = libm::sqrt(2.0 * self.exponential()) * libm::cos(TAU * self.unit());
            let root = 1.0 + normal / libm::sqrt(9.0 * scale);
            let cube = root * root * root;
            if cube > 0.0 && libm::log(self.unit()) < normal * normal / 2.0 + scale * (1.0 - cube + libm::log(cube)) {
                return scale * cube;
            }
        }
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

    /// The numbers of the first release.
    const PINNED: [u64; 3] = [258_492, 373_304, 1];

    /// Mean and variance of a gamma distribution are its shape; with shape 1 it is the exponential one.
    #[test]
    fn gamma_numbers_have_their_moments() {
        let mut stream = Stream::new(7, Purpose::Recording, 0);
        for shape in [0.2, 0.5, 1.0, 3.0, 20.0] {
            let drawn: Vec<f64> = (0..200_000).map(|_| stream.gamma(shape)).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
            assert!((mean / shape - 1.0).abs() < 0.03, "{shape}: {mean}");
            assert!((variance / shape - 1.0).abs() < 0.05, "{shape}: {variance}");
            if shape == 1.0 {
                let above = drawn.iter().filter(|x| **x > 2.0).count() as f64 / drawn.len() as f64;
                assert!((above - (-2.0_f64).exp()).abs() < 0.003, "{above}");
            }
        }
    }

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
