//! What one run has of the lengths that are compared: how often they came, how much time they took, and how long they were. Each figure lies
//! between two values by what its file says, however many lengths there were: a bucket has a width, the loop's own time may be in a length, and
//! a time may be known in whole seconds.

use becalm_analyze::compare::FLOOR;

use super::{Bucket, Quantity, Series};

/// By how much the time may be off that a program was to measure, or that it tells in whole seconds.
const ASKED_WITHIN_NS: i64 = 1_000_000_000;

/// Fewer lengths above a quantile do not bound it.
const BEYOND_MIN: f64 = 5.0;

/// A figure, between which values it lies by definition, and its variance by chance where the run says it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Known {
    pub low: f64,
    pub value: f64,
    pub high: f64,
    pub variance: Option<f64>,
}

/// A run of a side, and from which length on it is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLengths<'a> {
    pub series: &'a Series,
    /// Lengths from this on count, in nanoseconds.
    pub cut_ns: i64,
    /// A length of its file is longer than what was taken by this at most.
    pub own_slack_ns: i64,
    /// That of the other side, where this one answers for the difference of both, as its buckets are finer; else `None`.
    pub other_slack_ns: Option<i64>,
    /// How many times as far as by chance alone numbers scatter, at least 1.
    pub effect: f64,
}

/// By how much lengths of a series may be longer than the time that was taken.
pub(super) fn slack_ns(series: &Series, quantity: Quantity, loop_subtracted: Option<bool>) -> i64 {
    if quantity == Quantity::Steps {
        // Versions of oslat differ by a bucket in how they round.
        let widest = series.buckets.iter().map(|bucket| bucket.below_ns - bucket.from_ns).min().unwrap_or(0);
        return commonest(series).map_or(0, |most| most.below_ns.saturating_add(widest));
    }
    if loop_subtracted == Some(true) {
        return 0;
    }
    // A loop's step is below its threshold, and of a histogram whose shortest lengths are none of it within a bucket.
    let narrow = series.buckets.iter().map(|bucket| bucket.below_ns - bucket.from_ns).min();
    series.loop_ns.or_else(|| [series.threshold_ns, narrow].into_iter().flatten().min()).unwrap_or(0)
}

/// The bucket that has most.
pub(super) fn commonest(series: &Series) -> Option<&Bucket> {
    series.buckets.iter().max_by_key(|bucket| bucket.count)
}

impl RunLengths<'_> {
    /// The buckets that may have such lengths, or those that have no others.
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

    /// Whether all lengths of the file are such.
    fn is_whole(&self) -> bool {
        [self.series.threshold_ns, self.series.min_ns].iter().flatten().any(|ns| *ns >= self.cut_ns)
    }

    /// How many there are: at least, about and at most.
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

    /// About how many there are; `None` where the file does not say how many are so long.
    pub fn about(&self) -> Option<f64> {
        self.count().map(|[_, count, _]| count)
    }

    /// For how long they were counted, in seconds: at least, about and at most.
    fn seconds(&self) -> Option<[f64; 3]> {
        let known = self.series.observed_ns.map(|ns| [ns; 3]);
        let asked = || self.series.asked_ns.map(|ns| [ns - ASKED_WITHIN_NS, ns, ns.saturating_add(ASKED_WITHIN_NS)]);
        known.or_else(asked).filter(|[least, ..]| *least > 0).map(|times| times.map(|ns| ns as f64 / 1e9))
    }

    /// How many came in a second.
    pub fn rate(&self) -> Option<Known> {
        let ([fewest, count, most], [shortest, seconds, longest]) = (self.count()?, self.seconds()?);
        let variance = Some(self.effect * count.max(1.0) / (seconds * seconds));
        Some(Known { low: fewest / longest, value: count / seconds, high: most / shortest, variance })
    }

    /// Which part of the time they took.
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

    /// The length that such a part of them does not exceed, in nanoseconds.
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
        // Of lengths of which more are short a quantile is shorter.
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

    /// Which part of the lengths is surely, and which may be, shorter than this, where a difference below [`FLOOR`] does not matter.
    pub fn share_below(&self, ns: i64) -> Option<(f64, f64)> {
        let all = self.about()?;
        if all <= 0.0 || self.series.buckets.is_empty() {
            return None;
        }
        let at_least = |bucket: &&Bucket| bucket.from_ns.midpoint(bucket.below_ns) >= self.cut_ns;
        let far = ns.saturating_add((ns as f64 * FLOOR) as i64);
        let (mut surely, mut perhaps) = (0, 0);
        for bucket in self.series.buckets.iter().filter(at_least) {
            // What was taken is shorter than the length by the slack at most.
            surely += if bucket.below_ns <= ns { bucket.count } else { 0 };
            perhaps += if bucket.from_ns - self.own_slack_ns < far { bucket.count } else { 0 };
        }
        Some((surely as f64 / all, perhaps as f64 / all))
    }
}

/// The bucket that has the length which such a part does not exceed; `None` where it lies beyond all of them.
fn place<'a>(buckets: &[&'a Bucket], beyond: u64, at_ratio: f64) -> Option<&'a Bucket> {
    let all = buckets.iter().map(|bucket| bucket.count).sum::<u64>() + beyond;
    let wanted = ((all as f64 * at_ratio).ceil() as u64).clamp(1, all.max(1));
    let mut sum = 0;
    buckets.iter().copied().find(|bucket| {
        sum += bucket.count;
        sum >= wanted
    })
}
