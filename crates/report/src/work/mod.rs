//! What `becalm work` has to say of samples of work, as `becalm.work/1`, for a terminal, and as a page.

mod charts;
mod comparison;
mod drawing;
mod fields;
mod html;
pub(crate) mod json;
mod text;

use std::io;

use becalm_analyze::work::WorkSummary;
use serde::Serialize;

use crate::form::sheet::Sheet;
use crate::html::Page;
use crate::report::Report;

/// Runs of work, one for each body, number of copies and rate of added interrupts.
pub struct WorkReport<'a> {
    /// The runs, in the order in which they were made.
    pub runs: &'a [WorkSummary],
}

impl Report for WorkReport<'_> {
    fn schema(&self) -> &'static str {
        "becalm.work/1"
    }

    fn document(&self) -> impl Serialize {
        json::document(self.runs)
    }

    fn text(&self, out: &mut Sheet<'_>) -> io::Result<()> {
        text::render(self.runs, out)
    }

    /// The page of a single run; there is none of several.
    fn page(&self, program: &str) -> Option<Page> {
        match self.runs {
            [run] => Some(html::page(run, program)),
            _ => None,
        }
    }
}
