//! What the noise of a run costs at scale, with and without each source, in one pass and without keeping the detours.
//!
//! A rank's phase that starts at time t is late by the detours that come before its work is done (`delay` has that
//! function exactly). Here it is taken at starts that lie a fixed step apart on each CPU, and the lateness of each goes
//! into cells of its length, once as it is and once without each source that has a part in it. Of n ranks that all wait
//! for the latest, the mean lateness is that of the largest of n draws: the sum over the values of a sample, from the
//! largest down, of x times the growth of 1 - F(x)^n (David and Nagaraja, Order Statistics, 3rd ed. 2003, section 2.1).
//!
//! A phase does not start at just any time: it starts where the phase before ends, when the latest rank has done its work. Each
//! other rank had done its own before, at a moment of work, and has waited since. So it starts within a detour only if that began
//! while it waited: a sampled start that lies some time into a detour counts as often as another rank was late by more than that
//! time. How often this is depends on the lateness itself; the two are found together, by turns from "no phase starts within a
//! detour" on, which can only rise and ends at the least lateness that agrees with itself.
//!
//! CPUs are sampled one by one. What stopped several CPUs of a node at once counts on one of them ([`at_once`](crate::at_once)).
//!
//! It differs from a replay of the same noise in three things. Starts are sampled; what a rank was late by itself is not taken from
//! how long it waits; and without a source a phase is over earlier and may not meet detours in which it has no part: a phase of work
//! G that lost S to the source meets them with probability G / (G + S), as if they lay anywhere in it.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::vec;

use becalm_units::Nanos;

use crate::at_once::{LongestStops, TimedDetours, repeated_stops};
use crate::noise::Noise;
use crate::order::{UNITS_LIMIT, any};
use crate::uncertainty::RecordingEnds;
use crate::uncertainty::streamed::{LongestDetours, StreamedBlocks};

/// How far the starts of sampled phases lie apart, as a share of the grain: the golden section, so that no period of the
/// noise falls into step with it.
const STEP_RATIO: f64 = 0.618_033_988_75;

/// In short recordings, starts lie up to [`FINEST`] times closer to sample about this many phases.
const WANTED: f64 = (1 << 17) as f64;
const FINEST: i64 = 1 << 4;

/// An octave of lengths has so many cells: the middle of one is within 1/128 of what is in it.
const CELLS_PER_OCTAVE: u64 = 64;

/// Of how far into a detour a phase starts it is enough to know less.
const CELLS_WITHIN: u64 = 8;

/// Each time so many phases of a CPU had something to meet, starts lie twice as far apart, and each counts twice.
const MET_LIMIT: u32 = 1 << 19;

/// What other recordings are drawn from.
const SEED: u64 = 1;

/// At most twice as many starts within one detour are looked at one by one.
const STARTS_LIMIT: i64 = 1 << 10;

/// Phases are counted in parts, as without a source one may be late by two times, each with a probability.
const PARTS: i64 = 1 << 10;

/// The lateness and the starts within detours are brought together until the mean changes by less than this share of the grain, or so
/// many times.
const CLOSE_RATIO: f64 = 1e-6;
const TURNS: usize = 1_000;

/// The cell of a time in nanoseconds. Below two times the cells of an octave each nanosecond has its own.
fn place(time: i64, cells: u64) -> usize {
    let time = time.max(0) as u64;
    if time < 2 * cells {
        return time as usize;
    }
    let octave = time.ilog2() - cells.ilog2();
    (u64::from(octave) * cells + (time >> octave)) as usize
}

/// The middle of a cell, in nanoseconds.
fn middle(place: usize, cells: u64) -> f64 {
    let place = place as u64;
    let octave = (place / cells).saturating_sub(1);
    let width = (1_u64 << octave) as f64;
    ((place - octave * cells) as f64 + 0.5) * width - 0.5
}

/// How many phases were late by how much; of a change to that, how many there are more, or less. In parts of a phase.
#[derive(Clone, Default, Debug)]
struct LatenessCells {
    /// Those that start at work, by the cell of their lateness.
    at_work: Vec<i64>,
    /// Those that start within a detour: by the cell of how far into it, and that of their lateness.
    within: BTreeMap<(usize, usize), i64>,
}

