//! From a bundle to its summary: which parts are read, and how the sums become figures.

use std::collections::BTreeMap;

use becalm_bundle::{Bundle, BundleError};
use becalm_model::Kind;
use becalm_model::node::{CpuDoc, Ended, NodeDoc, Rung};
use becalm_scale::at_once::{LongestStops, TimedDetours, repeated_stops};
use becalm_units::{CpuId, CpuList, Nanos};

use super::anatomy::anatomy;
use super::checked::{Checked, Measuring};
use super::findings::ClosingWarnings;
use super::peers::Peers;
use super::recurring::Recurring;
use super::scan::CpuScan;
use super::{
    ActivityColumns, Books, CpuSummary, DetourColumns, Figures, LongTail, NodeSummary, Observed, SampledPhases, Scan,
    SourceSummary, Summary, SummaryError, books,
};
use crate::noise::window::Window;
use becalm_stats::chance::{rarest_seen, run_again_for};
use becalm_stats::{Interval, LengthCells, Longest, Moments, NoTail, QuantileBounds, Quantiles, Tail, TimeCells};

/// Which part of a run is read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selection {
    /// One node; all, where none is named.
    pub node: Option<String>,
    /// These CPUs, on every node that measured them; all, where none are named.
    pub cpus: Option<CpuList>,
    /// Whether the time that becalm's own threads took counts as noise of the machine.
    pub with_self: bool,
}

impl Selection {
    /// The documents of the selected nodes, each with only the selected CPUs and their counters.
    ///
    /// # Errors
    /// If the bundle has no such node, a selected node holds samples of work instead of detours, or none of them measured
    /// one of the CPUs.
    pub fn documents(&self, bundle: &Bundle) -> Result<Vec<NodeDoc>, SummaryError> {
        let mut docs: Vec<NodeDoc> = match &self.node {
            None => bundle.nodes().to_vec(),
            Some(name) => {
                // The bundle's own error names the nodes that there are.
                drop(bundle.detours(name)?);
                bundle.nodes().iter().filter(|doc| doc.node == *name).cloned().collect()
            }
        };
        if docs.iter().any(|doc| doc.settings.work.is_some()) {
            return Err(SummaryError::Work { path: bundle.path().to_owned() });
        }
        for doc in &mut docs {
            complete(bundle, doc)?;
        }
        if let Some(cpus) = self.measured_cpus(&docs)? {
            docs.iter_mut().for_each(|doc| keep_cpus(doc, cpus));
        }
        Ok(docs)
    }

    /// The CPUs that are named, `None` where all are wanted.
    ///
    /// # Errors
    /// If none of these nodes measured one of them.
    pub(crate) fn measured_cpus<'n>(
        &self,
        docs: impl IntoIterator<Item = &'n NodeDoc>,
    ) -> Result<Option<&CpuList>, SummaryError> {
        let Some(cpus) = &self.cpus else { return Ok(None) };
        let measured: CpuList = docs.into_iter().flat_map(|doc| &doc.cpus).map(|cpu| cpu.cpu).collect();
        let missing = cpus.without(&measured);
        if missing.is_empty() { Ok(Some(cpus)) } else { Err(SummaryError::NotMeasured { missing, measured }) }
    }
}

/// Leaves of a node's document only these CPUs and their counters.
pub(crate) fn keep_cpus(doc: &mut NodeDoc, cpus: &CpuList) {
    doc.cpus.retain(|cpu| cpus.contains(cpu.cpu));
    doc.counters.retain(|counter| cpus.contains(counter.cpu));
}

