//! The delay of a phase as a function of its start on the circle, and tables of it for many traces.
//!
//! With W(t) the work done by time t and C(t) = finish(t, G), a phase of grain G that starts at t is delayed by f(t) = C(t) - t - G. While the start
//! moves through a gap between detours, f is constant, and jumps up by d_j where the phase first reaches detour j; while it moves through a detour, f
//! falls with slope -1. So f is a chain of *pieces*, each flat first and then falling (either part may be empty), at most two per detour.
//!
//! A grain of more than a lap's work adds the noise of its whole laps to every start: with G = q U + r, U the work of a lap and 1 <= r <= U, f(t; G)
//! = q (L - U) + f(t; r).

mod bounds;

use std::borrow::Cow;
use std::sync::OnceLock;

use becalm_units::Nanos;

use crate::ScaleError;
use crate::envelope::{Piece, envelope};
use crate::noise::{Alignment, NodeNoise, Noise, NoiseTrace};
pub(crate) use bounds::DelayBounds;

/// Times of a replay stay below this, 2^61 ns (73 years), so sums of two cannot overflow.
pub const TIME_LIMIT: Nanos = Nanos::new(1 << 61);

/// A whole number of laps, and the remaining 1 ns to 1 lap of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Laps {
    /// The number of whole laps.
    pub whole: i64,
    /// The noise of the whole laps.
    pub delay: i64,
    /// The remaining grain.
    pub rest: i64,
}

/// Splits a grain. Fails if its phase would not fit into [`TIME_LIMIT`].
pub(crate) fn laps(trace: &NoiseTrace, grain: Nanos) -> Result<Laps, ScaleError> {
    if grain <= Nanos::ZERO {
        return Err(ScaleError::Grain(grain, "phases without collective costs need one above 0"));
    }
    let count = (grain.get() - 1) / trace.work_ns();
    let noise = trace.noise().get();
    let longest = i128::from(count) * i128::from(noise) + i128::from(noise) + i128::from(grain.get());
    if longest > i128::from(TIME_LIMIT.get()) {
        return Err(ScaleError::Overflow(
            "one phase of this grain under this noise",
            TIME_LIMIT,
            "ask for a shorter grain",
        ));
    }
    Ok(Laps { whole: count, delay: count * noise, rest: grain.get() - count * trace.work_ns() })
}

/// The pieces of a trace's delay function with a positive delay, for a grain of 1 ns to a lap's work. They are in the order of the circle, from some
/// point on, and their delays exclude whole laps.
pub(crate) fn pieces(trace: &NoiseTrace, rest: i64) -> Vec<Piece> {
    let (length, work) = (trace.length_ns(), trace.work_ns());
    let (starts, durations) = (trace.starts_ns(), trace.durations_ns());
    let count = starts.len();
    if count == 0 {
        return Vec::new();
    }
    // On the axis of work a detour is a point: the work done before it, counted from the first detour on.
    let origin = starts[0];
    let mut points = Vec::with_capacity(count);
    let mut before = 0;
    for (start, duration) in starts.iter().zip(durations) {
        points.push(start - origin - before);
        before += duration;
    }
    // A phase that starts at work u meets the detours with u < point < u + rest, and, if it starts within a detour, the remainder of that one. Detour
    // j is reached from u = point - rest + 1 on, which is at or before its own point.
    let mut out = Vec::with_capacity(count + count / 2);
    let mut push = |start: i64, flat: i64, fall: i64, delay: i64| {
        if delay > 0 && flat + fall > 0 {
            out.push(Piece { start: (origin + start).rem_euclid(length), flat, length: flat + fall, delay });
        }
    };
    // The sweep goes round once, from just before the end of the first detour. These have been reached by then:
    let mut next = points.partition_point(|point| *point < rest);
    let mut delay: i64 = durations[..next].iter().sum();
    // Reaching continues in the next lap, with points `work` further and times `length`.
    let (mut lap, mut at) = (0_i64, 0_i64);
    if next == count {
        (next, lap) = (0, 1);
    }
    let mut noise_before = 0;
    for (index, (point, duration)) in points.iter().zip(durations).enumerate() {
        let detour_at = starts[index] - origin;
        loop {
            let reach = points[next] + lap * work - rest + 1;
            // Detours reached from the detour's own point count while within the detour too.
            if reach > *point {
                break;
            }
            let reach_at = reach + noise_before;
            push(at, reach_at - at, 0, delay);
            (at, delay) = (reach_at, delay + durations[next]);
            next += 1;
            if next == count {
                (next, lap) = (0, lap + 1);
            }
        }
        push(at, detour_at - at, *duration, delay);
        (at, delay) = (detour_at + duration, delay - duration);
        noise_before += duration;
    }
    // From the last detour to the first of the next lap.
    loop {
        let reach = points[next] + lap * work - rest + 1;
        if reach > work {
            break;
        }
        let reach_at = reach + noise_before;
        push(at, reach_at - at, 0, delay);
        (at, delay) = (reach_at, delay + durations[next]);
        next += 1;
        if next == count {
            (next, lap) = (0, lap + 1);
        }
    }
    push(at, length - at, 0, delay);
    out
}

