//! How much the slowdown may differ with another recording of the same machine, or a longer one.
//!
//! A recording is one draw of the noise of a machine. Its prediction for n ranks has two parts (S. Coles, *An Introduction to Statistical Modeling of
//! Extreme Values*, 2001, chapter 4). Delays up to a threshold are so frequent that resampled blocks of the recording show how they may differ (the
//! Bayesian bootstrap, D. B. Rubin, Ann. Statist. 9 (1981)). The longest are few, and a job of many ranks meets longer ones than were ever recorded:
//! above the threshold there is a generalized Pareto law, with all shapes and scales compatible with the recorded ones.
//!
//! Each draw is a whole distribution of delays, for which order statistics give the slowdown: from blocks below the threshold, from a shape, a scale
//! and a rate above it. A phase starts when the last rank arrives, so a rank meets the detours that start while it works with their whole length, and
//! those that started while it waited with the rest of it.
//!
//! With messages, the same draws are made for a job that only waits for its latest rank, with a grain as long as a phase with messages without noise.
//! Replays of the recording show how much of the added time a job with messages suffers: of both kinds of job, and of that with messages also with
//! all detours cut to the threshold.
//!
//! The recording only gives a lower bound of the slowdown if most of the added time of the draws comes from detours longer than any recorded, or
//! their largest and smallest are very far apart. The same holds if many ranks may meet noise that it missed: an event rarer than three times in the
//! recorded time of all CPUs stays unseen with more than 5 %, and its length is unknown.

mod blocks;
mod cells;
mod extremes;
mod pareto;
pub(crate) mod streamed;

use becalm_model::Estimate;
use becalm_units::Nanos;

use crate::order::UNITS_LIMIT;
use crate::random::{Purpose, Stream};
use blocks::Blocks;
use extremes::Extremes;
use pareto::Tail;

/// The number of drawn distributions.
const DRAWS: usize = 200;

/// The number of draws beyond either end of the interval: 2.5 %.
const BEYOND: usize = DRAWS / 40;

/// The number of draws for each longer recording that is tried.
const TRIED_DRAWS: usize = 40;

/// The added time is bounded if its largest is at most this many times its smallest.
const SPREAD_LIMIT: f64 = 30.0;

/// It is not bounded if detours longer than any recorded make up more than this share of it.
const UNSEEN_LIMIT: f64 = 0.5;

/// The longest hypothetical recording is two to this power times as long.
const DOUBLINGS: u32 = 16;

/// A recording misses an event with a probability above 5 % (exp(-3)) if it expects fewer than this many of them.
const MISSED_TIMES: f64 = 3.0;

/// It is not bounded if an event that the recording may have missed hits more than this share of the phases.
const MISSED_LIMIT: f64 = 0.05;

/// The most frequent event that the recording misses with a probability of 5 %.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Missed {
    /// It is rarer than one per this time on each CPU.
    pub every: Nanos,
    /// The share of the phases that it would hit at that rate: 0 to 1.
    pub phases: f64,
}

impl Missed {
    /// For this many ranks with phases of a grain, after a total recorded time of the CPUs; `None` if such an event would hit few phases.
    pub fn for_ranks(ranks: u64, grain: Nanos, watched: Nanos) -> Option<Self> {
        Self::new(ranks as f64, grain.get() as f64, watched.get() as f64)
    }

    /// The same in nanoseconds.
    fn new(ranks: f64, grain: f64, watched: f64) -> Option<Self> {
        let hits = ranks * grain * MISSED_TIMES / watched;
        (hits > MISSED_LIMIT)
            .then(|| Self { every: Nanos::new((watched / MISSED_TIMES) as i64), phases: -libm::expm1(-hits) })
    }

    /// How many times longer a recording would have to be for such an event to hit few phases.
    fn times(ranks: f64, grain: f64, watched: f64) -> f64 {
        ranks * grain * MISSED_TIMES / watched / MISSED_LIMIT
    }
}

/// The uncertainty of a slowdown from one recording to another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingBounds {
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end; `None` if the recording does not bound it.
    pub high: Option<f64>,
    /// Noise that it may have missed, if that may hit many phases; then there is no upper bound.
    pub missed: Option<Missed>,
    /// The shares of the recorded noise's added time that come from the longest 1, 3 and 10 delays; 0 to 1.
    pub longest: [f64; 3],
    /// If there is no upper bound: the length of a recording of such noise that would give one. `None` if none up to 65,536 times as long would, or
    /// too few delays are known.
    pub needed: Option<Nanos>,
}

impl RecordingBounds {
    /// The same as [`RecordingEnds::widened`].
    pub(crate) fn widened(self, slowdown: Estimate) -> Self {
        self.with_ends(self.ends().widened(slowdown))
    }

