//! Whoever asks, as far as an answer has to know of them.

use std::fmt;

use becalm_analyze::summary::Detail;
use becalm_bundle::Bundle;
use becalm_report::Report;
use becalm_units::fault;

/// Somebody who has asked something, and is shown the answer.
pub trait Asker {
    /// How much of a recording the answer shows.
    fn detail(&self) -> Detail {
        Detail::Everything
    }

    /// Takes the answer.
    fn show(&mut self, report: &impl Report) -> fault::Result<()>;

    /// Is told something that is no part of the answer: how long it will take, what is left out of it.
    fn tell(&self, message: fmt::Arguments<'_>);

    /// Watches a run being read so many times, until the value that comes back is dropped.
    fn reading(&self, bundle: &Bundle, times: u64) -> impl Sized;

    /// Watches runs being read to be compared, until the value that comes back is dropped.
    fn comparing<'a>(&self, bundles: impl Iterator<Item = &'a Bundle> + Clone) -> impl Sized;

    /// Watches a prediction of about so many steps, until the value that comes back is dropped.
    fn predicting(&self, steps: u64) -> impl Steps;
}

/// How far a prediction is. Its steps are told by several threads.
pub trait Steps: Sync {
    /// Names the work that starts now, such as `1,024 ranks` or `blame`.
    fn say(&self, what: String);

    /// So many more steps are done.
    fn advance(&self, steps: u64);

    /// As many steps as this are done by now, however many were told.
    fn reach(&self, steps: u64);
}
