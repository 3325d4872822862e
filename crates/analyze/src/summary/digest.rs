//! From recordings in summary form to a summary: what can be said of them, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use becalm_bundle::{BundleError, SummaryBundle};
use becalm_model::digest::{Counts, CpuDigest, DigestDoc, LENGTH_BITS, Sums};
use becalm_model::node::{CpuDoc, NodeDoc, Rung};
use becalm_model::{Kind, warning};
use becalm_stats::chance::rarest_seen;
use becalm_stats::{Interval, Longest, Moments, Quantiles};

use super::checked::{Checked, Measuring};
use super::findings::ClosingWarnings;
use super::peers::Peers;
use super::run::{Times, cpu_lost_events, iterations, keep_cpus, long_tail, lost_events, ranked, sum, t_min_ns};
use super::{
    Books, CpuSummary, Figures, NodeSummary, Observed, SampledPhases, Selection, SourceSummary, Summary, SummaryError,
};

/// The selected nodes of recordings in summary form, each with only the selected CPUs.
///
/// # Errors
/// If there is no such node, none of them measured one of the CPUs, or becalm's own time is to count.
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

/// How long the CPU's loop ran, in nanoseconds: as its document says, or, of a run that did not end, until its last detour at least.
#[must_use]
pub fn observed(doc: &NodeDoc, cpu: &CpuDoc, digest: &CpuDigest) -> (Option<i64>, Observed) {
    let noted = cpu.duration_ns.get();
    if doc.ended.is_some_and(|ended| ended != becalm_model::node::Ended::Failed) {
        return (Some(noted), Observed::Document);
    }
    let last = digest.last_end_ns.saturating_sub(cpu.start_ns.get());
    (Some(last.max(noted)).filter(|ns| *ns > 0), Observed::LastDetour)
}

/// The values of a histogram of lengths, each the middle of its bucket, with how often they came.
pub(crate) fn middles(counts: &Counts, bits: u32) -> impl Iterator<Item = (i64, u64)> + '_ {
    counts.spans(bits).map(|(begin, width, count)| ((begin + (width - 1) / 2).min(i64::MAX as u64) as i64, count))
}

/// Sums of a document as moments.
pub(crate) fn moments(sums: &Sums) -> Moments {
    let squares = sums.squares_ns2.max(0.0) as u128;
    Moments::from_parts(sums.count, i128::from(sums.total_ns), squares, (sums.min_ns, sums.max_ns))
}

/// What recordings in summary form come to.
///
/// # Errors
/// As of [`select`].
pub fn summarize_digests(bundle: &SummaryBundle, selection: &Selection) -> Result<Summary, SummaryError> {
    Ok(summary_of(bundle.path(), select(bundle, selection)?))
}

fn summary_of(path: &Path, digests: Vec<DigestDoc>) -> Summary {
    let mut findings = ClosingWarnings::default();
    let mut peers = Peers::default();
    let mut sources: BTreeMap<(Kind, String), Times> = BTreeMap::new();
    let (mut cpus, mut cpu_sources): (Vec<CpuSummary>, Vec<SourceSummary>) = (Vec::new(), Vec::new());
    let mut whole = Whole::default();
    for digest in &digests {
        let doc = &digest.run;
        findings.add_document(doc);
        let first = cpus.len();
        for (cpu, counts) in doc.cpus.iter().zip(&digest.cpus) {
            findings.compare_rows(doc, cpu, &moments(&counts.stored));
            let figures = figures(digest, cpu, counts);
            let times = counts.sources.iter().map(|source| {
                let times = Times { own: moments(&source.own), whole: source.whole_ns };
                ((source.kind, source.source.clone()), times)
            });
            let times: Vec<_> = times.collect();
            for (name, of) in &times {
                let sum = sources.entry(name.clone()).or_default();
                sum.own.merge(&of.own);
                sum.whole = sum.whole.saturating_add(of.whole);
            }
            let place = Some((doc.node.clone(), cpu.cpu));
            let observed = figures.duration_ns;
            cpu_sources.extend(ranked(times, place, figures.durations.total(), observed, observed));
            whole.add(counts);
            cpus.push(CpuSummary { node: doc.node.clone(), cpu: cpu.cpu, figures });
        }
        let of_node = &cpus[first..];
        peers.compare_cpus(&doc.node, of_node);
        if let Some((ratio, interval)) = node_ratio(digest) {
            peers.add_node(&doc.node, ratio, interval);
        }
    }
    let mut total = whole.figures(&digests, &cpus);
    let elapsed = cpus.iter().filter_map(|cpu| cpu.figures.duration_ns).max();
    let sources = ranked(sources, None, total.durations.total(), total.duration_ns, elapsed);
    super::tails::hold_together(&mut total, &sources, &mut cpus, &cpu_sources);
    let peers = peers.compare_nodes();
    let open = digests.iter().flat_map(|digest| &digest.cpus).any(|cpu| !cpu.books_closed);
    let activities =
        |digest: &DigestDoc| digest.cpus.iter().fold(0, |sum: u64, cpu| sum.saturating_add(cpu.activities));
    let books = if !open && digests.iter().any(|of| activities(of) > 0) { Books::Closed } else { Books::NoActivities };
    let nodes: Vec<NodeSummary> =
        digests.iter().map(|of| NodeSummary { activities: activities(of), doc: of.run.clone() }).collect();
    let docs = || nodes.iter().map(|node| &node.doc);
    let (checked, measuring) = (Checked::from_nodes(docs()), Measuring::from_nodes(docs(), total.duration_ns));
    let mut warnings = findings.with_the_recorders(&nodes);
    if let Some(first) = nodes.first() {
        let mut told = vec![warning::summary_form()];
        told.extend(open.then(warning::summary_of_open_books));
        warnings.splice(0..0, told.into_iter().map(|of| (first.doc.node.clone(), of)));
    }
    let rung = nodes.iter().map(|node| node.doc.rung).min().unwrap_or(Rung::Loop);
    let ended = digests.iter().all(|of| of.run.ended.is_some());
    let how = if ended { Observed::Document } else { Observed::LastDetour };
    let phases = SampledPhases::from_digests(&digests);
    let phases = phases.for_run(rung, digests.iter().map(activities).sum(), total.duration_ns, how);
    Summary {
        checked,
        measuring,
        path: path.to_owned(),
        warnings,
        rung,
        nodes,
        cpus,
        total,
        sources,
        cpu_sources,
        anatomy: None,
        at_scale: phases.at(super::RANKS),
        phases,
        outliers: peers.outliers,
        peers: peers.compared,
        periods: Vec::new(),
        spectrum: None,
        books,
    }
}

