//! From a bundle to its summary: which parts are read, and how the sums become figures.

use std::collections::BTreeMap;

use becalm_trace::Kind;
use becalm_trace::bundle::Bundle;
use becalm_trace::node::{CpuDoc, Ended, NodeDoc, Rung};
use becalm_units::{CpuId, CpuList};

use super::findings::Findings;
use super::scan::CpuScan;
use super::{
    ActivityColumns, Books, CpuSummary, DetourColumns, Figures, NodeSummary, Observed, Scan, SourceSummary, Summary,
    SummaryError, books,
};
use crate::stats::{Interval, Moments, Quantiles, TimeCells};

/// Which part of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selection {
    /// One node; all, where none is named.
    pub node: Option<String>,
    /// These CPUs, on every node that measured them; all, where none are named.
    pub cpus: Option<CpuList>,
}

impl Selection {
    /// The documents of the selected nodes, each with only the selected CPUs and their counters.
    ///
    /// # Errors
    /// If the bundle has no such node, or none of its selected nodes measured one of the CPUs.
    pub fn documents(&self, bundle: &Bundle) -> Result<Vec<NodeDoc>, SummaryError> {
        let mut docs: Vec<NodeDoc> = match &self.node {
            None => bundle.nodes().to_vec(),
            Some(name) => {
                // The bundle's own error names the nodes that there are.
                drop(bundle.detours(name)?);
                bundle.nodes().iter().filter(|doc| doc.node == *name).cloned().collect()
            }
        };
        for doc in &mut docs {
            complete(bundle, doc)?;
        }
        let measured: CpuList = docs.iter().flat_map(|doc| &doc.cpus).map(|cpu| cpu.cpu).collect();
        if let Some(cpus) = &self.cpus {
            let missing = cpus.without(&measured);
            if !missing.is_empty() {
                return Err(SummaryError::NotMeasured { missing, measured });
            }
            for doc in &mut docs {
                doc.cpus.retain(|cpu| cpus.contains(cpu.cpu));
                doc.counters.retain(|counter| cpus.contains(counter.cpu));
            }
        }
        Ok(docs)
    }
}

/// Reads the selected part of a bundle and adds it up.
///
/// One pass over its rows, in memory that does not grow with them: at most about 140 KiB a CPU and 80 bytes a source of
/// each CPU. Of a run that did not end, the detours are read again before, since their last end is all that says how long
/// the loops ran.
///
/// # Errors
/// If the selection names what is not there, or a file cannot be read.
pub fn summarize(bundle: &Bundle, selection: &Selection) -> Result<Summary, SummaryError> {
    let docs = selection.documents(bundle)?;
    let mut findings = Findings::default();
    let mut gathered = Gathered { whole: selection.cpus.is_none(), ..Gathered::default() };
    let mut nodes = Vec::new();
    for doc in docs {
        findings.of_document(&doc);
        let activities = gathered.take(bundle, &doc, &mut findings)?;
        nodes.push(NodeSummary { doc, activities });
    }
    let rung = nodes.iter().map(|node| node.doc.rung).min().unwrap_or(Rung::Loop);
    let books = match (gathered.open.is_empty(), nodes.iter().any(|node| node.activities > 0)) {
        (false, _) => Books::Open(gathered.open),
        (true, true) => Books::Closed,
        (true, false) => Books::NoActivities,
    };
    findings.of_books(&books);
    let total = gathered.together.figures(&gathered.cpus);
    let observed = total.duration_ns;
    let sources = ranked(gathered.sources, None, total.durations.total(), observed);
    Ok(Summary {
        path: bundle.path().to_owned(),
        lost_events: total.lost_events,
        warnings: findings.with_the_recorders(&nodes),
        nodes,
        cpus: gathered.cpus,
        total,
        sources,
        cpu_sources: gathered.cpu_sources,
        periods: Vec::new(),
        spectrum: None,
        books,
        rung,
    })
}

/// What the nodes that were read so far add up to.
#[derive(Default)]
struct Gathered {
    /// Whether all CPUs were selected.
    whole: bool,
    cpus: Vec<CpuSummary>,
    sources: BTreeMap<(Kind, String), Moments>,
    cpu_sources: Vec<SourceSummary>,
    open: Vec<super::OpenBook>,
    together: Together,
}

