//! Samples hit by the timer interrupt, and the others: with a grain shorter than the tick's period, two peaks (Tsafrir 2007, figure 15).

use becalm_model::Kind;
use becalm_model::carried::is_timer;
use becalm_stats::{median_low, nearest_rank};

use super::read::WorkSamples;

/// The minimum distance of the medians for two peaks, in robust standard deviations (1.4826 times the median distance from the median) of the wider
/// peak.
const APART: f64 = 3.0;
/// Fewer samples are no peak.
const LEAST: usize = 20;

/// The number of bins of the histogram of both, and the share of the longest samples left out of it to keep the peaks visible.
const BINS: i64 = 50;
const BEYOND: f64 = 0.05;

/// A bin of the histogram of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeakBin {
    /// Its start; it ends where the next one starts, and all have the same width.
    pub from_ns: i64,
    /// The number of samples hit by the interrupt.
    pub hit: u64,
    /// The number of the others.
    pub missed: u64,
}

/// The samples with a timer interrupt, and those without.
#[derive(Clone, PartialEq, Debug)]
pub struct TickPeaks {
    /// The share of the samples with at least one.
    pub hit_ratio: f64,
    /// The share expected from equally spaced interrupts: interrupts over samples, at most 1.
    pub expected_ratio: f64,
    /// The median of the samples with one, in nanoseconds.
    pub hit_median_ns: i64,
    /// The median of the others.
    pub missed_median_ns: i64,
    /// Whether the two peaks are distinct.
    pub are_apart: bool,
    /// Both as a histogram, without the longest twentieth of all samples.
    pub histogram: Vec<PeakBin>,
}

impl TickPeaks {
    /// From samples with and without a timer interrupt, at least 20 each; `None` if there are fewer, or without the trace.
    pub fn from_samples(samples: &WorkSamples) -> Option<Self> {
        let mut is_hit = vec![false; samples.values.len()];
        let mut interrupts = 0_u64;
        for source in samples.sources.iter().filter(|source| source.kind == Kind::Irq && is_timer(&source.source)) {
            for (number, _) in &source.times {
                *is_hit.get_mut(*number)? = true;
                interrupts += 1;
            }
        }
        let values = |hit: bool| -> Vec<i64> {
            let own = samples.values.iter().zip(&is_hit).filter(|(_, is_hit)| **is_hit == hit);
            own.map(|(value, _)| *value).collect()
        };
        let (mut hit, mut missed) = (values(true), values(false));
        if hit.len() < LEAST || missed.len() < LEAST {
            return None;
        }
        let histogram = histogram(&hit, &missed);
        let all = samples.values.len() as f64;
        let (hit_ratio, expected_ratio) = (hit.len() as f64 / all, (interrupts as f64 / all).min(1.0));
        let (hit_median_ns, hit_width) = middle(&mut hit)?;
        let (missed_median_ns, missed_width) = middle(&mut missed)?;
        let distance = (hit_median_ns - missed_median_ns).abs() as f64;
        let are_apart = distance > APART * hit_width.max(missed_width);
        Some(Self { hit_ratio, expected_ratio, hit_median_ns, missed_median_ns, are_apart, histogram })
    }
}

/// Equally wide bins from the shortest sample on, and an empty one behind the last.
fn histogram(hit: &[i64], missed: &[i64]) -> Vec<PeakBin> {
    let mut all = [hit, missed].concat();
    all.sort_unstable();
    let (first, last) = (all[0], all[nearest_rank(1.0 - BEYOND, all.len())]);
    let width = (last - first) / BINS + 1;
    let bins = (last - first) / width + 2;
    let mut histogram: Vec<PeakBin> =
        (0..bins).map(|bin| PeakBin { from_ns: first + bin * width, hit: 0, missed: 0 }).collect();
    let mut count = |values: &[i64], part: fn(&mut PeakBin) -> &mut u64| {
        for value in values.iter().filter(|value| **value <= last) {
            *part(&mut histogram[((value - first) / width) as usize]) += 1;
        }
    };
    count(hit, |bin| &mut bin.hit);
    count(missed, |bin| &mut bin.missed);
    histogram
}

/// The median, and the robust standard deviation.
fn middle(values: &mut [i64]) -> Option<(i64, f64)> {
    let median = median_low(values)?;
    values.iter_mut().for_each(|value| *value = (*value - median).abs());
    Some((median, 1.4826 * median_low(values)? as f64))
}

#[cfg(test)]
mod tests {
    use becalm_model::carried::TICK;

    use super::super::read::SourceTimes;
    use super::super::read::tests::fixed_work;
    use super::*;

    /// Samples of 2 ms with a tick every 4 ms: every second one is hit, and takes `longer_ns` more. They are slightly irregular.
    fn half(longer_ns: i64) -> WorkSamples {
        let value = |number: i64| 2_000_000 + (number * 37) % 101 + if number % 2 == 0 { longer_ns } else { 0 };
        let values: Vec<i64> = (0..200).map(value).collect();
        let mut samples = fixed_work(&values);
        let times = (0..200).filter(|number| number % 2 == 0).map(|number| (number, 5_000)).collect();
        samples.sources = vec![SourceTimes { kind: Kind::Irq, source: TICK.to_owned(), times }];
        samples
    }

    #[test]
    fn half_a_tick_hits_every_second_sample() {
        let peaks = TickPeaks::from_samples(&half(12_000)).unwrap();
        assert_eq!((peaks.hit_ratio, peaks.expected_ratio, peaks.are_apart), (0.5, 0.5, true));
        assert!((peaks.hit_median_ns - peaks.missed_median_ns - 12_000).abs() < 100, "{peaks:?}");
        // Both peaks are in the histogram, each at its end, except for the longest twentieth; nothing is between them.
        let bins = &peaks.histogram;
        let sums = (bins.iter().map(|bin| bin.hit).sum::<u64>(), bins.iter().map(|bin| bin.missed).sum::<u64>());
        assert!((89..=91).contains(&sums.0) && sums.1 == 100, "{sums:?}");
        assert!(bins[0].missed > 0 && bins[bins.len() / 2].hit + bins[bins.len() / 2].missed == 0);
        assert_eq!(bins.last().map(|bin| (bin.hit, bin.missed)), Some((0, 0)));
        // A tick that costs nothing makes no second peak, and neither does one in every sample.
        assert!(!TickPeaks::from_samples(&half(0)).unwrap().are_apart);
        let mut all = half(12_000);
        all.sources[0].times = (0..200).map(|number| (number, 5_000)).collect();
        assert_eq!(TickPeaks::from_samples(&all), None);
        all.sources.clear();
        assert_eq!(TickPeaks::from_samples(&all), None);
    }
}