/// The noise ratio of a node with its interval; `None` where it is not known for how long it was watched.
#[must_use]
pub fn node_ratio(digest: &DigestDoc) -> Option<(f64, Interval)> {
    let spans = digest.run.cpus.iter().zip(&digest.cpus).map(|(cpu, of)| observed(&digest.run, cpu, of).0);
    let observed = sum(spans).filter(|ns| *ns > 0)?;
    let mut noise = vec![0_i64; digest.slots];
    for cpu in &digest.cpus {
        noise.iter_mut().zip(&cpu.noise_ns).for_each(|(sum, ns)| *sum = sum.saturating_add(*ns));
    }
    let unstored: i64 = digest.run.cpus.iter().map(|cpu| cpu.unstored_ns.get()).fold(0, i64::saturating_add);
    let lost = noise.iter().fold(unstored, |sum, ns| sum.saturating_add(*ns));
    let interval = Interval::for_noise(&noise, digest.slot_ns, observed);
    Some((lost as f64 / observed as f64, interval))
}

/// The figures of a CPU.
fn figures(digest: &DigestDoc, cpu: &CpuDoc, counts: &CpuDigest) -> Figures {
    let doc = &digest.run;
    let (duration_ns, how) = observed(doc, cpu, counts);
    let ended = how == Observed::Document;
    let known = |ns: i64| (ended || ns > 0).then_some(ns);
    let seen = doc.rung == Rung::Tracepoints;
    let unseen = counts.sources.iter().filter(|source| source.kind == Kind::Unseen);
    let steal = doc.counters.iter().find(|counter| counter.cpu == cpu.cpu && counter.name == "stat/steal");
    let mut quantiles = Quantiles::from_counts(middles(&counts.lengths, LENGTH_BITS), counts.durations.max_ns);
    let began: Vec<i64> = counts.began.iter().map(|count| i64::try_from(*count).unwrap_or(i64::MAX)).collect();
    let kept = counts.longest.iter().map(|detour| (detour.start_ns, detour.duration_ns)).collect();
    Figures {
        duration_ns,
        observed: how,
        iterations: iterations(doc, cpu, how),
        t_min_ns: t_min_ns(cpu),
        threshold_ns: known(cpu.threshold_ns.get()),
        durations: moments(&counts.durations),
        long: moments(&counts.long),
        own_ns: seen.then_some(counts.own_ns),
        own_longest_ns: seen.then_some(counts.own_longest_ns),
        interval: duration_ns
            .filter(|_| cpu.unstored == 0)
            .map(|observed| Interval::for_noise(&counts.noise_ns, digest.slot_ns, observed)),
        rate_interval: duration_ns.map(|observed| Interval::for_rate(&began, digest.slot_ns, observed)),
        rarest_seen_ns: duration_ns.map(rarest_seen),
        tail: duration_ns.map(|observed| long_tail(Longest::from_kept(kept, counts.durations.count), observed)),
        unstored: cpu.unstored,
        unstored_ns: cpu.unstored_ns.get(),
        incomplete: counts.incomplete,
        lost_events: cpu_lost_events(doc, cpu),
        unseen_ns: (seen && doc.has_loop())
            .then(|| unseen.map(|source| source.own.total_ns).fold(0, i64::saturating_add)),
        steal_ns: steal.map(|counter| i64::try_from(counter.growth).unwrap_or(i64::MAX)),
        cut_short: cpu.cut_short,
        ..of_quantiles(&mut quantiles, &counts.durations, &counts.long)
    }
}