impl Gathered {
    /// Reads one node; gives the number of its activities.
    fn take(&mut self, bundle: &Bundle, doc: &NodeDoc, findings: &mut Findings) -> Result<u64, SummaryError> {
        let spans = spans(bundle, doc)?;
        let mut scan = Scan::default();
        for cpu in &doc.cpus {
            scan.expect(cpu.cpu, spans.of(cpu).map(|ns| TimeCells::new(cpu.start_ns.get(), ns)));
        }
        for batch in bundle.detours(&doc.node)? {
            let batch = batch?;
            let incomplete = |row| batch.incomplete(row);
            let (cpus, starts, durations) = (batch.cpus(), batch.starts(), batch.durations());
            scan.detours(&DetourColumns { cpus, starts, durations, incomplete });
        }
        // On the lower rungs nothing of the kernel was seen, and there is nothing to add up.
        let seen = doc.rung == Rung::Tracepoints;
        if seen {
            for batch in bundle.activities(&doc.node)? {
                let batch = batch?;
                scan.activities(&ActivityColumns {
                    cpus: batch.cpus(),
                    detours: batch.detours(),
                    self_times: batch.self_times(),
                    kinds: batch.kind_values(),
                    sources: &batch.source_values(),
                    keys: |row| (batch.kind_key(row), batch.source_key(row)),
                });
            }
            for cpu in scan.open_books() {
                self.open.extend(books::first_open(bundle, &doc.node, cpu)?);
            }
        }
        findings.of_unlisted(doc, scan.unexpected(), self.whole);
        let names = scan.names().to_vec();
        for (cpu, rows) in doc.cpus.iter().zip(scan.cpus()) {
            findings.of_rows(doc, cpu, &rows.durations);
            let figures = self.together.add(doc, cpu, &spans, rows, &names);
            let place = Some((doc.node.clone(), cpu.cpu));
            let times = names.iter().cloned().zip(rows.sources.iter().copied());
            let times: Vec<_> = times.filter(|(_, times)| times.count() > 0).collect();
            for (name, times) in &times {
                self.sources.entry(name.clone()).or_default().merge(times);
            }
            self.cpu_sources.extend(ranked(times, place, figures.durations.total(), figures.duration_ns));
            self.cpus.push(CpuSummary { node: doc.node.clone(), cpu: cpu.cpu, figures });
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
            doc.cpus.insert(at, CpuDoc::of(cpu));
        }
    }
    Ok(())
}

/// How long the loops of a node ran.
pub(crate) struct Spans {
    pub(crate) observed: Observed,
    /// Of a run without an end: when the last detour of each CPU ended.
    ends: BTreeMap<i32, i64>,
}

impl Spans {
    /// Of the CPU's loop, in nanoseconds.
    pub(crate) fn of(&self, cpu: &CpuDoc) -> Option<i64> {
        match self.observed {
            Observed::Document => Some(cpu.duration_ns.get()),
            Observed::LastDetour => {
                let end = i32::try_from(cpu.cpu.get()).ok().and_then(|number| self.ends.get(&number))?;
                Some(end.saturating_sub(cpu.start_ns.get()).max(cpu.duration_ns.get()))
            }
        }
    }
}

