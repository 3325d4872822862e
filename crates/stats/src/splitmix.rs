//! `SplitMix64`: numbers that look random and are the same on every machine forever, with no stronger guarantees.
//!
//! G. Steele, D. Lea, C. Flood, *Fast splittable pseudorandom number generators*, OOPSLA 2014, figure 13.

/// The odd constant added to the state at each step.
pub const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer: all bits of the result depend on all bits of `z`.
#[inline]
pub const fn finalize(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The first output for the seed `value`, unrelated to those of neighboring values.
#[inline]
pub const fn scramble(value: u64) -> u64 {
    finalize(value.wrapping_add(STRIDE))
}

/// Output number `number`, from 0, for the seed 0, without computing the previous ones.
#[inline]
pub const fn nth(number: u64) -> u64 {
    finalize(number.wrapping_add(1).wrapping_mul(STRIDE))
}

/// A random sequence.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, of 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let number = scramble(self.0);
        self.0 = self.0.wrapping_add(STRIDE);
        number
    }

    /// A number in `0..bound`: the high half of the product, uniform enough for a small bound, without a division. 0 for a bound of 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A number in [0, 1) with 53 random bits.
    pub const fn uniform(&mut self) -> f64 {
        unit(self.next_u64())
    }
}

/// The upper 53 bits of a number as a fraction in [0, 1).
#[inline]
pub const fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_outputs() {
        let mut random = SplitMix64::new(1_234_567);
        let first = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_way_gives_the_same_sequence() {
        let mut random = SplitMix64::new(0);
        for number in 0..100 {
            assert_eq!(random.next_u64(), nth(number));
        }
        assert_eq!(scramble(0), nth(0));
    }

    #[test]
    fn fractions_and_bounded_numbers_are_in_their_ranges() {
        let mut random = SplitMix64::new(3);
        for _ in 0..10_000 {
            assert!((0.0..1.0).contains(&random.uniform()));
            assert!(random.below(7) < 7);
        }
        assert_eq!(random.below(0), 0);
        assert_eq!((unit(0), unit(u64::MAX)), (0.0, 1.0 - 1.0 / (1_u64 << 53) as f64));
    }
}
