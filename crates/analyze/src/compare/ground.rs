//! The common ground of the runs of both sides, on which they are compared.

use std::collections::BTreeSet;
use std::path::PathBuf;

use becalm_model::node::{NodeDoc, Rung, TraceChange, Warning};
use becalm_model::warning::{self, Code};
use becalm_units::{CpuId, CpuList, Nanos, counted};

use super::CompareError;
use super::gathered::Gathered;
use super::recording::{LoopLengths, Recording, UnreadNode};
use crate::summary::{Observed, Selection, SummaryError};

/// The shortest run is cut into this many stretches to compare their longest detours.
const STRETCHES: i64 = 32;

/// The limit for the longest run.
const STRETCHES_MAX: i64 = 1_024;

/// At most this many nodes are named in a sentence; the others are counted.
const LISTED: usize = 8;

/// Above this many CPUs on several nodes, only the nodes are compared, because each CPU takes tens of KiB.
const CPUS_MAX: usize = 1_024;

/// A node or one of its CPUs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ComparedPlace {
    /// The node's name; for single-node runs, that in the first.
    pub node: String,
    /// The kernel's number of the CPU; `None` for all compared CPUs of the node together.
    pub cpu: Option<CpuId>,
}

/// One of the two sides: before or after.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its runs, at least one, in the order given.
    pub runs: Vec<ComparedRun>,
}

impl Side {
    /// The number of compared CPUs of each run, over all nodes.
    pub fn count_cpus(&self) -> usize {
        self.runs.first().map_or(0, ComparedRun::count_cpus)
    }

    /// The numbers of the CPUs in any of its runs, on any node.
    pub fn cpus(&self) -> CpuList {
        self.runs.iter().flat_map(|run| &run.docs).flat_map(|doc| &doc.cpus).map(|cpu| cpu.cpu).collect()
    }

    /// The number of nodes of its first run.
    pub fn count_nodes(&self) -> usize {
        self.runs.first().map_or(0, |run| run.docs.len())
    }

    /// The shortest step of any of its runs, in nanoseconds; `None` if no run contains it.
    pub fn t_min_ns(&self) -> Option<i64> {
        self.runs.iter().filter_map(|run| run.t_min_ns).min()
    }

    /// Everything that the trace of at least one of its runs lacks.
    fn missing(&self) -> BTreeSet<String> {
        let docs = self.runs.iter().flat_map(|run| &run.docs);
        docs.filter_map(|doc| doc.tracing.as_ref()).flat_map(|doc| doc.missing.clone()).collect()
    }
}

/// The name of a run in messages: `A` if it is alone on its side, else `A1`, `A2` and so on.
pub fn run_name(side: &str, number: usize, runs: usize) -> String {
    if runs > 1 { format!("{side}{}", number + 1) } else { side.to_owned() }
}

/// A run of one of the sides.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    /// The directory of the run's bundle.
    pub path: PathBuf,
    /// The nodes' documents, restricted to the compared CPUs.
    pub docs: Vec<NodeDoc>,
    /// The total run time of the loops on these CPUs, in nanoseconds.
    pub observed_ns: i64,
    /// The duration of the run in nanoseconds: that of the longest loop.
    pub length_ns: i64,
    /// Whether it ends with the last detour because the run was killed or is still going on.
    pub open_ended: bool,
    /// The shortest step of any of these CPUs; `None` if the run does not contain it.
    pub t_min_ns: Option<i64>,
    /// The highest threshold of any of them; `None` if the run does not contain it.
    pub threshold_ns: Option<i64>,
    /// The lowest rung of any node.
    pub rung: Rung,
    /// Whether it is compared in summary form: as recorded, or condensed to it.
    pub condensed: bool,
    /// The number of compared detours.
    pub detours: u64,
    /// The number of detours left out because they are shorter than the coarsest of all loops keeps.
    pub dropped: u64,
    /// Their total length, in nanoseconds.
    pub dropped_ns: i64,
    /// Detours with dropped kernel events.
    pub incomplete: u64,
    /// Start and run time of each compared CPU's loop, in the order of the documents.
    pub(super) loops: Vec<LoopSpan>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LoopSpan {
    pub(super) start: i64,
    pub(super) length: i64,
}

