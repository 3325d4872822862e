//! Runs against each other: before and after, or machine against machine, with one run a side or several.
//!
//! [`compare`] reads the bundles, batch after batch, brings them to what they have in common (the CPUs, the higher
//! threshold, rates instead of sums, the sources if both know them) or says why that cannot be, and gives a [`ComparedFigure`] for
//! each figure: both values, the difference with its interval, the effect, the test's p-value, and a [`Verdict`].
//!
//! Detours come in trains, so what a run says of its own scatter rests on blocks of time: `series`
//! has the figures that are sums over time, `tails` the high quantiles, `extremes` the longest detours. Many rows are many
//! chances to be wrong, so verdicts go by p-values adjusted for their [`TestFamily`].
//!
//! Two recordings of the same machine differ by more than either scatters within itself. How much more is shown by several runs of
//! each side, whose figures `contrast` compares. One run a side cannot show it, so it is compared by what was learned from
//! recordings of an unchanged machine (`alone`), and only a difference beyond that is claimed ([`Basis`]). What the tests find on
//! equal runs and on runs that differ is measured in this module's tests.
//!
//! How the rows are shown is for the crate `report`.

mod alone;
mod condensed;
pub mod contrast;
mod error;
mod extremes;
mod gather;
mod gathered;
mod ground;
pub mod holm;
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

/// Two sides and what was found.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The runs before, against which the others are held.
    pub a: Side,
    /// The runs after, which are held against those before.
    pub b: Side,
    /// What the intervals and verdicts rest on.
    pub basis: Basis,
    /// Detours shorter than this were left out of all runs, in nanoseconds: what the coarser of all loops would have kept.
    pub shortest_ns: i64,
    /// The rows: all CPUs together, then the sources, then the nodes where there are several, then the CPUs; within the sources the largest
    /// change of the share of time first.
    pub rows: Vec<ComparedFigure>,
    /// What limits the comparison, and what was done to make it possible.
    pub notes: Vec<Warning>,
}

impl Comparison {
    /// The row of a figure of all CPUs together.
    pub fn total(&self, metric: Metric) -> Option<&ComparedFigure> {
        self.rows.iter().find(|row| row.place.is_none() && row.source.is_none() && row.metric == metric)
    }
}

/// Compares the selected parts of two runs: [`compare_sides`] with one run a side. Fails if a bundle cannot be read or does not hold what
/// was selected, or the runs have nothing in common.
pub fn compare(a: (&Bundle, &Selection), b: (&Bundle, &Selection)) -> Result<Comparison, CompareError> {
    compare_sides(&[a], &[b])
}

/// Compares the selected parts of the runs of two sides, each of which has at least one.
///
/// Where no CPUs are selected in any, those that all runs measured are compared, node by node if the runs have
/// several; where CPUs are selected, these, and if they are not the same in all, only all together. Reads the detours
/// of each run twice and its activities once, in memory that does not grow with them but for one bit a detour. Fails if a bundle cannot be
/// read or does not hold what was selected, a side is empty, or the runs have nothing in common.
pub fn compare_sides(a: &[(&Bundle, &Selection)], b: &[(&Bundle, &Selection)]) -> Result<Comparison, CompareError> {
    if a.is_empty() || b.is_empty() {
        return Err(CompareError::NoRun);
    }
    let ground = Ground::new(a, b)?;
    compared(ground, &[a, b], |(bundle, selection), ground, run| {
        gather::gather(bundle, ground, run, selection.with_self)
    })
}

/// Compares the runs of two sides as [`compare_sides`] does, each node in its summary form: of runs of which not all are full
/// recordings, and of bundles with nodes that cannot be read, which are told and left out. Each node is read twice, one after another; memory
/// holds the figures of all and the rows of none. Fails if no node of a run can be read, a run does not hold what was selected, a side is
/// empty, or the runs have nothing in common.
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

/// Reads the runs on their ground, and makes the rows.
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

/// Judges the noise of several comparisons as one family: verdicts that are right together, where all ask the same, as which of several
/// changes is one for the better.
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