/// Reads the selected part of a bundle and adds it up.
///
/// One pass over its rows, in memory that does not grow with them: at most about 550 KiB a CPU, usually 350, and 8.3 KiB a
/// source of each CPU. Before it, the detours of a node with several CPUs are read once to find those that came to several CPUs at once, and the detours of a
/// run that did not end are read once because only their last end says how long the loops ran.
///
/// # Errors
/// If the selection names what is not there, or a file cannot be read.
pub fn summarize(bundle: &Bundle, selection: &Selection) -> Result<Summary, SummaryError> {
    let docs = selection.documents(bundle)?;
    let mut findings = ClosingWarnings::default();
    let all_cpus = docs.iter().map(|doc| doc.cpus.len()).sum();
    let mut gathered = GatheredNodes::new(selection.cpus.is_none(), all_cpus);
    let mut nodes = Vec::new();
    for doc in docs {
        findings.add_document(&doc);
        let activities = gathered.take(bundle, &doc, selection.with_self, &mut findings)?;
        nodes.push(NodeSummary { doc, activities });
    }
    let rung = nodes.iter().map(|node| node.doc.rung).min().unwrap_or(Rung::Loop);
    let books = match (gathered.open.is_empty(), nodes.iter().any(|node| node.activities > 0)) {
        (false, _) => Books::Open(gathered.open),
        (true, true) => Books::Closed,
        (true, false) => Books::NoActivities,
    };
    findings.add_books(&books);
    let mut total = gathered.together.figures(&gathered.cpus, nodes.len());
    let observed = total.duration_ns;
    // All CPUs are observed at the same time.
    let elapsed = gathered.cpus.iter().filter_map(|cpu| cpu.figures.duration_ns).max();
    let sources = ranked(gathered.sources, None, total.durations.total(), observed, elapsed);
    let costly = sources.iter().find(|source| source.kind == Kind::Irq);
    let docs: Vec<&NodeDoc> = nodes.iter().map(|node| &node.doc).collect();
    let anatomy = costly.map(|irq| anatomy(bundle, &docs, &irq.source)).transpose()?.flatten();
    super::tails::hold_together(&mut total, &sources, &mut gathered.cpus, &gathered.cpu_sources);
    let (periods, spectrum) = gathered.recurring.found(&sources);
    let peers = gathered.peers.compare_nodes();
    let checked = Checked::from_nodes(docs.iter().copied());
    let measuring = Measuring::from_nodes(docs.iter().copied(), observed);
    let activities = nodes.iter().map(|node| node.activities).sum();
    let phases = gathered.phases.for_run(rung, activities, observed, total.observed);
    Ok(Summary {
        checked,
        measuring,
        path: bundle.path().to_owned(),
        warnings: findings.with_the_recorders(&nodes),
        nodes,
        cpus: gathered.cpus,
        total,
        sources,
        cpu_sources: gathered.cpu_sources,
        anatomy,
        at_scale: phases.at(super::RANKS),
        phases,
        outliers: peers.outliers,
        peers: peers.compared,
        periods,
        spectrum,
        books,
        rung,
    })
}

/// What the nodes that were read so far add up to.
struct GatheredNodes {
    /// Whether all CPUs were selected.
    whole: bool,
    /// How many CPUs all nodes have together.
    all_cpus: usize,
    cpus: Vec<CpuSummary>,
    sources: BTreeMap<(Kind, String), Times>,
    cpu_sources: Vec<SourceSummary>,
    open: Vec<super::OpenBook>,
    together: Together,
    recurring: Recurring,
    peers: Peers,
    phases: SampledPhases,
}

impl GatheredNodes {
    fn new(whole: bool, all_cpus: usize) -> Self {
        Self {
            whole,
            all_cpus,
            cpus: Vec::new(),
            sources: BTreeMap::new(),
            cpu_sources: Vec::new(),
            open: Vec::new(),
            together: Together::default(),
            recurring: Recurring::default(),
            peers: Peers::default(),
            phases: SampledPhases::new(),
        }
    }

