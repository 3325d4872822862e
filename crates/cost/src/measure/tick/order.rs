//! The order of measurements: random, so drift affects all alike, and from a seed, so it is reproducible.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Shuffles by seed and round (Fisher and Yates).
pub fn shuffled<T>(mut all: Vec<T>, seed: u64, round: u32) -> Vec<T> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // Rounds are 2^128 numbers apart.
    (0..round).for_each(|_| random.jump());
    for last in (1..all.len()).rev() {
        let other = ((u128::from(random.next_u64()) * (last as u128 + 1)) >> 64) as usize;
        all.swap(last, other);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_an_order_of_its_own_that_the_seed_gives() {
        let order = |seed, round| shuffled((0..20).collect::<Vec<u32>>(), seed, round);
        let mut sorted = order(1, 0);
        assert_eq!(order(1, 0), sorted);
        assert_ne!(order(1, 1), sorted);
        assert_ne!(order(2, 0), sorted);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<u32>>());
    }

    #[test]
    fn every_place_is_as_likely() {
        let mut first = [0_u32; 4];
        (0..4_000).for_each(|seed| first[shuffled(vec![0, 1, 2, 3], seed, 0)[0]] += 1);
        assert!(first.iter().all(|count| (900..1_100).contains(count)), "{first:?}");
    }
}
