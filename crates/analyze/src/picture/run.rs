//! Makes the picture of a bundle.

use std::collections::{BTreeMap, HashMap};

use becalm_bundle::Bundle;
use becalm_model::Kind;
use becalm_model::node::{CpuDoc, Rung};

use super::embedded::{DetourSources, Lookup};
use super::heat::CpuCells;
use super::{DETOURS, ENTRIES, Embedded, HeatMap, Lengths, PlacedDetour, ROWS, Reduced, Reduction, TOP};
use crate::summary::{NodeSummary, Summary, SummaryError, runs};
use becalm_stats::TimeCells;

/// The drawn data of a run.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The start of the first loop, in nanoseconds since the run's origin.
    pub start_ns: i64,
    /// The time from then until the end of the last loop.
    pub length_ns: i64,
    /// The detours that are drawn individually.
    pub shown: Reduced,
    /// For each of them the source that took most of it, as an index into [`Self::names`]. `None` if no kernel event was seen.
    pub owners: Vec<Option<u32>>,
    /// The sources that own detours, in the order of their numbers.
    pub names: Vec<(Kind, String)>,
    /// The contents of the longest detours, if kept and not empty; by index in [`Self::shown`].
    pub embedded: BTreeMap<usize, Embedded>,
    /// The lengths of all detours.
    pub lengths: Lengths,
    /// The lengths of the detours of each node.
    pub node_lengths: Vec<Lengths>,
    /// The time that each CPU lost, over time.
    pub heat: HeatMap,
}

/// Reads the summarized part of a bundle, and keeps the data to draw. `progress` gets the number of rows read since its last call.
///
/// Takes constant memory: about 12 MiB, 2 KiB per CPU, and the contents of one detour. Fails if a file cannot be read.
pub fn picture(bundle: &Bundle, summary: &Summary, progress: &mut dyn FnMut(u64)) -> Result<Picture, SummaryError> {
    let (start_ns, length_ns) = window(summary);
    let mut reduction = Reduction::new(DETOURS, TOP);
    let mut node_lengths = Vec::with_capacity(summary.nodes.len());
    let mut cells = Vec::new();
    for (number, node) in summary.nodes.iter().enumerate() {
        let mut scan = NodeScan::new(number as u32, node, start_ns, length_ns);
        for batch in bundle.detours(&node.doc.node)? {
            let batch = batch?;
            for range in runs(batch.cpus()) {
                scan.detours(
                    batch.cpus()[range.start],
                    range.map(|row| (batch.starts()[row], batch.durations()[row], batch.incomplete(row))),
                    &mut reduction,
                );
            }
            progress(batch.len() as u64);
        }
        node_lengths.push(scan.lengths);
        cells.extend(scan.cells);
    }
    let shown = reduction.finish();
    let mut lengths = Lengths::default();
    node_lengths.iter().for_each(|more| lengths.merge(more));
    let DetourSources { owners, names, embedded } = look(bundle, summary, &shown, progress)?;
    let heat = HeatMap::new(start_ns, length_ns, cells, ROWS);
    Ok(Picture { start_ns, length_ns, shown, owners, names, embedded, lengths, node_lengths, heat })
}

/// Looks into the drawn detours.
fn look(
    bundle: &Bundle,
    summary: &Summary,
    shown: &Reduced,
    progress: &mut dyn FnMut(u64),
) -> Result<DetourSources, SummaryError> {
    let mut lookup = Lookup::new(&shown.detours, ENTRIES);
    for (number, node) in summary.nodes.iter().enumerate() {
        if node.doc.rung != Rung::Tracepoints {
            continue;
        }
        lookup.enter(number as u32, &node.doc.node);
        for batch in bundle.activities(&node.doc.node)? {
            let batch = batch?;
            lookup.take(&batch);
            progress(batch.len() as u64);
        }
    }
    Ok(lookup.finish())
}

/// The start and the length of the time when the loops ran.
fn window(summary: &Summary) -> (i64, i64) {
    let mut spans = Vec::new();
    // The summary's CPUs are those of its nodes' documents, in their order.
    let docs = summary.nodes.iter().flat_map(|node| &node.doc.cpus);
    for (doc, cpu) in docs.zip(&summary.cpus) {
        if let Some(length) = cpu.figures.duration_ns {
            spans.push((doc.start_ns.get(), doc.start_ns.get().saturating_add(length)));
        }
    }
    let start = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let end = spans.iter().map(|span| span.1).max().unwrap_or(0);
    (start, end.saturating_sub(start).max(1))
}

struct NodeScan {
    node: u32,
    lengths: Lengths,
    cells: Vec<CpuCells>,
    cpus: HashMap<i32, CpuProgress>,
}

#[derive(Default)]
struct CpuProgress {
    /// The index of its cells, if it was selected.
    place: Option<usize>,
    /// The number of its next detour.
    next: u64,
}

impl NodeScan {
    fn new(number: u32, node: &NodeSummary, start: i64, length: i64) -> Self {
        let empty = |cpu: &CpuDoc| CpuCells { node: number, cpu: cpu.cpu, cells: TimeCells::new(start, length) };
        let cells: Vec<CpuCells> = node.doc.cpus.iter().map(empty).collect();
        let cpu = |(at, cpu): (usize, &CpuCells)| (cpu.cpu.get() as i32, CpuProgress { place: Some(at), next: 0 });
        let cpus = cells.iter().enumerate().map(cpu).collect();
        Self { node: number, lengths: Lengths::default(), cpus, cells }
    }

    /// Adds consecutive detours of one CPU: start, duration, and whether they are incomplete.
    fn detours(&mut self, cpu: i32, rows: impl Iterator<Item = (i64, i64, bool)>, reduction: &mut Reduction) {
        let CpuProgress { place, next } = self.cpus.entry(cpu).or_default();
        let Some(CpuCells { cells, .. }) = place.map(|at| &mut self.cells[at]) else {
            *next += rows.count() as u64;
            return;
        };
        for (start, duration, incomplete) in rows {
            let (node, cpu, number) = (self.node, cpu as u32, *next);
            *next += 1;
            self.lengths.add(duration);
            cells.add(start, duration);
            reduction.add(PlacedDetour { node, cpu, number, start, duration, incomplete });
        }
    }
}