    /// Reads one node; gives the number of its activities.
    fn take(
        &mut self,
        bundle: &Bundle,
        doc: &NodeDoc,
        with_self: bool,
        findings: &mut ClosingWarnings,
    ) -> Result<u64, SummaryError> {
        let spans = spans(bundle, doc)?;
        // On the lower rungs nothing of the kernel was seen, and there is nothing to add up.
        let seen = doc.rung == Rung::Tracepoints;
        // A recording that did not end, or whose CPUs were watched one after the other, has no such time.
        let window = doc.ended.is_some().then(|| Window::common_to_all_cpus(doc, None, &mut Vec::new()));
        let longest = doc.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or_default();
        let window = window.filter(|window| window.length > Nanos::ZERO && window.length.get() >= longest.get() / 2);
        let scan = Scan::default().searching_detours(!seen).with_self(with_self);
        let mut scan = scan.for_cpus(doc.cpus.len()).sampling(window, self.all_cpus);
        for cpu in &doc.cpus {
            scan.expect(cpu.cpu, spans.length(cpu).map(|ns| TimeCells::new(cpu.start_ns.get(), ns)));
        }
        if seen {
            scan.leaving_out(repeated(bundle, doc)?);
            for batch in bundle.activities(&doc.node)? {
                let batch = batch?;
                scan.activities(&ActivityColumns {
                    cpus: batch.cpus(),
                    detours: batch.detours(),
                    starts: batch.starts(),
                    self_times: batch.self_times(),
                    sources: &batch.source_values(),
                    details: &batch.detail_values(),
                    keys: |row| (batch.kind(row), batch.source_key(row), batch.detail_key(row)),
                });
            }
        }
        for batch in bundle.detours(&doc.node)? {
            let batch = batch?;
            let incomplete = |row| batch.incomplete(row);
            let (cpus, starts, durations) = (batch.cpus(), batch.starts(), batch.durations());
            scan.detours(&DetourColumns { cpus, starts, durations, incomplete });
        }
        if seen {
            for cpu in scan.open_books() {
                self.open.extend(books::first_open(bundle, &doc.node, cpu)?);
            }
        }
        findings.add_unlisted(doc, scan.unexpected(), self.whole);
        self.recurring.add_spectrum(scan.spectrum());
        let names = scan.names().to_vec();
        self.phases.add(scan.losses(), &names);
        let first = self.cpus.len();
        let mut of_node = Together::default();
        for (cpu, rows) in doc.cpus.iter().zip(scan.cpus()) {
            findings.compare_rows(doc, cpu, &rows.stored);
            self.recurring.add_cpu(&doc.node, rows, &names);
            self.together.add(rows);
            of_node.add_noise(rows);
            let figures = figures(doc, cpu, &spans, rows, &names);
            let place = Some((doc.node.clone(), cpu.cpu));
            let times = rows
                .sources
                .iter()
                .map(|of| (names[of.number.index()].clone(), Times { own: of.self_times, whole: of.whole }));
            let times: Vec<_> = times.collect();
            for (name, times) in &times {
                let sum = self.sources.entry(name.clone()).or_default();
                sum.own.merge(&times.own);
                sum.whole = sum.whole.saturating_add(times.whole);
            }
            self.cpu_sources.extend(ranked(
                times,
                place,
                figures.durations.total(),
                figures.duration_ns,
                figures.duration_ns,
            ));
            self.cpus.push(CpuSummary { node: doc.node.clone(), cpu: cpu.cpu, figures });
        }
        let cpus = &self.cpus[first..];
        self.peers.compare_cpus(&doc.node, cpus);
        let observed = sum(cpus.iter().map(|cpu| cpu.figures.duration_ns)).filter(|ns| *ns > 0);
        if let Some((cells, observed)) = of_node.cells.zip(observed) {
            let ratio = cells.noise().iter().sum::<i64>() as f64 / observed as f64;
            self.peers.add_node(&doc.node, ratio, Interval::from_cells(&cells, observed));
        }
        Ok(scan.count_activities())
    }
}

/// Adds the CPUs that a document without an end does not list, although their detours were stored.
fn complete(bundle: &Bundle, doc: &mut NodeDoc) -> Result<(), SummaryError> {
    if doc.ended.is_some() {
        return Ok(());
    }
    for number in last_ends(bundle, &doc.node)?.into_keys() {
        let cpu = CpuId::new(number as u32);
        if let Err(at) = doc.cpus.binary_search_by_key(&cpu, |listed| listed.cpu) {
            doc.cpus.insert(at, CpuDoc::new(cpu));
        }
    }
    Ok(())
}

/// How long the loops of a node ran.
pub(crate) struct Spans {
    pub(crate) observed: Observed,
    /// When the last detour of each CPU ended, for a run without an end.
    ends: BTreeMap<i32, i64>,
}

impl Spans {
    /// How long the CPU's loop ran, in nanoseconds.
    pub(crate) fn length(&self, cpu: &CpuDoc) -> Option<i64> {
        match self.observed {
            Observed::Document => Some(cpu.duration_ns.get()),
            Observed::LastDetour => {
                let end = i32::try_from(cpu.cpu.get()).ok().and_then(|number| self.ends.get(&number));
                let noted = Some(cpu.duration_ns.get()).filter(|ns| *ns > 0);
                end.map(|end| end.saturating_sub(cpu.start_ns.get())).max(noted)
            }
        }
    }
}

