//! Noise that is drawn from the histograms of a recording in summary form.
//!
//! Each source of each CPU is a renewal process: its detours follow each other after times from the histogram of gaps, in a new order, and
//! last for as long as the histogram of lengths says, in another one. Both are scaled so that their sums are those that were recorded. The
//! longest detours of the CPU are where they were, as they were, and are taken out of the histograms. Where detours of two sources overlap,
//! the later one waits for the other: nothing of the noise is lost.

use becalm_bundle::SummaryBundle;
use becalm_model::Kind;
use becalm_model::digest::{Counts, CpuDigest, DigestDoc, LENGTH_BITS, LONGEST, SOURCE_BITS};
use becalm_model::node::Rung;
use becalm_model::warning;
use becalm_scale::books::BookEntry;
use becalm_scale::sampled::{PhaseLosses, PhaseSampler};
use becalm_stats::splitmix::SplitMix64;
use becalm_units::Nanos;

use super::window::{WatchedTime, Window};
use super::{NoiseError, NoiseInput, SourceNames};
use crate::summary::{Selection, select};

/// So many detours are drawn at most, over all CPUs; each takes about 100 bytes. Of a recording with more, a part of the time is drawn.
const DETOURS: u64 = 4 << 20;

/// No source of a CPU has more of them.
const VALUES: usize = 2 * DETOURS as usize;

/// From what detours are drawn; the same recording gives the same ones forever.
const SEED: u64 = 0x6265_6361_6c6d;

impl NoiseInput {
    /// Draws the noise of the selected CPUs of recordings in summary form, with the books of its detours if `books` is set.
    ///
    /// # Errors
    /// As of [`Self::from_run`].
    pub fn from_summary(bundle: &SummaryBundle, selection: &Selection, books: bool) -> Result<Self, NoiseError> {
        Self::from_digests(&select(bundle, selection)?, &bundle.path().display().to_string(), books)
    }

    /// The same of these recordings, which are called so.
    ///
    /// # Errors
    /// As of [`Self::from_run`].
    pub fn from_digests(digests: &[DigestDoc], name: &str, books: bool) -> Result<Self, NoiseError> {
        if let Some(digest) = digests.iter().find(|of| books && of.run.rung != Rung::Tracepoints) {
            return Err(NoiseError::NoBooks { run: name.into(), node: digest.run.node.clone() });
        }
        let detours: u64 = digests.iter().flat_map(|of| &of.cpus).map(CpuDigest::events).fold(0, u64::saturating_add);
        let part = (DETOURS as f64 / detours.max(1) as f64).min(1.0);
        let mut warnings = warning::bearing_warnings(digests.iter().map(|digest| &digest.run));
        let (mut names, mut watched) = (SourceNames::default(), Vec::new());
        let mut nodes = Vec::new();
        let mut random = SplitMix64::new(SEED);
        for digest in digests {
            let last = digest.cpus.iter().map(|cpu| Nanos::new(cpu.last_end_ns)).max();
            let whole = Window::common_to_all_cpus(&digest.run, last, &mut warnings);
            let length = Nanos::new((whole.length.get() as f64 * part) as i64);
            let window = Window { begin: whole.begin, length };
            watched.push(WatchedTime::new(&digest.run, window));
            let mut cpus = Vec::with_capacity(digest.cpus.len());
            for cpu in &digest.cpus {
                let DrawnCpu { detours, mut entries } = draw_cpu(cpu, (window, part), &mut names, &mut random);
                if !books {
                    entries.clear();
                }
                cpus.push((cpu.cpu.get() as i32, (detours, entries)));
            }
            let drawn = warning::drawn_of_summary(LONGEST, window.length, whole.length);
            if !warnings.contains(&drawn) {
                warnings.push(drawn);
            }
            nodes.push((digest.run.node.clone(), window, cpus));
        }
        let noise = Self::of_detours(nodes, names, books)?;
        Ok(Self { name: name.to_owned(), warnings, watched, ..noise })
    }
}

