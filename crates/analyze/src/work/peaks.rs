//! Samples that the timer's interrupt hit, and the others: of a grain shorter than a tick's period, two peaks (Tsafrir 2007, figure 15).

use becalm_stats::median_low;

use super::read::WorkSamples;

/// The source that is the timer's interrupt.
pub const TIMER: &str = "local_timer";

/// How many robust standard deviations (1.4826 times the median distance from the median) of the wider peak must lie between the medians
/// for two peaks.
const APART: f64 = 3.0;
/// Fewer samples are no peak.
const LEAST: usize = 20;

/// The samples in which the timer's interrupt came, beside those in which it did not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TickPeaks {
    /// The share of the samples in which it came at least once.
    pub hit_ratio: f64,
    /// That share if its interrupts came one after another at equal distances: interrupts by samples, 1 at most.
    pub expected_ratio: f64,
    /// The median of the samples in which it came, in nanoseconds.
    pub hit_median_ns: i64,
    /// The median of the others.
    pub missed_median_ns: i64,
    /// Whether the two stand apart.
    pub are_apart: bool,
}

impl TickPeaks {
    /// Of samples of which the timer hit some and missed some, at least 20 each; `None` of others, and without the trace.
    #[must_use]
    pub fn from_samples(samples: &WorkSamples) -> Option<Self> {
        let mut is_hit = vec![false; samples.values.len()];
        let mut interrupts = 0_u64;
        for source in samples.sources.iter().filter(|source| source.source == TIMER) {
            for (number, _) in &source.times {
                *is_hit.get_mut(*number)? = true;
                interrupts += 1;
            }
        }
        let values = |hit: bool| -> Vec<i64> {
            let of = samples.values.iter().zip(&is_hit).filter(|(_, is_hit)| **is_hit == hit);
            of.map(|(value, _)| *value).collect()
        };
        let (mut hit, mut missed) = (values(true), values(false));
        if hit.len() < LEAST || missed.len() < LEAST {
            return None;
        }
        let all = samples.values.len() as f64;
        let (hit_ratio, expected_ratio) = (hit.len() as f64 / all, (interrupts as f64 / all).min(1.0));
        let (hit_median_ns, hit_width) = middle(&mut hit)?;
        let (missed_median_ns, missed_width) = middle(&mut missed)?;
        let distance = (hit_median_ns - missed_median_ns).abs() as f64;
        let are_apart = distance > APART * hit_width.max(missed_width);
        Some(Self { hit_ratio, expected_ratio, hit_median_ns, missed_median_ns, are_apart })
    }
}

/// The median, and the robust standard deviation.
fn middle(values: &mut [i64]) -> Option<(i64, f64)> {
    let median = median_low(values)?;
    values.iter_mut().for_each(|value| *value = (*value - median).abs());
    Some((median, 1.4826 * median_low(values)? as f64))
}

#[cfg(test)]
mod tests {
    use becalm_model::Kind;

    use super::super::read::SourceTimes;
    use super::super::read::tests::fixed_work;
    use super::*;

    /// Samples of 2 ms beside a tick every 4 ms: every second one is hit, and takes `longer_ns` more. They are a little uneven.
    fn half(longer_ns: i64) -> WorkSamples {
        let value = |number: i64| 2_000_000 + (number * 37) % 101 + if number % 2 == 0 { longer_ns } else { 0 };
        let values: Vec<i64> = (0..200).map(value).collect();
        let mut samples = fixed_work(&values);
        let times = (0..200).filter(|number| number % 2 == 0).map(|number| (number, 5_000)).collect();
        samples.sources = vec![SourceTimes { kind: Kind::Irq, source: TIMER.to_owned(), times }];
        samples
    }

    #[test]
    fn half_a_tick_hits_every_second_sample() {
        let peaks = TickPeaks::from_samples(&half(12_000)).unwrap();
        assert_eq!((peaks.hit_ratio, peaks.expected_ratio, peaks.are_apart), (0.5, 0.5, true));
        assert!((peaks.hit_median_ns - peaks.missed_median_ns - 12_000).abs() < 100, "{peaks:?}");
        // A tick that costs nothing makes no second peak, and one that comes in all samples neither.
        assert!(!TickPeaks::from_samples(&half(0)).unwrap().are_apart);
        let mut all = half(12_000);
        all.sources[0].times = (0..200).map(|number| (number, 5_000)).collect();
        assert_eq!(TickPeaks::from_samples(&all), None);
        all.sources.clear();
        assert_eq!(TickPeaks::from_samples(&all), None);
    }
}
