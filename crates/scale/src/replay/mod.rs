//! Bulk-synchronous phases with an instantaneous collective: all ranks start phase k at T_k, and T_{k+1} = T_k + G + max_i f(o_i + T_k), with f of
//! [`crate::delay`] and o_i the offset of rank i. The traces continue while ranks wait.
//!
//! Four methods give the same delays, phase for phase and bit for bit, and are chosen by cost:
//! - `plain`: every rank in every phase;
//! - `bounded`: every rank in every phase, most of them only by a bound that rules them out as the latest;
//! - `walk`: for each phase, down the sorted pieces of the delay functions until no later one matters;
//! - `skyline`: for a block of phases at once, the pieces that matter to any of them.

mod bounded;
mod index;
mod plain;
mod skyline;
pub(crate) mod walk;

use becalm_units::Nanos;

use crate::ScaleError;
use crate::delay::{DelayTable, TIME_LIMIT};
use crate::placement::Offsets;

pub(crate) use index::OffsetIndex;

/// The result of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayOutcome {
    /// The number of replayed phases.
    pub phases: u64,
    /// Their useful work: the grain.
    pub grain: Nanos,
    /// The sum of the phases' durations.
    pub total: Nanos,
    /// The duration of the longest phase.
    pub worst_phase: Nanos,
    /// The number of delayed phases.
    pub delayed: u64,
}

impl ReplayOutcome {
    /// Mean phase duration over the grain; 1 without noise.
    pub fn slowdown(&self) -> f64 {
        self.total.get() as f64 / (self.grain.get() as f64 * self.phases as f64)
    }

    /// Mean phase duration in nanoseconds.
    pub fn mean_phase_ns(&self) -> f64 {
        self.total.get() as f64 / self.phases as f64
    }
}

/// The method of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Every rank in every phase.
    Plain,
    /// Every rank in every phase, most of them by a bound alone.
    Bounded,
    /// Sorted pieces, phase by phase.
    Walk,
    /// Sorted pieces, block by block.
    Skyline,
}

/// Replays phases with the cheapest method. Fails for no phases, or times that do not fit.
pub fn replay(table: &DelayTable<'_>, offsets: &Offsets, phases: u64) -> Result<ReplayOutcome, ScaleError> {
    replay_each(table, offsets, phases, None, |_| {})
}

/// The same with a given or chosen method; calls `each` with each phase's delay.
pub fn replay_each(
    table: &DelayTable<'_>,
    offsets: &Offsets,
    phases: u64,
    method: Option<Method>,
    each: impl FnMut(Nanos),
) -> Result<ReplayOutcome, ScaleError> {
    if method == Some(Method::Plain) {
        // The reference needs no index, which would merge equal units.
        let mut clock = Clock::new(table, phases, each)?;
        let offsets: Vec<&[i64]> = offsets.0.iter().map(Vec::as_slice).collect();
        plain::run(table, &offsets, &mut clock)?;
        return Ok(clock.outcome());
    }
    replay_indexed(table, &sorted_offsets(table, offsets), phases, method, each)
}

/// The offsets of each kind of unit, sorted.
pub(crate) fn sorted_offsets(table: &DelayTable<'_>, offsets: &Offsets) -> Vec<OffsetIndex> {
    table.kinds().iter().zip(&offsets.0).map(|(kind, offsets)| OffsetIndex::new(kind.length, offsets)).collect()
}

/// The same from sorted offsets.
pub(crate) fn replay_indexed(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    phases: u64,
    method: Option<Method>,
    each: impl FnMut(Nanos),
) -> Result<ReplayOutcome, ScaleError> {
    let mut clock = Clock::new(table, phases, each)?;
    let stay = method.is_some();
    match method.unwrap_or_else(|| choose(table, index)) {
        Method::Plain => plain::run(table, &different(index), &mut clock)?,
        Method::Bounded => bounded::run(table, index, &mut clock)?,
        Method::Walk => walk::run(table, index, &mut clock, stay)?,
        Method::Skyline => skyline::run(table, index, &mut clock, stay)?,
    }
    Ok(clock.outcome())
}

/// The distinct offsets: units at one offset have equal delays.
fn different(index: &[OffsetIndex]) -> Vec<&[i64]> {
    index.iter().map(OffsetIndex::offsets).collect()
}

/// Rough costs in nanoseconds on any current machine: only their ratios matter.
pub(crate) mod cost {
    use super::OffsetIndex;
    use crate::delay::DelayTable;

    /// One rank in one phase of the plain replay, and one detour that it meets there.
    const RANK: f64 = 6.0;
    const DETOUR: f64 = 3.0;
    /// One rank's bound, and one computed delay.
    const BOUND: f64 = 2.5;
    const ASKED: f64 = 200.0;
    /// One look-up of a piece among the offsets.
    pub(crate) const LOOK_UP: f64 = 20.0;
    /// One phase of the skyline, and its extra cost if a walking phase visits many pieces, per square root of their number, under noise so dense that
    /// a grain meets `DENSE` detours. Measured from 20 visits (16,384 ranks of a recording with a million pieces and 15 detours per grain) to 9,000
    /// (64 ranks); with 0.2 detours per grain, 0.8 us for 16,384 ranks and 1.3 us for 512.
    const SKYLINE_PHASE: f64 = 600.0;
    const SKYLINE_ROOT: f64 = 200.0;
    const DENSE: f64 = 2.0;

