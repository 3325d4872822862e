//! The compared figures of one run: how often lengths came, how much time they took, and how long they were. Its file gives bounds for each
//! figure, however many lengths there were: a bucket has a width, a length may include the loop's own time, and a time may be known in
//! whole seconds.

use becalm_analyze::compare::FLOOR;

use super::{Bucket, Quantity, Series};

/// The largest error of a time that was requested, or that is printed in whole seconds.
const ASKED_WITHIN_NS: i64 = 1_000_000_000;

/// The fewest lengths above a quantile that bound it.
const BEYOND_MIN: f64 = 5.0;

/// A figure with its bounds, and its variance by chance if the run shows it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Known {
    pub low: f64,
    pub value: f64,
    pub high: f64,
    pub variance: Option<f64>,
}

/// A run of a side, restricted to lengths from `cut_ns` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLengths<'a> {
    pub series: &'a Series,
    /// The shortest length that counts, in nanoseconds.
    pub cut_ns: i64,
    /// The slack of its file: the largest excess of a length over the time that was taken.
    pub own_slack_ns: i64,
    /// The other side's slack if this side has the finer buckets, and so accounts for the difference of both; else `None`.
    pub other_slack_ns: Option<i64>,
    /// The design effect: the variance of counts relative to that of independent detours, at least 1.
    pub effect: f64,
}

/// The slack of a series: the largest excess of a length over the time that was taken.
pub(super) fn slack_ns(series: &Series, quantity: Quantity, loop_subtracted: Option<bool>) -> i64 {
    if quantity == Quantity::Steps {
        // Versions of oslat differ by a bucket in their rounding.
        let widest = series.buckets.iter().map(|bucket| bucket.below_ns - bucket.from_ns).min().unwrap_or(0);
        return commonest(series).map_or(0, |most| most.below_ns.saturating_add(widest));
    }
    if loop_subtracted == Some(true) {
        return 0;
    }
    // The loop's step is below its threshold, and within a bucket if the histogram has no bare steps.
    let narrow = series.buckets.iter().map(|bucket| bucket.below_ns - bucket.from_ns).min();
    series.loop_ns.or_else(|| [series.threshold_ns, narrow].into_iter().flatten().min()).unwrap_or(0)
}

/// The fullest bucket.
pub(super) fn commonest(series: &Series) -> Option<&Bucket> {
    series.buckets.iter().max_by_key(|bucket| bucket.count)
}

