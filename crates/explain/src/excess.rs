//! The excess of slow spans over ordinary ones, divided among causes.
//!
//! The slow spans are the longest share of all, the ordinary ones the middle half. The excess is the difference of their mean lengths, and a cause's
//! part the difference of its mean times, so the parts add up to the excess. Intervals come from resampling: blocks of successive spans are drawn with
//! replacement (B. Efron, R. Tibshirani, *An Introduction to the Bootstrap*, 1993, section 8.6), because noise comes in bursts. Which spans are slow
//! and which are ordinary stays as it is.

use becalm_stats::splitmix::SplitMix64;
use becalm_units::Named;

use crate::causes::{CauseTime, Causes, Side};
use crate::joined::{PlacedSpan, SpanCauses};

/// The fewest spans among which slow and ordinary ones can be distinguished.
pub const FEWEST: usize = 20;
/// The fewest successive spans in a block.
const BLOCK: usize = 10;
/// The most blocks, so resampling takes the same time for any number of spans.
const BLOCKS: usize = 2_000;
/// How often spans are drawn.
const DRAWS: usize = 1_000;
/// Causes with an interval: those with the largest parts.
const WITH_INTERVAL: usize = 16;

/// A share of the excess with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ExcessShare {
    /// The part of a span, in nanoseconds: negative if slow spans have less of it.
    pub ns: i64,
    /// Its share of the excess.
    pub share: f64,
    /// The interval; `None` if it was not computed.
    pub interval: Option<(f64, f64)>,
}

/// The part of a cause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CauseExcess {
    /// The number of the cause.
    pub cause: u32,
    /// Its part.
    pub part: ExcessShare,
    /// The number of slow spans with it.
    pub in_slow: usize,
    /// The number of ordinary spans with it.
    pub in_ordinary: usize,
}

/// Why slow spans are slow.
#[derive(Clone, PartialEq, Debug)]
pub struct Excess {
    /// The number of spans.
    pub count: usize,
    /// The median length, in nanoseconds.
    pub median: i64,
    /// The 99th percentile, by nearest rank.
    pub p99: i64,
    /// The longest.
    pub longest: i64,
    /// The number of slow spans.
    pub slow: usize,
    /// The number of ordinary spans.
    pub ordinary: usize,
    /// The mean length of slow spans.
    pub slow_mean: f64,
    /// That of ordinary ones.
    pub ordinary_mean: f64,
    /// The difference, in nanoseconds.
    pub excess: i64,
    /// The share of all spans' time whose cause is known.
    pub covered: f64,
    /// The parts of the sides, in their order.
    pub sides: Vec<(Side, ExcessShare)>,
    /// The parts of the causes, the largest first; they add up to the excess.
    pub causes: Vec<CauseExcess>,
    /// The places of the longest spans, the longest first.
    pub worst: Vec<usize>,
}

/// Sums over a group of spans.
#[derive(Clone, Debug)]
struct Sums {
    /// The number of slow and of ordinary spans.
    counts: [i64; 2],
    /// The time of each key in these.
    times: Vec<[i64; 2]>,
}

impl Sums {
    fn new(keys: usize) -> Self {
        Self { counts: [0; 2], times: vec![[0; 2]; keys] }
    }

    fn clear(&mut self) {
        self.counts = [0; 2];
        self.times.iter_mut().for_each(|time| *time = [0; 2]);
    }

    fn add(&mut self, other: &Self) {
        for place in 0..2 {
            self.counts[place] += other.counts[place];
        }
        for (sum, more) in self.times.iter_mut().zip(&other.times) {
            sum[0] += more[0];
            sum[1] += more[1];
        }
    }

    /// The difference of a key's mean times, times the product of both counts: exact.
    fn difference(&self, key: usize) -> i128 {
        let [slow, ordinary] = self.counts.map(i128::from);
        i128::from(self.times[key][0]) * ordinary - i128::from(self.times[key][1]) * slow
    }

    fn product(&self) -> i128 {
        i128::from(self.counts[0]) * i128::from(self.counts[1])
    }
}

/// The group of a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    Slow,
    Ordinary,
    Neither,
}

impl Group {
    const fn place(self) -> Option<usize> {
        match self {
            Self::Slow => Some(0),
            Self::Ordinary => Some(1),
            Self::Neither => None,
        }
    }
}

