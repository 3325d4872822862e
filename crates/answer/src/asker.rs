//! The part of the caller that an answer depends on.

use std::fmt;

use becalm_analyze::summary::Detail;
use becalm_bundle::Bundle;
use becalm_report::Report;
use becalm_units::fault;

/// Asks a question and shows the answer.
pub trait Asker {
    /// The detail of a recording in the answer.
    fn detail(&self) -> Detail {
        Detail::Everything
    }

    /// Shows the answer.
    fn show(&mut self, report: &impl Report) -> fault::Result<()>;

    /// Shows a message that is not part of the answer: the expected time, or what is left out.
    fn tell(&self, message: fmt::Arguments<'_>);

    /// Shows the progress of reading a run `times` times, until the returned value is dropped.
    fn reading(&self, bundle: &Bundle, times: u64) -> impl Sized;

    /// Shows the progress of reading runs to compare, until the returned value is dropped.
    fn comparing<'a>(&self, bundles: impl Iterator<Item = &'a Bundle> + Clone) -> impl Sized;

    /// Shows the progress of a prediction of about `steps` steps, until the returned value is dropped.
    fn predicting(&self, steps: u64) -> impl Steps;
}

/// The progress of a prediction, reported by several threads.
pub trait Steps: Sync {
    /// Names the work that starts now, such as `1,024 ranks` or `blame`.
    fn say(&self, what: String);

    /// Adds finished steps.
    fn advance(&self, steps: u64);

    /// Sets the number of finished steps.
    fn reach(&self, steps: u64);
}