impl RunLengths<'_> {
    /// The buckets that may contain such lengths, or if `surely` those that contain no others.
    fn buckets(&self, surely: bool) -> impl Iterator<Item = &Bucket> {
        let up = self.other_slack_ns.map_or(0, |_| self.own_slack_ns);
        let down = self.other_slack_ns.unwrap_or(0);
        let (from, to) = (self.cut_ns.saturating_add(up), self.cut_ns.saturating_sub(down));
        self.series.buckets.iter().filter(
            move |bucket| {
                if surely { bucket.from_ns >= from } else { bucket.below_ns > to.max(0) }
            },
        )
    }

    /// True if all lengths of the file count.
    fn is_whole(&self) -> bool {
        [self.series.threshold_ns, self.series.min_ns].iter().flatten().any(|ns| *ns >= self.cut_ns)
    }

    /// The number of lengths: at least, about and at most.
    fn count(&self) -> Option<[f64; 3]> {
        if self.series.buckets.is_empty() {
            let count = self.series.count.filter(|_| self.is_whole())? as f64;
            return Some([count; 3]);
        }
        let sum = |buckets: &mut dyn Iterator<Item = &Bucket>| buckets.map(|bucket| bucket.count).sum::<u64>() as f64;
        let beyond = self.series.above.map_or(0, |above| above.count) as f64;
        let surely_beyond =
            if self.series.above.is_some_and(|above| above.from_ns < self.cut_ns) { 0.0 } else { beyond };
        let middle = |bucket: &&Bucket| bucket.from_ns.midpoint(bucket.below_ns) >= self.cut_ns;
        Some([
            sum(&mut self.buckets(true)) + surely_beyond,
            sum(&mut self.series.buckets.iter().filter(middle)) + beyond,
            sum(&mut self.buckets(false)) + beyond,
        ])
    }

    /// About how many lengths count; `None` if the file does not show that.
    pub fn about(&self) -> Option<f64> {
        self.count().map(|[_, count, _]| count)
    }

    /// The time of counting, in seconds: at least, about and at most.
    fn seconds(&self) -> Option<[f64; 3]> {
        let known = self.series.observed_ns.map(|ns| [ns; 3]);
        let asked = || self.series.asked_ns.map(|ns| [ns - ASKED_WITHIN_NS, ns, ns.saturating_add(ASKED_WITHIN_NS)]);
        known.or_else(asked).filter(|[least, ..]| *least > 0).map(|times| times.map(|ns| ns as f64 / 1e9))
    }

    /// Lengths per second.
    pub fn rate(&self) -> Option<Known> {
        let ([fewest, count, most], [shortest, seconds, longest]) = (self.count()?, self.seconds()?);
        let variance = Some(self.effect * count.max(1.0) / (seconds * seconds));
        Some(Known { low: fewest / longest, value: count / seconds, high: most / shortest, variance })
    }

    /// The share of time that they took.
    pub fn noise_ratio(&self) -> Option<Known> {
        let [shortest, seconds, longest] = self.seconds()?;
        if self.series.above.is_some_and(|above| above.count > 0) || self.series.buckets.is_empty() {
            return None;
        }
        let own = self.own_slack_ns;
        let low: f64 =
            self.buckets(true).map(|bucket| (bucket.from_ns - own).max(0) as f64 * bucket.count as f64).sum();
        let high: f64 = self.buckets(false).map(|bucket| bucket.below_ns as f64 * bucket.count as f64).sum();
        let (mut sum, mut squares) = (0.0, 0.0);
        let lengths = self.series.buckets.iter().map(|bucket| (bucket.from_ns.midpoint(bucket.below_ns), bucket.count));
        for (middle, count) in lengths.filter(|(middle, _)| *middle >= self.cut_ns) {
            let length = middle as f64 / 1e9;
            sum += length * count as f64;
            squares += length * length * count as f64;
        }
        let variance = Some(self.effect * squares / (seconds * seconds));
        Some(Known { low: low / 1e9 / longest, value: sum / seconds, high: high / 1e9 / shortest, variance })
    }

    /// The length that this share of them does not exceed, in nanoseconds.
    pub fn level(&self, at_ratio: f64) -> Option<Known> {
        let [_, count, _] = self.count()?;
        let number = count / self.effect;
        if number * (1.0 - at_ratio) < BEYOND_MIN {
            return None;
        }
        if let Some(said) = self.series.quantiles.iter().find(|level| (level.at_ratio - at_ratio).abs() < 1e-9)
            && self.is_whole()
        {
            let value = said.ns as f64;
            return Some(Known { low: value - self.own_slack_ns as f64, value, high: value, variance: None });
        }
        // With more short lengths a quantile is shorter.
        let (many, few) = (self.buckets(false).collect::<Vec<_>>(), self.buckets(true).collect::<Vec<_>>());
        let beyond = self.series.above.map_or(0, |above| above.count);
        let low = place(&many, beyond, at_ratio)?.from_ns.max(self.cut_ns) - self.own_slack_ns;
        let high = place(&few, beyond, at_ratio)?.below_ns;
        let middle = |at: f64| place(&few, beyond, at).map(|bucket| bucket.from_ns.midpoint(bucket.below_ns) as f64);
        let spread = (at_ratio * (1.0 - at_ratio) / number).sqrt();
        let ends = middle(at_ratio - spread).zip(middle(at_ratio + spread));
        let value = middle(at_ratio)?;
        let variance = ends.map(|(low, high)| ((high - low) / 2.0).powi(2));
        Some(Known { low: low as f64, value, high: high as f64, variance })
    }

    /// The shares of lengths that are surely and perhaps shorter than this. Differences below [`FLOOR`] do not matter.
    pub fn share_below(&self, ns: i64) -> Option<(f64, f64)> {
        let all = self.about()?;
        if all <= 0.0 || self.series.buckets.is_empty() {
            return None;
        }
        let at_least = |bucket: &&Bucket| bucket.from_ns.midpoint(bucket.below_ns) >= self.cut_ns;
        let far = ns.saturating_add((ns as f64 * FLOOR) as i64);
        let (mut surely, mut perhaps) = (0, 0);
        for bucket in self.series.buckets.iter().filter(at_least) {
            // The time that was taken is shorter than the length by the slack at most.
            surely += if bucket.below_ns <= ns { bucket.count } else { 0 };
            perhaps += if bucket.from_ns - self.own_slack_ns < far { bucket.count } else { 0 };
        }
        Some((surely as f64 / all, perhaps as f64 / all))
    }
}

/// The bucket with the length that this share does not exceed; `None` if it is beyond all of them.
fn place<'a>(buckets: &[&'a Bucket], beyond: u64, at_ratio: f64) -> Option<&'a Bucket> {
    let all = buckets.iter().map(|bucket| bucket.count).sum::<u64>() + beyond;
    let wanted = ((all as f64 * at_ratio).ceil() as u64).clamp(1, all.max(1));
    let mut sum = 0;
    buckets.iter().copied().find(|bucket| {
        sum += bucket.count;
        sum >= wanted
    })
}
