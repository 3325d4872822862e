//! Summarizes recordings in summary form.

use std::collections::BTreeMap;
use std::path::Path;

use becalm_bundle::{BundleError, SummaryBundle};
use becalm_model::digest::{Counts, CpuDigest, DelayCell, DigestDoc, GRAINS_NS, LENGTH_BITS, Sums, WINDOWS};
use becalm_model::node::{CpuDoc, Ended, NodeDoc, Rung};
use becalm_model::{Kind, warning};
use becalm_stats::{Interval, Longest, Moments, Quantiles};

use super::figures::sum;
use super::nodes::{GatheredNodes, NodeNoise, SourceTimes, Times};
use super::pieces::{PIECES_MIN, SHARE};
use super::run::keep_cpus;
use super::scale::GRAIN;
use super::{
    Books, CpuSummary, Detail, Figures, NodeSummary, Observed, SampledPhases, Selection, Summary, SummaryError,
};

/// The selected nodes of recordings in summary form, each restricted to the selected CPUs. Fails if there is no such node, none of them measured one
/// of the CPUs, or becalm's own time is to be counted.
pub fn select(bundle: &SummaryBundle, selection: &Selection) -> Result<Vec<DigestDoc>, SummaryError> {
    if selection.with_self {
        return Err(SummaryError::OwnTime { path: bundle.path().to_owned() });
    }
    let all = bundle.nodes();
    let mut digests: Vec<DigestDoc> = all
        .iter()
        .filter(|digest| selection.node.as_ref().is_none_or(|node| *node == digest.run.node))
        .cloned()
        .collect();
    if let (true, Some(node)) = (digests.is_empty(), &selection.node) {
        let nodes: Vec<&str> = all.iter().map(|digest| digest.run.node.as_str()).collect();
        let (bundle, node, nodes) = (bundle.path().to_owned(), node.clone(), nodes.join(", "));
        return Err(BundleError::NoSuchNode { bundle, node, nodes }.into());
    }
    if let Some(cpus) = selection.measured_cpus(digests.iter().map(|digest| &digest.run))? {
        for digest in &mut digests {
            digest.cpus.retain(|cpu| cpus.contains(cpu.cpu));
            keep_cpus(&mut digest.run, cpus);
        }
    }
    Ok(digests)
}

/// The run time of the CPU's loop, in nanoseconds: from its document, or, for a run that did not end, at least until its last detour.
pub fn observed(doc: &NodeDoc, cpu: &CpuDoc, digest: &CpuDigest) -> (Option<i64>, Observed) {
    let noted = cpu.duration_ns.get();
    if doc.ended.is_some_and(|ended| ended != Ended::Failed) {
        return (Some(noted), Observed::Document);
    }
    let last = digest.last_end_ns.saturating_sub(cpu.start_ns.get());
    (Some(last.max(noted)).filter(|ns| *ns > 0), Observed::LastDetour)
}

/// The values of a histogram of lengths, each the middle of its bucket, with their counts.
pub(crate) fn middles(counts: &Counts, bits: u32) -> impl Iterator<Item = (i64, u64)> + '_ {
    counts.spans(bits).map(|(begin, width, count)| ((begin + (width - 1) / 2).min(i64::MAX as u64) as i64, count))
}

/// Sums of a document as moments.
pub(crate) fn moments(sums: &Sums) -> Moments {
    let squares = sums.squares_ns2.max(0.0) as u128;
    Moments::from_parts(sums.count, i128::from(sums.total_ns), squares, (sums.min_ns, sums.max_ns))
}

/// Summarizes recordings in summary form.
pub fn summarize_digests(bundle: &SummaryBundle, selection: &Selection) -> Result<Summary, SummaryError> {
    Ok(summarize_documents(bundle.path(), &select(bundle, selection)?, selection.detail))
}

