//! Histograms of lengths: classic buckets with our bounds, and native histograms with powers of a base as bounds.

use std::collections::BTreeMap;

use becalm_units::Nanos;

/// The upper bounds of the classic buckets, in nanoseconds and, as published, in seconds.
pub const BUCKETS: [(i64, &str); 20] = [
    (200, "2e-07"),
    (500, "5e-07"),
    (1_000, "1e-06"),
    (2_000, "2e-06"),
    (5_000, "5e-06"),
    (10_000, "1e-05"),
    (20_000, "2e-05"),
    (50_000, "5e-05"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (1_000_000_000, "1.0"),
];

/// The schema of the native buckets: each bound is 2^(1/8) times the previous one, which is 9 % more.
pub const SCHEMA: i32 = 3;

/// The bounds of the native buckets from 1/2 to 1, excluding 1.
const BOUNDS: [f64; 1 << SCHEMA] = [
    0.5,
    0.545_253_866_332_628_8,
    0.594_603_557_501_360_5,
    0.648_419_777_325_504_8,
    std::f64::consts::FRAC_1_SQRT_2,
    0.771_105_412_703_970_4,
    0.840_896_415_253_714_5,
    0.917_004_043_204_671_2,
];

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lengths {
    classic: [u64; BUCKETS.len() + 1],
    /// Counts by bucket number. There are fewer than 520 buckets, because 64 bits of nanoseconds cover at most 63 powers of 2.
    native: BTreeMap<i32, u64>,
    /// The number of zero lengths.
    zero: u64,
    total: Nanos,
}

impl Lengths {
    /// Adds a length.
    pub fn add(&mut self, duration: Nanos) {
        self.classic[bucket(duration)] += 1;
        match power(duration) {
            Some(class) => *self.native.entry(class).or_default() += 1,
            None => self.zero += 1,
        }
        self.total += duration;
    }

    /// Adds all lengths of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.classic.iter_mut().zip(other.classic).for_each(|(all, new)| *all += new);
        other.native.iter().for_each(|(class, count)| *self.native.entry(*class).or_default() += count);
        self.zero += other.zero;
        self.total += other.total;
    }

    /// The number of lengths.
    pub fn count(&self) -> u64 {
        self.classic.iter().sum()
    }

    /// The sum of the lengths.
    pub const fn total(&self) -> Nanos {
        self.total
    }

    /// The count of each classic bucket; the last one is above all bounds.
    pub const fn classic(&self) -> &[u64; BUCKETS.len() + 1] {
        &self.classic
    }

    /// The count of each native bucket, by its number.
    pub const fn native(&self) -> &BTreeMap<i32, u64> {
        &self.native
    }

    /// The number of zero lengths.
    pub const fn zero(&self) -> u64 {
        self.zero
    }
}

/// The classic bucket of a duration; `BUCKETS.len()` if it is above all bounds.
fn bucket(duration: Nanos) -> usize {
    BUCKETS.partition_point(|(bound, _)| *bound < duration.get())
}

/// The native bucket of a duration: the smallest exponent whose power of the base is at least the duration in seconds. `None` for zero.
fn power(duration: Nanos) -> Option<i32> {
    let seconds = duration.get() as f64 / 1e9;
    if seconds <= 0.0 {
        return None;
    }
    // The seconds are a fraction from 1/2 up to 1 times a power of 2; none is subnormal.
    let bits = seconds.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1_022;
    let fraction = f64::from_bits(bits & !(0x7ff << 52) | 1_022 << 52);
    let within = BOUNDS.partition_point(|bound| *bound < fraction) as i32;
    Some(within + ((exponent - 1) << SCHEMA))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_class_holds_what_is_not_longer_than_its_bound(duration in 0_i64..3_000_000_000) {
            let plain = BUCKETS.iter().position(|(bound, _)| duration <= *bound).unwrap_or(BUCKETS.len());
            prop_assert_eq!(bucket(Nanos::new(duration)), plain);
        }

        #[test]
        fn bounds_say_what_they_are(at in 0..BUCKETS.len()) {
            let (ns, text) = BUCKETS[at];
            prop_assert!((text.parse::<f64>().unwrap() * 1e9 - ns as f64).abs() < 1e-6 * ns as f64);
        }

        /// As the format defines it: above the previous bucket's power, and at most its own.
        #[test]
        fn a_native_class_is_between_two_powers(shift in 0_u32..63, low in any::<u32>()) {
            let duration = ((1_i64 << shift) | (i64::from(low) & ((1 << shift) - 1))).max(1);
            let class = power(Nanos::new(duration)).unwrap();
            let bound = |class: i32| (f64::from(class) / 8.0).exp2();
            let seconds = duration as f64 / 1e9;
            prop_assert!(seconds <= bound(class) * (1.0 + 1e-12) && seconds > bound(class - 1) * (1.0 - 1e-12));
        }
    }

    #[test]
    fn powers_of_two_are_in_the_class_that_they_bound() {
        assert_eq!(
            [1_000_000_000, 2_000_000_000, 500_000_000].map(|ns| power(Nanos::new(ns))),
            [Some(0), Some(8), Some(-8)]
        );
        assert_eq!((power(Nanos::ZERO), power(Nanos::new(1_000_000_001))), (None, Some(1)));
        let mut lengths = Lengths::default();
        [0, 7, 7, 9_000].iter().for_each(|ns| lengths.add(Nanos::new(*ns)));
        let mut twice = lengths.clone();
        twice.merge(&lengths);
        assert_eq!((twice.count(), twice.zero(), twice.total()), (8, 2, Nanos::new(18_028)));
        assert_eq!(twice.native().values().copied().collect::<Vec<_>>(), [4, 2]);
    }
}