/// Figures of which only the quantiles are known.
fn of_quantiles(quantiles: &mut Quantiles, all: &Sums, long: &Sums) -> Figures {
    let below = all.count.saturating_sub(long.count);
    Figures {
        long_median_ns: (long.count > 0).then(|| quantiles.ranked(below + long.count.div_ceil(2))).flatten(),
        median_ns: quantiles.at(0.5),
        p99_ns: quantiles.at(0.99),
        p999_ns: quantiles.at(0.999),
        ..Figures::unknown()
    }
}

/// All CPUs added up.
#[derive(Default)]
struct Whole {
    durations: Sums,
    long: Sums,
    lengths: BTreeMap<i64, u64>,
    longest: Longest,
}

impl Whole {
    fn add(&mut self, cpu: &CpuDigest) {
        self.durations.merge(&cpu.durations);
        self.long.merge(&cpu.long);
        for (middle, count) in middles(&cpu.lengths, LENGTH_BITS) {
            let sum = self.lengths.entry(middle).or_default();
            *sum = sum.saturating_add(count);
        }
        let kept = cpu.longest.iter().map(|detour| (detour.start_ns, detour.duration_ns)).collect();
        self.longest.merge(&Longest::from_kept(kept, cpu.durations.count));
    }

    fn figures(self, digests: &[DigestDoc], cpus: &[CpuSummary]) -> Figures {
        let each = || cpus.iter().map(|cpu| &cpu.figures);
        let duration_ns = sum(each().map(|figures| figures.duration_ns)).filter(|_| !cpus.is_empty());
        let elapsed = each().filter_map(|figures| figures.duration_ns).max().filter(|_| duration_ns.is_some());
        let killed = each().any(|figures| figures.observed == Observed::LastDetour);
        let (noise, began, slot_ns) = in_time(digests);
        let known = duration_ns.filter(|_| each().all(|figures| figures.unstored == 0));
        let mut quantiles = Quantiles::from_counts(self.lengths, self.durations.max_ns);
        Figures {
            duration_ns,
            observed: if killed { Observed::LastDetour } else { Observed::Document },
            iterations: each()
                .map(|figures| figures.iterations)
                .try_fold(0, |sum: u64, own| Some(sum.saturating_add(own?))),
            t_min_ns: each().filter_map(|figures| figures.t_min_ns).min(),
            threshold_ns: each().filter_map(|figures| figures.threshold_ns).max(),
            durations: moments(&self.durations),
            long: moments(&self.long),
            own_ns: sum(each().map(|figures| figures.own_ns)).filter(|_| !cpus.is_empty()),
            own_longest_ns: each().filter_map(|figures| figures.own_longest_ns).max(),
            interval: known.map(|observed| Interval::for_noise(&noise, slot_ns, observed)),
            rate_interval: duration_ns.map(|observed| Interval::for_rate(&began, slot_ns, observed)),
            rarest_seen_ns: elapsed.map(rarest_seen),
            tail: elapsed.filter(|_| digests.len() == 1).map(|elapsed| long_tail(self.longest, elapsed)),
            unstored: each().map(|figures| figures.unstored).fold(0, u64::saturating_add),
            unstored_ns: each().map(|figures| figures.unstored_ns).fold(0, i64::saturating_add),
            incomplete: each().map(|figures| figures.incomplete).fold(0, u64::saturating_add),
            lost_events: lost_events(each()),
            unseen_ns: sum(each().map(|figures| figures.unseen_ns)).filter(|_| !cpus.is_empty()),
            steal_ns: sum(each().map(|figures| figures.steal_ns)).filter(|_| !cpus.is_empty()),
            cut_short: each().any(|figures| figures.cut_short),
            ..of_quantiles(&mut quantiles, &self.durations, &self.long)
        }
    }
}

/// The noise of all CPUs in slots and how many detours began in each, with the length of a slot: the longest that any node has.
fn in_time(digests: &[DigestDoc]) -> (Vec<i64>, Vec<i64>, i64) {
    let slot_ns = digests.iter().map(|digest| digest.slot_ns).max().unwrap_or(1);
    // Each node from its own first slot on: their clocks have nothing to do with each other here, as in a full recording.
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
    (noise, began, slot_ns)
}
