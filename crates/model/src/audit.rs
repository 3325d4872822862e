//! The capabilities of becalm on a machine, as printed by plain `becalm`.

use becalm_units::CpuList;
use serde::Serialize;

use crate::node::Rung;

/// An ability that a recording needs or benefits from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, strum::IntoStaticStr, strum::VariantArray)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Ability {
    /// The hardware counter that the loops read.
    Counter,
    /// The CPUs that can be measured.
    Cpus,
    /// Whether loops may run in a real-time class.
    Realtime,
    /// Whether memory may be locked, to spare loops page faults.
    Memory,
    /// Whether the kernel's tracing (tracefs) can be found and written.
    Tracing,
    /// Single kinds of kernel events.
    Events,
    /// The clock of the kernel's trace.
    TraceClock,
    /// Names of kernel functions.
    Symbols,
    /// The counters in `/proc` that still tell something where there is no trace.
    Counters,
    /// The layer below the kernel: a hypervisor, or nothing visible.
    Hypervisor,
    /// Frequency and sleep states.
    Power,
}

/// How well an ability can be had, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// It can be had in full.
    Available,
    /// It can be had in part, or with something to know about.
    Limited,
    /// It cannot be had.
    Missing,
}

/// How well one ability can be had on this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The ability that was looked for.
    #[serde(rename = "area")]
    pub ability: Ability,
    /// How well it can be had.
    #[serde(rename = "state")]
    pub access: Availability,
    /// The finding on the machine.
    pub what: String,
    /// What follows for a recording; empty if nothing does.
    pub consequence: String,
    /// The user's next step; empty if there is none.
    pub advice: String,
}

impl Answer {
    /// An ability that is fully available.
    pub fn available(ability: Ability, what: impl Into<String>) -> Self {
        Self {
            ability,
            access: Availability::Available,
            what: what.into(),
            consequence: String::new(),
            advice: String::new(),
        }
    }

    /// An ability that is partly available.
    pub fn limited(
        ability: Ability,
        what: impl Into<String>,
        consequence: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (what, consequence, advice) = (what.into(), consequence.into(), advice.into());
        Self { ability, access: Availability::Limited, what, consequence, advice }
    }

    /// An ability that is not available.
    pub fn missing(
        ability: Ability,
        what: impl Into<String>,
        consequence: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { access: Availability::Missing, ..Self::limited(ability, what, consequence, advice) }
    }
}

/// A command to start with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct FirstStep {
    /// The command line to type.
    pub command: String,
    /// Its use, in one sentence.
    pub why: String,
}

/// All results of the audit of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit {
    /// The machine's name; empty if it cannot be read.
    pub node: String,
    /// The release of its kernel; empty if it cannot be read.
    pub kernel: String,
    /// The model of its processors; empty if the kernel does not report it.
    pub processor: String,
    /// At least one answer per ability, in the order of [`Ability`].
    pub answers: Vec<Answer>,
    /// The CPUs that can be measured.
    pub measurable: CpuList,
    /// The measurable CPUs that are isolated from the scheduler.
    pub isolated: CpuList,
    /// Suggested first commands; empty if nothing can be measured.
    pub first_steps: Vec<FirstStep>,
}

impl Audit {
    /// The availability of an ability: the worst of its answers; `None` if it was not checked, because an earlier one rules it out.
    pub fn access(&self, ability: Ability) -> Option<Availability> {
        self.answers.iter().filter(|answer| answer.ability == ability).map(|answer| answer.access).max()
    }

    /// Whether an ability is available, fully or partly.
    pub fn has(&self, ability: Ability) -> bool {
        self.access(ability).is_some_and(|access| access < Availability::Missing)
    }

    /// The highest possible access level of a recording.
    pub fn rung(&self) -> Rung {
        // Abilities that were not checked, because tracefs must be mounted first, are not missing.
        let lacks = |ability| self.access(ability) == Some(Availability::Missing);
        if self.has(Ability::Tracing) && !lacks(Ability::Events) && !lacks(Ability::TraceClock) {
            Rung::Tracepoints
        } else if self.has(Ability::Counters) {
            Rung::Proc
        } else {
            Rung::Loop
        }
    }
}