    /// Multiplies the added time.
    pub(crate) fn times(self, times: f64) -> Self {
        self.with_ends(self.ends().times(times))
    }

    const fn with_ends(self, ends: RecordingEnds) -> Self {
        let RecordingEnds { low, high, .. } = ends;
        Self { low, high, ..self }
    }

    /// Only the interval.
    pub const fn ends(&self) -> RecordingEnds {
        RecordingEnds { low: self.low, high: self.high, missed: self.missed }
    }
}

/// The 95 % interval of a slowdown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingEnds {
    /// Its lower end.
    pub low: f64,
    /// Its upper end; `None` if the recording does not bound it.
    pub high: Option<f64>,
    /// Noise that it may have missed, if that may hit many phases; then there is no upper bound.
    pub missed: Option<Missed>,
}

impl RecordingEnds {
    /// Multiplies the added time.
    pub(crate) fn times(self, times: f64) -> Self {
        let end = |slowdown: f64| 1.0 + (slowdown - 1.0) * times;
        Self { low: end(self.low), high: self.high.map(end), ..self }
    }

    /// Extends the interval to include the result of the recording itself, which another one may repeat, and the uncertainty from other offsets:
    /// independent errors add in squares. If draws are far below the recording's result, that may itself be as far below the machine's true cost (the
    /// basic bootstrap; Davison and Hinkley, *Bootstrap Methods and their Application*, 1997, section 5.2): noise in bursts can only be missing, and
    /// draws of it end soon above.
    pub(crate) fn widened(self, slowdown: Estimate) -> Self {
        let Estimate { mean, low, high } = slowdown;
        let below = (mean - self.low).max(0.0);
        let above = self.high.map(|end| libm::hypot((end - mean).max(below), high - mean));
        let below = libm::hypot(below, mean - low);
        Self { low: (mean - below).max(1.0), high: above.map(|above| mean + above), ..self }
    }
}

/// The uncertainty of a machine's noise from a single recording, for one grain.
#[derive(Clone, Debug)]
pub struct RecordingUncertainty {
    grain: f64,
    recorded: Nanos,
    /// The total recorded time of all CPUs, in nanoseconds.
    watched: f64,
    blocks: Blocks,
    extremes: Extremes,
    tail: Option<Tail>,
    seed: u64,
}

/// One draw of the added time of a phase, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct AddedTime {
    /// The part from delays up to the threshold.
    below: f64,
    /// The part from above it.
    above: f64,
    /// The part of that above the longest recorded delay.
    unseen: f64,
}

impl AddedTime {
    fn added(&self) -> f64 {
        self.below + self.above
    }

    fn passed(self, passed: ReplayFactors) -> Self {
        Self { below: self.below * passed.below, above: self.above * passed.above, unseen: self.unseen * passed.above }
    }
}

/// The ratio of replays to draws, for scaling draws to the effect of another recording on the replay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReplayFactors {
    /// The time added in a replay of the recording with all delays cut to [`RecordingUncertainty::threshold`], over the expectation by order
    /// statistics. They assume starts at any time; but a phase seldom starts within a detour, because the ranks that are not delayed by it wait it
    /// out. With messages, a job meets noise again on their way, and less of it if ranks wait for the network anyway.
    pub below: f64,
    /// The time added above the threshold, over that of a job that only waits for its latest rank.
    pub above: f64,
}

impl RecordingUncertainty {
    /// The delay above which the law applies; `None` if the longest delays are so frequent that they need none, or too few for one.
    pub fn threshold(&self) -> Option<Nanos> {
        self.tail.as_ref().map(|tail| Nanos::new(tail.threshold() as i64))
    }

    /// The part of the added time that draws take from blocks: up to the threshold, or all of it.
    pub(crate) fn block_limit(&self) -> f64 {
        self.tail.as_ref().map_or(f64::INFINITY, Tail::threshold)
    }

    /// The bounds for this many ranks of a job that loses `added` nanoseconds per phase; with messages, the grain here is a phase without noise.
    pub fn bounds(&self, ranks: u64, passed: ReplayFactors, added: f64) -> RecordingBounds {
        let mut stream = Stream::new(self.seed, Purpose::Recording, ranks);
        let drawn = self.drawn_ends(ranks, passed, &mut stream);
        let RecordingEnds { low, high, missed } = self.recording_ends(ranks, &drawn);
        let n = ranks.clamp(1, UNITS_LIMIT) as f64;
        let times = Missed::times(n, self.grain, self.watched);
        let meeting = Nanos::new((self.recorded.get() as f64 * times) as i64);
        let needed = match (drawn.is_bounded, missed) {
            (true, missed) => missed.map(|_| meeting),
            (false, _) => self.needed(n, passed, &mut stream).map(|needed| needed.max(meeting)),
        };
        let longest = self.extremes.added(n, |count| self.blocks.rate(count, None) * self.grain);
        let longest = longest.map(|part| if added > 0.0 { (passed.above * part / added).min(1.0) } else { 0.0 });
        RecordingBounds { low, high, missed, longest, needed }
    }