impl ComparedRun {
    /// How another program changed the trace on any node.
    fn trace_change(&self) -> Option<&TraceChange> {
        self.docs.iter().find_map(NodeDoc::trace_change)
    }

    fn read(recording: &impl Recording, docs: Vec<NodeDoc>) -> Result<Self, CompareError> {
        let failed = |cause: SummaryError| CompareError::Run { path: recording.path().to_owned(), cause };
        let mut run = Self {
            path: recording.path().to_owned(),
            condensed: recording.is_condensed(),
            observed_ns: 0,
            length_ns: 0,
            open_ended: false,
            t_min_ns: None,
            threshold_ns: None,
            rung: docs.iter().map(|doc| doc.rung).min().unwrap_or(Rung::Loop),
            detours: 0,
            dropped: 0,
            dropped_ns: 0,
            incomplete: 0,
            loops: Vec::new(),
            docs: Vec::new(),
        };
        for doc in &docs {
            let LoopLengths { lengths, observed } = recording.lengths(doc).map_err(failed)?;
            run.open_ended |= observed == Observed::LastDetour;
            for (cpu, length) in doc.cpus.iter().zip(lengths) {
                let length = length.filter(|ns| *ns > 0);
                let no_duration = || CompareError::NoDuration {
                    path: recording.path().to_owned(),
                    node: doc.node.clone(),
                    cpu: cpu.cpu,
                };
                let length = length.ok_or_else(no_duration)?;
                run.loops.push(LoopSpan { start: cpu.start_ns.get(), length });
                run.observed_ns = run.observed_ns.saturating_add(length);
                run.length_ns = run.length_ns.max(length);
            }
        }
        let known = |ns: fn(&becalm_model::node::CpuDoc) -> Nanos| {
            docs.iter().flat_map(|doc| &doc.cpus).map(move |cpu| ns(cpu).get()).filter(|ns| *ns > 0)
        };
        run.t_min_ns = known(|cpu| cpu.t_min_ns).min();
        run.threshold_ns = known(|cpu| cpu.threshold_ns).max();
        run.docs = docs;
        Ok(run)
    }

    /// The shortest detour that each of its loops would have kept, in nanoseconds: threshold less t_min. If a loop's threshold is unknown,
    /// its node's shortest detour counts.
    fn shortest(&self, recording: &impl Recording) -> Result<i64, CompareError> {
        let failed = |cause| CompareError::Run { path: self.path.clone(), cause };
        let mut shortest = 0;
        for doc in &self.docs {
            for cpu in &doc.cpus {
                shortest = shortest.max(cpu.threshold_ns.get().saturating_sub(cpu.t_min_ns.get()));
            }
            if doc.cpus.iter().all(|cpu| cpu.threshold_ns.get() > 0) {
                continue;
            }
            let least = recording.shortest_detour(doc).map_err(failed)?;
            shortest = shortest.max(least.unwrap_or(0));
        }
        Ok(shortest)
    }

    /// Copies the counts of the detours that were read.
    pub(super) fn count(&mut self, gathered: &Gathered) {
        self.detours = gathered.all.durations().count();
        self.dropped = gathered.dropped;
        self.dropped_ns = gathered.dropped_ns;
        self.incomplete = gathered.incomplete;
    }

    /// The number of compared CPUs, over all nodes.
    pub fn count_cpus(&self) -> usize {
        self.loops.len()
    }

    /// The numbers of its CPUs on any node.
    pub fn cpus(&self) -> CpuList {
        all_cpus(&self.docs)
    }
}

/// A run with its selection.
pub(super) type Selected<'a, R> = (&'a R, &'a Selection);

/// Both sides, with the scope of the comparison.
pub(super) struct Ground {
    pub(super) sides: [Side; 2],
    /// Detours shorter than this are left out.
    pub(super) shortest_ns: i64,
    /// The length of the stretches whose longest detours are compared.
    pub(super) stretch_ns: i64,
    /// The compared nodes, in the order of all runs' documents; empty if there is only one.
    pub(super) nodes: Vec<ComparedPlace>,
    /// The compared CPUs, in the order of all runs' documents; empty if they are only compared together.
    pub(super) places: Vec<ComparedPlace>,
    notes: Vec<Warning>,
}

