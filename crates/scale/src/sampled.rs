//! The cost of a run's noise at scale, with and without each source, in one pass and without keeping the detours.
//!
//! A rank's phase that starts at time t is late by the detours that come before its work is done (`delay` has that function exactly). Here it is
//! sampled at starts a fixed step apart on each CPU, and the lateness of each goes into cells by length, once as it is and once without each source
//! that contributes to it. For n ranks that all wait for the latest, the mean lateness is that of the largest of n draws: the sum over the values of
//! a sample, from the largest down, of x times the growth of 1 - F(x)^n (David and Nagaraja, Order Statistics, 3rd ed. 2003, section 2.1).
//!
//! A phase does not start at just any time: it starts when the latest rank has done its work. Each other rank finished earlier, at a moment of work,
//! and has waited since. So a rank starts within a detour only if that started while it waited: a sampled start some time into a detour is possible
//! after a phase that exceeded the grain by more than that time. So the lateness of a phase depends on that of the one before, and phases are
//! iterated until their mean settles.
//!
//! Few sampled starts meet a rare long detour at work, one more or less. They are weighted to represent all starts that meet it.
//!
//! CPUs are sampled one by one. A detour that stopped several CPUs of a node at once counts on one of them ([`at_once`](crate::at_once)).
//!
//! There are three differences from a replay of the same noise. Starts are sampled; all CPUs have their own offsets; and without a source a phase
//! ends earlier and may not meet detours without that source: a phase of work G that lost S to the source meets them with probability G / (G + S), as
//! if they were uniformly distributed in it.

mod chain;
mod lateness;

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::vec;

use becalm_units::Nanos;

use crate::ScaleError;
use crate::at_once::{LongestStops, TimedDetours, repeated_stops};
use crate::delay::{Laps, laps};
use crate::estimate::exactly;
use crate::noise::{Alignment, Noise, NoiseTrace};
use crate::order::UNITS_LIMIT;
use crate::uncertainty::streamed::{LongestDetours, StreamedBlocks};
use crate::uncertainty::{RecordingBounds, RecordingEnds, RecordingUncertainty};
use chain::{Latest, PhaseChain};
use lateness::LatenessCells;

/// The distance of sampled starts, relative to the grain: the golden section, so no period of the noise falls into step with it.
const STEP_RATIO: f64 = 0.618_033_988_75;

/// In short recordings, starts are up to [`FINEST`] times closer, to sample about this many phases.
const WANTED: f64 = (1 << 17) as f64;
const FINEST: i64 = 1 << 4;

/// A circle of recorded noise is sampled with wraparound if fewer grains fit into it.
const LEAST_GRAINS: i64 = 1 << 6;

/// Each time this many phases of a CPU have met detours, the distance of starts is doubled, and so is their weight.
const MET_LIMIT: u32 = 1 << 19;

/// The seed for drawing other recordings.
const SEED: u64 = 1;

/// At most twice as many starts within one detour are processed one by one.
const STARTS_LIMIT: i64 = 1 << 10;

/// Phases are counted in parts, because without a source one may have two possible delays, each with a probability.
const PARTS: i64 = 1 << 10;

/// The lateness of the sampled phases of any number of CPUs, with and without each source.
#[derive(Clone, Debug)]
pub struct PhaseLosses<S> {
    grain: Nanos,
    all: LatenessCells,
    /// The changes without a source.
    without: BTreeMap<S, LatenessCells>,
    /// The same phases by blocks of time.
    blocks: StreamedBlocks,
}

impl PhaseLosses<()> {
    /// From recorded noise, for ranks that fill nodes with `per_node` each. If few grains fit into it, a phase continues at its start. Fails for a
    /// grain so long that times do not fit.
    pub fn from_noise(noise: &Noise, per_node: u64, grain: Nanos) -> Result<Self, ScaleError> {
        let nodes = together(noise, per_node);
        let (mut all, cpus) = (PhaseLosses::new(grain), nodes.iter().map(Vec::len).sum());
        for node in nodes {
            let mut losses = PhaseLosses::new(grain);
            let mut repeated = repeated_stops(node.iter().map(|trace| LongestStops::from_detours(trace.detours())));
            if noise.alignment() == Alignment::Independent {
                repeated.iter_mut().for_each(Vec::clear);
            }
            for (trace, repeated) in node.iter().zip(repeated) {
                let sampler = PhaseSampler::new(Nanos::ZERO, trace.length(), grain).for_cpus(cpus);
                if grain.get().saturating_mul(LEAST_GRAINS) < trace.length().get() {
                    sampler.sample(trace.detours(), repeated, &mut losses);
                } else {
                    sampler.sample_lap(trace, repeated, &mut losses)?;
                }
            }
            all.merge(&losses, |_| ());
        }
        Ok(all)
    }
}

