//! How far another recording of the same machine, or a longer one, may lead to another slowdown.
//!
//! A recording is one draw of the noise of a machine. What it says of n ranks has two parts (S. Coles, *An Introduction to
//! Statistical Modeling of Extreme Values*, 2001, chapter 4): delays up to a threshold come so often that blocks of the
//! recording, drawn anew, tell how they may differ (the Bayesian bootstrap, D. B. Rubin, Ann. Statist. 9 (1981)); of the
//! longest there are few, and a job of many ranks meets longer ones than were ever recorded. Above the threshold stands a
//! generalized Pareto law, with all shapes and scales that the recorded ones allow.
//!
//! Each draw is a whole distribution of delays, for which order statistics give the slowdown: from blocks below the
//! threshold, from a shape, a scale and a rate above it. A phase begins when the last rank is there, so that a rank meets
//! the detours that begin while it works with their whole length, and those that began while it waited with their rest.
//!
//! With messages, the same draws are taken for a job that only waits for its latest rank, with a grain as long as a phase with
//! messages without noise. How much of what they add a job with messages is longer by is told by replays of the recording: of both
//! kinds of job, and of that with messages also with all detours cut to the threshold.
//!
//! Where most of the added time of the draws comes from detours longer than any recorded, or their largest and smallest
//! are very far apart, the recording bounds the slowdown from below only. So it does where many ranks may meet what it has missed: an
//! event that comes less often than three times in the recorded time of all CPUs stays unseen with more than 5 %, and nothing says how long
//! it is.

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

/// How many distributions are drawn.
const DRAWS: usize = 200;

/// As many of them lie beyond either end of the interval: 2.5 %.
const BEYOND: usize = DRAWS / 40;

/// As many are drawn for each longer recording that is tried.
const TRIED_DRAWS: usize = 40;

/// The added time is bounded where its largest is at most so many times its smallest.
const SPREAD_LIMIT: f64 = 30.0;

/// It is not bounded where detours longer than any recorded make more than this share of it.
const UNSEEN_LIMIT: f64 = 0.5;

/// The longest recording that is thought of is so many times, to the power of two, as long.
const DOUBLINGS: u32 = 16;

/// A recording misses an event with a probability above 5 % (exp(-3)) if it expects fewer than this many of them.
const MISSED_TIMES: f64 = 3.0;

/// It is not bounded where an event that the recording may have missed hits more than this share of the phases.
const MISSED_LIMIT: f64 = 0.05;

/// The most frequent event that the recording misses with a probability of 5 %.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Missed {
    /// It comes less often than once in this on each CPU.
    pub every: Nanos,
    /// The share of the phases that it would hit if it came as often: 0 to 1.
    pub phases: f64,
}

impl Missed {
    /// Of so many ranks with phases of a grain, after CPUs were recorded for a time, all together; nothing where such an event would hit
    /// few phases.
    pub fn for_ranks(ranks: u64, grain: Nanos, watched: Nanos) -> Option<Self> {
        Self::new(ranks as f64, grain.get() as f64, watched.get() as f64)
    }

    /// The same in nanoseconds.
    fn new(ranks: f64, grain: f64, watched: f64) -> Option<Self> {
        let hits = ranks * grain * MISSED_TIMES / watched;
        (hits > MISSED_LIMIT)
            .then(|| Self { every: Nanos::new((watched / MISSED_TIMES) as i64), phases: -libm::expm1(-hits) })
    }

    /// How many times as long a recording would have to be for such an event to hit few phases.
    fn times(ranks: f64, grain: f64, watched: f64) -> f64 {
        ranks * grain * MISSED_TIMES / watched / MISSED_LIMIT
    }
}

/// What a recording says of a slowdown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingBounds {
    /// The slowdown is at least this: the lower end of the 95 % interval.
    pub low: f64,
    /// The upper end; nothing where the recording does not bound it.
    pub high: Option<f64>,
    /// What it may have missed, where that may hit many phases; then nothing bounds it.
    pub missed: Option<Missed>,
    /// Which parts of the recorded noise's added time come from the longest 1, 3 and 10 delays; 0 to 1.
    pub longest: [f64; 3],
    /// Where it is not bounded: how long a recording of such noise would bound it. Nothing if none up to 65,536 times as
    /// long would, or too few delays are known.
    pub needed: Option<Nanos>,
}

