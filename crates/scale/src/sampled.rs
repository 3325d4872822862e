//! What the noise of a run costs at scale, with and without each source, in one pass and without keeping the detours.
//!
//! A rank's phase that starts at time t is late by the detours that come before its work is done (`delay` has that
//! function exactly). Here it is taken at starts that lie a fixed step apart on each CPU, and the lateness of each goes
//! into cells of its length, once as it is and once without each source that has a part in it. Of n ranks that all wait
//! for the latest, the mean lateness is that of the largest of n draws: the sum over the values of a sample, from the
//! largest down, of x times the growth of 1 - F(x)^n (David and Nagaraja, Order Statistics, 3rd ed. 2003, section 2.1).
//!
//! It differs from `order` on the same noise in two things. Starts are sampled; and without a source a phase is over
//! earlier and may not meet the others' detours: a phase of work G that lost S to the source meets them with probability
//! G / (G + S), as if they lay anywhere in it.

use std::collections::{BTreeMap, VecDeque};

use becalm_units::Nanos;

use crate::order::{UNITS_LIMIT, any};

/// How far the starts of sampled phases lie apart, as a share of the grain: the golden section, so that no period of the
/// noise falls into step with it.
const STEP_RATIO: f64 = 0.618_033_988_75;

/// An octave of lengths has so many cells: the middle of one is within 1/128 of what is in it.
const CELLS_PER_OCTAVE: u64 = 64;

/// So many phases of a CPU are sampled at most: of runs of more than 324 s at 1 ms a phase, starts lie further apart.
const PHASES_LIMIT: i64 = 1 << 19;

/// At most twice as many starts within one detour are looked at one by one.
const STARTS_LIMIT: i64 = 1 << 10;

/// Phases are counted in parts, as without a source one may be late by two times, each with a probability.
const PARTS: i64 = 1 << 10;

/// How many phases were late by how much; of a change to that, how many there are more, or less.
#[derive(Clone, Default, Debug)]
struct LatenessCells {
    /// In parts of a phase.
    phases: Vec<i64>,
}

impl LatenessCells {
    /// The cell of a lateness in nanoseconds. Below two times the cells of an octave each nanosecond has its own.
    fn place(late: i64) -> usize {
        let late = late.max(0) as u64;
        if late < 2 * CELLS_PER_OCTAVE {
            return late as usize;
        }
        let octave = late.ilog2() - CELLS_PER_OCTAVE.ilog2();
        (u64::from(octave) * CELLS_PER_OCTAVE + (late >> octave)) as usize
    }

    /// The middle of a cell, in nanoseconds.
    fn middle(place: usize) -> f64 {
        let place = place as u64;
        let octave = (place / CELLS_PER_OCTAVE).saturating_sub(1);
        let width = libm::exp2(octave as f64);
        ((place - octave * CELLS_PER_OCTAVE) as f64 + 0.5) * width - 0.5
    }

    /// Adds parts of phases, or takes some away, that are late by so much each.
    fn add(&mut self, late: i64, phases: i64) {
        let place = Self::place(late);
        if place >= self.phases.len() {
            self.phases.resize(place + 1, 0);
        }
        self.phases[place] += phases;
    }

    fn merge(&mut self, other: &Self) {
        if other.phases.len() > self.phases.len() {
            self.phases.resize(other.phases.len(), 0);
        }
        self.phases.iter_mut().zip(&other.phases).for_each(|(phases, more)| *phases += more);
    }
}

/// How late the sampled phases of any number of CPUs were, as they were and without each source.
#[derive(Clone, Debug)]
pub struct PhaseLosses<S> {
    grain: Nanos,
    phases: i64,
    all: LatenessCells,
    /// What changes without a source.
    without: BTreeMap<S, LatenessCells>,
}

impl<S: Ord> PhaseLosses<S> {
    /// Of no phase yet, with so much work in each.
    #[must_use]
    pub const fn new(grain: Nanos) -> Self {
        Self { grain, phases: 0, all: LatenessCells { phases: Vec::new() }, without: BTreeMap::new() }
    }

    /// The work of a phase.
    #[must_use]
    pub const fn grain(&self) -> Nanos {
        self.grain
    }

    /// How many phases were sampled.
    #[must_use]
    pub const fn phases(&self) -> u64 {
        self.phases.unsigned_abs()
    }

    /// The sources that had a part in the lateness of any phase.
    pub fn sources(&self) -> impl Iterator<Item = &S> {
        self.without.keys()
    }