/// The CPUs that ranks replay; those recorded at the same time are grouped.
fn together(noise: &Noise, per_node: u64) -> Vec<Vec<&NoiseTrace>> {
    let ranks = match noise.alignment() {
        Alignment::Independent => usize::MAX,
        Alignment::Node | Alignment::Recording => usize::try_from(per_node).unwrap_or(usize::MAX),
    };
    let nodes: Vec<Vec<_>> = noise.nodes().iter().map(|node| node.cpus().iter().take(ranks).collect()).collect();
    if noise.alignment() == Alignment::Recording { vec![nodes.concat()] } else { nodes }
}

impl<S: Ord> PhaseLosses<S> {
    /// Without phases yet, for phases of this much work.
    pub fn new(grain: Nanos) -> Self {
        Self { grain, all: LatenessCells::default(), without: BTreeMap::new(), blocks: StreamedBlocks::new(grain) }
    }

    /// The work of a phase.
    pub const fn grain(&self) -> Nanos {
        self.grain
    }

    /// The sources that contributed to the lateness of any phase.
    pub fn sources(&self) -> impl Iterator<Item = &S> {
        self.without.keys()
    }

    /// Adds phases with the same grain and other names for the sources.
    pub fn merge<T>(&mut self, other: &PhaseLosses<T>, mut named: impl FnMut(&T) -> S) {
        self.all.merge(&other.all);
        self.blocks.merge(&other.blocks);
        for (source, change) in &other.without {
            self.without.entry(named(source)).or_default().merge(change);
        }
    }

    /// The slowdown of a program with this many ranks that wait for each other after every grain of work, each under the noise of one of the CPUs,
    /// drawn at random, at a random time; without the given source. 1.0 if nothing was sampled. At most [`UNITS_LIMIT`] ranks.
    pub fn slowdown(&self, ranks: u64, without: Option<&S>) -> f64 {
        self.slowed(&self.latest(ranks, without))
    }

    /// The uncertainty from other recordings of the machine, or longer ones; `None` if nothing was sampled.
    pub fn uncertainty(&self) -> Option<RecordingUncertainty> {
        self.blocks.uncertainty(SEED)
    }

    /// The uncertainty of the slowdown from other recordings.
    pub fn bounds(&self, known: &RecordingUncertainty, ranks: u64) -> RecordingBounds {
        let latest = self.latest(ranks, None);
        let bounds = known.bounds(ranks, latest.passed(known, ranks), latest.mean());
        bounds.widened(exactly(self.slowed(&latest)))
    }

    /// Only the ends of that interval.
    pub(crate) fn ends(&self, known: &RecordingUncertainty, ranks: u64) -> RecordingEnds {
        let latest = self.latest(ranks, None);
        known.ends(ranks, latest.passed(known, ranks)).widened(exactly(self.slowed(&latest)))
    }

    fn slowed(&self, latest: &Latest) -> f64 {
        1.0 + latest.mean() / self.grain.get() as f64
    }

    /// The lateness of the latest rank in successive phases, without a source.
    fn latest(&self, ranks: u64, without: Option<&S>) -> Latest {
        let mut cells = self.all.clone();
        if let Some(change) = without.and_then(|source| self.without.get(source)) {
            cells.merge(change);
        }
        PhaseChain::new(&cells, ranks.clamp(1, UNITS_LIMIT) as f64).settled(self.grain.get() as f64)
    }

    /// Counts parts of phases: `into` is the time into a detour at their start, if they start in one, `at` the relative time on their CPU, and `late`
    /// their lateness.
    fn add(&mut self, into: Option<i64>, at: f64, late: i64, parts: i64) {
        self.all.add(into, late, parts);
        self.blocks.add(at, late, parts as f64 / PARTS as f64);
    }
}

/// One source's part of a time.
#[derive(Clone, Copy, Debug)]
struct Part {
    source: u32,
    time: i64,
}