impl RecordingBounds {
    /// The same as [`RecordingEnds::widened`] has it.
    pub(crate) fn widened(self, slowdown: Estimate) -> Self {
        self.with_ends(self.ends().widened(slowdown))
    }

    /// The same where so many times as much is added.
    pub(crate) fn times(self, times: f64) -> Self {
        self.with_ends(self.ends().times(times))
    }

    const fn with_ends(self, ends: RecordingEnds) -> Self {
        let RecordingEnds { low, high, .. } = ends;
        Self { low, high, ..self }
    }

    /// The interval alone.
    pub const fn ends(&self) -> RecordingEnds {
        RecordingEnds { low: self.low, high: self.high, missed: self.missed }
    }
}

/// The 95 % interval of a slowdown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingEnds {
    /// Its lower end.
    pub low: f64,
    /// Its upper end; nothing where the recording does not bound it.
    pub high: Option<f64>,
    /// What it may have missed, where that may hit many phases; then nothing bounds it.
    pub missed: Option<Missed>,
}

impl RecordingEnds {
    /// The same where so many times as much is added.
    pub(crate) fn times(self, times: f64) -> Self {
        let end = |slowdown: f64| 1.0 + (slowdown - 1.0) * times;
        Self { low: end(self.low), high: self.high.map(end), ..self }
    }

    /// The same with what the recording gave itself, as another one may give that again, and with what other offsets would: errors that
    /// do not hang together add as their squares do. If draws go far below what the recording gave, it may itself be as far below what the
    /// machine costs (the basic bootstrap; Davison and Hinkley, *Bootstrap Methods and their Application*, 1997, section 5.2): noise in bursts can
    /// only be missing, and draws of it end soon above.
    pub(crate) fn widened(self, slowdown: Estimate) -> Self {
        let Estimate { mean, low, high } = slowdown;
        let below = (mean - self.low).max(0.0);
        let above = self.high.map(|end| libm::hypot((end - mean).max(below), high - mean));
        let below = libm::hypot(below, mean - low);
        Self { low: (mean - below).max(1.0), high: above.map(|above| mean + above), ..self }
    }
}

/// What is known of the noise of a machine of which there is one recording; for one grain.
#[derive(Clone, Debug)]
pub struct RecordingUncertainty {
    grain: f64,
    recorded: Nanos,
    /// How long all CPUs together were recorded, in nanoseconds.
    watched: f64,
    blocks: Blocks,
    extremes: Extremes,
    tail: Option<Tail>,
    seed: u64,
}

/// One draw of the added time of a phase, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct AddedTime {
    /// What delays add up to the threshold.
    below: f64,
    /// What they add above it.
    above: f64,
    /// The part of that above the longest delay recorded.
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

/// How what a replay adds is to what is drawn, so that draws say how far another recording would move the replay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReplayFactors {
    /// What a replay of the recording adds with all delays cut to [`RecordingUncertainty::threshold`], over what order statistics
    /// expect of that. They take starts at any time; but a phase seldom starts within a detour, as the ranks that one does not hold
    /// up wait it out. With messages, a job meets noise again on their way, and less of it where ranks wait for the network anyway.
    pub below: f64,
    /// What it adds above the threshold, over what a job adds that only waits for its latest rank.
    pub above: f64,
}

impl RecordingUncertainty {
    /// The delay above which there is a law, in nanoseconds; nothing where the longest delays come so often that they need none, or
    /// are too few for one.
    pub fn threshold(&self) -> Option<Nanos> {
        self.tail.as_ref().map(|tail| Nanos::new(tail.threshold() as i64))
    }

    /// The part of the added time that draws take from blocks: up to the threshold, or all of it.
    pub(crate) fn block_limit(&self) -> f64 {
        self.tail.as_ref().map_or(f64::INFINITY, Tail::threshold)
    }

    /// What it says of so many ranks of a job that loses `added` nanoseconds a phase; with messages a phase without noise is as long as the
    /// grain here.
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

    /// The ends of the same interval alone.
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

    /// What order statistics expect delays of so many ranks to add up to the threshold in the recording as it is, in nanoseconds.
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

    /// How long a recording would bound it, if the noise is what it most probably is.
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
    /// Whether the draws lie close enough together, and seldom enough beyond what was recorded, to bound the added time.
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