    /// Adds the phases of others of the same grain, whose sources have other names.
    pub fn merge<T>(&mut self, other: &PhaseLosses<T>, mut named: impl FnMut(&T) -> S) {
        self.phases += other.phases;
        self.all.merge(&other.all);
        for (source, change) in &other.without {
            self.without.entry(named(source)).or_default().merge(change);
        }
    }

    /// How many times as long a program takes whose so many ranks wait for each other after every grain of work, each under
    /// the noise of one of the CPUs, drawn at random, at a random time; without the source that is named. 1.0 if nothing was
    /// sampled. The most ranks are [`UNITS_LIMIT`].
    #[must_use]
    pub fn slowdown(&self, ranks: u64, without: Option<&S>) -> f64 {
        let n = ranks.min(UNITS_LIMIT) as f64;
        let change = without.and_then(|source| self.without.get(source));
        let (mut later, mut reached, mut mean) = (0_i64, 0.0, 0.0);
        for (place, phases) in self.all.phases.iter().enumerate().rev() {
            let phases = phases + change.and_then(|change| change.phases.get(place)).unwrap_or(&0);
            if phases > 0 {
                later += phases;
                let reach = any(n, later as f64 / (self.phases * PARTS) as f64);
                mean += (reach - reached) * LatenessCells::middle(place);
                reached = reach;
            }
        }
        1.0 + mean / self.grain.get() as f64
    }

    fn add(&mut self, late: i64, phases: i64) {
        self.phases += phases;
        self.all.add(late, phases * PARTS);
    }
}

/// Parts of a time, by source. They are few, so that searching is faster than hashing.
#[derive(Clone, Default, Debug)]
struct Parts {
    of: Vec<(u32, i64)>,
    total: i64,
}

impl Parts {
    fn add(&mut self, source: u32, time: i64) {
        self.total = self.total.saturating_add(time);
        match self.of.iter_mut().find(|(other, _)| *other == source) {
            Some((_, sum)) => *sum = sum.saturating_add(time),
            None => self.of.push((source, time)),
        }
    }

    fn of(&self, source: u32) -> i64 {
        self.of.iter().find(|(other, _)| *other == source).map_or(0, |(_, time)| *time)
    }

    fn clear(&mut self) {
        self.of.clear();
        self.total = 0;
    }
}

/// Phases whose work is not done, and that will end together.
#[derive(Default, Debug)]
struct OpenPhases {
    work_left: i64,
    phases: i64,
    /// The detour in which they start, and how far into it the first does; empty if they start at work.
    start_in: Parts,
    into: i64,
    /// The detours that they have met since.
    met: Parts,
}

/// Samples the phases of one CPU from its detours, which come in order of time.
#[derive(Debug)]
pub struct PhaseSampler {
    grain: i64,
    step: i64,
    /// When the next sampled phase starts.
    next: i64,
    /// The end of the last detour.
    at: i64,
    /// When the CPU's loop ended.
    end: i64,
    /// Those that end first stand first.
    open: VecDeque<OpenPhases>,
    /// Closed ones, for their memory.
    spare: Vec<OpenPhases>,
    /// The number and the start of the detour that comes in.
    detour: Option<(i64, i64)>,
    parts: Parts,
}

impl PhaseSampler {
    /// For a CPU whose loop ran from `begin` for `length`, and phases with so much work, which is above 0.
    #[must_use]
    pub fn new(begin: Nanos, length: Nanos, grain: Nanos) -> Self {
        let step = ((grain.get() as f64 * STEP_RATIO) as i64).max(1);
        // A multiple of it, so that it stays out of step with everything.
        let apart = (length.get() / step / PHASES_LIMIT).max(0) + 1;
        Self::stepping(begin, length, grain, step.saturating_mul(apart))
    }

    fn stepping(begin: Nanos, length: Nanos, grain: Nanos, step: i64) -> Self {
        Self {
            grain: grain.get(),
            step,
            next: begin.get(),
            at: begin.get(),
            end: begin.get().saturating_add(length.get()),
            open: VecDeque::new(),
            spare: Vec::new(),
            detour: None,
            parts: Parts::default(),
        }
    }

    /// Takes a part of a detour: its number, when the part began, its time, and the source with which that goes. The parts of a
    /// detour follow each other, the first one first.
    pub fn part(&mut self, detour: i64, start: Nanos, source: u32, time: Nanos, losses: &mut PhaseLosses<u32>) {
        if self.detour.is_none_or(|(number, _)| number != detour) {
            self.take(losses);
            self.detour = Some((detour, start.get()));
        }
        self.parts.add(source, time.get().max(0));
    }

