//! Comparison of runs: before and after, or machine with machine, with one run or several per side.
//!
//! [`compare`] reads the bundles, batch after batch, reduces them to their common ground (the CPUs, the higher threshold, rates instead of sums, the
//! sources if both know them) or fails, and returns a [`ComparedFigure`] for each figure: both values, the difference with its interval, the effect,
//! the p-value, and a [`Verdict`].
//!
//! Detours come in trains, so the scatter within a run is estimated from blocks of time: `series` has the figures that are sums over time, `tails`
//! the high quantiles, `extremes` the longest detours. With many rows some look different by chance, so verdicts use p-values adjusted for their
//! [`TestFamily`].
//!
//! Two recordings of the same machine differ by more than the scatter within either. Several runs per side show how much more (`contrast`). One run
//! per side cannot show it, so the comparison assumes the scatter learned from recordings of an unchanged machine (`alone`), and only a larger
//! difference is claimed ([`Basis`]). This module's tests measure the error rates on equal and on different runs.
//!
//! The crate `report` shows the rows.

mod alone;
mod condensed;
pub mod contrast;
mod error;
mod extremes;
mod gather;
mod gathered;
mod ground;
pub mod holm;
pub mod lives;
mod metric;
mod proportion;
mod recording;
mod row;
mod sample;
pub mod series;
mod tails;
mod verdict;

use becalm_bundle::{Bundle, StoredNodes};

pub use error::CompareError;
pub use ground::{ComparedPlace, ComparedRun, Side, run_name};
pub use metric::{Metric, MetricUnit};
pub use row::{ComparedFigure, Doubt, Effect, TestFamily};
pub use verdict::{Basis, FLOOR, LEVEL, Limit, Verdict, exceeds};

use crate::summary::Selection;
use becalm_model::node::Warning;
use gathered::Gathered;
use ground::Ground;
use recording::DigestedRun;

/// Two sides and the differences between them.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The runs before.
    pub a: Side,
    /// The runs after, which are compared with those before.
    pub b: Side,
    /// The basis of the intervals and verdicts.
    pub basis: Basis,
    /// Detours shorter than this were left out of all runs, in nanoseconds: the coarsest of all loops does not keep them.
    pub shortest_ns: i64,
    /// The rows: all CPUs together, the sources (the largest change of the share of time first), the nodes if there are several, the CPUs.
    pub rows: Vec<ComparedFigure>,
    /// The limits of the comparison, and the adjustments made for it.
    pub notes: Vec<Warning>,
}

impl Comparison {
    /// The row of a figure of all CPUs together.
    pub fn total(&self, metric: Metric) -> Option<&ComparedFigure> {
        self.rows.iter().find(|row| row.place.is_none() && row.source.is_none() && row.metric == metric)
    }
}

/// Compares the selected parts of two runs: [`compare_sides`] with one run per side. Fails if a bundle cannot be read or lacks the selection, or the
/// runs have nothing in common.
pub fn compare(a: (&Bundle, &Selection), b: (&Bundle, &Selection)) -> Result<Comparison, CompareError> {
    compare_sides(&[a], &[b])
}

/// Compares the selected parts of the runs of two sides, each with at least one.
///
/// Without a selection of CPUs, the CPUs that all runs measured are compared, node by node if the runs have several. Selected CPUs are compared only
/// together unless they are the same in all runs. Reads the detours of each run twice and its activities once, in constant memory except for one bit
/// per detour. Fails if a bundle cannot be read or lacks the selection, a side is empty, or the runs have nothing in common.
pub fn compare_sides(a: &[(&Bundle, &Selection)], b: &[(&Bundle, &Selection)]) -> Result<Comparison, CompareError> {
    if a.is_empty() || b.is_empty() {
        return Err(CompareError::NoRun);
    }
    let ground = Ground::new(a, b)?;
    compared(ground, &[a, b], |(bundle, selection), ground, run| {
        gather::gather(bundle, ground, run, selection.with_self)
    })
}

/// Compares the runs of two sides like [`compare_sides`], with each node in summary form: for runs that are not all full recordings, and bundles with
/// unreadable nodes, which are reported and left out. Reads each node twice, one after another; memory holds the figures of all and the rows of none.
/// Fails if no node of a run can be read, a run lacks the selection, a side is empty, or the runs have nothing in common.
pub fn compare_nodes(
    a: &[(&StoredNodes, &Selection)],
    b: &[(&StoredNodes, &Selection)],
) -> Result<Comparison, CompareError> {
    if a.is_empty() || b.is_empty() {
        return Err(CompareError::NoRun);
    }
    let (read_a, read_b) = (read_nodes(a)?, read_nodes(b)?);
    let (runs_a, runs_b) = (with_selections(&read_a, a), with_selections(&read_b, b));
    let mut ground = Ground::new(&runs_a, &runs_b)?;
    for (side, read) in [("A", &read_a), ("B", &read_b)] {
        for (at, run) in read.iter().enumerate() {
            ground.note_left_out(&run_name(side, at, read.len()), &run.left_out);
        }
    }
    compared(ground, &[&runs_a, &runs_b], |(recording, _), ground, run| condensed::gather(recording, ground, run))
}

fn read_nodes<'a>(runs: &[(&'a StoredNodes, &Selection)]) -> Result<Vec<DigestedRun<'a>>, CompareError> {
    let read = |(stored, selection): &(&'a StoredNodes, &Selection)| {
        let failed = |cause| CompareError::Run { path: stored.path().to_owned(), cause };
        DigestedRun::read(stored, selection).map_err(failed)
    };
    runs.iter().map(read).collect()
}

fn with_selections<'a, 'r>(
    read: &'a [DigestedRun<'r>],
    runs: &[(&StoredNodes, &'a Selection)],
) -> Vec<(&'a DigestedRun<'r>, &'a Selection)> {
    read.iter().zip(runs).map(|(read, (_, selection))| (read, *selection)).collect()
}

/// Reads the runs on their common ground, and makes the rows.
fn compared<R>(
    ground: Ground,
    runs: &[&[(&R, &Selection)]; 2],
    gather: impl Fn(&(&R, &Selection), &Ground, &ComparedRun) -> Result<Gathered, CompareError>,
) -> Result<Comparison, CompareError> {
    let mut samples = [Vec::new(), Vec::new()];
    for ((side, runs), read) in ground.sides.iter().zip(runs).zip(&mut samples) {
        for (run, recording) in side.runs.iter().zip(*runs) {
            read.push(gather(recording, &ground, run)?);
        }
    }
    let notes = ground.notes(&samples);
    let basis = Basis::for_runs(runs[0].len(), runs[1].len());
    let rows = row::rows(&ground, &samples, basis);
    let mut sides = ground.sides;
    for (side, samples) in sides.iter_mut().zip(&samples) {
        side.runs.iter_mut().zip(samples).for_each(|(run, sample)| run.count(sample));
    }
    let [a, b] = sides;
    Ok(Comparison { a, b, basis, shortest_ns: ground.shortest_ns, rows, notes })
}

/// Judges the noise of several comparisons as one family, if all ask the same question, such as which of several changes is an improvement.
pub fn judge_together(comparisons: &mut [&mut Comparison]) {
    let headlines = comparisons.iter_mut().flat_map(|comparison| {
        let basis = comparison.basis;
        let headlines = comparison.rows.iter_mut().filter(|row| row.family == TestFamily::Headline);
        headlines.map(move |row| (row, basis))
    });
    row::judge_family(headlines.collect());
}

#[cfg(test)]
mod tests;
