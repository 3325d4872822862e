//! Noise drawn from a recording in summary form, which keeps how late work was, but not when the noise came.
//!
//! For phases of a grain, the work of each CPU is cut into windows of that grain. Each window has a recorded delay, in random order: one detour in
//! its middle. So a phase that starts at work meets the delay of one window, and the share of noise is that of the recording. Each counted window is
//! used once, so the drawn time is longer than the recording. Between two grains of the summary form each quantile of the delays is interpolated.
//! Phases shorter than its shortest grain meet windows of that one; longer phases meet several of its longest.
//!
//! Delays for the longest detours hit several CPUs of a node at once if the detours did.

use std::cmp::Reverse;

use becalm_account::SourceIds;
use becalm_bundle::SummaryBundle;
use becalm_model::Kind;
use becalm_model::digest::{CpuDigest, DelayCell, DigestDoc, GRAINS_NS, LongDetour, WINDOWS};
use becalm_model::node::{Rung, Warning};
use becalm_model::warning;
use becalm_scale::at_once::{DetourPlace, LongestStops, TimedDetours, events_at_once, repeated_stops};
use becalm_scale::books::BookEntry;
use becalm_scale::sampled::{PhaseLosses, PhaseSampler};
use becalm_stats::splitmix::SplitMix64;
use becalm_units::Nanos;

use super::window::{WatchedTime, Window};
use super::{CpuDetours, NodeDetours, NoiseError, NoiseInput, SummaryOrigin};
use crate::summary::{Selection, select};

/// Maximum number of delays, over all nodes; each takes about 100 bytes. For a recording with many, less time is drawn.
const DELAYS: usize = 4 << 20;

/// Minimum number of delays per node.
const NODE_DELAYS: usize = 1 << 14;

/// The fixed seed: the same recording always gives the same delays.
const SEED: u64 = 0x6265_6361_6c6d;

impl NoiseInput {
    /// Draws the noise of the selected CPUs of recordings in summary form for phases of a grain, with its books if `books` is set.
    pub fn from_summary(
        bundle: &SummaryBundle,
        selection: &Selection,
        books: bool,
        grain: Nanos,
    ) -> Result<Self, NoiseError> {
        Self::from_digests(&select(bundle, selection)?, &bundle.path().display().to_string(), books, grain)
    }

    /// The same for these recordings, with the given name.
    pub fn from_digests(digests: &[DigestDoc], name: &str, books: bool, grain: Nanos) -> Result<Self, NoiseError> {
        if let Some(digest) = digests.iter().find(|digest| books && digest.run.rung != Rung::Tracepoints) {
            return Err(NoiseError::NoBooks { run: name.into(), node: digest.run.node.clone() });
        }
        let grains = Grains::new(grain);
        let mut warnings = warning::bearing_warnings(digests.iter().map(|digest| &digest.run));
        let (mut names, mut watched) = (SourceIds::default(), Vec::new());
        let mut nodes = Vec::new();
        let mut recorded = Nanos::ZERO;
        for digest in digests {
            let drawing = Drawing::new(digest, &grains, digests.len(), &mut warnings);
            let window = drawing.window;
            watched.push(WatchedTime::new(&digest.run, window));
            let mut cpus = Vec::with_capacity(digest.cpus.len());
            for (cpu, drawn) in digest.cpus.iter().zip(drawing.cpus(&mut names)) {
                let entries = if books { drawn.entries } else { Vec::new() };
                cpus.push(CpuDetours { cpu: cpu.cpu.get() as i32, detours: drawn.detours, entries });
                recorded = recorded.saturating_add(drawing.recorded);
            }
            let drawn = warning::drawn_of_summary(window.length, drawing.recorded);
            if !warnings.contains(&drawn) {
                warnings.push(drawn);
            }
            nodes.push(NodeDetours { node: digest.run.node.clone(), window, cpus });
        }
        let noise = Self::from_detours(nodes, names, books)?;
        let summary = Some(SummaryOrigin { grain, recorded });
        Ok(Self { name: name.to_owned(), warnings, watched, summary, ..noise })
    }
}