/// Parts of a time, by source. They are few, so searching is faster than hashing.
#[derive(Clone, Default, Debug)]
struct Parts {
    list: Vec<Part>,
    total: i64,
}

impl Parts {
    fn add(&mut self, source: u32, time: i64) {
        self.total = self.total.saturating_add(time);
        match self.list.iter_mut().find(|part| part.source == source) {
            Some(part) => part.time = part.time.saturating_add(time),
            None => self.list.push(Part { source, time }),
        }
    }

    fn time(&self, source: u32) -> i64 {
        self.list.iter().find(|part| part.source == source).map_or(0, |part| part.time)
    }

    /// Removes the first `before` nanoseconds, and what exceeds `most` after them.
    fn cut(&mut self, mut before: i64, mut most: i64) {
        for Part { time, .. } in &mut self.list {
            let gone = before.min(*time);
            let left = (*time - gone).min(most);
            (*time, before, most) = (left, before - gone, most - left);
        }
        self.total = self.list.iter().fold(0, |sum, part| sum.saturating_add(part.time));
    }

    fn clear(&mut self) {
        self.list.clear();
        self.total = 0;
    }
}

/// A source in the detours that a phase met.
#[derive(Clone, Copy, Default, Debug)]
struct MetSource {
    source: u32,
    time: i64,
    /// The time of others in the same detours.
    others: i64,
}

#[derive(Default, Debug)]
struct MetDetours {
    sources: Vec<MetSource>,
    total: i64,
}

impl MetDetours {
    fn add(&mut self, detour: &Parts) {
        self.total = self.total.saturating_add(detour.total);
        for Part { source, time } in detour.list.iter().copied() {
            let others = detour.total - time;
            match self.sources.iter_mut().find(|met| met.source == source) {
                Some(met) => {
                    (met.time, met.others) = (met.time.saturating_add(time), met.others.saturating_add(others))
                }
                None => self.sources.push(MetSource { source, time, others }),
            }
        }
    }

    fn source(&self, source: u32) -> MetSource {
        self.sources.iter().find(|met| met.source == source).copied().unwrap_or_default()
    }

    fn clear(&mut self) {
        self.sources.clear();
        self.total = 0;
    }
}

/// Unfinished phases that will end together.
#[derive(Default, Debug)]
struct OpenPhases {
    work_left: i64,
    phases: i64,
    /// The start of the first, relative to the CPU's time: 0 to 1.
    at: f64,
    /// The distance of their starts.
    step: i64,
    /// The weight of each.
    weight: i64,
    /// The detour that they start in, and the time into it of the first; empty if they start at work.
    start_in: Parts,
    into: i64,
    met: MetDetours,
    /// The longest of them, and the number of all starts that met it per sampled one.
    longest: i64,
    share: f64,
}

/// Samples the phases of one CPU from its detours, which come in order of time.
#[derive(Debug)]
pub struct PhaseSampler {
    grain: i64,
    /// The distance of starts, and the weight of each.
    step: i64,
    weight: i64,
    /// The number of phases that met detours since these were changed.
    met: u32,
    /// The start of the next sampled phase.
    next: i64,
    /// The end of the last detour.
    at: i64,
    /// The time that the CPU has worked.
    worked: i64,
    /// The start and the end of the CPU's loop.
    begin: i64,
    end: i64,
    /// No phase starts from here on.
    last: i64,
    /// The time that each phase loses to whole laps of a circle.
    laps: i64,
    longest: LongestDetours,
    /// Sorted by their ends, the earliest first.
    open: VecDeque<OpenPhases>,
    /// Closed ones, kept for their memory.
    spare: Vec<OpenPhases>,
    /// The number and the start of the current detour.
    detour: Option<(i64, i64)>,
    parts: Parts,
    /// Detours that count on another CPU.
    left_out: Peekable<vec::IntoIter<(Nanos, Nanos)>>,
}

impl PhaseSampler {
    /// For a CPU whose loop ran from `begin` for `length`, and phases of this much work (above 0).
    pub fn new(begin: Nanos, length: Nanos, grain: Nanos) -> Self {
        Self {
            grain: grain.get(),
            step: ((grain.get() as f64 * STEP_RATIO) as i64).max(1),
            weight: FINEST,
            met: 0,
            next: begin.get(),
            at: begin.get(),
            worked: 0,
            begin: begin.get(),
            longest: LongestDetours::default(),
            end: begin.get().saturating_add(length.get()),
            last: begin.get().saturating_add(length.get()),
            laps: 0,
            open: VecDeque::new(),
            spare: Vec::new(),
            detour: None,
            parts: Parts::default(),
            left_out: Vec::new().into_iter().peekable(),
        }
    }