impl Ground {
    pub(super) fn new<R: Recording>(a: &[Selected<'_, R>], b: &[Selected<'_, R>]) -> Result<Self, CompareError> {
        let runs = named(a, b);
        let mut notes = Vec::new();
        let mut docs = runs.iter().map(|(_, run)| select(run.0, run.1)).collect::<Result<Vec<_>, _>>()?;
        // The names of single-node runs do not matter.
        let by_name = docs.iter().any(|docs| docs.len() > 1);
        if runs.iter().all(|(_, run)| run.1.cpus.is_none()) {
            keep_common(&runs, &mut docs, by_name, &mut notes)?;
        }
        let mut read = Vec::with_capacity(runs.len());
        for ((_, run), docs) in runs.iter().zip(docs) {
            read.push(ComparedRun::read(run.0, docs)?);
        }
        let mut shortest_ns = 0;
        for ((_, (recording, _)), run) in runs.iter().zip(&read) {
            shortest_ns = shortest_ns.max(run.shortest(*recording)?);
        }
        let first = keys(&read[0].docs, by_name);
        let matched = read.iter().all(|run| keys(&run.docs, by_name) == first);
        let lengths = || read.iter().flat_map(|run| &run.loops).map(|span| span.length);
        let (least, most) = (lengths().min().unwrap_or(1), lengths().max().unwrap_or(1));
        let stretch_ns = (least / STRETCHES).max(most / STRETCHES_MAX).max(1);
        let nodes = if matched && read[0].docs.len() > 1 { nodes(&read[0].docs) } else { Vec::new() };
        let mut places = if matched { places(&read[0].docs) } else { Vec::new() };
        if places.len() == nodes.len() {
            // The only CPU of each node is the node.
            places.clear();
        } else if !nodes.is_empty() && places.len() > CPUS_MAX {
            notes.push(warning::cpus_together(places.len()));
            places.clear();
        }
        let after = read.split_off(a.len());
        let sides = [Side { runs: read }, Side { runs: after }];
        if !matched {
            notes.push(warning::cpus_differ(&sides[0].cpus().to_string(), &sides[1].cpus().to_string()));
        }
        Ok(Self { sides, shortest_ns, stretch_ns, nodes, places, notes })
    }

    /// All runs with their names, those of the first side before the others.
    fn runs(&self) -> impl Iterator<Item = (String, &ComparedRun)> {
        ["A", "B"].into_iter().zip(&self.sides).flat_map(|(name, side)| {
            side.runs.iter().enumerate().map(move |(at, run)| (run_name(name, at, side.runs.len()), run))
        })
    }

    /// Notes the nodes of a run that could not be read.
    pub(super) fn note_left_out(&mut self, run: &str, nodes: &[UnreadNode]) {
        let told = nodes.iter().take(LISTED).map(|left| warning::node_left_out_of(run, &left.node, &left.why));
        self.notes.extend(told);
        if let Some(more) = nodes.len().checked_sub(LISTED + 1) {
            let more = counted(more as u64 + 1, "more node", "more nodes");
            self.notes.push(warning::node_left_out_of(run, &more, "they cannot be read either"));
        }
    }

    /// Whether the runs are compared in summary form, because at least one is.
    pub(super) fn is_condensed(&self) -> bool {
        self.runs().any(|(_, run)| run.condensed)
    }

    /// Whether the sources of all runs are known.
    pub(super) fn has_sources(&self) -> bool {
        self.runs().all(|(_, run)| run.rung == Rung::Tracepoints && run.trace_change().is_none())
    }