/// Draws the noise of a node for as much time as holds at most so many detours, and samples phases of this grain from it. Gives how late they
/// were, by sources, and for how long CPUs were drawn, all together.
pub(crate) fn draw_losses<S: Ord>(
    digest: &DigestDoc,
    grain: Nanos,
    detours: u64,
    named: impl Fn(Kind, &str) -> S,
) -> (PhaseLosses<S>, Nanos) {
    let all: u64 = digest.cpus.iter().map(CpuDigest::events).fold(0, u64::saturating_add);
    let part = (detours as f64 / all.max(1) as f64).min(1.0);
    let mut names = SourceNames::default();
    let mut random = SplitMix64::new(SEED);
    let last = digest.cpus.iter().map(|cpu| Nanos::new(cpu.last_end_ns)).max();
    let whole = Window::common_to_all_cpus(&digest.run, last, &mut Vec::new());
    let length = Nanos::new((whole.length.get() as f64 * part) as i64);
    let window = Window { begin: whole.begin, length };
    let mut losses: PhaseLosses<u32> = PhaseLosses::new(grain);
    let mut time = Nanos::ZERO;
    for cpu in digest.cpus.iter().filter(|_| length > Nanos::ZERO) {
        let DrawnCpu { detours, entries } = draw_cpu(cpu, (window, part), &mut names, &mut random);
        // What nobody took has a number that no name has.
        let mut sampler = PhaseSampler::new(window.begin, length, grain);
        let mut entries = entries.into_iter().peekable();
        let end = window.begin.get().saturating_add(length.get());
        for (number, (start, duration)) in detours.into_iter().enumerate().filter(|(_, of)| of.0.get() < end) {
            let (mut at, mut rest) = (start, duration);
            while let Some(entry) = entries.next_if(|entry| entry.detour <= number) {
                if entry.detour == number {
                    sampler.part(number as i64, at, entry.source, entry.self_time, &mut losses);
                    at = at.saturating_add(entry.self_time);
                    rest = (rest - entry.self_time).max(Nanos::ZERO);
                }
            }
            if rest > Nanos::ZERO {
                sampler.part(number as i64, at, UNKNOWN, rest, &mut losses);
            }
        }
        sampler.finish(&mut losses);
        time = time.saturating_add(length);
    }
    let known: Vec<(Kind, &str)> =
        names.iter().map(|(kind, name)| (kind.parse().unwrap_or(Kind::Unseen), name)).collect();
    let mut of_names = PhaseLosses::new(grain);
    of_names.merge(&losses, |number| {
        let (kind, name) = known.get(*number as usize).copied().unwrap_or((Kind::Unseen, "unknown"));
        named(kind, name)
    });
    (of_names, time)
}

/// The number of what is not known to be any source's.
const UNKNOWN: u32 = u32::MAX;

/// The detours of a CPU, in order of time.
struct DrawnCpu {
    detours: Vec<(Nanos, Nanos)>,
    entries: Vec<BookEntry>,
}

/// A detour before others may have pushed it away.
struct Raw {
    start: i64,
    length: i64,
    /// For how long which source was the root of it.
    parts: Parts,
}

enum Parts {
    /// One source all the time.
    One(u32),
    /// These.
    Several(Vec<(u32, i64)>),
    /// It is not known.
    Unknown,
}

/// Draws the detours of a CPU in a window, which is such a part of the time that was recorded.
fn draw_cpu(
    cpu: &CpuDigest,
    (window, part): (Window, f64),
    names: &mut SourceNames,
    random: &mut SplitMix64,
) -> DrawnCpu {
    let numbers: Vec<Option<u32>> = cpu
        .sources
        .iter()
        .map(|source| (source.kind != Kind::Becalm).then(|| names.number(source.kind.name(), &source.source)))
        .collect();
    let mut raw: Vec<Raw> = Vec::new();
    let within =
        |start: i64| start >= window.begin.get() && start.saturating_sub(window.begin.get()) < window.length.get();
    for long in cpu.longest.iter().filter(|long| within(long.start_ns)) {
        let parts = long.parts.iter().filter_map(|(place, ns)| Some((numbers[*place as usize]?, *ns)));
        let parts = if long.parts.is_empty() { Parts::Unknown } else { Parts::Several(parts.collect()) };
        raw.push(Raw { start: long.start_ns, length: long.duration_ns, parts });
    }
    let span = |first_ns: i64, last_ns: i64| Span { between: last_ns.saturating_sub(first_ns).max(0), window, part };
    if cpu.sources.is_empty() {
        let taken = cpu.longest.iter().map(|long| long.duration_ns);
        let events = Events::of(&cpu.lengths, LENGTH_BITS, &cpu.gaps, cpu.durations.total_ns, taken);
        events.draw(&span(cpu.first_ns, cpu.last_ns), random, |start, length| {
            raw.push(Raw { start, length, parts: Parts::Unknown });
        });
    }
    for (place, source) in (0_u32..).zip(&cpu.sources) {
        let Some(number) = numbers[place as usize] else { continue };
        let taken =
            cpu.longest.iter().flat_map(|long| long.parts.iter().filter(|part| part.0 == place).map(|part| part.1));
        let events = Events::of(&source.lengths, SOURCE_BITS, &source.gaps, source.whole_ns, taken);
        events.draw(&span(source.first_ns, source.last_ns), random, |start, length| {
            raw.push(Raw { start, length, parts: Parts::One(number) });
        });
    }
    raw.sort_by_key(|detour| detour.start);
    let mut drawn = DrawnCpu { detours: Vec::with_capacity(raw.len()), entries: Vec::new() };
    let mut end = i64::MIN;
    for Raw { start, length, parts } in raw {
        let detour = drawn.detours.len();
        let start = start.max(end);
        end = start.saturating_add(length);
        drawn.detours.push((Nanos::new(start), Nanos::new(length)));
        let mut book = |source, ns| {
            drawn.entries.push(BookEntry { detour, source, root: source, self_time: Nanos::new(ns) });
        };
        match parts {
            Parts::Unknown => {}
            Parts::One(source) => book(source, length),
            Parts::Several(parts) => parts.into_iter().for_each(|(source, ns)| book(source, ns)),
        }
    }
    drawn
}