impl LatenessCells {
    /// Adds parts of phases, or takes some away, that start so far into a detour, if they do, and are late by so much each.
    fn add(&mut self, into: Option<i64>, late: i64, phases: i64) {
        let cell = place(late, CELLS_PER_OCTAVE);
        match into {
            Some(into) => *self.within.entry((place(into, CELLS_WITHIN), cell)).or_default() += phases,
            None => {
                if cell >= self.at_work.len() {
                    self.at_work.resize(cell + 1, 0);
                }
                self.at_work[cell] += phases;
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        if other.at_work.len() > self.at_work.len() {
            self.at_work.resize(other.at_work.len(), 0);
        }
        self.at_work.iter_mut().zip(&other.at_work).for_each(|(phases, more)| *phases += more);
        other.within.iter().for_each(|(cell, more)| *self.within.entry(*cell).or_default() += more);
    }
}

/// The lateness of phases that follow each other.
struct Following {
    /// Phases that start at work, by cell.
    at_work: Vec<f64>,
    /// Phases that start within a detour: the cell of their lateness, how many, and the cell of lateness of another rank that is
    /// followed by such a start; any above it is as well.
    within: Vec<(usize, f64, usize)>,
    /// What came out last: by cell, the probability that another rank is late by that or more.
    longer: Vec<f64>,
    /// The same of the latest of all.
    latest: Vec<f64>,
    mean: f64,
}

impl Following {
    fn new(cells: &LatenessCells) -> Self {
        let within: Vec<_> = cells.within.iter().filter(|(_, phases)| **phases > 0).collect();
        let count = within.iter().map(|((_, late), _)| late + 1).max().unwrap_or(0).max(cells.at_work.len());
        let mut at_work: Vec<f64> = cells.at_work.iter().map(|phases| *phases.max(&0) as f64).collect();
        at_work.resize(count, 0.0);
        let waited = |into: usize| place(middle(into, CELLS_WITHIN) as i64, CELLS_PER_OCTAVE) + 1;
        let within = within.into_iter().map(|((into, late), phases)| (*late, *phases as f64, waited(*into))).collect();
        Self { at_work, within, longer: vec![0.0; count], latest: vec![0.0; count], mean: 0.0 }
    }

    /// The next turn: how late the latest of so many ranks is, if it was so late in the phase before. Gives how much the mean, in
    /// nanoseconds, has changed.
    fn turn(&mut self, ranks: f64) -> f64 {
        let mut phases = self.at_work.clone();
        for (late, count, waited) in &self.within {
            phases[*late] += count * self.longer.get(*waited).unwrap_or(&0.0);
        }
        let all: f64 = phases.iter().sum();
        let (mut later, mut reached, mut longer, mut mean) = (0.0, 0.0, 0.0, 0.0);
        for (place, phases) in phases.iter().enumerate().rev() {
            // Most cells are empty.
            if *phases != 0.0 {
                later += phases;
                let share = later / all;
                let reach = any(ranks, share);
                longer = any(ranks - 1.0, share);
                mean += (reach - reached) * middle(place, CELLS_PER_OCTAVE);
                reached = reach;
            }
            self.latest[place] = reached;
            self.longer[place] = longer;
        }
        let change = mean - self.mean;
        self.mean = mean;
        change
    }

    /// The part of the mean that lies below a threshold.
    fn below(&self, threshold: f64) -> f64 {
        let (mut reached, mut mean) = (0.0, 0.0);
        for (place, reach) in self.latest.iter().enumerate().rev() {
            mean += (reach - reached) * middle(place, CELLS_PER_OCTAVE).min(threshold);
            reached = *reach;
        }
        mean
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
    /// The same phases by blocks of time.
    blocks: StreamedBlocks,
}

impl PhaseLosses<()> {
    /// Of the recorded CPUs of nodes, phase after phase.
    pub(crate) fn of_noise(noise: &Noise, grain: Nanos) -> Self {
        let (mut all, cpus) = (PhaseLosses::new(grain), noise.traces().count());
        for node in noise.nodes() {
            let mut losses = PhaseLosses::new(grain);
            let stops = node.cpus().iter().map(|trace| {
                let mut stops = LongestStops::default();
                trace.detours().for_each(|(start, duration)| stops.add(start, duration));
                stops
            });
            for (trace, repeated) in node.cpus().iter().zip(repeated_stops(stops)) {
                let sampler = PhaseSampler::new(Nanos::ZERO, trace.length(), grain);
                let mut sampler = sampler.of_cpus(cpus).leaving_out(repeated);
                for (number, (start, duration)) in (0..).zip(trace.detours()) {
                    sampler.part(number, start, 0, duration, &mut losses);
                }
                sampler.finish(&mut losses);
            }
            all.merge(&losses, |_| ());
        }
        all
    }
}

impl<S: Ord> PhaseLosses<S> {
    /// Of no phase yet, with so much work in each.
    #[must_use]
    pub const fn new(grain: Nanos) -> Self {
        Self {
            grain,
            phases: 0,
            all: LatenessCells { at_work: Vec::new(), within: BTreeMap::new() },
            without: BTreeMap::new(),
            blocks: StreamedBlocks::new(grain),
        }
    }

    /// The work of a phase.
    #[must_use]
    pub const fn grain(&self) -> Nanos {
        self.grain
    }

    /// The sources that had a part in the lateness of any phase.
    pub fn sources(&self) -> impl Iterator<Item = &S> {
        self.without.keys()
    }

    /// Adds the phases of others of the same grain, whose sources have other names.
    pub fn merge<T>(&mut self, other: &PhaseLosses<T>, mut named: impl FnMut(&T) -> S) {
        self.phases += other.phases;
        self.all.merge(&other.all);
        self.blocks.merge(&other.blocks);
        for (source, change) in &other.without {
            self.without.entry(named(source)).or_default().merge(change);
        }
    }

    /// How many times as long a program takes whose so many ranks wait for each other after every grain of work, each under
    /// the noise of one of the CPUs, drawn at random, at a random time; without the source that is named. 1.0 if nothing was
    /// sampled. The most ranks are [`UNITS_LIMIT`].
    #[must_use]
    pub fn slowdown(&self, ranks: u64, without: Option<&S>) -> f64 {
        1.0 + self.following(ranks, without).mean / self.grain.get() as f64
    }

    /// Between which ends another recording of the machine, or a longer one, would find the same slowdown, in 95 of 100; nothing if nothing
    /// was sampled.
    #[must_use]
    pub fn recording_ends(&self, ranks: u64) -> Option<RecordingEnds> {
        let following = self.following(ranks, None);
        let slowdown = 1.0 + following.mean / self.grain.get() as f64;
        self.blocks.ends(ranks, slowdown, |threshold| following.below(threshold), SEED)
    }

    /// The lateness of phases that follow each other, without a source.
    fn following(&self, ranks: u64, without: Option<&S>) -> Following {
        let mut cells = self.all.clone();
        if let Some(change) = without.and_then(|source| self.without.get(source)) {
            cells.merge(change);
        }
        let mut following = Following::new(&cells);
        for _ in 0..TURNS {
            if following.turn(ranks.min(UNITS_LIMIT) as f64) <= CLOSE_RATIO * self.grain.get() as f64 {
                break;
            }
        }
        following
    }

    /// Counts phases that start so far into a detour, if they do, at a part of the time of their CPU, and are late by so much.
    fn add(&mut self, into: Option<i64>, at: f64, late: i64, phases: i64) {
        self.phases += phases;
        self.all.add(into, late, phases * PARTS);
        self.blocks.add(at, late, phases);
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

    /// Leaves out a time before, and what goes beyond another one.
    fn cut(&mut self, mut before: i64, mut most: i64) {
        for (_, time) in &mut self.of {
            let gone = before.min(*time);
            let left = (*time - gone).min(most);
            (*time, before, most) = (left, before - gone, most - left);
        }
        self.total = self.of.iter().fold(0, |sum, (_, time)| sum.saturating_add(*time));
    }

    fn clear(&mut self) {
        self.of.clear();
        self.total = 0;
    }
}

/// The detours that a phase has met.
#[derive(Default, Debug)]
struct Met {
    /// By source: its time, and that of others in the same detours.
    of: Vec<(u32, i64, i64)>,
    total: i64,
}

impl Met {
    fn add(&mut self, detour: &Parts) {
        self.total = self.total.saturating_add(detour.total);
        for (source, time) in &detour.of {
            let together = detour.total - time;
            match self.of.iter_mut().find(|(other, ..)| other == source) {
                Some((_, sum, beside)) => {
                    (*sum, *beside) = (sum.saturating_add(*time), beside.saturating_add(together))
                }
                None => self.of.push((*source, *time, together)),
            }
        }
    }

    /// The time of a source, and that of others in the same detours.
    fn of(&self, source: u32) -> (i64, i64) {
        self.of.iter().find(|(other, ..)| *other == source).map_or((0, 0), |(_, time, together)| (*time, *together))
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
    /// When the first starts, as a part of the time of the CPU, 0 to 1.
    at: f64,
    /// How far their starts lie apart.
    step: i64,
    /// For how many each stands.
    weight: i64,
    /// The detour in which they start, and how far into it the first does; empty if they start at work.
    start_in: Parts,
    into: i64,
    /// The detours that they have met since.
    met: Met,
}

/// Samples the phases of one CPU from its detours, which come in order of time.
#[derive(Debug)]
pub struct PhaseSampler {
    grain: i64,
    /// How far starts lie apart, and for how many each stands.
    step: i64,
    weight: i64,
    /// How many phases had something to meet since these were changed.
    met: u32,
    /// When the next sampled phase starts.
    next: i64,
    /// The end of the last detour.
    at: i64,
    /// When the CPU's loop began and ended.
    begin: i64,
    end: i64,
    /// The longest detours.
    longest: LongestDetours,
    /// Those that end first stand first.
    open: VecDeque<OpenPhases>,
    /// Closed ones, for their memory.
    spare: Vec<OpenPhases>,
    /// The number and the start of the detour that comes in.
    detour: Option<(i64, i64)>,
    parts: Parts,
    /// Detours that count on another CPU.
    left_out: Peekable<vec::IntoIter<(Nanos, Nanos)>>,
}

impl PhaseSampler {
    /// For a CPU whose loop ran from `begin` for `length`, and phases with so much work, which is above 0.
    #[must_use]
    pub fn new(begin: Nanos, length: Nanos, grain: Nanos) -> Self {
        Self {
            grain: grain.get(),
            step: ((grain.get() as f64 * STEP_RATIO) as i64).max(1),
            weight: FINEST,
            met: 0,
            next: begin.get(),
            at: begin.get(),
            begin: begin.get(),
            longest: LongestDetours::default(),
            end: begin.get().saturating_add(length.get()),
            open: VecDeque::new(),
            spare: Vec::new(),
            detour: None,
            parts: Parts::default(),
            left_out: Vec::new().into_iter().peekable(),
        }
    }

    /// The same without these detours, which count on another CPU. They are in order of time.
    #[must_use]
    pub fn leaving_out(self, detours: TimedDetours) -> Self {
        Self { left_out: detours.into_iter().peekable(), ..self }
    }

    /// The same of one of so many CPUs: fewer have closer phases.
    #[must_use]
    pub fn of_cpus(self, cpus: usize) -> Self {
        let phases = self.end.saturating_sub(self.begin).max(0) as f64 * cpus as f64 / self.step as f64;
        let mut weight = FINEST;
        while weight > 1 && phases * ((2 * FINEST / weight) as f64) <= WANTED {
            weight /= 2;
        }
        Self { step: (self.step * weight / FINEST).max(1), weight, ..self }
    }

    /// Takes a part of a detour: its number, when the part began, its time, and the source with which that goes. The parts of a
    /// detour follow each other, the first one first.
    pub fn part(&mut self, detour: i64, start: Nanos, source: u32, time: Nanos, losses: &mut PhaseLosses<u32>) {
        while self.left_out.next_if(|(began, lasted)| began.saturating_add(*lasted) <= start).is_some() {}
        if self.left_out.peek().is_some_and(|(began, _)| *began <= start) {
            return;
        }
        match &mut self.detour {
            // Two that touch are one, as a prediction has them.
            Some((number, began)) if *number == detour || start.get() == began.saturating_add(self.parts.total) => {
                *number = detour;
            }
            _ => {
                self.take(losses);
                self.detour = Some((detour, start.get()));
            }
        }
        self.parts.add(source, time.get().max(0));
    }

    /// Ends the sampling. Phases whose work is not done when the loop ends are not counted.
    pub fn finish(&mut self, losses: &mut PhaseLosses<u32>) {
        self.take(losses);
        self.work_until(self.end, losses);
        self.open.clear();
        losses.blocks.finish_cpu(self.begin, self.end - self.begin, std::mem::take(&mut self.longest));
    }

    /// Takes the detour that has come in.
    fn take(&mut self, losses: &mut PhaseLosses<u32>) {
        let Some((_, began)) = self.detour.take() else { return };
        let mut parts = std::mem::take(&mut self.parts);
        let start = began.max(self.at);
        let (before, most) = (self.begin.saturating_sub(began).max(0), self.end.saturating_sub(start).max(0));
        if before > 0 || parts.total > most {
            parts.cut(before, most);
        }
        if start < self.end && parts.total > 0 {
            self.work_until(start, losses);
            self.longest.add(start, parts.total);
            self.open.iter_mut().for_each(|phases| phases.met.add(&parts));
            self.at = start.saturating_add(parts.total);
            let into = self.next.saturating_sub(start).max(0);
            if into < parts.total {
                let phases = (parts.total - into - 1) / self.step + 1;
                let mut open = self.opened(self.grain, phases);
                self.next = self.next.saturating_add(phases.saturating_mul(open.step));
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
            count(&phases, losses);
            phases.start_in.clear();
            phases.met.clear();
            self.spare.push(phases);
        }
        self.open.iter_mut().for_each(|phases| phases.work_left -= work);
        let undisturbed = time.saturating_sub(self.grain).saturating_sub(self.next);
        if undisturbed >= 0 {
            let phases = undisturbed / self.step + 1;
            losses.add(None, 0.0, 0, phases.saturating_mul(self.weight));
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
        let Self { step, weight, .. } = *self;
        let at = (self.next - self.begin) as f64 / (self.end - self.begin).max(1) as f64;
        self.met += 1;
        if self.met == MET_LIMIT && self.step < i64::MAX / 2 {
            // A multiple of what it was, so that it stays out of step with everything.
            (self.step, self.weight, self.met) = (2 * step, 2 * weight, 0);
        }
        OpenPhases { work_left, phases, at, step, weight, into: 0, ..self.spare.pop().unwrap_or_default() }
    }
}

/// Counts phases whose work is done.
fn count(open: &OpenPhases, losses: &mut PhaseLosses<u32>) {
    let grain = losses.grain.get();
    // Of a detour in which very many start, one stands for several.
    let stride = (open.phases / STARTS_LIMIT).max(1);
    for number in (0..open.phases).step_by(stride as usize) {
        let phases = stride.min(open.phases - number).saturating_mul(open.weight);
        let into = open.into.saturating_add(number.saturating_mul(open.step));
        let in_detour = open.start_in.total.saturating_sub(into).max(0);
        let start = Some(into).filter(|_| in_detour > 0);
        let late = in_detour.saturating_add(open.met.total);
        losses.add(start, open.at, late, phases);
        let mut change = |source: u32| {
            // The detour in which the phase starts is over earlier.
            let rest = (open.start_in.total - open.start_in.of(source)).saturating_sub(into).max(0);
            let (own, together) = open.met.of(source);
            let others = open.met.total - own;
            // What the source took is time to work, and the phase may be over before it meets other detours.
            let gained = late.saturating_sub(rest).saturating_sub(others).max(0);
            let all = i128::from(phases) * i128::from(PARTS);
            let meeting = (all * i128::from(grain) / i128::from(grain.saturating_add(gained))) as i64;
            let cells = losses.without.entry(source).or_default();
            cells.add(start, late, -phases * PARTS);
            let start = Some(into).filter(|_| rest > 0);
            cells.add(start, rest.saturating_add(others), meeting);
            cells.add(start, rest.saturating_add(together.min(others)), phases * PARTS - meeting);
        };
        open.start_in.of.iter().for_each(|(source, _)| change(*source));
        let later = open.met.of.iter().filter(|(source, ..)| open.start_in.of.iter().all(|(other, _)| other != source));
        later.for_each(|(source, ..)| change(*source));
    }
}

#[cfg(test)]
mod tests;