/// Divides the excess of the slowest share of some spans, which are in order of time. At least [`FEWEST`] of them; `slowest` is at most a quarter.
pub fn divide(spans: &[PlacedSpan], chosen: &[usize], found: &SpanCauses, causes: &Causes, slowest: f64) -> Excess {
    let lengths: Vec<i64> = chosen.iter().map(|span| spans[*span].length()).collect();
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    order.sort_by_key(|place| (lengths[*place], *place));
    let count = chosen.len();
    let slow = ((count as f64 * slowest).round() as usize).clamp(1, count / 4);
    let mut groups = vec![Group::Neither; count];
    order[count - slow..].iter().for_each(|place| groups[*place] = Group::Slow);
    order[count / 4..count - count / 4].iter().for_each(|place| groups[*place] = Group::Ordinary);

    let all = sums(chosen, &groups, found, causes.count(), |time| [Some(time.cause as usize), None]);
    let mut present = vec![[0_usize; 2]; causes.count()];
    for (span, group) in chosen.iter().zip(&groups) {
        let Some(place) = group.place() else { continue };
        found.get(*span).iter().for_each(|time| present[time.cause as usize][place] += 1);
    }
    let differences: Vec<i128> = (0..causes.count()).map(|cause| all.difference(cause)).collect();
    let (total, product) = (differences.iter().sum::<i128>(), all.product());
    let excess = rounded(total, product);
    let parts = rounded_parts(&differences, product, excess);
    let mut rows: Vec<CauseExcess> = (0..causes.count())
        .filter(|cause| all.times[*cause] != [0, 0])
        .map(|cause| CauseExcess {
            cause: cause as u32,
            part: ExcessShare { ns: parts[cause], share: ratio(differences[cause], total), interval: None },
            in_slow: present[cause][0],
            in_ordinary: present[cause][1],
        })
        .collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.part.ns), row.cause));
    let mut sides: Vec<(Side, ExcessShare)> = Side::ALL.iter().map(|side| (*side, ExcessShare::default())).collect();
    let mut side_differences = vec![0_i128; sides.len()];
    for (cause, difference) in differences.iter().enumerate() {
        let side = causes.get(cause as u32).side() as usize;
        side_differences[side] += difference;
        sides[side].1.ns += parts[cause];
    }
    for ((_, side), difference) in sides.iter_mut().zip(&side_differences) {
        side.share = ratio(*difference, total);
    }

    // The keys of resampling: the sides, then the largest causes.
    let mut keys: Vec<Option<usize>> = vec![None; causes.count()];
    let mut largest: Vec<&CauseExcess> = rows.iter().collect();
    largest.sort_by_key(|row| std::cmp::Reverse(row.part.ns.abs()));
    for (number, row) in largest.iter().take(WITH_INTERVAL).enumerate() {
        keys[row.cause as usize] = Some(sides.len() + number);
    }
    let width = sides.len() + largest.len().min(WITH_INTERVAL);
    let size = BLOCK.max(count.div_ceil(BLOCKS));
    let blocks: Vec<Sums> = (0..count)
        .step_by(size)
        .map(|begin| {
            let end = (begin + size).min(count);
            let key = |time: &CauseTime| {
                let side = causes.get(time.cause).side() as usize;
                [Some(side), keys[time.cause as usize]]
            };
            sums(&chosen[begin..end], &groups[begin..end], found, width, key)
        })
        .collect();
    let intervals = intervals(&blocks, width, sides.len());
    for (number, (_, side)) in sides.iter_mut().enumerate() {
        side.interval = intervals[number];
    }
    for row in &mut rows {
        row.part.interval = keys[row.cause as usize].and_then(|key| intervals[key]);
    }

    let mean = |group: Group| {
        let of_group = lengths.iter().zip(&groups).filter(|(_, other)| **other == group);
        let (sum, number) =
            of_group.fold((0.0, 0.0), |(sum, number), (length, _)| (sum + *length as f64, number + 1.0));
        if number > 0.0 { sum / number } else { 0.0 }
    };
    let whole: i64 = lengths.iter().sum();
    let unknown: i64 = chosen
        .iter()
        .flat_map(|span| found.get(*span))
        .filter(|time| causes.get(time.cause).side() == Side::Unknown)
        .map(|time| time.ns)
        .sum();
    let ranked = |quantile: f64| lengths[order[((count as f64 * quantile).ceil() as usize).clamp(1, count) - 1]];
    Excess {
        count,
        median: ranked(0.5),
        p99: ranked(0.99),
        longest: lengths[order[count - 1]],
        slow,
        ordinary: groups.iter().filter(|group| **group == Group::Ordinary).count(),
        slow_mean: mean(Group::Slow),
        ordinary_mean: mean(Group::Ordinary),
        excess,
        covered: if whole > 0 { 1.0 - unknown as f64 / whole as f64 } else { 1.0 },
        sides,
        causes: rows,
        worst: order.iter().rev().map(|place| chosen[*place]).collect(),
    }
}