/// Draws the noise of one of `nodes` nodes, and samples phases of this grain from it. Returns their delays by source, and the total recorded time of
/// the CPUs.
pub fn draw_losses<S: Ord>(
    digest: &DigestDoc,
    grain: Nanos,
    nodes: usize,
    named: impl Fn(Kind, &str) -> S,
) -> (PhaseLosses<S>, Nanos) {
    let grains = Grains::new(grain);
    let drawing = Drawing::new(digest, &grains, nodes, &mut Vec::new());
    let window = drawing.window;
    let mut names = SourceIds::default();
    let mut losses: PhaseLosses<u32> = PhaseLosses::new(grain);
    let mut time = Nanos::ZERO;
    let cpus = drawing.cpus(&mut names);
    let repeated = repeated_stops(cpus.iter().map(|cpu| LongestStops::from_detours(cpu.detours.iter().copied())));
    let sampler = || PhaseSampler::new(window.begin, window.length, grain).for_cpus(nodes * digest.cpus.len());
    for (CpuDetours { detours, entries, .. }, repeated) in cpus.into_iter().zip(repeated) {
        let mut sampler = sampler().leaving_out(repeated);
        let mut entries = entries.into_iter().peekable();
        for (number, (start, duration)) in detours.into_iter().enumerate() {
            let (mut at, mut rest) = (start, duration);
            while let Some(entry) = entries.next_if(|entry| entry.detour == number) {
                sampler.part(number as i64, at, entry.source, entry.self_time, &mut losses);
                at = at.saturating_add(entry.self_time);
                rest = (rest - entry.self_time).max(Nanos::ZERO);
            }
            // Time without a source gets a number without a name.
            if rest > Nanos::ZERO {
                sampler.part(number as i64, at, UNKNOWN, rest, &mut losses);
            }
        }
        sampler.finish(&mut losses);
        time = time.saturating_add(drawing.recorded);
    }
    let mut named_losses = PhaseLosses::new(grain);
    named_losses.merge(&losses, |number| {
        let known = names.names().get(*number as usize);
        known.map_or_else(|| named(Kind::Unseen, "unknown"), |(kind, name)| named(*kind, name))
    });
    (named_losses, time)
}

/// The number for time without a known source.
const UNKNOWN: u32 = u32::MAX;

/// The interpolation of a grain between those of the summary form.
struct Grains {
    /// The work of a drawn window, in nanoseconds.
    work: i64,
    /// The index of the grain below, and the weight of the next one: 0 to 1.
    below: usize,
    share: f64,
}

/// Windows of work with the same delay.
struct DrawnDelay {
    /// Their number in the recording.
    windows: f64,
    /// In nanoseconds.
    delay: f64,
    /// The part charged to each source, by its index on the CPU.
    parts: Vec<(u32, f64)>,
}

impl Grains {
    fn new(grain: Nanos) -> Self {
        let work = grain.get().clamp(GRAINS_NS[0], GRAINS_NS[GRAINS_NS.len() - 1]);
        let below = GRAINS_NS.partition_point(|ns| *ns <= work) - 1;
        let shorter = GRAINS_NS[below];
        let share = GRAINS_NS.get(below + 1).map_or(0.0, |longer| (work - shorter) as f64 / (longer - shorter) as f64);
        Self { work, below, share }
    }

    /// The delays of windows of a CPU, the longest first. Delays of the two grains with the same rank are averaged, which keeps the mean, and regular
    /// and rare delays.
    fn delays(&self, cpu: &CpuDigest) -> Vec<DrawnDelay> {
        let grains = [(self.below, 1.0 - self.share), (self.below + 1, self.share)];
        let mut sides = grains.map(|(place, weight)| {
            let cells = cpu.delays.get(place).filter(|_| weight > 0.0).map_or(&[][..], |delays| &delays.cells.0);
            let counted = |cell| (cell, self.counted(cell, place));
            let mut cells: Vec<(&DelayCell, f64)> = cells.iter().map(counted).collect();
            cells.sort_by(|a, b| a.0.delay().total_cmp(&b.0.delay()));
            (cells, weight)
        });
        let mut delays = Vec::new();
        loop {
            let left = sides.iter().filter_map(|(cells, _)| cells.last());
            let Some(windows) = left.map(|(_, windows)| *windows).min_by(f64::total_cmp) else { return delays };
            let mut together = DrawnDelay { windows, delay: 0.0, parts: Vec::new() };
            for (cells, weight) in &mut sides {
                let Some((cell, left)) = cells.last_mut() else { continue };
                together.add(cell, *weight);
                *left -= windows;
                if *left <= 0.0 {
                    cells.pop();
                }
            }
            delays.push(together);
        }
    }

