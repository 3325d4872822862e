//! Modes: clusters of detour lengths, separated by valleys.
//!
//! Lengths are counted in bins, each 10 % longer than the one before. Every rise after a fall starts a new range. Then the range with the
//! lowest peak is merged into the neighbor across the higher valley, as long as it holds less than 1 % of all lengths or its peak is not
//! significant: a peak must be at least twice the valley, and above it by three times the counting error.

use std::ops::Range;

/// The ratio of the lengths of successive bins.
const WIDTH: f64 = 1.1;
/// A mode holds at least this share of all lengths.
const SHARE: f64 = 0.01;

/// A range that many lengths cluster in; whole nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// How many there are.
    pub count: usize,
    /// The shortest length.
    pub shortest: i64,
    /// The lower median.
    pub median: i64,
    /// The longest length.
    pub longest: i64,
}

#[derive(Clone, PartialEq, Debug)]
struct BinRange {
    bins: Range<usize>,
    peak: usize,
    sum: usize,
}

/// The modes of these lengths, which must be ascending and at least 1. The modes are ascending too and contain all lengths.
pub fn modes(lengths: &[i64]) -> Vec<Mode> {
    let (Some(first), Some(last)) = (lengths.first(), lengths.last()) else { return Vec::new() };
    let number = |length: i64| ((length.max(1) as f64).ln() / WIDTH.ln()).floor() as usize;
    let begin = number(*first);
    let mut counts = vec![0; number(*last) - begin + 1];
    for length in lengths {
        counts[number(*length) - begin] += 1;
    }
    let mut ranges = rises(&counts);
    while let Some(weak) = weakest(&ranges, &counts, lengths.len()) {
        let valley = |left: usize| valley(&ranges[left], &ranges[left + 1], &counts);
        let to_left = weak > 0 && (weak + 1 == ranges.len() || valley(weak - 1) >= valley(weak));
        let left = if to_left { weak - 1 } else { weak };
        let right = ranges.remove(left + 1);
        let joined = &mut ranges[left];
        joined.bins.end = right.bins.end;
        joined.peak = joined.peak.max(right.peak);
        joined.sum += right.sum;
    }
    let mut at = 0;
    let mode = |range: &BinRange| {
        let members = &lengths[at..at + range.sum];
        at += range.sum;
        Mode {
            count: members.len(),
            shortest: members[0],
            median: members[(members.len() - 1) / 2],
            longest: members[members.len() - 1],
        }
    };
    ranges.iter().map(mode).collect()
}

/// Ranges that rise and then fall; none is empty.
fn rises(counts: &[usize]) -> Vec<BinRange> {
    let mut ranges: Vec<BinRange> = Vec::new();
    let mut falling = true;
    for (bin, count) in counts.iter().enumerate() {
        let before = if bin == 0 { 0 } else { counts[bin - 1] };
        match ranges.last_mut() {
            Some(range) if !(falling && *count > before) => {
                range.bins.end = bin + 1;
                range.peak = range.peak.max(*count);
                range.sum += count;
                falling = *count < before || (falling && *count == before);
            }
            _ => {
                ranges.push(BinRange { bins: bin..bin + 1, peak: *count, sum: *count });
                falling = false;
            }
        }
    }
    ranges
}

/// The smallest count in the bins between two ranges.
fn valley(left: &BinRange, right: &BinRange, counts: &[usize]) -> usize {
    counts[left.bins.end - 1].min(counts[right.bins.start])
}

/// The range with the lowest peak among those that are not modes of their own.
fn weakest(ranges: &[BinRange], counts: &[usize], all: usize) -> Option<usize> {
    if ranges.len() < 2 {
        return None;
    }
    let is_weak = |at: &usize| {
        let range = &ranges[*at];
        let left = (*at > 0).then(|| valley(&ranges[*at - 1], range, counts));
        let right = (*at + 1 < ranges.len()).then(|| valley(range, &ranges[*at + 1], counts));
        let highest = left.max(right).unwrap_or(0) as f64;
        let peak = range.peak as f64;
        (range.sum as f64) < SHARE * all as f64 || peak < 2.0 * highest || peak - highest < 3.0 * peak.sqrt()
    };
    (0..ranges.len()).filter(is_weak).min_by_key(|at| ranges[*at].peak)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splitmix::SplitMix64;
    use proptest::prelude::*;

    /// Lengths spread over a range, as many as wanted.
    fn spread(count: usize, around: i64, half: i64, random: &mut SplitMix64) -> Vec<i64> {
        (0..count).map(|_| around - half + random.below(2 * half as u64 + 1) as i64).collect()
    }

    /// The I/O node of Beckman et al. 2007: 80 % of 1.8 us, 16 % of 2.4 us, and the rest up to 5.9 us.
    #[test]
    fn ticks_and_what_comes_with_every_sixth_are_two_modes() {
        let mut random = SplitMix64::new(1);
        let mut lengths = spread(8_000, 1_800, 60, &mut random);
        lengths.extend(spread(1_600, 2_400, 60, &mut random));
        lengths.extend(spread(400, 4_700, 1_200, &mut random));
        lengths.sort_unstable();
        let found = modes(&lengths);
        assert_eq!(found.iter().map(|mode| mode.count).collect::<Vec<_>>(), [8_000, 1_600, 400], "{found:?}");
        assert!((found[0].median - 1_800).abs() < 10 && (found[1].median - 2_400).abs() < 10, "{found:?}");
    }

    #[test]
    fn one_broad_hill_is_one_mode() {
        let mut random = SplitMix64::new(2);
        // Sums of several have one peak.
        let mut lengths: Vec<i64> =
            (0..5_000).map(|_| 1_000 + (0..6).map(|_| random.below(2_000) as i64).sum::<i64>()).collect();
        lengths.sort_unstable();
        assert_eq!(modes(&lengths).len(), 1, "{:?}", modes(&lengths));
        assert_eq!(modes(&[]), []);
        assert_eq!(modes(&[7]), [Mode { count: 1, shortest: 7, median: 7, longest: 7 }]);
    }

    proptest! {
        #[test]
        fn every_length_is_in_one_mode(mut lengths in proptest::collection::vec(1_i64..1_000_000, 1..300)) {
            lengths.sort_unstable();
            let found = modes(&lengths);
            let mut rest = lengths.as_slice();
            for mode in &found {
                let (members, after) = rest.split_at(mode.count);
                prop_assert_eq!((mode.shortest, mode.longest), (members[0], *members.last().unwrap()));
                prop_assert_eq!(mode.median, members[(members.len() - 1) / 2]);
                prop_assert!(found.len() == 1 || members.len() as f64 >= SHARE * lengths.len() as f64);
                prop_assert!(after.first().is_none_or(|next| *next > mode.longest));
                rest = after;
            }
            prop_assert!(rest.is_empty());
        }
    }
}
