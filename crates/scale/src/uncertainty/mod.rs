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
//! Where most of the added time of the draws comes from detours longer than any recorded, or their largest and smallest
//! are very far apart, the recording bounds the slowdown from below only.

mod blocks;
mod cells;
mod extremes;
mod pareto;

use becalm_units::Nanos;

use crate::delay::{DelayTable, TablePiece};
use crate::noise::Noise;
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

/// What a recording says of a slowdown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingBounds {
    /// The slowdown is at least this: the lower end of the 95 % interval.
    pub low: f64,
    /// The upper end; nothing where the recording does not bound it.
    pub high: Option<f64>,
    /// Which parts of the recorded noise's added time come from the longest 1, 3 and 10 delays; 0 to 1.
    pub longest: [f64; 3],
    /// Where it is not bounded: how long a recording of such noise would bound it. Nothing if none up to 65,536 times as
    /// long would, or too few delays are known.
    pub needed: Option<Nanos>,
}

/// The 95 % interval of a slowdown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingEnds {
    /// Its lower end.
    pub low: f64,
    /// Its upper end; nothing where the recording does not bound it.
    pub high: Option<f64>,
}

/// What is known of the noise of a machine of which there is one recording; for one grain.
#[derive(Clone, Debug)]
pub struct RecordingUncertainty {
    grain: f64,
    recorded: Nanos,
    blocks: Blocks,
    extremes: Extremes,
    tail: Option<Tail>,
    seed: u64,
}

/// One draw of the added time of a phase.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    /// In nanoseconds.
    added: f64,
    /// The part of it that comes from delays longer than any recorded.
    unseen: f64,
}

impl RecordingUncertainty {
    /// Of the noise from which a table was made; draws come from the seed.
    #[must_use]
    pub fn new(noise: &Noise, table: &DelayTable<'_>, seed: u64) -> Self {
        let extremes = Extremes::new(table);
        let blocks = Blocks::new(noise, table, &extremes);
        let recorded = table.kinds().iter().map(|kind| kind.length).max().unwrap_or(0);
        let grain = table.grain().get() as f64;
        let tail = if extremes.settled() { None } else { Tail::fit(&extremes.delays()) };
        let tail = tail.map(|tail| {
            let counted = blocks.rate(tail.count(), None);
            let time = probability_above(table, tail.threshold()) / counted;
            tail.covering(time, grain)
        });
        Self { grain, recorded: Nanos::new(recorded), blocks, extremes, tail, seed }
    }

    /// What it says of so many units, ranks or nodes, at offsets of their own.
    #[must_use]
    pub fn bounds(&self, units: u64) -> RecordingBounds {
        let mut stream = Stream::new(self.seed, Purpose::Recording, units);
        let RecordingEnds { low, high } = self.drawn_ends(units, &mut stream);
        let n = units.clamp(1, UNITS_LIMIT) as f64;
        let needed = if high.is_some() { None } else { self.needed(n, &mut stream) };
        RecordingBounds { low, high, longest: self.blocks.shares(n), needed }
    }

    /// The ends of the same interval alone.
    #[must_use]
    pub fn ends(&self, units: u64) -> RecordingEnds {
        self.drawn_ends(units, &mut Stream::new(self.seed, Purpose::Recording, units))
    }

    fn drawn_ends(&self, units: u64, stream: &mut Stream) -> RecordingEnds {
        let n = units.clamp(1, UNITS_LIMIT) as f64;
        let mut drawn: Vec<Drawn> = (0..DRAWS).map(|_| self.draw(n, stream)).collect();
        let (low, high) = ends(&mut drawn);
        let bounded = (self.tail.is_some() || self.extremes.settled()) && is_bounded(&drawn);
        let over = |added: f64| 1.0 + added / self.grain;
        RecordingEnds { low: over(low), high: bounded.then(|| over(high)) }
    }

    fn draw(&self, n: f64, stream: &mut Stream) -> Drawn {
        let weights = self.blocks.weights(stream);
        let body = self.blocks.drawn(&weights);
        let Some(tail) = &self.tail else {
            return Drawn { added: body.mean_of_largest(n, f64::INFINITY), unseen: 0.0 };
        };
        let rate = self.blocks.rate(tail.count(), Some(&weights));
        let below = body.mean_of_largest(n, tail.threshold());
        let (added, unseen) = tail.drawn(stream).added(n, rate, below, self.grain, self.extremes.longest());
        Drawn { added, unseen }
    }

    /// How long a recording would bound it, if the noise is what it most probably is.
    fn needed(&self, n: f64, stream: &mut Stream) -> Option<Nanos> {
        let tail = self.tail.as_ref()?;
        let below = self.blocks.all().mean_of_largest(n, tail.threshold());
        let rate = self.blocks.rate(tail.count(), None);
        (1..=DOUBLINGS).map(|doublings| 1_i64 << doublings).find_map(|times| {
            let longer = tail.of_longer(times as f64);
            let longest = longer.likely_longest();
            let mut drawn: Vec<Drawn> = (0..TRIED_DRAWS)
                .map(|_| {
                    let rate = rate * longer.count_drawn(stream);
                    let (added, unseen) = longer.drawn(stream).added(n, rate, below, self.grain, longest);
                    Drawn { added, unseen }
                })
                .collect();
            ends(&mut drawn);
            is_bounded(&drawn).then(|| self.recorded.get().checked_mul(times).map(Nanos::new)).flatten()
        })
    }
}

/// The probability that a unit's phase that starts at any time is later than a delay. Not by cells: one that holds the delay may hold
/// many that are shorter, as where the rarest delays above those of all ticks are looked at.
fn probability_above(table: &DelayTable<'_>, delay: f64) -> f64 {
    let kinds = table.kinds();
    // The longest come first.
    let longer = table.pieces().iter().take_while(|piece| piece.delay as f64 > delay);
    let time = |piece: &TablePiece| {
        let falling = (piece.length - piece.flat) as f64;
        (piece.flat as f64 + falling.min(piece.delay as f64 - delay)) / kinds[piece.kind as usize].length as f64
    };
    longer.map(time).sum::<f64>() / kinds.len() as f64
}

/// Sorts draws; the ends of the middle 95 %.
fn ends(drawn: &mut [Drawn]) -> (f64, f64) {
    drawn.sort_unstable_by(|a, b| a.added.total_cmp(&b.added));
    let beyond = drawn.len() * BEYOND / DRAWS;
    (drawn[beyond].added, drawn[drawn.len() - 1 - beyond].added)
}

/// Of sorted draws.
fn is_bounded(drawn: &[Drawn]) -> bool {
    let beyond = drawn.len() * BEYOND / DRAWS;
    let (low, high) = (drawn[beyond].added, drawn[drawn.len() - 1 - beyond].added);
    let mut unseen: Vec<f64> = drawn.iter().map(|draw| draw.unseen).collect();
    unseen.sort_unstable_by(f64::total_cmp);
    high <= SPREAD_LIMIT * low && unseen[unseen.len() / 2] <= UNSEEN_LIMIT
}