    /// The number of detours of a trace that a grain meets.
    fn met(table: &DelayTable<'_>, trace: &crate::NoiseTrace) -> f64 {
        let rest = (table.grain().get() as f64).min(trace.work_ns() as f64);
        trace.len() as f64 * rest / trace.work_ns() as f64
    }

    /// A phase of the plain replay of these units.
    pub(super) fn plain(table: &DelayTable<'_>, index: &[OffsetIndex]) -> f64 {
        let kinds = table.kinds().iter().zip(index);
        let unit = |kind: &crate::delay::ReplayUnit<'_>| -> f64 {
            kind.traces.iter().map(|trace| RANK + DETOUR * met(table, trace)).sum()
        };
        kinds.map(|(kind, index)| index.len() as f64 * unit(kind)).sum()
    }

    /// The extra cost of a skyline phase per square root of the visits of a walking one.
    pub(super) fn skyline_root(table: &DelayTable<'_>) -> f64 {
        let traces = || table.kinds().iter().flat_map(|kind| &kind.traces);
        let met = traces().map(|trace| met(table, trace)).sum::<f64>() / traces().count().max(1) as f64;
        SKYLINE_ROOT * (met / DENSE).clamp(0.01, 1.0)
    }

    /// A phase of the skyline, if a walking one visits this many pieces.
    pub(super) fn skyline(root: f64, visits: f64) -> f64 {
        SKYLINE_PHASE + root * visits.sqrt()
    }

    /// The number of visits above which a skyline phase takes longer than `phase`.
    pub(super) fn skyline_visits(root: f64, phase: f64) -> f64 {
        ((phase - SKYLINE_PHASE).max(0.0) / root).powi(2)
    }

    /// A phase by bounds. The number of computed delays grows with the logarithm of the units.
    pub(crate) fn bounded(table: &DelayTable<'_>, index: &[OffsetIndex]) -> f64 {
        let units: usize = index.iter().map(OffsetIndex::len).sum();
        let asked = (3.0 + 2.0 * libm::log(units.max(1) as f64)).min(units as f64);
        units as f64 * BOUND + asked * ASKED * table.ranks_per_unit() as f64
    }
}

/// A method that visits every rank.
struct Scan {
    method: Method,
    phase_ns: f64,
}

/// The cheaper one of the methods that visit every rank.
fn cheapest_scan(table: &DelayTable<'_>, index: &[OffsetIndex]) -> Scan {
    let (plain, bounded) = (cost::plain(table, index), cost::bounded(table, index));
    if plain <= bounded {
        Scan { method: Method::Plain, phase_ns: plain }
    } else {
        Scan { method: Method::Bounded, phase_ns: bounded }
    }
}

/// Continues with another method after one by pieces has turned out to be more expensive.
fn hand_over(
    table: &DelayTable<'_>,
    index: &[OffsetIndex],
    clock: &mut Clock<impl FnMut(Nanos)>,
    other: Method,
) -> Result<(), ScaleError> {
    match other {
        Method::Plain => plain::run(table, &different(index), clock),
        _ => bounded::run(table, index, clock),
    }
}

fn choose(table: &DelayTable<'_>, index: &[OffsetIndex]) -> Method {
    let Scan { method: other, phase_ns: each } = cheapest_scan(table, index);
    // More visits do not change the choice.
    let root = cost::skyline_root(table);
    let enough = (each / cost::LOOK_UP).max(cost::skyline_visits(root, each));
    let visits = walk::expected_visits(table, index, enough);
    let (walk, skyline) = (visits * cost::LOOK_UP, cost::skyline(root, visits));
    if each <= walk.min(skyline) {
        other
    } else if walk <= skyline {
        Method::Walk
    } else {
        Method::Skyline
    }
}

/// The common clock T of all ranks, and the results of the phases.
pub(crate) struct Clock<E> {
    grain: i64,
    phases: u64,
    /// Start of the current phase.
    pub now: i64,
    /// The number of finished phases.
    pub done: u64,
    worst: i64,
    delayed: u64,
    each: E,
}

impl<E: FnMut(Nanos)> Clock<E> {
    fn new(table: &DelayTable<'_>, phases: u64, each: E) -> Result<Self, ScaleError> {
        if phases == 0 {
            return Err(ScaleError::NoPhases);
        }
        Ok(Self { grain: table.grain().get(), phases, now: 0, done: 0, worst: 0, delayed: 0, each })
    }

    pub fn finished(&self) -> bool {
        self.done == self.phases
    }

    /// Ends the current phase.
    #[inline]
    pub fn advance(&mut self, delay: i64) -> Result<(), ScaleError> {
        self.now += self.grain + delay;
        if self.now > TIME_LIMIT.get() {
            return Err(ScaleError::Overflow(
                "the time of this many phases",
                TIME_LIMIT,
                "ask for fewer or shorter phases",
            ));
        }
        self.done += 1;
        self.worst = self.worst.max(delay);
        self.delayed += u64::from(delay > 0);
        (self.each)(Nanos::new(delay));
        Ok(())
    }

    fn outcome(&self) -> ReplayOutcome {
        ReplayOutcome {
            phases: self.done,
            grain: Nanos::new(self.grain),
            total: Nanos::new(self.now),
            worst_phase: Nanos::new(self.grain + self.worst),
            delayed: self.delayed,
        }
    }
}

#[cfg(test)]
mod tests;