    /// The number of windows of this work that a cell of the grain `place` stands for.
    fn counted(&self, cell: &DelayCell, place: usize) -> f64 {
        cell.windows as f64 * GRAINS_NS[place] as f64 / self.work as f64 / WINDOWS as f64
    }

    /// The number of windows of a node with noise, at least one.
    fn count_delays(&self, digest: &DigestDoc) -> f64 {
        let windows = |cpu| self.delays(cpu).iter().map(|delay| delay.windows).sum::<f64>();
        digest.cpus.iter().map(windows).sum::<f64>().max(1.0)
    }
}

impl DrawnDelay {
    fn add(&mut self, cell: &DelayCell, weight: f64) {
        self.delay += weight * cell.delay();
        for (source, ns) in &cell.parts {
            let ns = weight * *ns as f64 / cell.windows as f64;
            match self.parts.iter_mut().find(|(other, _)| other == source) {
                Some((_, sum)) => *sum += ns,
                None => self.parts.push((*source, ns)),
            }
        }
    }
}

/// The parameters for drawing the noise of a node.
struct Drawing<'a> {
    digest: &'a DigestDoc,
    grains: &'a Grains,
    /// The recorded time common to all CPUs.
    recorded: Nanos,
    /// The ratio of drawn to recorded time.
    times: f64,
    /// The drawn time.
    window: Window,
}

/// A delay that hits several CPUs at once.
#[derive(Clone, Copy)]
struct CommonDelay {
    /// Its time, in nanoseconds.
    instant: i64,
    /// The number of longer delays on the CPU.
    longer: usize,
}

impl<'a> Drawing<'a> {
    /// For one of `nodes` nodes: as long as its share of the delays lasts, or until each window was used once.
    fn new(digest: &'a DigestDoc, grains: &'a Grains, nodes: usize, warnings: &mut Vec<Warning>) -> Self {
        let delays = (DELAYS / nodes.max(1)).max(NODE_DELAYS) as f64;
        let times = (delays / grains.count_delays(digest)).min(WINDOWS as f64);
        let last = digest.cpus.iter().map(|cpu| Nanos::new(cpu.last_end_ns)).max();
        let whole = Window::common_to_all_cpus(&digest.run, last, warnings);
        let length = Nanos::new((whole.length.get() as f64 * times) as i64);
        Self { digest, grains, recorded: whole.length, times, window: Window { length, ..whole } }
    }

    fn cpus(&self, names: &mut SourceIds) -> Vec<CpuDetours> {
        let random = &mut SplitMix64::new(SEED);
        if self.window.length <= Nanos::ZERO {
            return self.digest.cpus.iter().map(|_| CpuDetours::default()).collect();
        }
        let common = self.common(random);
        (self.digest.cpus.iter().zip(common).enumerate())
            .map(|(place, (cpu, common))| {
                let numbers: Vec<Option<u32>> = cpu
                    .sources
                    .iter()
                    .map(|source| (source.kind != Kind::Becalm).then(|| names.id(source.kind, &source.source).get()))
                    .collect();
                // The loop of one CPU may have run longer than the time common to all.
                let ran = self.digest.run.cpus[place].duration_ns.max(self.recorded);
                let delays = self.grains.delays(cpu);
                let times = self.window.length.get() as f64 / ran.get() as f64;
                self.laid_out(&drawn_times(&delays, times, random), &common, &numbers, random)
            })
            .collect()
    }

    /// The delays of each CPU that hit other CPUs too, in order of time.
    fn common(&self, random: &mut SplitMix64) -> Vec<Vec<CommonDelay>> {
        let mut common = vec![Vec::new(); self.digest.cpus.len()];
        let times = (self.times as usize).max(1);
        for event in events_by_rank(&self.digest.cpus) {
            for number in 0..times {
                let instant = (random.uniform() * self.window.length.get() as f64) as i64;
                for detour in &event {
                    common[detour.cpu].push(CommonDelay { instant, longer: detour.place * times + number });
                }
            }
        }
        common.iter_mut().for_each(|delays| delays.sort_by_key(|delay| delay.instant));
        common
    }