/// The traces that one unit of a job, a rank or a node, replays: one, or several at one offset.
#[derive(Clone, Debug)]
pub(crate) struct ReplayUnit<'a> {
    pub traces: Vec<&'a NoiseTrace>,
    /// The whole laps and the remaining grain of each of them.
    pub laps: Vec<Laps>,
    pub length: i64,
    /// The minimum delay of every start.
    pub base: i64,
}

/// A piece of one kind's delay function, including whole laps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TablePiece {
    pub start: i64,
    pub flat: i64,
    pub length: i64,
    pub delay: i64,
    pub kind: u32,
}

/// The delay functions of everything that the units of a job can replay, for one grain: their pieces sorted by their largest delay. One table serves
/// any number of replicas, and of ranks that fill their units.
///
/// It takes at most 80 bytes per detour, and 40 if detours are further apart than the grain.
#[derive(Clone, Debug)]
pub struct DelayTable<'a> {
    noise: &'a Noise,
    per_node: u64,
    grain: Nanos,
    per_unit: u64,
    /// The kinds of full units, followed by those of one with fewer ranks.
    kinds: Vec<ReplayUnit<'a>>,
    /// The number of full ones.
    full: usize,
    /// The ranks of the last unit if it is not full.
    rest: u64,
    pieces: Vec<TablePiece>,
    /// Created by the first replay that needs them.
    bounds: OnceLock<DelayBounds>,
}

impl<'a> DelayTable<'a> {
    /// For jobs with `per_node` ranks per node.
    ///
    /// Units are nodes if several ranks share one and its CPUs were recorded together, or the whole recording if that stays together; else every rank
    /// is a unit. Fails for a grain of zero or so long that times do not fit, no ranks per node, or more than a node's CPUs.
    pub fn new(noise: &'a Noise, per_node: u64, grain: Nanos) -> Result<Self, ScaleError> {
        let units = units(noise, per_node)?;
        let per_unit = units.first().map_or(1, |traces| traces.len() as u64);
        let (full, kinds) = (units.len(), Vec::with_capacity(units.len()));
        let (pieces, bounds) = (Vec::new(), OnceLock::new());
        let mut table = Self { noise, per_node, grain, per_unit, kinds, full, rest: 0, pieces, bounds };
        units.into_iter().try_for_each(|traces| table.add(traces))?;
        table.sort();
        Ok(table)
    }