    /// Everything that limits the comparison.
    pub(super) fn notes(&self, samples: &[Vec<Gathered>; 2]) -> Vec<Warning> {
        let mut notes = self.notes.clone();
        let [a, b] = &self.sides;
        for ((name, _), sample) in self.runs().zip(samples.iter().flatten()) {
            if sample.dropped > 0 {
                let noise = sample.dropped_ns.saturating_add(sample.all.durations().total());
                let percent = 100.0 * sample.dropped_ns as f64 / noise.max(1) as f64;
                let percent = if percent < 0.01 { "less than 0.01".to_owned() } else { format!("{percent:.2}") };
                let all = sample.dropped + sample.all.durations().count();
                let shortest = Nanos::new(self.shortest_ns);
                notes.push(warning::below_common_threshold(&name, sample.dropped, all, &percent, shortest));
            }
            if sample.incomplete > 0 && self.has_sources() {
                notes.push(warning::lost_events_in(&name, sample.incomplete));
            }
        }
        if let (Some(t_a), Some(t_b)) = (a.t_min_ns(), b.t_min_ns())
            && t_a.max(t_b).saturating_mul(5) > t_a.min(t_b).saturating_mul(6)
        {
            notes.push(warning::t_min_differs(Nanos::new(t_a), Nanos::new(t_b)));
        }
        for (name, run) in self.runs() {
            if run.open_ended {
                notes.push(warning::not_ended_in(&name));
            }
        }
        if self.is_condensed() {
            notes.push(warning::compared_in_summary_form());
        }
        self.note_warnings(&mut notes);
        self.note_sources(&mut notes);
        let sched = |run: &ComparedRun| run.docs.first().map(|doc| doc.settings.sched.clone()).unwrap_or_default();
        let first = sched(&a.runs[0]);
        if let Some(other) = self.runs().map(|(_, run)| sched(run)).find(|other| *other != first) {
            notes.push(warning::sched_differs(&first, &other));
        }
        notes
    }

    /// The runs' own warnings that bear on a verdict and that the comparison has no words of its own for.
    fn note_warnings(&self, notes: &mut Vec<Warning>) {
        const SAID_OTHERWISE: [Code; 5] =
            [Code::NotEnded, Code::LostEvents, Code::TraceChanged, Code::SummaryForm, Code::CpusLeftOut];
        for (name, run) in self.runs() {
            let said = |warning: &Warning| warning.known().is_some_and(|code| SAID_OTHERWISE.contains(&code));
            let bearing = warning::bearing_warnings(&run.docs).into_iter().filter(|warning| !said(warning));
            notes.extend(bearing.map(|warning| Warning { message: format!("{name}: {}", warning.message), ..warning }));
        }
    }

    fn note_sources(&self, notes: &mut Vec<Warning>) {
        let blind: Vec<String> =
            self.runs().filter(|(_, run)| run.rung < Rung::Tracepoints).map(|(name, _)| name).collect();
        if !blind.is_empty() {
            let blind: Vec<&str> = blind.iter().map(String::as_str).collect();
            notes.push(warning::sources_unknown(&blind));
            return;
        }
        let changed = |(name, run): (String, &ComparedRun)| Some(warning::trace_changed_in(&name, run.trace_change()?));
        let before = notes.len();
        notes.extend(self.runs().filter_map(changed));
        if notes.len() > before {
            return;
        }
        let [missing_a, missing_b] = self.sides.each_ref().map(Side::missing);
        for (name, only) in [("A", &missing_a - &missing_b), ("B", &missing_b - &missing_a)] {
            if !only.is_empty() {
                let only: Vec<String> = only.into_iter().collect();
                notes.push(warning::seen_differently(name, &only));
            }
        }
    }
}

/// All runs with their names.
fn named<'a, R>(a: &[Selected<'a, R>], b: &[Selected<'a, R>]) -> Vec<(String, Selected<'a, R>)> {
    let named = |name: &'static str, runs: &[Selected<'a, R>]| -> Vec<(String, Selected<'a, R>)> {
        runs.iter().enumerate().map(|(at, run)| (run_name(name, at, runs.len()), *run)).collect()
    };
    [named("A", a), named("B", b)].concat()
}

