//! Audits a machine against what quiet CPUs need: `becalm tune check`.
//!
//! Boot parameters are checked for presence, for whether this kernel takes them, for agreement with each other, and for
//! their effect; then everything that can be changed while the kernel runs. Each [`Finding`] has its evidence, the
//! sources of noise that it lets through, and what removes it. Nothing is changed, and nothing here measures: ticks that
//! were counted and what a recording saw are handed in.

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

use std::path::Path;

use becalm_units::CpuList;

pub use choice::{Choice, ChoiceError, Chosen, choose};
pub use cost::{Cost, Recorded, RecordedSource, SourceCost};
pub use finding::{Area, Evidence, Finding, Fix, Severity};
pub use tick::{TickCount, TicksFrom};

use finding::Findings;
use subject::Subject;

/// Everything that was found out.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// The CPUs that are to be quiet, and why these.
    pub choice: Choice,
    /// What was found: the gravest first, within that in the order of [`Area`].
    pub findings: Vec<Finding>,
}

impl Check {
    /// Looks at the machine whose files lie below `root`. Never fails: what cannot be read is a finding.
    ///
    /// `ticks` are the timer interrupts that were counted on the chosen CPUs, of as many of them as were measured.
    #[must_use]
    pub fn gather(root: &Path, choice: Choice, ticks: &[TickCount]) -> Self {
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
        // The sort is stable: within an area the order is that of the checks.
        findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.area));
        Self { choice, findings }
    }

    /// Adds to every finding what it let through in a recording, and ranks findings of one severity by that.
    pub fn add_costs(&mut self, recorded: &Recorded) {
        for finding in &mut self.findings {
            finding.cost = recorded.cost_of(&finding.noise);
        }
        let cost = |finding: &Finding| finding.cost.as_ref().map_or(0, |cost| cost.total.get());
        self.findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), std::cmp::Reverse(cost(finding))));
    }

    /// How many findings have a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The gravest that was found; nothing where nothing was.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// `CPU 1` or `CPUs 1-3`.
fn cpus(list: &CpuList) -> String {
    if list.len() == 1 { format!("CPU {list}") } else { format!("CPUs {list}") }
}

/// The first of some names, and how many more there are: `a, b, c and 4 more`.
fn some<T: AsRef<str>>(names: &[T], shown: usize) -> String {
    let first: Vec<&str> = names.iter().take(shown).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(shown) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
