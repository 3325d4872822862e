//! The part of a recording in which all CPUs of a node were watched.

use becalm_model::node::{NodeDoc, Warning};
use becalm_model::warning;
use becalm_units::Nanos;

/// A stretch of the time of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// When it begins, since the run's origin.
    pub begin: Nanos,
    /// How long it is.
    pub length: Nanos,
}

impl Window {
    /// The time in which all loops of a node ran. Ranks of a node replay its CPUs side by side, so that what one CPU alone
    /// was watched for is left out. `last` is the end of the last detour, where a recording is cut that did not end.
    pub fn common_to_all_cpus(doc: &NodeDoc, last: Option<Nanos>, warnings: &mut Vec<Warning>) -> Self {
        let begin = doc.cpus.iter().map(|cpu| cpu.start_ns).max().unwrap_or(Nanos::ZERO);
        let ends = doc.cpus.iter().map(|cpu| cpu.start_ns.checked_add(cpu.duration_ns).unwrap_or(Nanos::MAX));
        let end = if doc.ended.is_some() {
            ends.min()
        } else {
            warnings.push(warning::not_ended_on(&doc.node));
            last
        };
        let end = end.unwrap_or(Nanos::ZERO);
        let longest = doc.cpus.iter().map(|cpu| cpu.duration_ns).max().unwrap_or(Nanos::ZERO);
        let length = end.checked_sub(begin).unwrap_or(Nanos::ZERO);
        if doc.ended.is_some() && length.as_secs_f64() < 0.99 * longest.as_secs_f64() {
            warnings.push(warning::cut_to_common(&doc.node, longest, length));
        }
        Self { begin, length }
    }
}
