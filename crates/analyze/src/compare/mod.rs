//! Two runs against each other: before and after, or machine against machine.
//!
//! [`compare`] reads both bundles, batch after batch, brings them to what they have in common (the CPUs, the higher
//! threshold, rates instead of sums, the sources if both know them) or says why that cannot be, and gives a [`ComparedFigure`] for
//! each figure: both values, the difference with its interval, the effect, the test's p-value, and a [`Verdict`].
//!
//! Detours come in trains, so that every interval and test rests on blocks of time, as those of one run do: `contrast`
//! has the figures that are sums over time, `tails` the high quantiles, `extremes` the longest detours. Many rows are many
//! chances to be wrong, so that verdicts go by p-values adjusted for their [`TestFamily`]. What the tests find on equal runs
//! and on runs that differ by a tenth is measured in this module's tests.
//!
//! How the rows are shown is for the crate `report`.

mod contrast;
mod error;
mod extremes;
mod gather;
mod gathered;
mod ground;
mod holm;
mod metric;
mod row;
mod sample;
mod series;
mod tails;
mod verdict;

use becalm_bundle::Bundle;

pub use error::CompareError;
pub use ground::{ComparedCpu, Side};
pub use metric::{Metric, MetricUnit};
pub use row::{ComparedFigure, Doubt, Effect, TestFamily};
pub use verdict::{LEVEL, Limit, Verdict, exceeds};

use crate::summary::Selection;
use becalm_model::node::Warning;

/// Two runs and what was found.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The run before, against which the other one is held.
    pub a: Side,
    /// The run after, which is held against the one before.
    pub b: Side,
    /// Detours shorter than this were left out of both runs, in nanoseconds: what the coarser of all loops would have kept.
    pub shortest_ns: i64,
    /// The rows: all CPUs together, then the sources, then the CPUs; within the sources the largest change of the share
    /// of time first.
    pub rows: Vec<ComparedFigure>,
    /// What limits the comparison, and what was done to make it possible.
    pub notes: Vec<Warning>,
}

impl Comparison {
    /// The row of a figure of all CPUs together.
    #[must_use]
    pub fn total(&self, metric: Metric) -> Option<&ComparedFigure> {
        self.rows.iter().find(|row| row.place.is_none() && row.source.is_none() && row.metric == metric)
    }
}

/// Compares the selected parts of two runs.
///
/// Where no CPUs are selected in either, those that both runs measured are compared, node by node if the runs have
/// several; where CPUs are selected, these, and if they are not the same in both, only all together. Reads the detours
/// of each run twice and its activities once, in memory that does not grow with them but for one bit a detour.
///
/// # Errors
/// If a bundle cannot be read or does not hold what was selected, or the runs have nothing in common.
pub fn compare(a: (&Bundle, &Selection), b: (&Bundle, &Selection)) -> Result<Comparison, CompareError> {
    let ground = ground::Ground::between(a, b)?;
    let samples = [gather::gather(a.0, &ground, 0)?, gather::gather(b.0, &ground, 1)?];
    let notes = ground.notes(&samples);
    let rows = row::rows(&ground, &samples);
    let [side_a, side_b] = ground.sides;
    let [a, b] = [side_a.counted(&samples[0]), side_b.counted(&samples[1])];
    Ok(Comparison { a, b, shortest_ns: ground.shortest_ns, rows, notes })
}

#[cfg(test)]
mod tests;