/// Reads how long they ran.
pub(crate) fn spans(bundle: &Bundle, doc: &NodeDoc) -> Result<Spans, SummaryError> {
    Ok(match doc.ended {
        Some(Ended::Duration | Ended::Command | Ended::Signal | Ended::BufferFull | Ended::CpusGone) => {
            Spans { observed: Observed::Document, ends: BTreeMap::new() }
        }
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

/// The CPUs added up.
#[derive(Default)]
struct Together {
    durations: Moments,
    quantiles: Quantiles,
    cells: Option<TimeCells>,
}

impl Together {
    /// Adds a CPU, and gives its figures.
    fn add(
        &mut self,
        doc: &NodeDoc,
        cpu: &CpuDoc,
        spans: &Spans,
        rows: &mut CpuScan,
        names: &[(Kind, String)],
    ) -> Figures {
        self.durations.merge(&rows.durations);
        self.quantiles.merge(&rows.quantiles);
        if let Some(cells) = &rows.cells {
            match &mut self.cells {
                Some(ours) => ours.merge(cells),
                None => self.cells = Some(cells.clone()),
            }
        }
        let duration_ns = spans.of(cpu);
        let unseen = names.iter().zip(&rows.sources).filter(|((kind, _), _)| *kind == Kind::Unseen);
        let steal = doc.counters.iter().find(|counter| counter.cpu == cpu.cpu && counter.name == "stat/steal");
        // The document of a run that did not end was written at its start, when the loops had counted nothing.
        let ended = spans.observed == Observed::Document;
        let known = |ns: i64| (ended || ns > 0).then_some(ns);
        Figures {
            duration_ns,
            observed: spans.observed,
            iterations: (ended || cpu.iterations > 0).then_some(cpu.iterations),
            t_min_ns: known(cpu.t_min_ns.get()),
            threshold_ns: known(cpu.threshold_ns.get()),
            durations: rows.durations,
            median_ns: rows.quantiles.at(0.5),
            p99_ns: rows.quantiles.at(0.99),
            p999_ns: rows.quantiles.at(0.999),
            interval: rows.cells.as_ref().zip(duration_ns).map(|(cells, observed)| Interval::of(cells, observed)),
            incomplete: rows.incomplete,
            lost_events: cpu.lost_events,
            unseen_ns: (doc.rung == Rung::Tracepoints).then(|| unseen.map(|(_, times)| times.total()).sum()),
            steal_ns: steal.map(|counter| i64::try_from(counter.growth).unwrap_or(i64::MAX)),
            cut_short: cpu.cut_short,
        }
    }

    fn figures(mut self, cpus: &[CpuSummary]) -> Figures {
        let each = || cpus.iter().map(|cpu| &cpu.figures);
        /// A sum is known where all of its parts are.
        fn sum(parts: impl Iterator<Item = Option<i64>>) -> Option<i64> {
            parts.into_iter().try_fold(0_i64, |sum, part| Some(sum.saturating_add(part?)))
        }
        let duration_ns = sum(each().map(|figures| figures.duration_ns)).filter(|_| !cpus.is_empty());
        let killed = each().any(|figures| figures.observed == Observed::LastDetour);
        Figures {
            duration_ns,
            observed: if killed { Observed::LastDetour } else { Observed::Document },
            iterations: each().map(|figures| figures.iterations).sum(),
            t_min_ns: each().filter_map(|figures| figures.t_min_ns).min(),
            threshold_ns: each().filter_map(|figures| figures.threshold_ns).max(),
            durations: self.durations,
            median_ns: self.quantiles.at(0.5),
            p99_ns: self.quantiles.at(0.99),
            p999_ns: self.quantiles.at(0.999),
            interval: self.cells.as_ref().zip(duration_ns).map(|(cells, observed)| Interval::of(cells, observed)),
            incomplete: each().map(|figures| figures.incomplete).sum(),
            lost_events: each().map(|figures| figures.lost_events).sum(),
            unseen_ns: sum(each().map(|figures| figures.unseen_ns)).filter(|_| !cpus.is_empty()),
            steal_ns: sum(each().map(|figures| figures.steal_ns)).filter(|_| !cpus.is_empty()),
            cut_short: each().any(|figures| figures.cut_short),
        }
    }
}

/// The largest total first; equal ones by name, then by kind.
fn ranked(
    times: impl IntoIterator<Item = ((Kind, String), Moments)>,
    place: Option<(String, CpuId)>,
    noise: i64,
    observed: Option<i64>,
) -> Vec<SourceSummary> {
    let share = |times: &Moments, of: i64| (of > 0).then(|| times.total() as f64 / of as f64);
    let mut sources: Vec<SourceSummary> = times
        .into_iter()
        .map(|((kind, source), times)| SourceSummary {
            place: place.clone(),
            share: share(&times, noise),
            time_ratio: observed.and_then(|ns| share(&times, ns)),
            source,
            kind,
            times,
        })
        .collect();
    sources.sort_by(|a, b| {
        let totals = b.times.total().cmp(&a.times.total());
        totals.then_with(|| a.source.cmp(&b.source)).then_with(|| a.kind.name().cmp(b.kind.name()))
    });
    sources
}
