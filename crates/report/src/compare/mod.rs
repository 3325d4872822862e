//! Two sides of recordings compared, for people and as `becalm.compare/1`.

mod charts;
mod doubt;
mod figures;
pub(crate) mod json;
mod rows;
mod view;
mod words;

use becalm_analyze::compare::{Comparison, Limit, Metric};
use serde::Serialize;

use crate::form::section::Page;
use crate::form::sheet::Form;
use crate::report::Report;

pub use charts::{forest_chart, tone};
pub use doubt::reason;
pub(crate) use figures::{COLUMNS, title};
pub use figures::{SHARE_COLUMNS, change, figure, interval, said};
pub(crate) use rows::{cpus, most_changed_first, nodes, place, place_name, sources, totals};
pub use words::{NAMED, changed, check_text, headline, limit_text, significant};
pub(crate) use words::{legend, runs, shown_source};

/// A comparison and its limits.
#[derive(Clone, Debug)]
pub struct CompareReport<'a> {
    /// The runs and the rows.
    pub comparison: &'a Comparison,
    /// The given limits; may be empty.
    pub checks: &'a [LimitCheck],
}

/// A limit on how much worse the second side may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LimitCheck {
    /// The limited figure, over all CPUs together.
    pub metric: Metric,
    /// How much worse it may be, relative to the first side's figure.
    pub share: f64,
    /// Whether the limit was exceeded.
    pub outcome: Limit,
}

impl Report for CompareReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.compare/1"
    }

    fn document(&self) -> impl Serialize {
        json::document(self)
    }

    fn view(&self, form: Form) -> Page {
        view::page(self, form.all())
    }
}