/// Reads how long they ran.
pub(crate) fn spans(bundle: &Bundle, doc: &NodeDoc) -> Result<Spans, SummaryError> {
    Ok(match doc.ended {
        Some(
            Ended::Duration
            | Ended::Detours
            | Ended::Command
            | Ended::Signal
            | Ended::User
            | Ended::BufferFull
            | Ended::CpusGone
            | Ended::Unattended
            | Ended::Unknown,
        ) => Spans { observed: Observed::Document, ends: BTreeMap::new() },
        // What failed on its way may never have asked the loops how long they ran.
        None | Some(Ended::Failed) => Spans { observed: Observed::LastDetour, ends: last_ends(bundle, &doc.node)? },
    })
}

/// When the last stored detour of each CPU ended.
fn last_ends(bundle: &Bundle, node: &str) -> Result<BTreeMap<i32, i64>, SummaryError> {
    let mut ends = BTreeMap::new();
    for batch in bundle.detours(node)? {
        let batch = batch?;
        for range in super::scan::runs(batch.cpus()) {
            let last = range.end - 1;
            ends.insert(batch.cpus()[last], batch.starts()[last].saturating_add(batch.durations()[last]));
        }
    }
    Ok(ends)
}

/// Which of the longest detours of each CPU of a node are part of an event that counts on another CPU.
fn repeated(bundle: &Bundle, doc: &NodeDoc) -> Result<Vec<TimedDetours>, BundleError> {
    let mut stops = vec![LongestStops::default(); doc.cpus.len()];
    if stops.len() < 2 {
        return Ok(Vec::new());
    }
    let places: BTreeMap<i64, usize> = doc.cpus.iter().map(|cpu| i64::from(cpu.cpu.get())).zip(0..).collect();
    for batch in bundle.detours(&doc.node)? {
        let batch = batch?;
        for range in super::scan::runs(batch.cpus()) {
            let Some(place) = places.get(&i64::from(batch.cpus()[range.start])) else { continue };
            let rows = batch.starts()[range.clone()].iter().zip(&batch.durations()[range]);
            rows.for_each(|(start, duration)| stops[*place].add(Nanos::new(*start), Nanos::new(*duration)));
        }
    }
    Ok(repeated_stops(stops))
}

/// The CPUs added up.
#[derive(Default)]
struct Together {
    durations: Moments,
    long: Moments,
    quantiles: Quantiles,
    cells: Option<TimeCells>,
    lengths: Option<LengthCells>,
    longest: Longest,
}

impl Together {
    fn add(&mut self, rows: &CpuScan) {
        self.durations.merge(&rows.durations);
        self.long.merge(&rows.long);
        self.quantiles.merge(&rows.quantiles);
        self.longest.merge(&rows.longest);
        self.add_noise(rows);
        if let Some(lengths) = &rows.lengths {
            match &mut self.lengths {
                Some(ours) => ours.merge(lengths),
                None => self.lengths = Some(lengths.clone()),
            }
        }
    }

    fn add_noise(&mut self, rows: &CpuScan) {
        if let Some(cells) = &rows.cells {
            match &mut self.cells {
                Some(ours) => ours.merge(cells),
                None => self.cells = Some(cells.clone()),
            }
        }
    }