    /// The table for a number of ranks: this one if they fill their units. Else the last unit is partly filled, and replays the first CPUs of a full
    /// one.
    pub fn for_ranks(&self, ranks: u64) -> Result<Cow<'_, Self>, ScaleError> {
        let rest = ranks % self.per_unit;
        if rest == self.rest {
            return Ok(Cow::Borrowed(self));
        }
        let units = units(self.noise, self.per_node)?;
        // A job of less than one unit has no full one.
        let (kinds, full, pieces) = if ranks < self.per_unit {
            (Vec::new(), 0, Vec::new())
        } else {
            (self.kinds.clone(), self.full, self.pieces.clone())
        };
        let mut table = Self { kinds, full, rest, pieces, bounds: OnceLock::new(), ..*self };
        for traces in units {
            table.add(traces[..rest as usize].to_vec())?;
        }
        table.sort();
        Ok(Cow::Owned(table))
    }

    /// Adds the delay function of a unit.
    fn add(&mut self, traces: Vec<&'a NoiseTrace>) -> Result<(), ScaleError> {
        let mut base = 0;
        let mut own: Option<Vec<Piece>> = None;
        let all_laps: Vec<Laps> = traces.iter().map(|trace| laps(trace, self.grain)).collect::<Result<_, _>>()?;
        for (trace, laps) in traces.iter().zip(&all_laps) {
            let mut next = pieces(trace, laps.rest);
            own = Some(match own.take() {
                None => {
                    base = laps.delay;
                    next
                }
                Some(others) => {
                    // Both functions are raised to the higher of the two bases, below which neither matters.
                    let higher = base.max(laps.delay);
                    let mut others = others;
                    raise(&mut others, base - higher);
                    raise(&mut next, laps.delay - higher);
                    base = higher;
                    envelope(trace.length_ns(), &others, &next)
                }
            });
        }
        let kind = self.kinds.len() as u32;
        let length = traces[0].length_ns();
        self.pieces.extend(own.into_iter().flatten().map(|piece| TablePiece {
            start: piece.start,
            flat: piece.flat,
            length: piece.length,
            delay: piece.delay + base,
            kind,
        }));
        self.kinds.push(ReplayUnit { traces, laps: all_laps, length, base });
        Ok(())
    }

    fn sort(&mut self) {
        self.pieces.sort_unstable_by_key(|piece| (std::cmp::Reverse(piece.delay), piece.kind, piece.start));
    }

    /// The work between two collectives that the delays were computed for.
    pub fn grain(&self) -> Nanos {
        self.grain
    }

    /// The number of ranks of one unit, which have a common offset. The last unit may have fewer.
    pub fn ranks_per_unit(&self) -> u64 {
        self.per_unit
    }

    /// The offsets of units are multiples of this if the noise was coalesced.
    pub(crate) fn windows(&self) -> Option<Nanos> {
        self.noise.windows()
    }

    /// The number of kinds of full units; the kinds after them have fewer ranks.
    pub(crate) fn full_kinds(&self) -> usize {
        self.full
    }

    /// The number of ranks of the last unit if it is not full; else 0.
    pub(crate) fn rest(&self) -> u64 {
        self.rest
    }

    /// The total number of pieces with a delay.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there is no delay anywhere.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.kinds.iter().all(|kind| kind.base == 0)
    }

    /// The longest delay that a single unit can meet.
    pub fn max_delay(&self) -> Nanos {
        let base = self.kinds.iter().map(|kind| kind.base).max().unwrap_or(0);
        Nanos::new(self.pieces.first().map_or(base, |piece| piece.delay.max(base)))
    }

    pub(crate) fn kinds(&self) -> &[ReplayUnit<'a>] {
        &self.kinds
    }

    pub(crate) fn pieces(&self) -> &[TablePiece] {
        &self.pieces
    }

    /// Bounds of the delay functions; created once.
    pub(crate) fn bounds(&self) -> &DelayBounds {
        self.bounds.get_or_init(|| DelayBounds::new(self))
    }
}

/// Moves delays up or down and drops those that are not positive any more. A falling part is cut where it reaches 0, because lower values are never
/// read.
fn raise(pieces: &mut Vec<Piece>, amount: i64) {
    if amount != 0 {
        pieces.retain_mut(|piece| {
            piece.delay += amount;
            piece.length = piece.length.min(piece.flat + piece.delay.max(0));
            piece.delay > 0
        });
    }
}

/// The sets of traces that units replay: each trace alone, the first CPUs of each node, or those of all nodes.
pub(crate) fn units(noise: &Noise, per_node: u64) -> Result<Vec<Vec<&NoiseTrace>>, ScaleError> {
    if per_node == 0 {
        return Err(ScaleError::Range("the number of ranks a node", "0".to_owned(), "1 and more"));
    }
    let node = |node| first_cpus(node, per_node);
    match noise.alignment() {
        Alignment::Recording => Ok(vec![noise.nodes().iter().map(node).collect::<Result<Vec<_>, _>>()?.concat()]),
        Alignment::Node if per_node > 1 => noise.nodes().iter().map(node).collect(),
        Alignment::Node | Alignment::Independent => Ok(noise.traces().map(|trace| vec![trace]).collect()),
    }
}