fn summarize_documents(path: &Path, digests: &[DigestDoc], detail: Detail) -> Summary {
    let (mut nodes, mut whole) = (GatheredNodes::default(), DigestSums::default());
    for digest in digests {
        let doc = &digest.run;
        nodes.warnings.add_document(doc);
        for (cpu, counts) in doc.cpus.iter().zip(&digest.cpus) {
            let mut times = SourceTimes::default();
            for source in &counts.sources {
                let own = moments(&source.own);
                times.add(source.kind, source.source.clone(), Times { own, whole: source.whole_ns });
            }
            whole.add(counts);
            nodes.add_cpu(doc, cpu, &moments(&counts.stored), times, figures(digest, cpu, counts));
        }
        let activities = digest.cpus.iter().fold(0, |sum: u64, cpu| sum.saturating_add(cpu.activities));
        nodes.add_node(NodeSummary { doc: doc.clone(), activities }, node_noise(digest));
    }
    let open = digests.iter().flat_map(|digest| &digest.cpus).any(|cpu| !cpu.books_closed);
    let is_traced = nodes.nodes.iter().any(|node| node.activities > 0);
    let books = if !open && is_traced { Books::Closed } else { Books::NoActivities };
    let ended = digests.iter().all(|digest| digest.run.ended.is_some());
    let observed = if ended { Observed::Document } else { Observed::LastDetour };
    let total = whole.figures(digests, &nodes.cpus);
    let phases = (detail >= Detail::Scale).then(|| SampledPhases::from_digests(digests));
    let mut summary = nodes.summary(path, total, books, phases, observed);
    if let Some(first) = digests.first() {
        let warnings = std::iter::once(warning::summary_form()).chain(open.then(warning::summary_of_open_books));
        summary.warnings.splice(0..0, warnings.map(|warning| (first.run.node.clone(), warning)));
    }
    summary
}

/// The noise ratio of a node; `None` if its observation time is unknown.
pub fn node_noise(digest: &DigestDoc) -> Option<NodeNoise> {
    let spans = digest.run.cpus.iter().zip(&digest.cpus).map(|(cpu, counts)| observed(&digest.run, cpu, counts).0);
    let observed = sum(spans).filter(|ns| *ns > 0)?;
    let mut noise = vec![0_i64; digest.slots];
    for cpu in &digest.cpus {
        noise.iter_mut().zip(&cpu.noise_ns).for_each(|(sum, ns)| *sum = sum.saturating_add(*ns));
    }
    let unstored: i64 = digest.run.cpus.iter().map(|cpu| cpu.unstored_ns.get()).fold(0, i64::saturating_add);
    let lost = noise.iter().fold(unstored, |sum, ns| sum.saturating_add(*ns));
    let interval = Interval::for_noise(&noise, digest.slot_ns, observed);
    Some(NodeNoise { ratio: lost as f64 / observed as f64, interval })
}

fn figures(digest: &DigestDoc, cpu: &CpuDoc, counts: &CpuDigest) -> Figures {
    let doc = &digest.run;
    let (duration_ns, how) = observed(doc, cpu, counts);
    let seen = doc.rung == Rung::Tracepoints;
    let unseen = counts.sources.iter().filter(|source| source.kind == Kind::Unseen);
    let unseen_ns = unseen.map(|source| source.own.total_ns).fold(0, i64::saturating_add);
    let mut quantiles = Quantiles::from_counts(middles(&counts.lengths, LENGTH_BITS), counts.durations.max_ns);
    let figures = Figures {
        durations: moments(&counts.durations),
        long: moments(&counts.long),
        own_ns: seen.then_some(counts.own_ns),
        own_longest_ns: seen.then_some(counts.own_longest_ns),
        incomplete: counts.incomplete,
        unseen_ns: (seen && doc.has_loop()).then_some(unseen_ns),
        work_p99_ns: work_p99_ns(&[cpu], &[counts], duration_ns),
        ..Figures::from_document(doc, cpu, duration_ns, how)
    };
    let began = counts.began.iter().map(|count| i64::try_from(*count).unwrap_or(i64::MAX)).collect();
    let slots = SlotSums { noise: counts.noise_ns.clone(), began, slot_ns: digest.slot_ns };
    slots.add_intervals(figures).with_lengths(&mut quantiles, None, longest(counts), duration_ns)
}

