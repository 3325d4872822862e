//! Audits a machine against the needs of quiet CPUs: `becalm tune audit`.
//!
//! Boot parameters are checked for presence, support by this kernel, consistency, and effect; then everything that can be changed at run time. Each
//! [`Finding`] has its evidence, the noise sources that it permits, and the fix. Nothing is changed or measured here: counted ticks and recorded
//! costs are passed in.

mod boot;
mod build;
mod choice;
mod clock;
mod cost;
mod deferred;
mod finding;
mod hypervisor;
mod irq;
mod isolation;
mod memory;
mod power;
mod subject;
mod tasks;
mod tick;
mod timers;
mod tracing;
mod words;

use std::path::Path;

use crate::document::{Check, CpuChoice, Finding, TickCount};

pub use choice::{ChoiceError, choose};
pub use cost::{RecordedNoise, RecordedSource};

use finding::Findings;
use subject::Subject;

/// Examines the machine with its files below `root`. Never fails: what cannot be read becomes a finding.
///
/// `ticks` are the timer interrupts counted on the chosen CPUs that were measured.
pub fn check(root: &Path, choice: CpuChoice, ticks: &[TickCount]) -> Check {
    let mut findings = Findings::new(root);
    let subject = Subject::read(root, &choice, &mut findings);
    isolation::check(&subject, &mut findings);
    tick::check(&subject, ticks, &mut findings);
    boot::check(&subject, &mut findings);
    irq::check(&subject, &mut findings);
    deferred::check(&subject, &mut findings);
    tasks::check(&subject, &mut findings);
    timers::check(&subject, &mut findings);
    clock::check(&subject, &mut findings);
    power::check(&subject, &mut findings);
    memory::check(&subject, &mut findings);
    tracing::check(&subject, &mut findings);
    hypervisor::check(&subject, &mut findings);
    build::check(&subject, &mut findings);
    let mut findings = findings.into_vec();
    // The sort is stable: an area keeps the order of its checks.
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.area));
    Check { choice, findings }
}

/// Adds to every finding the recorded cost of what it permits, and ranks findings of equal severity by that.
pub fn add_costs(check: &mut Check, recorded: &RecordedNoise) {
    for finding in &mut check.findings {
        finding.cost = recorded.cost_of(&finding.noise);
    }
    let cost = |finding: &Finding| finding.cost.as_ref().map_or(0, |cost| cost.total.get());
    check.findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), std::cmp::Reverse(cost(finding))));
}

#[cfg(test)]
mod tests;