    /// Only the ends of the same interval.
    pub fn ends(&self, ranks: u64, passed: ReplayFactors) -> RecordingEnds {
        let mut stream = Stream::new(self.seed, Purpose::Recording, ranks);
        self.recording_ends(ranks, &self.drawn_ends(ranks, passed, &mut stream))
    }

    fn drawn_ends(&self, ranks: u64, passed: ReplayFactors, stream: &mut Stream) -> DrawnEnds {
        let n = ranks.clamp(1, UNITS_LIMIT) as f64;
        let ends = DrawnEnds::new((0..DRAWS).map(|_| self.draw(n, stream).passed(passed)).collect());
        DrawnEnds { is_bounded: ends.is_bounded && (self.tail.is_some() || self.extremes.settled()), ..ends }
    }

    fn recording_ends(&self, ranks: u64, drawn: &DrawnEnds) -> RecordingEnds {
        let missed = Missed::new(ranks.clamp(1, UNITS_LIMIT) as f64, self.grain, self.watched);
        let slowdown = |added: f64| 1.0 + added / self.grain;
        let high = (drawn.is_bounded && missed.is_none()).then(|| slowdown(drawn.high));
        RecordingEnds { low: slowdown(drawn.low), high, missed }
    }

    /// The contribution of delays up to the threshold in the original recording, expected by order statistics for this many ranks, in nanoseconds.
    pub(crate) fn expected_below(&self, ranks: u64) -> f64 {
        let n = ranks.clamp(1, UNITS_LIMIT) as f64;
        self.blocks.all().mean_of_largest(n, self.block_limit())
    }

    fn draw(&self, n: f64, stream: &mut Stream) -> AddedTime {
        let weights = self.blocks.weights(stream);
        let body = self.blocks.drawn(&weights);
        let Some(tail) = &self.tail else {
            return AddedTime { below: body.mean_of_largest(n, f64::INFINITY), above: 0.0, unseen: 0.0 };
        };
        let rate = self.blocks.rate(tail.count(), Some(&weights));
        let below = body.mean_of_largest(n, tail.threshold());
        AddedTime { below, ..tail.drawn(stream).added(n, rate, self.grain, self.extremes.longest()) }
    }

    /// The length of a recording that would bound it, if the noise follows the most probable law.
    fn needed(&self, n: f64, passed: ReplayFactors, stream: &mut Stream) -> Option<Nanos> {
        let tail = self.tail.as_ref()?;
        let below = self.blocks.all().mean_of_largest(n, tail.threshold());
        let rate = self.blocks.rate(tail.count(), None);
        (1..=DOUBLINGS).map(|doublings| 1_i64 << doublings).find_map(|times| {
            let longer = tail.for_longer(times as f64);
            let longest = longer.likely_longest();
            let drawn = (0..TRIED_DRAWS)
                .map(|_| {
                    let rate = rate * longer.count_drawn(stream);
                    AddedTime { below, ..longer.drawn(stream).added(n, rate, self.grain, longest) }.passed(passed)
                })
                .collect();
            DrawnEnds::new(drawn).is_bounded.then(|| self.recorded.get().checked_mul(times).map(Nanos::new)).flatten()
        })
    }
}

/// The ends of the middle 95 % of draws.
struct DrawnEnds {
    low: f64,
    high: f64,
    /// Whether the draws are close enough together, and seldom enough beyond the recorded range, to bound the added time.
    is_bounded: bool,
}

impl DrawnEnds {
    fn new(mut drawn: Vec<AddedTime>) -> Self {
        drawn.sort_unstable_by(|a, b| a.added().total_cmp(&b.added()));
        let beyond = drawn.len() * BEYOND / DRAWS;
        let (low, high) = (drawn[beyond].added(), drawn[drawn.len() - 1 - beyond].added());
        let share = |draw: &AddedTime| if draw.unseen > 0.0 { draw.unseen / draw.added() } else { 0.0 };
        let mut unseen: Vec<f64> = drawn.iter().map(share).collect();
        unseen.sort_unstable_by(f64::total_cmp);
        Self { low, high, is_bounded: high <= SPREAD_LIMIT * low && unseen[unseen.len() / 2] <= UNSEEN_LIMIT }
    }
}