    /// Excludes these detours, which count on another CPU. They are in order of time.
    #[must_use]
    pub fn leaving_out(self, detours: TimedDetours) -> Self {
        Self { left_out: detours.into_iter().peekable(), ..self }
    }

    /// For one of this many CPUs: with fewer CPUs, phases are denser.
    #[must_use]
    pub fn for_cpus(self, cpus: usize) -> Self {
        let phases = self.end.saturating_sub(self.begin).max(0) as f64 * cpus as f64 / self.step as f64;
        let mut weight = FINEST;
        while weight > 1 && phases * ((2 * FINEST / weight) as f64) <= WANTED {
            weight /= 2;
        }
        Self { step: (self.step * weight / FINEST).max(1), weight, ..self }
    }

    /// Samples a trace once around: phases continue at its start.
    fn sample_lap(
        self,
        trace: &NoiseTrace,
        repeated: TimedDetours,
        losses: &mut PhaseLosses<u32>,
    ) -> Result<(), ScaleError> {
        let Laps { delay, rest, .. } = laps(trace, Nanos::new(self.grain))?;
        let length = trace.length();
        let lap = |(start, duration): (Nanos, Nanos)| (start.saturating_add(length), duration);
        let repeated = repeated.iter().copied().chain(repeated.iter().copied().map(lap)).collect();
        let twice = Self { grain: rest, laps: delay, end: self.end.saturating_add(length.get()), ..self };
        twice.sample(trace.detours().chain(trace.detours().map(lap)), repeated, losses);
        Ok(())
    }

    /// Samples all detours except the repeated ones.
    fn sample(
        self,
        detours: impl Iterator<Item = (Nanos, Nanos)>,
        repeated: TimedDetours,
        losses: &mut PhaseLosses<u32>,
    ) {
        let mut sampler = self.leaving_out(repeated);
        for (number, (start, duration)) in (0..).zip(detours) {
            sampler.part(number, start, 0, duration, losses);
        }
        sampler.finish(losses);
    }