    /// Ends the sampling. Phases whose work is not done when the loop ends are not counted.
    pub fn finish(&mut self, losses: &mut PhaseLosses<u32>) {
        self.take(losses);
        self.work_until(self.end, losses);
        self.open.clear();
    }

    /// Takes the detour that has come in.
    fn take(&mut self, losses: &mut PhaseLosses<u32>) {
        let Some((_, start)) = self.detour.take() else { return };
        let mut parts = std::mem::take(&mut self.parts);
        let start = start.max(self.at);
        if start < self.end && parts.total > 0 {
            self.work_until(start, losses);
            for phases in &mut self.open {
                parts.of.iter().for_each(|(source, time)| phases.met.add(*source, *time));
            }
            self.at = start.saturating_add(parts.total);
            let into = self.next.saturating_sub(start).max(0);
            if into < parts.total {
                let phases = (parts.total - into - 1) / self.step + 1;
                self.next = self.next.saturating_add(phases.saturating_mul(self.step));
                let mut open = self.opened(self.grain, phases);
                open.into = into;
                open.start_in.total = parts.total;
                open.start_in.of.extend_from_slice(&parts.of);
                self.open.push_back(open);
            }
        }
        parts.clear();
        self.parts = parts;
    }

    /// Lets the phases work from the end of the last detour until `time`, and starts those that start meanwhile.
    fn work_until(&mut self, time: i64, losses: &mut PhaseLosses<u32>) {
        let work = time.saturating_sub(self.at);
        while self.open.front().is_some_and(|phases| phases.work_left <= work) {
            let Some(mut phases) = self.open.pop_front() else { break };
            count(&phases, self.step, losses);
            phases.start_in.clear();
            phases.met.clear();
            self.spare.push(phases);
        }
        self.open.iter_mut().for_each(|phases| phases.work_left -= work);
        let undisturbed = time.saturating_sub(self.grain).saturating_sub(self.next);
        if undisturbed >= 0 {
            let phases = undisturbed / self.step + 1;
            losses.add(0, phases);
            self.next = self.next.saturating_add(phases.saturating_mul(self.step));
        }
        while self.next < time {
            let open = self.opened(self.grain - (time - self.next), 1);
            self.open.push_back(open);
            self.next = self.next.saturating_add(self.step);
        }
        self.at = time;
    }

    fn opened(&mut self, work_left: i64, phases: i64) -> OpenPhases {
        OpenPhases { work_left, phases, into: 0, ..self.spare.pop().unwrap_or_default() }
    }
}

