//! Counts by length, like in HdrHistogram.

use becalm_model::digest::Counts;
use hdrhistogram::Histogram;

/// Counts in buckets with a width proportional to the value, for any value. Memory is allocated with the first value.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    digits: u8,
    counts: Option<Histogram<u64>>,
}

impl Lengths {
    /// With this many significant digits: buckets are at most 0.8 % wide for 2, and 6.3 % for 1.
    pub(crate) const fn new(digits: u8) -> Self {
        Self { digits, counts: None }
    }

    /// Adds a value; negative ones count as 0.
    pub(crate) fn add(&mut self, ns: i64) {
        let digits = self.digits;
        let counts = self.counts.get_or_insert_with(|| Histogram::new(digits).expect("so few digits are allowed"));
        counts.record(ns.max(0) as u64).expect("a histogram that grows takes every value");
    }

    /// Adds all values of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        match (&mut self.counts, &other.counts) {
            (Some(ours), Some(theirs)) => ours.add(theirs).expect("a histogram that grows takes every other"),
            (ours @ None, Some(theirs)) => *ours = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    pub(crate) fn document(&self) -> Counts {
        let Some(counts) = &self.counts else { return Counts::default() };
        let buckets = counts.iter_recorded().flat_map(|bucket| {
            [counts.lowest_equivalent(bucket.value_iterated_to()), bucket.count_since_last_iteration()]
        });
        Counts(buckets.collect())
    }
}

#[cfg(test)]
mod tests {
    use becalm_model::digest::{LENGTH_BITS, SOURCE_BITS};

    use super::*;

    /// Buckets are as wide as the document's format says.
    #[test]
    fn buckets_are_as_wide_as_is_said() {
        for (digits, bits) in [(1, SOURCE_BITS), (2, LENGTH_BITS)] {
            for value in [1_i64, 31, 32, 33, 255, 256, 511, 4_097, 1_234_567, 987_654_321_012] {
                let mut lengths = Lengths::new(digits);
                lengths.add(value);
                let (begin, width, count) = lengths.document().spans(bits).next().unwrap();
                assert!(
                    count == 1 && begin <= value as u64 && (value as u64) < begin + width,
                    "{value}: {begin} {width}"
                );
                let histogram = lengths.counts.as_ref().unwrap();
                assert_eq!(histogram.equivalent_range(value as u64), width, "{value}");
            }
        }
    }

    #[test]
    fn buckets_begin_at_their_shortest_value() {
        let mut lengths = Lengths::new(1);
        [3, 3, 1_000, 1_001, 70_000].into_iter().for_each(|ns| lengths.add(ns));
        let counts = lengths.document();
        assert_eq!(counts.count(), 5);
        for (bucket, value) in counts.buckets().zip([3_u64, 1_000, 70_000]) {
            assert!(bucket.0 <= value && value - bucket.0 <= value / 15, "{bucket:?} for {value}");
        }
        let mut again = Lengths::new(1);
        counts.buckets().for_each(|(value, count)| (0..count).for_each(|_| again.add(value as i64)));
        assert_eq!(again.document(), counts, "the shortest value of a bucket is in it");
    }
}
