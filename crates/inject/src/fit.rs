//! How much of the requested noise must be possible, and what was requested if not all of it is.

use becalm_scale::NoiseTrace;
use becalm_stats::Moments;
use becalm_units::Nanos;

use crate::document::Injected;
use crate::tally::figures;

/// The share of its time that noise must keep to count as requested.
const MOST: f64 = 0.9;

/// How much of the noise must be possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fit {
    /// All of it, each detour separately.
    Exact,
    /// Detours with at least nine tenths of the requested time. Detours that are too short are left out; of the rest, those too close to each other
    /// are merged.
    Most,
    /// Any part of it, treated likewise.
    Part,
}

impl Fit {
    /// The shortest detour that must be possible; `None` without detours.
    pub(crate) fn needs(self, lengths: impl Iterator<Item = Nanos>) -> Option<Nanos> {
        match self {
            Self::Exact => lengths.min(),
            Self::Part => lengths.max(),
            Self::Most => {
                let mut lengths: Vec<Nanos> = lengths.collect();
                lengths.sort_unstable();
                let enough = sum(&lengths) * MOST;
                let mut kept = 0.0;
                lengths.into_iter().rev().find(|length| {
                    kept += length.get() as f64;
                    kept >= enough
                })
            }
        }
    }
}

/// The share of the total length that detours shorter than this have.
pub(crate) fn share_below(lengths: impl Iterator<Item = Nanos>, shortest: Nanos) -> f64 {
    let (short, others): (Vec<Nanos>, Vec<Nanos>) = lengths.partition(|length| *length < shortest);
    let (short, others) = (sum(&short), sum(&others));
    short / (short + others).max(1.0)
}

fn sum(lengths: &[Nanos]) -> f64 {
    lengths.iter().map(|length| length.get() as f64).sum()
}

/// The detours that one lap of a circle of noise requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RequestedNoise {
    lengths: Moments,
    intervals: Moments,
    lap: Nanos,
}

impl RequestedNoise {
    pub fn new(trace: &NoiseTrace) -> Self {
        let (mut lengths, mut intervals) = (Moments::default(), Moments::default());
        let starts = || trace.detours().map(|(start, _)| start);
        let first_of_next_lap = starts().next().map(|first| first + trace.length());
        for ((start, length), next) in trace.detours().zip(starts().skip(1).chain(first_of_next_lap)) {
            lengths.add(length.get());
            intervals.add((next - start).get());
        }
        Self { lengths, intervals, lap: trace.length() }
    }

    /// The detours requested in this time.
    pub fn injected_in(&self, observed: Nanos) -> Injected {
        let laps = observed.get() as f64 / self.lap.get().max(1) as f64;
        let lap = figures(&self.lengths, &self.intervals, self.lap);
        Injected { count: (self.lengths.count() as f64 * laps).round() as u64, ..lap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(lengths: &[i64]) -> impl Iterator<Item = Nanos> {
        lengths.iter().map(|length| Nanos::new(*length))
    }

    #[test]
    fn most_of_the_time_must_be_possible() {
        // 100 in total: the two longest take 80, the three longest 91.
        let lengths = [50, 3, 11, 30, 6];
        let needs = |fit: Fit| fit.needs(nanos(&lengths)).map(Nanos::get);
        assert_eq!([Fit::Exact, Fit::Most, Fit::Part].map(needs), [Some(3), Some(11), Some(50)]);
        assert_eq!([Fit::Exact, Fit::Most, Fit::Part].map(|fit| fit.needs(nanos(&[]))), [None; 3]);
        assert_eq!(share_below(nanos(&lengths), Nanos::new(12)), 0.2);
        assert_eq!((share_below(nanos(&lengths), Nanos::new(3)), share_below(nanos(&[]), Nanos::new(3))), (0.0, 0.0));
    }

    #[test]
    fn what_is_asked_for_does_not_depend_on_what_can_be_made() {
        let detours = [(10, 5), (40, 7), (90, 1)].map(|(start, length)| (Nanos::new(start), Nanos::new(length)));
        let asked =
            RequestedNoise::new(&NoiseTrace::new(Nanos::new(100), detours).unwrap()).injected_in(Nanos::new(1_000));
        assert_eq!((asked.count, asked.ratio, asked.length_ns), (30, Some(0.13), Some(13.0 / 3.0)));
        assert_eq!((asked.interval_ns, asked.ends), (Some(100.0 / 3.0), Some((Nanos::new(1), Nanos::new(7)))));
        let none = RequestedNoise::new(&NoiseTrace::new(Nanos::new(100), []).unwrap()).injected_in(Nanos::new(1_000));
        assert_eq!((none.count, none.ratio, none.length_ns), (0, Some(0.0), None));
    }
}