/// Counts phases whose work is done.
fn count(open: &OpenPhases, step: i64, losses: &mut PhaseLosses<u32>) {
    let grain = losses.grain.get();
    // Of a detour in which very many start, one stands for several.
    let stride = (open.phases / STARTS_LIMIT).max(1);
    for number in (0..open.phases).step_by(stride as usize) {
        let phases = stride.min(open.phases - number);
        let into = open.into.saturating_add(number.saturating_mul(step));
        let late = open.start_in.total.saturating_sub(into).max(0).saturating_add(open.met.total);
        losses.add(late, phases);
        let mut change = |source: u32| {
            // The detour in which the phase starts is over earlier.
            let rest = (open.start_in.total - open.start_in.of(source)).saturating_sub(into).max(0);
            let others = open.met.total - open.met.of(source);
            // What the source took is time to work, and the phase may be over before it meets the others.
            let gained = late.saturating_sub(rest).saturating_sub(others).max(0);
            let all = i128::from(phases) * i128::from(PARTS);
            let meeting = (all * i128::from(grain) / i128::from(grain.saturating_add(gained))) as i64;
            let cells = losses.without.entry(source).or_default();
            cells.add(late, -phases * PARTS);
            cells.add(rest.saturating_add(others), meeting);
            cells.add(rest, phases * PARTS - meeting);
        };
        open.start_in.of.iter().for_each(|(source, _)| change(*source));
        let later = open.met.of.iter().filter(|(source, _)| open.start_in.of.iter().all(|(other, _)| other != source));
        later.for_each(|(source, _)| change(*source));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::{BookEntry, BookedNoise, BookedTrace};
    use crate::delay::DelayTable;
    use crate::order::DelayDistribution;
    use proptest::prelude::*;

    fn ns(ns: i64) -> Nanos {
        Nanos::new(ns)
    }

    /// Detours with their parts: start, and source and time of each part.
    type Detours = Vec<(i64, Vec<(u32, i64)>)>;

    fn sampled(detours: &Detours, length: i64, grain: i64, step: Option<i64>) -> PhaseLosses<u32> {
        let mut losses = PhaseLosses::new(ns(grain));
        let mut sampler = PhaseSampler::new(ns(0), ns(length), ns(grain));
        sampler.step = step.unwrap_or(sampler.step);
        for (number, (start, parts)) in (0..).zip(detours) {
            parts.iter().for_each(|(source, time)| sampler.part(number, ns(*start), *source, ns(*time), &mut losses));
        }
        sampler.finish(&mut losses);
        losses
    }

    /// Nanosecond after nanosecond: by how much each phase is late that starts and ends in time, without a source.
    fn plain(detours: &Detours, length: i64, grain: i64) -> Vec<i64> {
        let mut busy = vec![false; length as usize];
        for (start, parts) in detours {
            let total: i64 = parts.iter().map(|(_, time)| time).sum();
            (*start..(start + total).min(length)).for_each(|at| busy[at as usize] = true);
        }
        let late = |start: usize| {
            let mut work = 0;
            for (at, busy) in busy.iter().enumerate().skip(start) {
                work += i64::from(!busy);
                if work == grain {
                    return Some((at - start + 1) as i64 - grain);
                }
            }
            None
        };
        (0..length as usize).filter_map(late).collect()
    }

    fn detours() -> impl Strategy<Value = (Detours, i64)> {
        let detour = (1_i64..30, proptest::collection::vec((0_u32..3, 1_i64..10), 1..4));
        (proptest::collection::vec(detour, 0..12), 0_i64..40).prop_map(|(gaps, rest)| {
            let mut at = 0;
            let mut detours = Vec::new();
            for (gap, parts) in gaps {
                at += gap;
                let total: i64 = parts.iter().map(|(_, time)| time).sum();
                detours.push((at, parts));
                at += total;
            }
            (detours, at + rest)
        })
    }

    proptest! {
        /// With a phase from every nanosecond on, the lateness is that of a plain count. Those that are not over at the end of the
        /// loop are counted by neither.
        #[test]
        fn every_phase_is_late_by_what_it_meets((detours, length) in detours(), grain in 1_i64..40) {
            let losses = sampled(&detours, length, grain, Some(1));
            let plain = plain(&detours, length, grain);
            prop_assert_eq!(losses.phases(), plain.len() as u64);
            let mut cells = LatenessCells::default();
            plain.iter().for_each(|late| cells.add(*late, PARTS));
            let counts = |cells: &LatenessCells| -> Vec<i64> {
                let mut counts: Vec<i64> = cells.phases.clone();
                counts.truncate(counts.iter().rposition(|phases| *phases != 0).map_or(0, |last| last + 1));
                counts
            };
            prop_assert_eq!(counts(&losses.all), counts(&cells));
        }

        /// No source makes anything worse by going, all phases stay, and of a run with one source nothing is left without it.
        #[test]
        fn what_a_source_leaves((detours, length) in detours(), grain in 1_i64..40, ranks in 1_u64..5_000) {
            let losses = sampled(&detours, length, grain, None);
            let all = losses.slowdown(ranks, None);
            prop_assert!(all >= 1.0);
            for source in losses.sources() {
                let left = losses.slowdown(ranks, Some(source));
                prop_assert!((1.0..=all + 1e-9).contains(&left), "{} {}", left, all);
                prop_assert_eq!(losses.without[source].phases.iter().sum::<i64>(), 0);
            }
            let alone: Detours = detours.iter()
                .map(|(start, parts)| (*start, vec![(7, parts.iter().map(|(_, time)| time).sum())])).collect();
            let losses = sampled(&alone, length, grain, None);
            prop_assert_eq!(losses.slowdown(ranks, Some(&7)), 1.0);
        }
    }

    /// A detour of a day, and times that only a damaged file holds, end soon and without a panic.
    #[test]
    fn takes_every_time() {
        let day = 86_400_000_000_000;
        let losses = sampled(&vec![(day, vec![(0, day), (1, day)])], 4 * day, 1_000_000, None);
        assert!((PHASES_LIMIT / 2..=PHASES_LIMIT).contains(&(losses.phases() as i64)), "{}", losses.phases());
        let halved = (losses.slowdown(1, Some(&0)) - 1.0) / (losses.slowdown(1, None) - 1.0);
        assert!((halved - 0.25).abs() < 0.01, "{halved}");
        let ends = [i64::MIN, -1, 0, 1, i64::MAX];
        for (begin, length) in ends.iter().flat_map(|begin| ends.map(|length| (*begin, length))) {
            let mut losses = PhaseLosses::new(ns(1_000_000));
            let mut sampler = PhaseSampler::new(ns(begin), ns(length), ns(1_000_000));
            for (number, (start, time)) in (0..).zip(ends.iter().flat_map(|start| ends.map(|time| (*start, time)))) {
                sampler.part(number, ns(start), number as u32 % 3, ns(time), &mut losses);
            }
            sampler.finish(&mut losses);
            assert!(losses.slowdown(1 << 40, Some(&0)) >= 1.0);
        }
    }

    #[test]
    fn cells_are_narrow_and_in_order() {
        let mut last = 0;
        for late in (0..5_000).chain((13..62).map(|octave| (1 << octave) - 1)).chain([i64::MAX]) {
            let place = LatenessCells::place(late);
            assert!(place == last || place == last + 1 || late > 5_000 && place > last, "{late}");
            let middle = LatenessCells::middle(place);
            assert!((middle - late as f64).abs() <= late as f64 / 128.0, "{late} {middle}");
            last = place;
        }
        assert!(last < 4_000);
    }

    /// A tick with its softirq, a daemon of milliseconds, and short detours without end, against the exact delay function of
    /// what is left without each of them.
    #[test]
    fn agrees_with_order_statistics() {
        let length = 60_000_000_000_i64;
        let mut random = crate::random::Stream::new(3, crate::random::Purpose::Detours, 0);
        let mut events: Vec<(i64, Vec<(u32, i64)>)> = Vec::new();
        let mut at = 0;
        while at < length - 20_000_000 {
            at += 4_000_000;
            events.push((at, vec![(0, 12_000 + random.below(9_000) as i64), (1, random.below(6_000) as i64 + 1)]));
        }
        for (source, mean_gap, time) in [(2, 300_000_000, 3_000_000), (3, 90_000, 400)] {
            let mut at = 0;
            loop {
                at += (-libm::log((random.below(1 << 52) as f64 + 1.0) / (1_u64 << 52) as f64) * mean_gap as f64)
                    as i64
                    + 1;
                if at > length - 20_000_000 {
                    break;
                }
                events.push((at, vec![(source, time / 2 + random.below(time as u64) as i64)]));
            }
        }
        events.sort();
        let mut detours: Detours = Vec::new();
        let mut end = 0;
        for (start, parts) in events {
            let start = start.max(end + 1);
            end = start + parts.iter().map(|(_, time)| time).sum::<i64>();
            detours.push((start, parts));
        }
        let losses = sampled(&detours, length, 1_000_000, None);
        let entries = detours.iter().enumerate().flat_map(|(detour, (_, parts))| {
            let entry = move |(source, time): &(u32, i64)| BookEntry {
                detour,
                source: *source,
                root: *source,
                self_time: ns(*time),
            };
            parts.iter().map(entry)
        });
        let spans = detours.iter().map(|(start, parts)| (ns(*start), ns(parts.iter().map(|part| part.1).sum())));
        let cpu = BookedTrace::new(ns(0), ns(length), spans.collect(), entries.collect(), 4).unwrap();
        let names = ["tick", "softirq", "daemon", "short"].map(str::to_owned).to_vec();
        let noise = BookedNoise::new(names, vec![("a".into(), vec![cpu])]).unwrap();
        let all = |ranks: u64| losses.slowdown(ranks, None);
        for out in [None, Some(0), Some(1), Some(2), Some(3)] {
            let marked: Vec<bool> = (0..4).map(|source| Some(source) == out).collect();
            let left = noise.without(&marked).unwrap();
            let exact = DelayDistribution::new(&DelayTable::new(&left, 1, Nanos::from_millis(1)).unwrap());
            for ranks in [1, 64, 1024] {
                let (exact, ours) = (exact.expected_slowdown(ranks), losses.slowdown(ranks, out.as_ref()));
                // What a source gains, which is what it is ranked by, is known to 1 % of what all noise costs.
                assert!((ours - exact).abs() <= 0.01 * (all(ranks) - 1.0), "{out:?} {ranks}: {ours} {exact}");
            }
        }
    }
}
