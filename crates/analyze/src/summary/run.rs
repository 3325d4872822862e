//! Summarizes a bundle: selects the parts to read, and turns the sums into figures.

use std::collections::BTreeMap;

use becalm_bundle::{Bundle, BundleError};
use becalm_model::Kind;
use becalm_model::node::{CpuDoc, Ended, NodeDoc, Rung};
use becalm_scale::at_once::{LongestStops, TimedDetours, repeated_stops};
use becalm_units::{CpuId, CpuList, Nanos};

use super::anatomy::anatomy;
use super::nodes::{GatheredNodes, NodeNoise, SourceTimes, Times, node_cpus};
use super::pieces::WorkPieces;
use super::recurring::Recurring;
use super::scan::CpuScan;
use super::{
    ActivityColumns, Books, CpuSummary, DetourColumns, Figures, NodeSummary, Observed, OpenBook, SampledPhases, Scan,
    Summary, SummaryError, books,
};
use crate::noise::window::Window;
use becalm_stats::{Interval, LengthCells, Longest, Moments, Quantiles, TimeCells};

/// How much is computed for a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Detail {
    /// Figures, sources and periods.
    #[default]
    Figures,
    /// Also the cost of the noise at scale, with and without each source.
    Scale,
    /// Also the parts of one occurrence of the most expensive interrupt.
    Everything,
}

/// The part of a run that is read, and how much is computed for it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selection {
    /// The node; `None` for all.
    pub node: Option<String>,
    /// The CPUs, on every node that measured them; `None` for all.
    pub cpus: Option<CpuList>,
    /// Whether the time of becalm's own threads counts as noise of the machine.
    pub with_self: bool,
    /// How much is computed.
    pub detail: Detail,
}

impl Selection {
    /// The same part with this detail.
    pub fn with_detail(&self, detail: Detail) -> Self {
        Self { detail, ..self.clone() }
    }