    fn figures(mut self, cpus: &[CpuSummary], nodes: usize) -> Figures {
        let each = || cpus.iter().map(|cpu| &cpu.figures);
        let duration_ns = sum(each().map(|figures| figures.duration_ns)).filter(|_| !cpus.is_empty());
        let killed = each().any(|figures| figures.observed == Observed::LastDetour);
        let elapsed = each().filter_map(|figures| figures.duration_ns).max().filter(|_| duration_ns.is_some());
        let [median_bounds, p99_bounds, p999_bounds] = bounds(&mut self.quantiles, self.lengths.as_ref());
        Figures {
            duration_ns,
            observed: if killed { Observed::LastDetour } else { Observed::Document },
            iterations: each()
                .map(|figures| figures.iterations)
                .try_fold(0, |sum: u64, own| Some(sum.saturating_add(own?))),
            t_min_ns: each().filter_map(|figures| figures.t_min_ns).min(),
            threshold_ns: each().filter_map(|figures| figures.threshold_ns).max(),
            durations: self.durations,
            long: self.long,
            long_median_ns: long_median(&mut self.quantiles, &self.durations, &self.long),
            own_ns: sum(each().map(|figures| figures.own_ns)).filter(|_| !cpus.is_empty()),
            own_longest_ns: each().filter_map(|figures| figures.own_longest_ns).max(),
            median_ns: self.quantiles.at(SHARES[0]),
            median_bounds,
            p99_ns: self.quantiles.at(SHARES[1]),
            p99_bounds,
            p999_ns: self.quantiles.at(SHARES[2]),
            p999_bounds,
            interval: self
                .cells
                .as_ref()
                .filter(|_| each().all(|figures| figures.unstored == 0))
                .zip(duration_ns)
                .map(|(cells, observed)| Interval::from_cells(cells, observed)),
            rate_interval: self.lengths.as_ref().zip(duration_ns).map(|(lengths, observed)| rate(lengths, observed)),
            rarest_seen_ns: elapsed.map(rarest_seen),
            tail: elapsed.filter(|_| nodes == 1).map(|elapsed| long_tail(self.longest, elapsed)),
            unstored: each().map(|figures| figures.unstored).fold(0, u64::saturating_add),
            unstored_ns: each().map(|figures| figures.unstored_ns).fold(0, i64::saturating_add),
            incomplete: each().map(|figures| figures.incomplete).fold(0, u64::saturating_add),
            lost_events: lost_events(each()),
            unseen_ns: sum(each().map(|figures| figures.unseen_ns)).filter(|_| !cpus.is_empty()),
            steal_ns: sum(each().map(|figures| figures.steal_ns)).filter(|_| !cpus.is_empty()),
            cut_short: each().any(|figures| figures.cut_short),
        }
    }
}

/// The figures of a CPU.
fn figures(doc: &NodeDoc, cpu: &CpuDoc, spans: &Spans, rows: &mut CpuScan, names: &[(Kind, String)]) -> Figures {
    let duration_ns = spans.length(cpu);
    let unseen = rows.sources.iter().filter(|of| names[of.number.index()].0 == Kind::Unseen);
    let unseen_ns = unseen.map(|of| of.self_times.total()).fold(0, i64::saturating_add);
    let steal = doc.counters.iter().find(|counter| counter.cpu == cpu.cpu && counter.name == "stat/steal");
    // The document of a run that did not end was written at its start, when the loops had counted nothing.
    let ended = spans.observed == Observed::Document;
    let known = |ns: i64| (ended || ns > 0).then_some(ns);
    let [median_bounds, p99_bounds, p999_bounds] = bounds(&mut rows.quantiles, rows.lengths.as_ref());
    let longest = std::mem::take(&mut rows.longest);
    let seen = doc.rung == Rung::Tracepoints;
    Figures {
        duration_ns,
        observed: spans.observed,
        iterations: iterations(doc, cpu, spans.observed),
        t_min_ns: t_min_ns(cpu),
        threshold_ns: known(cpu.threshold_ns.get()),
        durations: rows.durations,
        long: rows.long,
        long_median_ns: long_median(&mut rows.quantiles, &rows.durations, &rows.long),
        own_ns: seen.then(|| rows.account.own_ns()),
        own_longest_ns: seen.then(|| rows.account.own_longest_ns()),
        median_ns: rows.quantiles.at(SHARES[0]),
        median_bounds,
        p99_ns: rows.quantiles.at(SHARES[1]),
        p99_bounds,
        p999_ns: rows.quantiles.at(SHARES[2]),
        p999_bounds,
        interval: rows
            .cells
            .as_ref()
            .filter(|_| cpu.unstored == 0)
            .zip(duration_ns)
            .map(|(cells, observed)| Interval::from_cells(cells, observed)),
        rate_interval: rows.lengths.as_ref().zip(duration_ns).map(|(lengths, observed)| rate(lengths, observed)),
        rarest_seen_ns: duration_ns.map(rarest_seen),
        tail: duration_ns.map(|observed| long_tail(longest, observed)),
        unstored: cpu.unstored,
        unstored_ns: cpu.unstored_ns.get(),
        incomplete: rows.incomplete,
        lost_events: cpu_lost_events(doc, cpu),
        unseen_ns: (seen && doc.has_loop()).then_some(unseen_ns),
        steal_ns: steal.map(|counter| i64::try_from(counter.growth).unwrap_or(i64::MAX)),
        cut_short: cpu.cut_short,
    }
}

