//! Maps with numbers as keys.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map with a few numbers as key: process ids, addresses, labels. Lookups take a fraction of the time of the standard library's maps,
/// whose hashing is made for texts.
pub type NumberMap<K, V> = HashMap<K, V, NumberHashing>;

/// The hashing of a [`NumberMap`]. Each map has its own seed, so files cannot contain keys that collide.
#[derive(Clone, Debug)]
pub struct NumberHashing {
    seed: u64,
}

impl Default for NumberHashing {
    fn default() -> Self {
        Self { seed: RandomState::new().hash_one(()) }
    }
}

impl BuildHasher for NumberHashing {
    type Hasher = NumberHasher;

    #[inline]
    fn build_hasher(&self) -> NumberHasher {
        NumberHasher(self.seed)
    }
}

/// The hash of the numbers so far.
#[derive(Clone, Debug)]
pub struct NumberHasher(u64);

/// The golden ratio of 2^64, which is odd and has as many ones as zeros.
const MULTIPLIER: u128 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for NumberHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * MULTIPLIER;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u8(*byte));
    }

    /// Maps use the low bits, which hardly change with numbers that end in many zeros.
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Addresses and process numbers come in strides: of 4,096 keys, a map of 8,192 places may use no fewer places than random ones do.
    #[test]
    fn keys_in_strides_are_spread_over_low_and_high_bits() {
        let hashing = NumberHashing::default();
        for stride in [1, 8, 64, 4_096, 1 << 20, 1 << 40] {
            let hashes: Vec<u64> = (0..4_096_u64).map(|n| hashing.hash_one(n * stride)).collect();
            let low: HashSet<u64> = hashes.iter().map(|hash| hash % 8_192).collect();
            let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(low.len() > 2_800 && high.len() > 100, "{stride}: {} and {}", low.len(), high.len());
        }
    }

    #[test]
    fn each_map_places_its_keys_otherwise() {
        let hashes: HashSet<u64> = (0..8).map(|_| NumberHashing::default().hash_one(1_u32)).collect();
        assert_eq!(hashes.len(), 8);
    }

    #[test]
    fn all_numbers_of_a_key_count() {
        let hashing = NumberHashing::default();
        let keys = (0..16_u8).flat_map(|a| (0..16_u32).flat_map(move |b| [(a, b, false), (a, b, true)]));
        let hashes: HashSet<u64> = keys.map(|key| hashing.hash_one(key)).collect();
        assert_eq!(hashes.len(), 512);
    }
}