/// Keeps only the CPUs that all runs measured.
fn keep_common<R: Recording>(
    runs: &[(String, Selected<'_, R>)],
    docs: &mut [Vec<NodeDoc>],
    by_name: bool,
    notes: &mut Vec<Warning>,
) -> Result<(), CompareError> {
    let before = docs.to_vec();
    let mut common = keys(&before[0], by_name);
    for (at, docs) in before.iter().enumerate() {
        common = &common & &keys(docs, by_name);
        if common.is_empty() {
            return Err(nothing_common(runs[0].1.0, &before[0], runs[at].1.0, docs, by_name));
        }
    }
    for (((name, _), before), docs) in runs.iter().zip(&before).zip(docs) {
        for doc in docs.iter_mut() {
            let node = if by_name { doc.node.clone() } else { String::new() };
            doc.cpus.retain(|cpu| common.contains(&(node.clone(), cpu.cpu)));
        }
        docs.retain(|doc| !doc.cpus.is_empty());
        left_out(name, before, docs, by_name, notes);
    }
    Ok(())
}

fn select(recording: &impl Recording, selection: &Selection) -> Result<Vec<NodeDoc>, CompareError> {
    let failed = |cause| CompareError::Run { path: recording.path().to_owned(), cause };
    let mut docs = recording.documents(selection).map_err(failed)?;
    docs.retain(|doc| !doc.cpus.is_empty());
    if docs.is_empty() {
        return Err(CompareError::NoDetourLoop { path: recording.path().to_owned() });
    }
    Ok(docs)
}

/// The nodes and CPUs of a run to match with those of another.
fn keys(docs: &[NodeDoc], by_name: bool) -> BTreeSet<(String, CpuId)> {
    let node = |doc: &NodeDoc| if by_name { doc.node.clone() } else { String::new() };
    docs.iter().flat_map(|doc| doc.cpus.iter().map(move |cpu| (node(doc), cpu.cpu))).collect()
}

fn nodes(docs: &[NodeDoc]) -> Vec<ComparedPlace> {
    docs.iter().map(|doc| ComparedPlace { node: doc.node.clone(), cpu: None }).collect()
}

fn places(docs: &[NodeDoc]) -> Vec<ComparedPlace> {
    docs.iter()
        .flat_map(|doc| doc.cpus.iter().map(|cpu| ComparedPlace { node: doc.node.clone(), cpu: Some(cpu.cpu) }))
        .collect()
}

fn all_cpus(docs: &[NodeDoc]) -> CpuList {
    docs.iter().flat_map(|doc| &doc.cpus).map(|cpu| cpu.cpu).collect()
}

fn node_names(docs: &[NodeDoc]) -> String {
    shortened(docs.iter().map(|doc| doc.node.clone()).collect())
}

/// The first few entries of a list, and the number of the others.
fn shortened(mut list: Vec<String>) -> String {
    let more = list.len().saturating_sub(LISTED);
    list.truncate(LISTED);
    let listed = list.join(", ");
    if more > 0 { format!("{listed} and {}", counted(more as u64, "more node", "more nodes")) } else { listed }
}

fn nothing_common(
    a: &impl Recording,
    docs_a: &[NodeDoc],
    b: &impl Recording,
    docs_b: &[NodeDoc],
    by_name: bool,
) -> CompareError {
    let [path_a, path_b] = [a.path().to_owned(), b.path().to_owned()];
    let shared = docs_a.iter().any(|doc| docs_b.iter().any(|other| other.node == doc.node));
    if by_name && !shared {
        let (nodes_a, nodes_b) = (node_names(docs_a), node_names(docs_b));
        return CompareError::NoCommonNode { a: path_a, nodes_a, b: path_b, nodes_b };
    }
    CompareError::NoCommonCpu { a: path_a, cpus_a: all_cpus(docs_a), b: path_b, cpus_b: all_cpus(docs_b) }
}

/// Notes the CPUs and nodes of a run that the other one does not have.
fn left_out(name: &str, before: &[NodeDoc], docs: &[NodeDoc], by_name: bool, notes: &mut Vec<Warning>) {
    let gone = &keys(before, by_name) - &keys(docs, by_name);
    if gone.is_empty() {
        return;
    }
    let nodes: BTreeSet<&str> = gone.iter().map(|(node, _)| node.as_str()).collect();
    let cpus =
        |node: &str| -> CpuList { gone.iter().filter(|(other, _)| other == node).map(|(_, cpu)| *cpu).collect() };
    let list = |node: &&str| match by_name {
        true => format!("CPU {} of {node}", cpus(node)),
        false => format!("CPU {}", cpus(node)),
    };
    notes.push(warning::cpus_left_out_of(name, &shortened(nodes.iter().map(list).collect())));
}