    /// Puts delays in the middle of windows: those shared with other CPUs at their instants, the others at random. `delays` is sorted, the longest
    /// first.
    fn laid_out(
        &self,
        delays: &[&DrawnDelay],
        common: &[CommonDelay],
        numbers: &[Option<u32>],
        random: &mut SplitMix64,
    ) -> CpuDetours {
        let (work, end) = (self.grains.work, self.window.length.get());
        let mut is_common = vec![false; delays.len()];
        let common = || common.iter().filter(|delay| delay.longer < delays.len());
        common().for_each(|delay| is_common[delay.longer] = true);
        let mut others: Vec<&DrawnDelay> =
            delays.iter().zip(&is_common).filter(|(_, common)| !**common).map(|(delay, _)| *delay).collect();
        for at in (1..others.len()).rev() {
            others.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut drawn = CpuDetours::default();
        let mut lost: f64 = delays.iter().map(|delay| delay.delay).sum();
        // In whole nanoseconds, so the work of a window between two delays is done before the later one.
        let mut at = 0_i64;
        let mut put = |late: &DrawnDelay, at: &mut i64, lost: &mut f64| {
            // The ends of the recording may have counted a few windows too many.
            if *at as f64 + work as f64 + late.delay < end as f64 {
                let start = self.window.begin.saturating_add(Nanos::new(*at + work / 2));
                let delay = drawn.push(start, late, numbers);
                *at += work + delay.get();
            }
            *lost -= late.delay;
        };
        let shared = common().map(|delay| (delay.instant, Some(delays[delay.longer])));
        for (instant, delay) in shared.chain([(end, None)]) {
            while !others.is_empty() {
                // Draw the number of windows without noise before the next delay.
                let windows = (((end - at) as f64 - lost) / work as f64).max(1.0);
                let share = others.len() as f64 / windows;
                let quiet = if share < 1.0 { (random.uniform().ln() / (-share).ln_1p()) as i64 } else { 0 };
                let next = at.saturating_add(quiet.saturating_mul(work));
                if next.saturating_add(work / 2) > instant {
                    break;
                }
                at = next;
                others.pop().into_iter().for_each(|late| put(late, &mut at, &mut lost));
            }
            if let Some(late) = delay {
                at = at.max(instant - work / 2);
                put(late, &mut at, &mut lost);
            }
        }
        drawn
    }
}

/// The longest detours that hit several CPUs at once, the longest of each event first. The place of a detour is the number of longer ones on its CPU.
fn events_by_rank(cpus: &[CpuDigest]) -> Vec<Vec<DetourPlace>> {
    let timed = |detour: &LongDetour| (Nanos::new(detour.start_ns), Nanos::new(detour.duration_ns));
    let longest: Vec<TimedDetours> = cpus.iter().map(|cpu| cpu.longest.iter().map(timed).collect()).collect();
    let ranked = longest.iter().map(|detours| {
        let mut order: Vec<usize> = (0..detours.len()).collect();
        order.sort_by_key(|place| Reverse(detours[*place].1));
        let mut longer = vec![0; order.len()];
        order.into_iter().enumerate().for_each(|(rank, place)| longer[place] = rank);
        longer
    });
    let ranked: Vec<Vec<usize>> = ranked.collect();
    let mut events = events_at_once(&longest);
    events.iter_mut().flatten().for_each(|detour| detour.place = ranked[detour.cpu][detour.place]);
    events
}

impl CpuDetours {
    /// Adds a delay. `numbers` maps the indices of sources to their numbers. Returns its length in whole nanoseconds.
    fn push(&mut self, start: Nanos, late: &DrawnDelay, numbers: &[Option<u32>]) -> Nanos {
        let detour = self.detours.len();
        let known: f64 = late.parts.iter().map(|(_, ns)| ns).sum();
        let mut delay = Nanos::new((late.delay - known).round() as i64);
        for (source, ns) in &late.parts {
            let self_time = Nanos::new(ns.round() as i64);
            delay = delay.saturating_add(self_time);
            let source = numbers[*source as usize].filter(|_| self_time > Nanos::ZERO);
            self.entries.extend(source.map(|source| BookEntry { detour, source, root: source, self_time }));
        }
        self.detours.push((start, delay));
        delay
    }
}

/// The delays to expect in `times` times the recorded time.
fn drawn_times<'d>(delays: &'d [DrawnDelay], times: f64, random: &mut SplitMix64) -> Vec<&'d DrawnDelay> {
    let (mut drawn, mut rest) = (Vec::new(), random.uniform());
    for delay in delays {
        rest += delay.windows * times;
        drawn.extend(std::iter::repeat_n(delay, rest as usize));
        rest -= rest.floor();
    }
    drawn
}

#[cfg(test)]
mod tests;
