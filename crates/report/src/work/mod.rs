//! Samples of work for people and as `becalm.work/1`.

mod charts;
mod comparison;
mod drawing;
mod fields;
mod html;
pub(crate) mod json;
mod view;

use becalm_analyze::work::WorkSummary;
use serde::Serialize;

use crate::form::section::Page;
use crate::form::sheet::Form;
use crate::report::Report;

/// Runs of work, one per body, number of copies and rate of added interrupts.
pub struct WorkReport<'a> {
    /// The runs, in the order of their execution.
    pub runs: &'a [WorkSummary],
}

impl Report for WorkReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.work/1"
    }

    fn document(&self) -> impl Serialize {
        json::document(self.runs)
    }

    fn view(&self, form: Form) -> Page {
        view::page(self.runs, form.all())
    }
}
