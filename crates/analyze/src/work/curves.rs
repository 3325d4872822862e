//! The shapes of a distribution, reduced to the points that a drawing needs: cumulative distribution and survival, histogram, and the consecutive
//! samples.

use becalm_stats::nearest_rank;

use super::read::WorkSamples;

/// Approximate number of points of the distribution's curve.
const POINTS: usize = 200;
/// Bins of the histogram.
const BINS: usize = 60;
/// The histogram ends at this quantile; values beyond are counted separately.
const HISTOGRAM_UP_TO: f64 = 0.999;
/// Points of the series.
const MOMENTS: usize = 400;

/// A bin of the histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    /// Its start; it ends where the next one starts.
    pub from_ns: i64,
    /// The number of values in it.
    pub count: u64,
}

/// One point for consecutive samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SamplePoint {
    /// The start of the first of them.
    pub start_ns: i64,
    /// The smallest of their values, in nanoseconds.
    pub min_ns: i64,
    /// The largest of their values, in nanoseconds.
    pub max_ns: i64,
}

/// The distribution of a CPU's values, for drawing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Curves {
    /// Values in rising order, with the share of all samples up to it. Dense at both ends, so the survival function (one minus the share) shows its
    /// tail, and the cumulative one its head, on a logarithmic axis.
    pub distribution: Vec<(i64, f64)>,
    /// The histogram, of equally wide bins.
    pub histogram: Vec<Bin>,
    /// The end of the last bin.
    pub histogram_end_ns: i64,
    /// The number of values at or beyond that end, which are in no bin.
    pub beyond: u64,
    /// The samples in order of time.
    pub series: Vec<SamplePoint>,
}

impl Curves {
    /// From at least one sample.
    pub fn from_samples(samples: &WorkSamples) -> Self {
        let mut sorted = samples.values.clone();
        sorted.sort_unstable();
        let (histogram, histogram_end_ns, beyond) = histogram(&sorted);
        Self { distribution: distribution(&sorted), histogram, histogram_end_ns, beyond, series: series(samples) }
    }
}

/// The values at evenly spread ranks, and at ranks whose distances from the smallest and the largest one shrink by a fifth.
pub(super) fn distribution(sorted: &[i64]) -> Vec<(i64, f64)> {
    let count = sorted.len();
    let even = (0..=POINTS).map(|point| (count - 1) * point / POINTS);
    let rests = || std::iter::successors(Some(count), |rest| Some(rest * 4 / 5).filter(|rest| *rest > 0));
    let (tail, head) = (rests().map(|rest| count - rest), rests().map(|rest| rest - 1));
    let mut ranks: Vec<usize> = even.chain(tail).chain(head).chain([count - 1]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    // Of equal values, the last one's share is that of all of them.
    let mut points: Vec<(i64, f64)> = Vec::with_capacity(ranks.len());
    for rank in ranks {
        let value = sorted[rank];
        let not_above = sorted.partition_point(|other| *other <= value);
        if points.last().is_none_or(|(last, _)| *last != value) {
            points.push((value, not_above as f64 / count as f64));
        }
    }
    points
}

fn histogram(sorted: &[i64]) -> (Vec<Bin>, i64, u64) {
    let (first, count) = (sorted[0], sorted.len());
    let last = sorted[nearest_rank(HISTOGRAM_UP_TO, count)];
    let width = ((last - first) / BINS as i64 + 1).max(1);
    let bins = ((last - first) / width + 1) as usize;
    let mut histogram: Vec<Bin> = (0..bins).map(|bin| Bin { from_ns: first + bin as i64 * width, count: 0 }).collect();
    let end = first + bins as i64 * width;
    for value in sorted.iter().take_while(|value| **value < end) {
        histogram[((value - first) / width) as usize].count += 1;
    }
    (histogram, end, sorted.iter().filter(|value| **value >= end).count() as u64)
}

fn series(samples: &WorkSamples) -> Vec<SamplePoint> {
    let each = samples.values.len().div_ceil(MOMENTS).max(1);
    let chunks = samples.values.chunks(each).zip(samples.starts.chunks(each));
    let moment = |(values, starts): (&[i64], &[i64])| SamplePoint {
        start_ns: starts[0],
        min_ns: values.iter().copied().min().unwrap_or(0),
        max_ns: values.iter().copied().max().unwrap_or(0),
    };
    chunks.map(moment).collect()
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::fixed_work;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_point_says_what_the_samples_say(values in proptest::collection::vec(1_i64..3_000, 1..700)) {
            let curves = Curves::from_samples(&fixed_work(&values));
            let n = values.len() as f64;
            for (value, share) in &curves.distribution {
                let not_above = values.iter().filter(|other| *other <= value).count() as f64;
                prop_assert_eq!(*share, not_above / n);
            }
            prop_assert_eq!(curves.distribution.last().unwrap().0, *values.iter().max().unwrap());
            prop_assert_eq!(curves.distribution[0].0, *values.iter().min().unwrap());
            // The three shortest and the three longest have points of their own.
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for end in sorted.iter().take(3).chain(sorted.iter().rev().take(3)) {
                prop_assert!(curves.distribution.iter().any(|(value, _)| value == end), "{}", end);
            }
            // Every value is counted in the histogram.
            let inside: u64 = curves.histogram.iter().map(|bin| bin.count).sum();
            prop_assert_eq!(inside + curves.beyond, values.len() as u64);
            for pair in curves.histogram.windows(2) {
                let (from, to) = (pair[0].from_ns, pair[1].from_ns);
                let count = values.iter().filter(|value| (from..to).contains(*value)).count() as u64;
                prop_assert_eq!(pair[0].count, count);
            }
            let series = &curves.series;
            prop_assert!(series.len() <= MOMENTS);
            prop_assert_eq!(series.iter().map(|moment| moment.max_ns).max(), values.iter().copied().max());
            prop_assert_eq!(series.iter().map(|moment| moment.min_ns).min(), values.iter().copied().min());
        }
    }
}