/// Adds up the times of spans by the keys of each cause.
fn sums(
    chosen: &[usize],
    groups: &[Group],
    found: &SpanCauses,
    width: usize,
    key: impl Fn(&CauseTime) -> [Option<usize>; 2],
) -> Sums {
    let mut sums = Sums::new(width);
    for (span, group) in chosen.iter().zip(groups) {
        let Some(place) = group.place() else { continue };
        sums.counts[place] += 1;
        for time in found.get(*span) {
            for key in key(time).into_iter().flatten() {
                sums.times[key][place] += time.ns;
            }
        }
    }
    sums
}

/// The intervals of the keys' shares of the excess, which is the sum of the first `sides` keys.
fn intervals(blocks: &[Sums], width: usize, sides: usize) -> Vec<Option<(f64, f64)>> {
    let mut random = SplitMix64::new(0);
    let mut drawn: Vec<Vec<f64>> = vec![Vec::with_capacity(DRAWS); width];
    let mut sample = Sums::new(width);
    for _ in 0..DRAWS {
        sample.clear();
        for _ in 0..blocks.len() {
            sample.add(&blocks[random.below(blocks.len() as u64) as usize]);
        }
        let total: i128 = (0..sides).map(|side| sample.difference(side)).sum();
        if sample.product() == 0 || total <= 0 {
            continue;
        }
        for (key, shares) in drawn.iter_mut().enumerate() {
            shares.push(ratio(sample.difference(key), total));
        }
    }
    let interval = |mut shares: Vec<f64>| {
        // Of fewer draws with both groups and an excess, the ends would say little.
        if shares.len() < DRAWS / 2 {
            return None;
        }
        shares.sort_by(f64::total_cmp);
        let at = |quantile: f64| shares[((shares.len() - 1) as f64 * quantile).round() as usize];
        Some((at(0.025), at(0.975)))
    };
    drawn.into_iter().map(interval).collect()
}

fn ratio(part: i128, whole: i128) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A fraction, rounded to the nearest whole number.
fn rounded(numerator: i128, denominator: i128) -> i64 {
    if denominator == 0 {
        return 0;
    }
    (numerator.div_euclid(denominator) + i128::from(numerator.rem_euclid(denominator) * 2 >= denominator)) as i64
}