/// The quantiles that are shown.
const SHARES: [f64; 3] = [0.5, 0.99, 0.999];

/// Half of the detours of 1 us and more are not longer: of all, it is the one as far behind those below 1 us.
fn long_median(quantiles: &mut Quantiles, all: &Moments, long: &Moments) -> Option<i64> {
    let below = all.count() - long.count();
    (long.count() > 0).then(|| quantiles.ranked(below + long.count().div_ceil(2))).flatten()
}

fn bounds(quantiles: &mut Quantiles, lengths: Option<&LengthCells>) -> [QuantileBounds; 3] {
    SHARES.map(|share| {
        lengths.map_or(QuantileBounds::UNKNOWN, |lengths| QuantileBounds::for_quantile(quantiles, lengths, share))
    })
}

fn rate(lengths: &LengthCells, observed: i64) -> Interval {
    Interval::for_rate(&lengths.counts(), lengths.width(), observed)
}

pub(super) fn long_tail(longest: Longest, observed: i64) -> Result<LongTail, NoTail> {
    let tail = Tail::fit(longest, observed)?;
    let level = tail.longest_return_level()?;
    Ok(LongTail { tail, level })
}

/// A sum is known where all of its parts are.
pub(super) fn sum(parts: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    parts.into_iter().try_fold(0_i64, |sum, part| Some(sum.saturating_add(part?)))
}

/// The steps of the loop. The document of a run that did not end was written before the first one, and files of other programs do not count any.
pub(super) fn iterations(doc: &NodeDoc, cpu: &CpuDoc, observed: Observed) -> Option<u64> {
    (cpu.iterations > 0 || observed == Observed::Document && !doc.is_imported()).then_some(cpu.iterations)
}

/// The shortest step of the loop; no loop has steps of no length.
pub(super) fn t_min_ns(cpu: &CpuDoc) -> Option<i64> {
    Some(cpu.t_min_ns.get()).filter(|ns| *ns > 0)
}

/// The events that were lost on a CPU: files of other programs need not say so.
pub(super) fn cpu_lost_events(doc: &NodeDoc, cpu: &CpuDoc) -> Option<u64> {
    (cpu.lost_events > 0 || !doc.is_imported()).then_some(cpu.lost_events)
}

/// The events that were lost on all CPUs, as far as that is known.
pub(super) fn lost_events<'a>(mut cpus: impl Iterator<Item = &'a Figures> + Clone) -> Option<u64> {
    let known = cpus.clone().filter_map(|figures| figures.lost_events).fold(0, u64::saturating_add);
    (known > 0 || cpus.all(|figures| figures.lost_events.is_some())).then_some(known)
}

/// The time of a source.
#[derive(Clone, Copy, Default)]
pub(super) struct Times {
    /// That of its own activities.
    pub(super) own: Moments,
    /// That of all activities of which it is the root, in nanoseconds.
    pub(super) whole: i64,
}

/// The largest whole first, then the largest total; equal ones by name, then by kind.
pub(super) fn ranked(
    times: impl IntoIterator<Item = ((Kind, String), Times)>,
    place: Option<(String, CpuId)>,
    noise: i64,
    observed: Option<i64>,
    elapsed: Option<i64>,
) -> Vec<SourceSummary> {
    let share = |times: &Times, of: i64| (of > 0).then(|| times.whole as f64 / of as f64);
    let mut sources: Vec<SourceSummary> = times
        .into_iter()
        .map(|((kind, source), times)| SourceSummary {
            place: place.clone(),
            share: share(&times, noise),
            time_ratio: observed.and_then(|ns| share(&times, ns)),
            run_at_least_ns: elapsed.and_then(|ns| run_again_for(times.own.count(), ns)),
            source,
            kind,
            times: times.own,
            whole_ns: times.whole,
        })
        .collect();
    sources.sort_by(|a, b| {
        let wholes = b.whole_ns.cmp(&a.whole_ns).then_with(|| b.times.total().cmp(&a.times.total()));
        wholes.then_with(|| a.source.cmp(&b.source)).then_with(|| a.kind.name().cmp(b.kind.name()))
    });
    sources
}
