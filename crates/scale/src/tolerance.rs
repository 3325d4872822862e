//! Inverts the questions of a prediction: the maximum number of ranks, and the maximum length of detours, at which a job loses at most a given share
//! of its time.
//!
//! The lost share is 1 - 1/slowdown: the part of a job's time that it would not take without noise. More ranks lose more, and so do longer detours,
//! so both answers are found by bisection, with a replay at each step.

use becalm_units::{Nanos, Share};

use crate::ScaleError;
use crate::noise::Noise;
use crate::predict::{Prediction, Question};
use crate::watch::ReplayWatch;

/// Maximum number of ranks tried: the cores of the largest machines.
pub const TRIED_RANKS: u64 = 1 << 23;

/// Bisection ends when the tolerable and the intolerable value are this close: 1 part in 64.
const CLOSE: u64 = 64;

/// The maximum number of ranks at which a job loses at most the tolerable share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToleratedRanks {
    /// That number, by replays; 0 if even the fewest lose more.
    pub ranks: u64,
    /// The 95 % interval for a recording; `None` for a formula.
    pub interval: Option<RankInterval>,
}

/// The ends of a 95 % interval of numbers of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankInterval {
    /// The lower end.
    pub low: u64,
    /// The upper end.
    pub high: u64,
}

/// The detours that a job of this many ranks tolerates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ToleratedDetours {
    /// The number of ranks.
    pub ranks: u64,
    /// Without all longer detours the job loses at most the tolerable share; zero if none may stay.
    pub longest: Nanos,
    /// The rate of longer ones on a CPU, in Hz.
    pub longer_hz: f64,
}

/// Both answers to one question.
#[derive(Clone, PartialEq, Debug)]
pub struct Tolerance {
    /// Useful CPU time of a phase.
    pub grain: Nanos,
    /// The maximum number of ranks.
    pub ranks: ToleratedRanks,
    /// The detours that would have to be removed, for each number of ranks that loses more.
    pub detours: Vec<ToleratedDetours>,
}

impl Tolerance {
    /// Answers both: the maximum number of ranks at which a job loses at most `share`, and the detours to remove for each of the given numbers of
    /// ranks. Those above [`TRIED_RANKS`] are left out.
    pub fn new(
        prediction: &Prediction<'_>,
        noise: &Noise,
        ranks: &[u64],
        share: Share,
        watch: ReplayWatch<'_>,
    ) -> Result<Self, ScaleError> {
        let question = *prediction.question();
        let mut detours = Vec::new();
        for ranks in ranks.iter().filter(|ranks| **ranks <= TRIED_RANKS) {
            detours.extend(tolerated_detours(noise, question, *ranks, share, watch)?);
        }
        Ok(Self { grain: question.grain, ranks: tolerated_ranks(prediction, share)?, detours })
    }
}

/// The lost share for a slowdown, 0 to 1.
pub fn lost(slowdown: f64) -> f64 {
    1.0 - 1.0 / slowdown
}

/// The largest number for which a monotonic condition holds, to 1 part in 64: always one for which it does hold. 0 if it does not hold for 1; `limit`
/// if it holds for all that are tried.
fn last_that_holds(limit: u64, mut holds: impl FnMut(u64) -> Result<bool, ScaleError>) -> Result<u64, ScaleError> {
    let (mut good, mut bad) = (0, 1);
    while holds(bad)? {
        good = bad;
        if good >= limit {
            return Ok(good);
        }
        bad = bad.saturating_mul(2).min(limit);
    }
    while bad - good > 1 + good / CLOSE {
        let middle = good + (bad - good) / 2;
        if holds(middle)? { good = middle } else { bad = middle }
    }
    Ok(good)
}

/// The maximum number of ranks, in whole nodes, at which a job loses at most `share`; at most [`TRIED_RANKS`].
pub fn tolerated_ranks(prediction: &Prediction<'_>, share: Share) -> Result<ToleratedRanks, ScaleError> {
    let per_node = prediction.question().per_node.max(1);
    let limit = (TRIED_RANKS / per_node).max(1);
    let may = |slowdown: f64| lost(slowdown) <= share.ratio();
    let ranks = per_node
        * last_that_holds(limit, |nodes| {
            Ok(prediction.slowdown(nodes * per_node)?.is_none_or(|slowdown| may(slowdown.mean)))
        })?;
    let passed = prediction.replays_make(ranks.max(per_node))?;
    let end = |upper: bool| -> Result<Option<u64>, ScaleError> {
        if prediction.recording_ends(per_node, passed).is_none() {
            return Ok(None);
        }
        let nodes = last_that_holds(limit, |nodes| {
            let ends = prediction.recording_ends(nodes * per_node, passed);
            Ok(ends.is_some_and(|ends| if upper { may(ends.low) } else { ends.high.is_some_and(may) }))
        })?;
        Ok(Some(nodes * per_node))
    };
    let interval =
        end(false)?.zip(end(true)?).map(|(low, high)| RankInterval { low: low.min(ranks), high: high.max(ranks) });
    Ok(ToleratedRanks { ranks, interval })
}