    /// The documents of the selected nodes, restricted to the selected CPUs and their counters. Fails if the bundle has no such node, a selected node
    /// contains samples of work instead of detours, or none of them measured one of the CPUs.
    pub fn documents(&self, bundle: &Bundle) -> Result<Vec<NodeDoc>, SummaryError> {
        let mut docs: Vec<NodeDoc> = match &self.node {
            None => bundle.nodes().to_vec(),
            Some(name) => {
                // The bundle's own error lists the existing nodes.
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

    /// The named CPUs; `None` for all. Fails if none of these nodes measured one of them.
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

/// Restricts a node's document to these CPUs and their counters.
pub(crate) fn keep_cpus(doc: &mut NodeDoc, cpus: &CpuList) {
    doc.cpus.retain(|cpu| cpus.contains(cpu.cpu));
    doc.counters.retain(|counter| cpus.contains(counter.cpu));
}

/// Reads the selected part of a bundle and sums it up.
///
/// One pass over its rows, in constant memory: at most about 550 KiB per CPU, usually 350, and 8.3 KiB per source of each CPU. For a run that did not
/// end, the detours are read once before, because only the end of the last one shows how long the loops ran. For the cost at scale, the detours of a
/// node with several CPUs are read once to find those that hit several CPUs at once. For the parts of an interrupt, the activities are read again.
/// Fails if the selection does not exist, or a file cannot be read.
pub fn summarize(bundle: &Bundle, selection: &Selection) -> Result<Summary, SummaryError> {
    let docs = selection.documents(bundle)?;
    let all_cpus = docs.iter().map(|doc| doc.cpus.len()).sum();
    let mut reading = Reading::new(selection, all_cpus);
    for doc in docs {
        reading.take(bundle, doc)?;
    }
    let Reading { nodes, open, together, recurring, phases, .. } = reading;
    let books = match (open.is_empty(), nodes.nodes.iter().any(|node| node.activities > 0)) {
        (false, _) => Books::Open(open),
        (true, true) => Books::Closed,
        (true, false) => Books::NoActivities,
    };
    let total = together.figures(&nodes.cpus, nodes.nodes.len());
    let observed = total.observed;
    let mut summary = nodes.summary(bundle.path(), total, books, phases, observed);
    let costly = summary.sources.iter().find(|source| source.kind == Kind::Irq);
    if let Some(costly) = costly.filter(|_| selection.detail == Detail::Everything) {
        let docs: Vec<&NodeDoc> = summary.nodes.iter().map(|node| &node.doc).collect();
        summary.anatomy = anatomy(bundle, &docs, &costly.source)?;
    }
    (summary.periods, summary.spectrum) = recurring.found(&summary.sources);
    Ok(summary)
}

/// The nodes read so far.
struct Reading {
    /// Whether all CPUs were selected.
    whole: bool,
    with_self: bool,
    /// The number of CPUs of all nodes.
    all_cpus: usize,
    nodes: GatheredNodes,
    open: Vec<OpenBook>,
    together: ScanSums,
    recurring: Recurring,
    phases: Option<SampledPhases>,
}

impl Reading {
    fn new(selection: &Selection, all_cpus: usize) -> Self {
        Self {
            whole: selection.cpus.is_none(),
            with_self: selection.with_self,
            all_cpus,
            nodes: GatheredNodes::default(),
            open: Vec::new(),
            together: ScanSums::default(),
            recurring: Recurring::default(),
            phases: (selection.detail >= Detail::Scale).then(SampledPhases::new),
        }
    }

    fn take(&mut self, bundle: &Bundle, doc: NodeDoc) -> Result<(), SummaryError> {
        self.nodes.warnings.add_document(&doc);
        let spans = spans(bundle, &doc)?;
        let mut scan = self.scan(bundle, &doc, &spans)?;
        if doc.rung == Rung::Tracepoints {
            for cpu in scan.open_books() {
                self.open.extend(books::first_open(bundle, &doc.node, cpu)?);
            }
        }
        self.nodes.warnings.add_unlisted(&doc, scan.unexpected(), self.whole);
        self.recurring.add_spectrum(scan.spectrum());
        let names = scan.names().to_vec();
        if let Some(phases) = &mut self.phases {
            phases.add(scan.losses(), &names);
        }
        scan.finish_work();
        let activities = scan.count_activities();
        let mut node_sums = ScanSums::default();
        for (cpu, rows) in doc.cpus.iter().zip(scan.cpus()) {
            self.recurring.add_cpu(&doc.node, rows, &names);
            self.together.add(rows);
            node_sums.add_noise(rows);
            let mut times = SourceTimes::default();
            for source in &rows.sources {
                let (kind, name) = names[source.number.index()].clone();
                times.add(kind, name, Times { own: source.self_times, whole: source.whole });
            }
            let stored = rows.stored;
            let figures = figures(&doc, cpu, &spans, rows, &names);
            self.nodes.add_cpu(&doc, cpu, &stored, times, figures);
        }
        let cpus = node_cpus(&self.nodes.cpus, &doc.node);
        let observed = super::figures::sum(cpus.iter().map(|cpu| cpu.figures.duration_ns)).filter(|ns| *ns > 0);
        let noise = node_sums.cells.zip(observed).map(|(cells, observed)| NodeNoise {
            ratio: cells.noise().iter().sum::<i64>() as f64 / observed as f64,
            interval: Interval::from_cells(&cells, observed),
        });
        self.nodes.add_node(NodeSummary { doc, activities }, noise);
        Ok(())
    }

    /// Reads the rows of a node.
    fn scan(&self, bundle: &Bundle, doc: &NodeDoc, spans: &Spans) -> Result<Scan, SummaryError> {
        // The lower rungs see no kernel events, so there is nothing to check.
        let seen = doc.rung == Rung::Tracepoints;
        // A recording that did not end, or whose CPUs were watched one after the other, has no such time.
        let window = doc.ended.is_some().then(|| Window::common_to_all_cpus(doc, None, &mut Vec::new()));
        let longest = doc.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or_default();
        let window = window.filter(|window| window.length > Nanos::ZERO && window.length.get() >= longest.get() / 2);
        let scan = Scan::default().searching_detours(!seen).with_self(self.with_self);
        let scan = scan.for_cpus(doc.cpus.len());
        let mut scan = if self.phases.is_some() { scan.sampling(window, self.all_cpus) } else { scan };
        for cpu in &doc.cpus {
            scan.expect(cpu.cpu, spans.length(cpu).map(|ns| TimeCells::new(cpu.start_ns.get(), ns)));
        }
        if seen {
            if self.phases.is_some() {
                scan.leaving_out(repeated(bundle, doc)?);
            }
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
        Ok(scan)
    }
}

/// Adds CPUs with stored detours that a document without an end does not list.
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

/// The run times of a node's loops.
pub(crate) struct Spans {
    pub(crate) observed: Observed,
    /// The end of each CPU's last detour, for a run without an end.
    ends: BTreeMap<i32, i64>,
}

impl Spans {
    /// The run time of the CPU's loop, in nanoseconds.
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

/// Reads the run times.
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
        // A failed run may never have collected the loops' run times.
        None | Some(Ended::Failed) => Spans { observed: Observed::LastDetour, ends: last_ends(bundle, &doc.node)? },
    })
}

/// The end of each CPU's last stored detour.
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

/// Those of each CPU's longest detours that are part of an event counted on another CPU.
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

/// The summed rows of several CPUs.
#[derive(Default)]
struct ScanSums {
    durations: Moments,
    long: Moments,
    quantiles: Quantiles,
    cells: Option<TimeCells>,
    lengths: Option<LengthCells>,
    longest: Longest,
    pieces: WorkPieces,
}

impl ScanSums {
    fn add(&mut self, rows: &CpuScan) {
        self.durations.merge(&rows.durations);
        self.long.merge(&rows.long);
        self.quantiles.merge(&rows.quantiles);
        self.longest.merge(&rows.longest);
        if let Some(worker) = &rows.worker {
            self.pieces.merge(&worker.pieces);
        }
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

    /// The figures of the CPUs of `nodes` nodes.
    fn figures(mut self, cpus: &[CpuSummary], nodes: usize) -> Figures {
        let (cells, lengths) = (self.cells.as_ref(), self.lengths.as_ref());
        let sums = Figures::sum(cpus);
        let work_p99_ns = self.pieces.p99_ns().filter(|_| sums.unstored == 0);
        let figures = Figures { durations: self.durations, long: self.long, work_p99_ns, ..sums };
        let elapsed = figures.elapsed_ns(cpus, nodes);
        figures.with_intervals(cells, lengths).with_lengths(&mut self.quantiles, lengths, self.longest, elapsed)
    }
}

fn figures(doc: &NodeDoc, cpu: &CpuDoc, spans: &Spans, rows: &mut CpuScan, names: &[(Kind, String)]) -> Figures {
    let duration_ns = spans.length(cpu);
    let unseen = rows.sources.iter().filter(|source| names[source.number.index()].0 == Kind::Unseen);
    let unseen_ns = unseen.map(|source| source.self_times.total()).fold(0, i64::saturating_add);
    let seen = doc.rung == Rung::Tracepoints;
    let longest = std::mem::take(&mut rows.longest);
    let work_p99_ns = rows.worker.as_mut().and_then(|worker| worker.pieces.p99_ns());
    let (cells, lengths) = (rows.cells.as_ref(), rows.lengths.as_ref());
    let figures = Figures {
        durations: rows.durations,
        long: rows.long,
        own_ns: seen.then(|| rows.account.own_ns()),
        own_longest_ns: seen.then(|| rows.account.own_longest_ns()),
        incomplete: rows.incomplete,
        unseen_ns: (seen && doc.has_loop()).then_some(unseen_ns),
        work_p99_ns: work_p99_ns.filter(|_| cpu.unstored == 0),
        ..Figures::from_document(doc, cpu, duration_ns, spans.observed)
    };
    figures.with_intervals(cells, lengths).with_lengths(&mut rows.quantiles, lengths, longest, duration_ns)
}