/// The fractions as whole numbers that add up to `sum`. The largest remainders are rounded up.
fn rounded_parts(numerators: &[i128], denominator: i128, sum: i64) -> Vec<i64> {
    if denominator == 0 {
        return vec![0; numerators.len()];
    }
    let mut parts: Vec<i64> = numerators.iter().map(|numerator| numerator.div_euclid(denominator) as i64).collect();
    let left = sum - parts.iter().sum::<i64>();
    let mut order: Vec<usize> = (0..numerators.len()).collect();
    order.sort_by_key(|place| (std::cmp::Reverse(numerators[*place].rem_euclid(denominator)), *place));
    for place in order.into_iter().take(usize::try_from(left).unwrap_or(0)) {
        parts[place] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use becalm_model::Label;
    use becalm_model::observed::{Owner, ThreadId};
    use proptest::prelude::*;

    use super::*;
    use crate::causes::{Cause, Class};
    use crate::joined::Piece;

    /// Spans that take these times of three causes: the program, a taker, and sleep.
    fn planted(times: &[[i64; 3]]) -> (Vec<PlacedSpan>, SpanCauses, Causes) {
        let mut causes = Causes::default();
        let numbers =
            [Cause::running(""), Cause::new(Class::Queued, Owner::Others, "grem1"), Cause::asleep("futex", "S", "")]
                .map(|cause| causes.number(cause));
        let mut spans = Vec::new();
        let mut all = Vec::new();
        let mut now = 0;
        for one in times {
            let length: i64 = one.iter().sum();
            let pieces = vec![Piece { thread: ThreadId(0), start: now, end: now + length }];
            spans.push(PlacedSpan { name: Label::EMPTY, group: Label::EMPTY, pieces });
            let times = numbers.iter().zip(one).filter(|(_, ns)| **ns > 0);
            all.push(times.map(|(cause, ns)| CauseTime { cause: *cause, ns: *ns }).collect());
            now += length;
        }
        (spans, SpanCauses::from_lists(all), causes)
    }

    fn divided(times: &[[i64; 3]], slowest: f64) -> Excess {
        let (spans, found, causes) = planted(times);
        divide(&spans, &(0..times.len()).collect::<Vec<_>>(), &found, &causes, slowest)
    }

    #[test]
    fn a_taker_of_some_spans_has_their_excess() {
        // Every tenth of 200 spans loses 5 ms to another program.
        let times: Vec<[i64; 3]> =
            (0..200).map(|number| [10_000_000 + number % 7, if number % 10 == 3 { 5_000_000 } else { 0 }, 0]).collect();
        let found = divided(&times, 0.05);
        assert_eq!((found.count, found.slow, found.ordinary), (200, 10, 100));
        assert_eq!((found.median, found.covered), (10_000_003, 1.0));
        let first = found.causes[0];
        assert_eq!((first.in_slow, first.in_ordinary), (10, 0));
        assert!((first.part.share - 1.0).abs() < 1e-5, "{first:?}");
        let (low, high) = first.part.interval.unwrap();
        assert!(low > 0.999 && high < 1.001, "{low} {high}");
        let side = |side: Side| found.sides[side as usize].1;
        assert!(side(Side::System).share > 0.999 && side(Side::Program).share.abs() < 0.001);
    }

    #[test]
    fn the_interval_covers_what_the_share_is() {
        // The slow spans owe 70 % of their excess to a taker on average, in amounts that differ widely from span to span.
        let mut random = SplitMix64::new(7);
        let (mut covered, rounds) = (0, 100);
        for _ in 0..rounds {
            let times: Vec<[i64; 3]> = (0..400)
                .map(|_| {
                    let is_slow = random.below(20) == 0;
                    let extra = |random: &mut SplitMix64, mean: u64| random.below(2 * mean) as i64;
                    let (own, taken) =
                        if is_slow { (extra(&mut random, 300_000), extra(&mut random, 700_000)) } else { (0, 0) };
                    [1_000_000 + random.below(100) as i64 + own, taken, 0]
                })
                .collect();
            let found = divided(&times, 0.05);
            let part = found.sides[Side::System as usize].1;
            let (low, high) = part.interval.unwrap();
            assert!(low <= part.share && part.share <= high);
            covered += u32::from((low..=high).contains(&0.7));
        }
        // Which spans count as slow follows their lengths, so the interval is not exact.
        assert!(covered >= 80, "{covered} of {rounds}");
    }

    proptest! {
        /// The parts of causes and sides add up to the excess, which is the difference of the means.
        #[test]
        fn parts_add_up_to_the_excess(
            times in prop::collection::vec([0_i64..1_000_000, 0_i64..1_000, 0_i64..100_000], FEWEST..120),
            slowest in 0.01_f64..0.25,
        ) {
            let found = divided(&times, slowest);
            prop_assert_eq!(found.causes.iter().map(|row| row.part.ns).sum::<i64>(), found.excess);
            prop_assert_eq!(found.sides.iter().map(|(_, part)| part.ns).sum::<i64>(), found.excess);
            // Plainly.
            let mut lengths: Vec<i64> = times.iter().map(|time| time.iter().sum()).collect();
            lengths.sort_unstable();
            let mean = |lengths: &[i64]| lengths.iter().sum::<i64>() as f64 / lengths.len() as f64;
            let count = lengths.len();
            let middle = &lengths[count / 4..count - count / 4];
            let difference = mean(&lengths[count - found.slow..]) - mean(middle);
            prop_assert!((found.excess as f64 - difference).abs() <= 0.5 + 1e-6, "{} {}", found.excess, difference);
            prop_assert_eq!((found.longest, found.median), (lengths[count - 1], lengths[count.div_ceil(2) - 1]));
            let shares: f64 = found.sides.iter().map(|(_, part)| part.share).sum();
            prop_assert!(found.excess == 0 || (shares - 1.0).abs() < 1e-9);
        }
    }
}