/// The time that 99 of 100 windows of 1 ms of work do not exceed, for CPUs with this total observation time; `None` as for a full recording.
fn work_p99_ns(docs: &[&CpuDoc], digests: &[&CpuDigest], observed: Option<i64>) -> Option<i64> {
    let place = GRAINS_NS.iter().position(|ns| *ns == GRAIN.get())?;
    let lost = digests.iter().fold(0_i64, |sum, cpu| sum.saturating_add(cpu.durations.total_ns));
    let windows = (observed? - lost).max(0) as f64 / GRAIN.get() as f64 * WINDOWS as f64;
    if windows < (PIECES_MIN * WINDOWS as u64) as f64 || docs.iter().any(|cpu| cpu.unstored > 0) {
        return None;
    }
    let mut cells: Vec<&DelayCell> = digests.iter().flat_map(|cpu| &cpu.delays[place].cells.0).collect();
    cells.sort_by(|a, b| b.delay().total_cmp(&a.delay()));
    let mut left = (1.0 - SHARE) * windows;
    let cell = cells.into_iter().find(|cell| {
        left -= cell.windows as f64;
        left < 0.0
    });
    Some(GRAIN.get().saturating_add(cell.map_or(0, |cell| cell.delay().round() as i64)))
}

fn longest(counts: &CpuDigest) -> Longest {
    let kept = counts.longest.iter().map(|detour| (detour.start_ns, detour.duration_ns)).collect();
    Longest::from_kept(kept, counts.durations.count)
}

/// The sums over all CPUs.
#[derive(Default)]
struct DigestSums {
    durations: Sums,
    long: Sums,
    lengths: BTreeMap<i64, u64>,
    longest: Longest,
}

impl DigestSums {
    fn add(&mut self, cpu: &CpuDigest) {
        self.durations.merge(&cpu.durations);
        self.long.merge(&cpu.long);
        for (middle, count) in middles(&cpu.lengths, LENGTH_BITS) {
            let sum = self.lengths.entry(middle).or_default();
            *sum = sum.saturating_add(count);
        }
        self.longest.merge(&longest(cpu));
    }

    fn figures(self, digests: &[DigestDoc], cpus: &[CpuSummary]) -> Figures {
        let mut quantiles = Quantiles::from_counts(self.lengths, self.durations.max_ns);
        let (durations, long) = (moments(&self.durations), moments(&self.long));
        let sums = Figures::sum(cpus);
        let docs: Vec<&CpuDoc> = digests.iter().flat_map(|digest| &digest.run.cpus).collect();
        let counts: Vec<&CpuDigest> = digests.iter().flat_map(|digest| &digest.cpus).collect();
        let work_p99_ns = work_p99_ns(&docs, &counts, sums.duration_ns);
        let figures = SlotSums::new(digests).add_intervals(Figures { durations, long, work_p99_ns, ..sums });
        let elapsed = figures.elapsed_ns(cpus, digests.len());
        figures.with_lengths(&mut quantiles, None, self.longest, elapsed)
    }
}

/// Noise and number of started detours, per slot.
struct SlotSums {
    noise: Vec<i64>,
    began: Vec<i64>,
    slot_ns: i64,
}

impl SlotSums {
    /// The sums over all CPUs, in slots as long as the longest of any node.
    fn new(digests: &[DigestDoc]) -> Self {
        let slot_ns = digests.iter().map(|digest| digest.slot_ns).max().unwrap_or(1);
        // Nodes are aligned at their first slots, as in a full recording: their clocks are unrelated.
        let (mut noise, mut began) = (Vec::new(), Vec::new());
        for digest in digests {
            let fold = slot_ns / digest.slot_ns;
            let place = |slot: usize| {
                let number = digest.first_slot + slot as i64;
                usize::try_from(number.div_euclid(fold) - digest.first_slot.div_euclid(fold)).unwrap_or(0)
            };
            let slots = digest.slots.checked_sub(1).map_or(0, |last| place(last) + 1);
            if slots > noise.len() {
                noise.resize(slots, 0_i64);
                began.resize(slots, 0_i64);
            }
            for cpu in &digest.cpus {
                for slot in 0..digest.slots {
                    let at = place(slot);
                    noise[at] = noise[at].saturating_add(cpu.noise_ns[slot]);
                    began[at] = began[at].saturating_add(i64::try_from(cpu.began[slot]).unwrap_or(i64::MAX));
                }
            }
        }
        Self { noise, began, slot_ns }
    }

    /// Adds the intervals of the noise ratio and of the rate.
    fn add_intervals(&self, figures: Figures) -> Figures {
        let noise = |observed| Interval::for_noise(&self.noise, self.slot_ns, observed);
        let rate = |observed| Interval::for_rate(&self.began, self.slot_ns, observed);
        let observed = figures.duration_ns;
        Figures {
            interval: observed.filter(|_| figures.unstored == 0).map(noise),
            rate_interval: observed.map(rate),
            ..figures
        }
    }
}
