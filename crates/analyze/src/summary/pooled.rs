//! Pools several equal recordings.

use becalm_stats::Moments;

use super::nodes::{SourceTimes, Times};
use super::{SourceSummary, Summary};

/// The detours and sources of several recordings together, each weighted by its observation time.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// The total run time of the loops of all CPUs and recordings, in nanoseconds; `None` if any is unknown.
    pub duration_ns: Option<i64>,
    /// The durations of the detours.
    pub durations: Moments,
    /// The sum of the detours that were only counted, in nanoseconds.
    pub unstored_ns: i64,
    /// The sources over all CPUs and recordings, in the order of [`Summary::sources`].
    pub sources: Vec<SourceSummary>,
}

impl Pooled {
    /// Pools any number of recordings.
    pub fn new<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> Self {
        let mut durations = Moments::EMPTY;
        let mut unstored_ns = 0_i64;
        let mut sources = SourceTimes::default();
        for summary in summaries.clone() {
            durations.merge(&summary.total.durations);
            unstored_ns = unstored_ns.saturating_add(summary.total.unstored_ns);
            for source in &summary.sources {
                sources.add(source.kind, source.source.clone(), Times { own: source.times, whole: source.whole_ns });
            }
        }
        let sum = |part: fn(&Summary) -> Option<i64>| {
            summaries.clone().map(part).try_fold(0_i64, |sum, part| Some(sum.saturating_add(part?)))
        };
        let duration_ns = sum(|summary| summary.total.duration_ns);
        // The CPUs of a recording are observed at the same time, the recordings one after another.
        let elapsed = sum(|summary| summary.cpus.iter().filter_map(|cpu| cpu.figures.duration_ns).max());
        let sources = sources.ranked(None, durations.total(), duration_ns, elapsed);
        Self { duration_ns, durations, unstored_ns, sources }
    }

    /// Time lost in detours over time observed; `None` if the latter is unknown or 0.
    pub fn noise_ratio(&self) -> Option<f64> {
        let observed = self.duration_ns.filter(|ns| *ns > 0)?;
        Some((self.durations.total() as f64 + self.unstored_ns as f64) / observed as f64)
    }

    /// Detours per second; `None` if the observed time is unknown or 0.
    pub fn rate_hz(&self) -> Option<f64> {
        let observed = self.duration_ns.filter(|ns| *ns > 0)?;
        Some(self.durations.count() as f64 / (observed as f64 / 1e9))
    }
}

#[cfg(test)]
mod tests {
    use becalm_bundle::Bundle;

    use super::*;
    use crate::summary::{Selection, summarize};

    #[test]
    fn one_recording_is_itself_and_the_same_again_weighs_twice() {
        let folder = tempfile::tempdir().unwrap();
        becalm_fixtures::write_all(folder.path());
        let summary =
            |name: &str| summarize(&Bundle::open(&folder.path().join(name)).unwrap(), &Selection::default()).unwrap();
        let (busy, again, quieter) = (summary("busy.becalm"), summary("again.becalm"), summary("quieter.becalm"));
        let alone = Pooled::new([&busy].into_iter());
        assert_eq!((alone.noise_ratio(), alone.rate_hz()), (busy.total.noise_ratio(), busy.total.rate_hz()));
        assert_eq!(format!("{:?}", alone.sources), format!("{:?}", busy.sources));
        let twice = Pooled::new([&busy, &again].into_iter());
        assert_eq!(twice.noise_ratio(), alone.noise_ratio());
        assert_eq!(twice.durations.count(), 2 * alone.durations.count());
        for (two, one) in twice.sources.iter().zip(&alone.sources) {
            assert_eq!(
                (&two.source, two.times.count(), two.whole_ns),
                (&one.source, 2 * one.times.count(), 2 * one.whole_ns)
            );
            assert_eq!((two.share, two.time_ratio), (one.share, one.time_ratio), "{}", one.source);
        }
        // Recordings with equal numbers of CPUs and lengths have equal weight; each nanosecond has one source.
        let mean = (busy.total.noise_ratio().unwrap() + quieter.total.noise_ratio().unwrap()) / 2.0;
        let both = Pooled::new([&busy, &quieter].into_iter());
        assert!((both.noise_ratio().unwrap() / mean - 1.0).abs() < 1e-12);
        assert_eq!(both.sources.iter().map(|source| source.whole_ns).sum::<i64>(), both.durations.total());
    }
}
