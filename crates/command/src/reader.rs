//! Answers the user of the command line: results to an output, progress to standard error.

use std::fmt;
use std::io::Write;

use becalm_analyze::summary::Detail;
use becalm_answer::{Asker, Steps};
use becalm_bundle::Bundle;
use becalm_report::Report;
use becalm_units::fault;

use crate::messages;
use crate::output::{Output, emit};
use crate::progress::{Bar, ReadingProgress, Tail};

/// The reader of one command's output.
pub struct Reader<'a> {
    /// The destination of the only answer; taken when that arrives.
    output: Option<Output>,
    out: &'a mut dyn Write,
}

impl<'a> Reader<'a> {
    /// The reader of this output.
    pub const fn new(output: Output, out: &'a mut dyn Write) -> Self {
        Self { output: Some(output), out }
    }
}

impl Asker for Reader<'_> {
    fn detail(&self) -> Detail {
        self.output.as_ref().map_or(Detail::Figures, Output::detail)
    }

    fn show(&mut self, report: &impl Report) -> fault::Result<()> {
        let output = self.output.take().ok_or_else(|| fault::Error::new("a command has one answer"))?;
        emit(report, output, self.out)
    }

    fn tell(&self, message: fmt::Arguments<'_>) {
        messages::say(message);
    }

    fn reading(&self, bundle: &Bundle, times: u64) -> impl Sized {
        ReadingProgress::begin(bundle, times)
    }

    fn comparing<'b>(&self, bundles: impl Iterator<Item = &'b Bundle> + Clone) -> impl Sized {
        ReadingProgress::to_compare(bundles)
    }

    fn predicting(&self, steps: u64) -> impl Steps {
        Bar::new("predicting", steps, Tail::TimeLeft)
    }
}

impl Steps for Bar {
    fn say(&self, what: String) {
        Self::say(self, format!("predicting {what}"));
    }

    fn advance(&self, steps: u64) {
        Self::advance(self, steps);
    }

    fn reach(&self, steps: u64) {
        Self::reach(self, steps);
    }
}
