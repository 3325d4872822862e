//! The output of `becalm record`, `becalm report` and `becalm report --sources` for a recording of detours: CPUs, sources, confidence, and single detours.

mod brief;
mod conclusion;
pub mod figures;
pub(crate) mod header;
pub(crate) mod html;
pub(crate) mod json;
mod notes;
mod programs;
mod sure;
mod tails;
pub mod timeline;
mod verdict;
mod view;

use becalm_analyze::summary::{Summary, Timeline};
use serde::Serialize;

use crate::form::section::Page;
use crate::form::sheet::Form;
use crate::report::Report;

pub use conclusion::missed;
pub(crate) use verdict::NOISE_QUIET;

/// A recording: CPUs, sources, periods and their confidence, as `becalm.report/1`.
pub struct RunReport<'a> {
    /// The analyzed recording.
    pub summary: &'a Summary,
    /// The additional contents of its page.
    pub drawn: Option<html::Drawn<'a>>,
    /// Whether the short report shows the cost at scale, if the summary has it.
    pub at_scale: bool,
}

impl Report for RunReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.report/1"
    }

    fn document(&self) -> impl Serialize {
        json::document(self.summary, false)
    }

    fn answer(&self) -> Option<String> {
        Some(brief::answer(self.summary))
    }

    fn view(&self, form: Form) -> Page {
        if form.all() {
            view::full(self.summary, self.drawn.as_ref())
        } else {
            view::brief(self.summary, self.at_scale)
        }
    }
}

/// The sources of a recording, as `becalm.sources/1`.
pub struct SourcesReport<'a> {
    /// The analyzed recording.
    pub summary: &'a Summary,
    /// Whether to show sources and counters per CPU instead of over all. The `share_ratio` of a source is then its share of that CPU's noise.
    pub per_cpu: bool,
}

impl Report for SourcesReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.sources/1"
    }

    fn document(&self) -> impl Serialize {
        json::document(self.summary, self.per_cpu)
    }

    fn view(&self, form: Form) -> Page {
        view::ranked(self.summary, self.per_cpu, form.all())
    }
}

/// Single detours with their activities, as `becalm.detours/1`.
pub struct DetoursReport<'a> {
    /// The detours, in the order of the output.
    pub timelines: &'a [Timeline],
}

impl Report for DetoursReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.detours/1"
    }

    fn document(&self) -> impl Serialize {
        json::detours(self.timelines)
    }

    fn view(&self, _: Form) -> Page {
        Page {
            title: "Single detours".to_owned(),
            subtitle: String::new(),
            sections: vec![timeline::section(self.timelines)],
            foot: Vec::new(),
        }
    }
}
