//! What `becalm record`, `becalm report` and `becalm sources` have to say of a recording of detours: its CPUs, its sources, how
//! sure that is, and single detours.

mod brief;
mod conclusion;
pub mod figures;
pub(crate) mod header;
pub(crate) mod html;
pub(crate) mod json;
mod notes;
mod sure;
mod tails;
pub mod timeline;
mod view;

use becalm_analyze::summary::{Summary, Timeline};
use serde::Serialize;

use crate::form::section::Page;
use crate::form::sheet::Form;
use crate::report::Report;

pub use conclusion::missed;
pub(crate) use html::NOISE_QUIET;

/// A recording: its CPUs, sources, periods and how sure all that is, as `becalm.report/1`.
pub struct RunReport<'a> {
    /// What the recording holds.
    pub summary: &'a Summary,
    /// What its page shows beside that.
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
    /// What the recording holds.
    pub summary: &'a Summary,
    /// Whether the sources and counters of each CPU are shown instead of those over all. The `share_ratio` of a source is
    /// then its share of the noise on that CPU.
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
    /// The detours, in the order in which they are shown.
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