/// The time over which a source is drawn.
struct Span {
    /// How long after the first of its detours the last one came in the recording.
    between: i64,
    window: Window,
    /// Which part of the recording the window is.
    part: f64,
}

/// Detours of one source that are still to be drawn.
struct Events {
    /// The length of each bucket of those that are left, how wide it is, and how many it has.
    lengths: Vec<(u64, u64, u64)>,
    /// How many came, among them those that are kept as they were.
    all: u64,
    gaps: Vec<(u64, u64, u64)>,
    /// The sum of those that are left, in nanoseconds.
    total: i64,
}

impl Events {
    /// Without those among the longest detours, of these lengths.
    fn of(lengths: &Counts, bits: u32, gaps: &Counts, total: i64, taken: impl Iterator<Item = i64>) -> Self {
        let mut left: Vec<(u64, u64, u64)> = lengths.spans(bits).collect();
        let mut total = total;
        for ns in taken {
            let at = left.partition_point(|(begin, ..)| *begin <= ns.max(0) as u64);
            if let Some(bucket) = at.checked_sub(1).map(|at| &mut left[at]).filter(|bucket| bucket.2 > 0) {
                bucket.2 -= 1;
                total = total.saturating_sub(ns);
            }
        }
        Self { lengths: left, all: lengths.count(), gaps: gaps.spans(SOURCE_BITS).collect(), total: total.max(0) }
    }

    fn draw(&self, span: &Span, random: &mut SplitMix64, mut give: impl FnMut(i64, i64)) {
        let sum = sum_of(&self.lengths);
        if sum <= 0.0 || span.window.length <= Nanos::ZERO {
            return;
        }
        let scale = self.total as f64 / sum;
        let mut lengths = values(&self.lengths, span.part, random);
        shuffle(&mut lengths, random);
        let mut starts = self.starts(span, random);
        // The others of them are the longest, which are there already.
        shuffle(&mut starts, random);
        let begin = span.window.begin.get();
        for (start, length) in starts.into_iter().zip(lengths) {
            give(begin.saturating_add(start as i64), (length * scale).round() as i64);
        }
    }

    /// When they begin, from the window's begin on, in no order that matters.
    fn starts(&self, span: &Span, random: &mut SplitMix64) -> Vec<f64> {
        let length = span.window.length.get() as f64;
        let wanted = ((self.all as f64 * span.part).ceil() as usize).min(VALUES);
        let mut gaps = values(&self.gaps, span.part, random);
        shuffle(&mut gaps, random);
        gaps.truncate(wanted.saturating_sub(1));
        let sum = sum_of(&self.gaps);
        let scale = if sum > 0.0 { span.between as f64 / sum } else { 0.0 };
        // On a circle the time from the last to the first is another gap, wherever it falls.
        let mut at = random.uniform() * length;
        let mut starts = vec![at];
        for gap in gaps {
            at = (at + gap * scale) % length;
            starts.push(at);
        }
        while starts.len() < wanted {
            starts.push(random.uniform() * length);
        }
        starts.iter_mut().for_each(|start| *start = start.min(length - 1.0).max(0.0));
        starts
    }
}

/// What the values of these buckets come to, each taken for the middle of its bucket.
fn sum_of(buckets: &[(u64, u64, u64)]) -> f64 {
    buckets.iter().map(|(begin, width, count)| (*begin as f64 + (*width - 1) as f64 / 2.0) * *count as f64).sum()
}

/// A value for such a part of what each bucket counts, anywhere in the bucket; what is left of a count is up to chance.
fn values(buckets: &[(u64, u64, u64)], part: f64, random: &mut SplitMix64) -> Vec<f64> {
    let count: u64 = buckets.iter().map(|bucket| bucket.2).sum();
    let part = part.min(VALUES as f64 / count.max(1) as f64);
    let mut values = Vec::new();
    for (begin, width, count) in buckets {
        let count = if part < 1.0 { (*count as f64 * part + random.uniform()) as u64 } else { *count };
        values.extend((0..count).map(|_| *begin as f64 + random.uniform() * (*width - 1) as f64));
    }
    values
}

fn shuffle(values: &mut [f64], random: &mut SplitMix64) {
    for at in (1..values.len()).rev() {
        values.swap(at, random.below(at as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests;