    /// Adds a part of a detour: the detour's number, the start and the time of the part, and the source that it is charged to. The parts of a detour
    /// are consecutive and in order.
    pub fn part(&mut self, detour: i64, start: Nanos, source: u32, time: Nanos, losses: &mut PhaseLosses<u32>) {
        while self.left_out.next_if(|(began, lasted)| began.saturating_add(*lasted) <= start).is_some() {}
        if self.left_out.peek().is_some_and(|(began, _)| *began <= start) {
            return;
        }
        match &mut self.detour {
            // Touching detours are merged, as in a prediction.
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
        losses.blocks.finish_cpu(self.begin, self.last - self.begin, std::mem::take(&mut self.longest));
    }

    /// Processes the current detour.
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
            if start < self.last {
                self.longest.add(start, parts.total);
            }
            self.meet(&parts);
            self.at = start.saturating_add(parts.total);
            let into = self.next.saturating_sub(start).max(0);
            let starts = parts.total.min(self.last.saturating_sub(start));
            if into < starts {
                let phases = (starts - into - 1) / self.step + 1;
                let mut open = self.opened(self.grain, phases);
                self.next = self.next.saturating_add(phases.saturating_mul(open.step));
                open.into = into;
                open.start_in.total = parts.total;
                open.start_in.list.extend_from_slice(&parts.list);
                self.open.push_back(open);
            }
        }
        parts.clear();
        self.parts = parts;
    }

    /// Lets the open phases meet a detour. All phases that start at work less than a grain before it do; the sampled ones are weighted to represent
    /// exactly those.
    fn meet(&mut self, detour: &Parts) {
        let at_work = self.open.iter().filter(|phases| phases.start_in.total == 0);
        let sampled: i64 = at_work.map(|phases| phases.step).sum();
        let share =
            if self.step > 1 && sampled > 0 { self.grain.min(self.worked) as f64 / sampled as f64 } else { 1.0 };
        for phases in &mut self.open {
            phases.met.add(detour);
            if phases.start_in.total == 0 && detour.total > phases.longest {
                (phases.longest, phases.share) = (detour.total, share);
            }
        }
    }

    /// Lets the phases work from the end of the last detour until `time`, and starts those due by then.
    fn work_until(&mut self, time: i64, losses: &mut PhaseLosses<u32>) {
        let work = time.saturating_sub(self.at);
        while self.open.front().is_some_and(|phases| phases.work_left <= work) {
            let Some(mut phases) = self.open.pop_front() else { break };
            count(&phases, self.laps, losses);
            phases.start_in.clear();
            phases.met.clear();
            self.spare.push(phases);
        }
        self.open.iter_mut().for_each(|phases| phases.work_left -= work);
        self.worked = self.worked.saturating_add(work);
        let undisturbed = time.saturating_sub(self.grain).min(self.last.saturating_sub(1)).saturating_sub(self.next);
        if undisturbed >= 0 {
            let phases = undisturbed / self.step + 1;
            losses.add(
                None,
                self.part_of_time(self.next),
                self.laps,
                phases.saturating_mul(self.weight).saturating_mul(PARTS),
            );
            self.next = self.next.saturating_add(phases.saturating_mul(self.step));
        }
        while self.next < time.min(self.last) {
            let open = self.opened(self.grain - (time - self.next), 1);
            self.open.push_back(open);
            self.next = self.next.saturating_add(self.step);
        }
        self.at = time;
    }

    /// A time as a fraction of the CPU's, 0 to 1.
    fn part_of_time(&self, time: i64) -> f64 {
        time.saturating_sub(self.begin) as f64 / self.last.saturating_sub(self.begin).max(1) as f64
    }

    fn opened(&mut self, work_left: i64, phases: i64) -> OpenPhases {
        let Self { step, weight, .. } = *self;
        let at = self.part_of_time(self.next);
        self.met += 1;
        if self.met == MET_LIMIT && self.step < i64::MAX / 2 {
            // A multiple of the old one, so it stays out of step with everything.
            (self.step, self.weight, self.met) = (2 * step, 2 * weight, 0);
        }
        let spare = self.spare.pop().unwrap_or_default();
        OpenPhases { work_left, phases, at, step, weight, into: 0, longest: 0, share: 1.0, ..spare }
    }
}

/// Counts finished phases, each with its loss to whole laps.
fn count(open: &OpenPhases, laps: i64, losses: &mut PhaseLosses<u32>) {
    let grain = losses.grain.get();
    // If very many start in one detour, one represents several.
    let stride = (open.phases / STARTS_LIMIT).max(1);
    for number in (0..open.phases).step_by(stride as usize) {
        let phases = stride.min(open.phases - number).saturating_mul(open.weight).saturating_mul(PARTS);
        let phases = (phases as f64 * open.share) as i64;
        let into = open.into.saturating_add(number.saturating_mul(open.step));
        let in_detour = open.start_in.total.saturating_sub(into).max(0);
        let start = Some(into).filter(|_| in_detour > 0);
        let late = in_detour.saturating_add(open.met.total);
        losses.add(start, open.at, late.saturating_add(laps), phases);
        let mut change = |source: u32| {
            // The detour that the phase starts in ends earlier.
            let rest = (open.start_in.total - open.start_in.time(source)).saturating_sub(into).max(0);
            let MetSource { time: own, others: together, .. } = open.met.source(source);
            let others = open.met.total - own;
            // The source's time becomes time to work, and the phase may end before it meets other detours.
            let gained = late.saturating_sub(rest).saturating_sub(others).max(0);
            let meeting = i128::from(phases) * i128::from(grain) / i128::from(grain.saturating_add(gained));
            let meeting = meeting as i64;
            let cells = losses.without.entry(source).or_default();
            cells.add(start, late, -phases);
            let start = Some(into).filter(|_| rest > 0);
            cells.add(start, rest.saturating_add(others), meeting);
            cells.add(start, rest.saturating_add(together.min(others)), phases - meeting);
        };
        open.start_in.list.iter().for_each(|part| change(part.source));
        let sources = open.met.sources.iter().map(|met| met.source);
        sources.filter(|source| open.start_in.list.iter().all(|part| part.source != *source)).for_each(change);
    }
}

#[cfg(test)]
mod tests;
