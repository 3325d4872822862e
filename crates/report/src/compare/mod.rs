//! Two runs against each other, for a terminal and as `becalm.compare/1`; the page for a browser is made of the same parts.

mod figures;
mod json;
mod rows;
mod tables;
mod words;

use becalm_analyze::compare::{Comparison, Limit, Metric};

pub(crate) use figures::{COLUMNS, change, figure, title};
pub use json::compare_json;
pub(crate) use rows::{cpu_name, cpus, most_changed_first, place, sources, totals};
pub use tables::render_compare;
pub(crate) use words::{NAMED, answer, changed, legend, reason, side};
pub use words::{check_text, headline};

/// What was compared, and what was asked of it.
#[derive(Clone, Debug)]
pub struct CompareReport<'a> {
    /// The runs and the rows.
    pub comparison: &'a Comparison,
    /// The limits that were given; none, if none were.
    pub checks: &'a [Check],
}

/// A limit on how much worse the second run may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    /// Of which figure of all CPUs together.
    pub metric: Metric,
    /// By which part of the first run's figure it may be worse.
    pub share: f64,
    /// What came out.
    pub outcome: Limit,
}
