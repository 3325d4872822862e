//! The figures of an imported distribution: those that its file has for each series, or that follow from these.

use super::{DistributionDoc, Edges, Quantity, Series};

/// Bounds of a length; equal if it is known exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Within {
    /// The lower bound, in nanoseconds.
    pub low_ns: i64,
    /// The upper bound, in nanoseconds.
    pub high_ns: i64,
}

impl Within {
    #[must_use]
    pub fn middle_ns(self) -> f64 {
        self.low_ns as f64 / 2.0 + self.high_ns as f64 / 2.0
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct SeriesFigures {
    pub series: Series,
    /// Lengths per second; `None` if the time of counting is unknown.
    pub rate_hz: Option<f64>,
    /// The share of time that was taken; `None` if the lengths are no stolen time, or the sum or the time is unknown.
    pub noise_ratio: Option<f64>,
    pub median: Option<Within>,
    /// The 99th percentile.
    pub p99: Option<Within>,
    /// The 99.9th percentile.
    pub p999: Option<Within>,
    /// For steps of a loop: the number of those longer than the fullest bucket.
    pub disturbed: Option<u64>,
}

impl SeriesFigures {
    /// One number for a level: the middle of its bounds, limited to the shortest and the longest length.
    pub fn estimate_ns(&self, level: Within) -> f64 {
        let (min, max) = (self.series.min_ns.unwrap_or(0), self.series.max_ns.unwrap_or(i64::MAX));
        level.middle_ns().min(max as f64).max(min as f64)
    }

    pub fn all(doc: &DistributionDoc) -> Vec<Self> {
        doc.series.iter().map(|series| Self::new(series, doc.quantity)).collect()
    }

    pub(super) fn new(series: &Series, quantity: Quantity) -> Self {
        let observed = series.observed_ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9);
        let stolen = series.total_ns.filter(|_| quantity == Quantity::Stolen).map(|ns| ns as f64 / 1e9);
        Self {
            rate_hz: series.count.zip(observed).map(|(count, seconds)| count as f64 / seconds),
            noise_ratio: stolen.zip(observed).map(|(lost, seconds)| lost / seconds),
            median: level(series, 0.5),
            p99: level(series, 0.99),
            p999: level(series, 0.999),
            disturbed: (quantity == Quantity::Steps).then(|| disturbed(series)).flatten(),
            series: series.clone(),
        }
    }
}

/// The length that this share of all lengths does not exceed: from the program, else from the histogram.
pub fn level(series: &Series, at_ratio: f64) -> Option<Within> {
    let said = series.quantiles.iter().find(|level| (level.at_ratio - at_ratio).abs() < 1e-9);
    if let Some(level) = said {
        return Some(Within { low_ns: level.ns, high_ns: level.ns });
    }
    let all = series.in_histogram();
    // Without buckets, the distribution of lengths is unknown.
    if series.buckets.is_empty() || all == 0 {
        return None;
    }
    let wanted = ((all as f64 * at_ratio).ceil() as u64).clamp(1, all);
    let mut sum = 0;
    for bucket in &series.buckets {
        sum += bucket.count;
        if sum >= wanted {
            let [shortest, longest] = bounds(series);
            let low_ns = bucket.from_ns.max(shortest.min(bucket.below_ns));
            return Some(Within { low_ns, high_ns: bucket.below_ns.min(longest.max(low_ns)) });
        }
    }
    // The distribution beyond the buckets is unknown.
    None
}

/// Bounds of all lengths of a series, from its shortest and longest.
fn bounds(series: &Series) -> [i64; 2] {
    let (min, max) = (series.min_ns.unwrap_or(0), series.max_ns.unwrap_or(i64::MAX));
    match series.edges {
        None => [min, max],
        Some(Edges::Lower) => [min, i64::MAX],
        Some(Edges::Upper) => [0, max],
    }
}

fn disturbed(series: &Series) -> Option<u64> {
    let most = series.buckets.iter().max_by_key(|bucket| bucket.count)?;
    let longer = series.buckets.iter().filter(|bucket| bucket.from_ns > most.from_ns).map(|bucket| bucket.count);
    Some(longer.sum::<u64>().saturating_add(series.above.map_or(0, |above| above.count)))
}

#[cfg(test)]
mod tests {
    use crate::distribution::{Above, Bucket, Level};

    use super::*;

    fn histogram(buckets: &[(i64, i64, u64)]) -> Series {
        Series { buckets: buckets.iter().copied().map(Bucket::from).collect(), ..Series::default() }
    }

    #[test]
    fn levels_lie_in_the_bucket_that_reaches_them() {
        let mut series = histogram(&[(0, 10, 50), (10, 20, 40), (50, 60, 9)]);
        series.above = Some(Above { from_ns: 60, count: 1 });
        let within = |low_ns, high_ns| Some(Within { low_ns, high_ns });
        assert_eq!(
            (level(&series, 0.5), level(&series, 0.51), level(&series, 0.99)),
            (within(0, 10), within(10, 20), within(50, 60))
        );
        series.max_ns = Some(700);
        assert_eq!(level(&series, 0.999), None, "where lengths beyond the histogram lie is not known");
        series.quantiles = vec![Level { at_ratio: 0.99, ns: 57 }];
        assert_eq!(level(&series, 0.99), within(57, 57), "what the program computed is finer");
        assert_eq!(level(&Series { above: series.above, ..Series::default() }, 0.5), None);
        let short = Series { max_ns: Some(4), ..histogram(&[(0, 10, 1)]) };
        assert_eq!(level(&short, 0.5), within(0, 4));
    }

    #[test]
    fn only_stolen_time_has_a_share() {
        let series = Series {
            observed_ns: Some(2_000_000_000),
            count: Some(10),
            total_ns: Some(1_000_000_000),
            ..histogram(&[(0, 10, 7), (10, 20, 3)])
        };
        for quantity in [Quantity::Stolen, Quantity::Wakeup, Quantity::Steps] {
            let figures = SeriesFigures::new(&series, quantity);
            assert_eq!(figures.noise_ratio, (quantity == Quantity::Stolen).then_some(0.5));
            assert_eq!((figures.rate_hz, figures.disturbed), (Some(5.0), (quantity == Quantity::Steps).then_some(3)));
        }
        let unknown = SeriesFigures::new(&Series { observed_ns: None, ..series }, Quantity::Stolen);
        assert_eq!((unknown.rate_hz, unknown.noise_ratio), (None, None));
    }
}