/// The detours that a job of this many ranks tolerates if it may lose `share`; `None` if it tolerates all.
pub fn tolerated_detours(
    noise: &Noise,
    question: Question,
    ranks: u64,
    share: Share,
    watch: ReplayWatch<'_>,
) -> Result<Option<ToleratedDetours>, ScaleError> {
    let holds = |longest: Nanos| -> Result<bool, ScaleError> {
        let rest = noise.no_longer_than(longest)?;
        let slowdown = Prediction::new(&rest, question)?.watched(watch).slowdown(ranks)?;
        Ok(slowdown.is_none_or(|slowdown| lost(slowdown.mean) <= share.ratio()))
    };
    let mut lengths: Vec<i64> = noise.traces().flat_map(|trace| trace.durations_ns().iter().copied()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    if lengths.last().is_none_or(|longest| holds(Nanos::new(*longest)).is_ok_and(|holds| holds)) {
        return Ok(None);
    }
    // The longest that may stay is before `bad`, and at `good - 1` or after it.
    let (mut good, mut bad) = (0, lengths.len() - 1);
    let apart = |good: usize, bad: usize| {
        let below = good.checked_sub(1).map_or(0, |last| lengths[last]);
        bad > good && lengths[bad - 1] - below > below / CLOSE as i64
    };
    while apart(good, bad) {
        let middle = good + (bad - good) / 2;
        if holds(Nanos::new(lengths[middle]))? { good = middle + 1 } else { bad = middle }
    }
    let longest = good.checked_sub(1).map_or(0, |last| lengths[last]);
    let longer = noise.traces().flat_map(|trace| trace.durations_ns()).filter(|length| **length > longest).count();
    let time: f64 = noise.traces().map(|trace| trace.length().as_secs_f64()).sum();
    Ok(Some(ToleratedDetours { ranks, longest: Nanos::new(longest), longer_hz: longer as f64 / time }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::noise::{NodeNoise, NoiseTrace};

    fn question(ranks_of_node: u64) -> Question {
        Question {
            grain: Nanos::from_millis(1),
            phases: 2_000,
            collective: "ideal".parse().unwrap(),
            network: "infiniband".parse().unwrap(),
            bytes: 8,
            per_node: ranks_of_node,
            synchronized: false,
            seed: 1,
            replicas: 3,
        }
    }

    fn share(text: &str) -> Share {
        text.parse().unwrap()
    }

    proptest! {
        #[test]
        fn halving_ends_close_below_the_first_that_does_not_hold(first_bad in 1_u64..3_000_000, limit in 1_u64..2_000_000) {
            let mut asked = 0;
            let last = last_that_holds(limit, |number| { asked += 1; Ok(number < first_bad) }).unwrap();
            prop_assert!(last < first_bad && last <= limit);
            let best = (first_bad - 1).min(limit);
            prop_assert!(best - last <= last / CLOSE + 1, "{last} of {best}");
            prop_assert!(asked < 40);
        }
    }

    /// By Tsafrir's law, n ranks that lose 50 us ten times per second lose 1 - 1/(1 + (1 - exp(-0.01 n)) 0.05).
    #[test]
    fn ranks_are_those_of_the_law() {
        let trace = "poisson:rate=10Hz,detour=50us".parse::<crate::spec::NoiseSpec>().unwrap().trace(1).unwrap();
        let noise = Noise::apart("poisson", trace);
        let prediction = Prediction::new(&noise, question(1)).unwrap();
        // 1 - 1/(1 + x 0.05) = 2 % for x = 0.408, so n = 52.
        let tolerated = tolerated_ranks(&prediction, share("2%")).unwrap();
        assert!((48..58).contains(&tolerated.ranks), "{tolerated:?}");
        assert_eq!(tolerated.interval, None);
        // Two detours rarely meet in one phase.
        let all = tolerated_ranks(&prediction, share("50%")).unwrap();
        assert_eq!(all.ranks, TRIED_RANKS);
        assert_eq!(tolerated_ranks(&prediction, share("0%")).unwrap().ranks, 0);
    }

    fn two_lengths() -> Noise {
        // Per second, 100 of 10 us and 10 of 400 us, on both CPUs of a node.
        let detours = |shift: i64| {
            (0..100).map(move |number| {
                let length = if number % 10 == 3 { 400_000 } else { 10_000 };
                (Nanos::new(number * 10_000_000 + shift), Nanos::new(length))
            })
        };
        let trace = |shift| NoiseTrace::new(Nanos::from_secs(1), detours(shift)).unwrap();
        Noise::recorded(vec![NodeNoise::new("node", vec![trace(5), trace(4_000_000)]).unwrap()]).unwrap()
    }

    #[test]
    fn the_detours_that_must_go_are_the_long_ones() {
        let noise = two_lengths();
        let tolerated = |text| tolerated_detours(&noise, question(2), 1_024, share(text), ReplayWatch::NOBODY).unwrap();
        let long = tolerated("5%").unwrap();
        assert_eq!((long.longest, long.ranks), (Nanos::from_micros(10), 1_024));
        assert!((long.longer_hz - 10.0).abs() < 1e-9);
        assert_eq!(tolerated("40%"), None, "400 us of 1,400 us are less");
        let none = tolerated("0.1%").unwrap();
        assert_eq!(none.longest, Nanos::ZERO);
        assert!((none.longer_hz - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_recording_has_an_interval_that_holds_the_replay() {
        let noise = two_lengths();
        let prediction = Prediction::new(&noise, question(2)).unwrap().with_recording();
        let tolerated = tolerated_ranks(&prediction, share("5%")).unwrap();
        let RankInterval { low, high } = tolerated.interval.unwrap();
        assert!(
            low <= tolerated.ranks && tolerated.ranks <= high && tolerated.ranks.is_multiple_of(2),
            "{tolerated:?}"
        );
        assert!((2..64).contains(&tolerated.ranks), "{tolerated:?}");
    }
}