/// The CPUs of a node that its ranks replay.
fn first_cpus(node: &NodeNoise, per_node: u64) -> Result<Vec<&NoiseTrace>, ScaleError> {
    let few = || ScaleError::FewCpus { per_node, node: node.name().to_owned(), cpus: node.cpus().len() };
    let ranks = usize::try_from(per_node).map_err(|_| few())?;
    Ok(node.cpus().get(..ranks).ok_or_else(few)?.iter().collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Traces of few nanoseconds: every case occurs often.
    pub(crate) fn small_trace(most: usize) -> impl Strategy<Value = NoiseTrace> {
        (proptest::collection::vec(any::<bool>(), 1..most), any::<prop::sample::Index>()).prop_map(
            |(mut noisy, free)| {
                let at = free.index(noisy.len());
                noisy[at] = false;
                let detours = noisy
                    .iter()
                    .enumerate()
                    .filter(|(_, on)| **on)
                    .map(|(at, _)| (Nanos::new(at as i64), Nanos::new(1)));
                NoiseTrace::new(Nanos::new(noisy.len() as i64), detours).expect("1 ns is free")
            },
        )
    }

    pub(crate) fn delay_by_finish(trace: &NoiseTrace, position: i64, grain: i64) -> i64 {
        let position = Nanos::new(position);
        (trace.finish(position, Nanos::new(grain)).expect("small") - position).get() - grain
    }

    fn delays(pieces: &[Piece], length: i64, position: i64) -> Vec<i64> {
        let inside = pieces.iter().filter_map(|piece| {
            let into = (position - piece.start).rem_euclid(length);
            (into < piece.length).then(|| piece.delay - (into - piece.flat).max(0))
        });
        inside.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn pieces_are_the_delay_function(trace in small_trace(24), grain in 1_i64..70) {
            let laps = laps(&trace, Nanos::new(grain)).unwrap();
            let pieces = pieces(&trace, laps.rest);
            prop_assert!(pieces.len() <= 2 * trace.len() + 1);
            for position in 0..trace.length_ns() {
                let here = delays(&pieces, trace.length_ns(), position);
                prop_assert!(here.len() <= 1, "pieces do not overlap");
                let delay = laps.delay + here.first().copied().unwrap_or(0);
                prop_assert_eq!(delay, delay_by_finish(&trace, position, grain), "at {}", position);
            }
        }

        #[test]
        fn a_node_is_as_late_as_its_latest_rank(
            length in 2_usize..16, bits in proptest::collection::vec(any::<u16>(), 1..5), grain in 1_i64..40,
        ) {
            let cpus: Vec<NoiseTrace> = bits.iter().map(|bits| {
                let on = (0..length - 1).filter(|at| bits >> at & 1 == 1);
                let detours = on.map(|at| (Nanos::new(at as i64), Nanos::new(1)));
                NoiseTrace::new(Nanos::new(length as i64), detours).unwrap()
            }).collect();
            let per_node = cpus.len() as u64;
            let noise = Noise::recorded(vec![NodeNoise::new("n", cpus.clone()).unwrap()]).unwrap();
            let table = DelayTable::new(&noise, per_node, Nanos::new(grain)).unwrap();
            let pieces: Vec<Piece> = table.pieces().iter()
                .map(|p| Piece { start: p.start, flat: p.flat, length: p.length, delay: p.delay }).collect();
            for position in 0..length as i64 {
                let here = delays(&pieces, length as i64, position);
                let delay = here.into_iter().max().unwrap_or(0).max(table.kinds()[0].base);
                let latest = cpus.iter().map(|cpu| delay_by_finish(cpu, position, grain)).max().unwrap();
                prop_assert_eq!(delay, latest);
            }
        }
    }

    #[test]
    fn refuses_grains_that_do_not_fit() {
        let trace = NoiseTrace::new(Nanos::new(10), [(Nanos::ZERO, Nanos::new(9))]).unwrap();
        assert!(laps(&trace, Nanos::ZERO).is_err());
        assert!(laps(&trace, Nanos::MAX).is_err());
        assert!(laps(&trace, Nanos::new(1 << 59)).is_err());
        assert_eq!(laps(&trace, Nanos::new(3)).unwrap(), Laps { whole: 2, delay: 18, rest: 1 });
    }

    #[test]
    fn nodes_need_enough_cpus() {
        let trace = NoiseTrace::silent(Nanos::new(10)).unwrap();
        let noise = Noise::recorded(vec![NodeNoise::new("a", vec![trace.clone(); 2]).unwrap()]).unwrap();
        assert!(DelayTable::new(&noise, 2, Nanos::new(5)).is_ok());
        assert!(matches!(DelayTable::new(&noise, 3, Nanos::new(5)), Err(ScaleError::FewCpus { cpus: 2, .. })));
        assert!(matches!(DelayTable::new(&noise, 0, Nanos::new(5)), Err(ScaleError::Range(..))));
        // A formula has no CPUs to share.
        assert!(DelayTable::new(&Noise::apart("formula", trace), 48, Nanos::new(5)).is_ok());
    }
}
