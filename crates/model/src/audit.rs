//! What becalm can see on a machine, and what it cannot: what the plain `becalm` command says.

use becalm_units::CpuList;
use serde::Serialize;

use crate::node::Rung;

/// What a recording needs, or is better for.
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
    /// Whether memory may be locked, so that loops take no page faults.
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
    /// What lies below the kernel: a hypervisor, or nothing that shows.
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
    /// What was seen on the machine.
    pub what: String,
    /// What follows for a recording; empty if nothing does.
    pub consequence: String,
    /// What the user can do about it; empty if nothing.
    pub advice: String,
}

impl Answer {
    /// An ability that can be had in full.
    pub fn available(ability: Ability, what: impl Into<String>) -> Self {
        Self {
            ability,
            access: Availability::Available,
            what: what.into(),
            consequence: String::new(),
            advice: String::new(),
        }
    }

    /// An ability that can be had in part.
    pub fn limited(
        ability: Ability,
        what: impl Into<String>,
        consequence: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (what, consequence, advice) = (what.into(), consequence.into(), advice.into());
        Self { ability, access: Availability::Limited, what, consequence, advice }
    }

    /// An ability that cannot be had.
    pub fn missing(
        ability: Ability,
        what: impl Into<String>,
        consequence: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { access: Availability::Missing, ..Self::limited(ability, what, consequence, advice) }
    }
}

/// A command to begin with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct FirstStep {
    /// The command line to type.
    pub command: String,
    /// What the user learns from it, in one sentence.
    pub why: String,
}

/// Everything that was found out about a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit {
    /// The machine's name; empty if it cannot be read.
    pub node: String,
    /// The release of its kernel; empty if it cannot be read.
    pub kernel: String,
    /// The model of its processors; empty if the kernel does not tell.
    pub processor: String,
    /// One or more answers for each ability, in the order of [`Ability`].
    pub answers: Vec<Answer>,
    /// The CPUs that can be measured.
    pub measurable: CpuList,
    /// Those of them that are isolated from the scheduler.
    pub isolated: CpuList,
    /// The commands to begin with; empty if nothing can be measured.
    pub first_steps: Vec<FirstStep>,
}

impl Audit {
    /// How well an ability can be had: the worst of its answers; `None` if it was not looked for, since an earlier one
    /// rules it out.
    pub fn access(&self, ability: Ability) -> Option<Availability> {
        self.answers.iter().filter(|answer| answer.ability == ability).map(|answer| answer.access).max()
    }

    /// Whether an ability can be had, in full or in part.
    pub fn has(&self, ability: Ability) -> bool {
        self.access(ability).is_some_and(|access| access < Availability::Missing)
    }

    /// How far up the ladder a recording can go.
    pub fn rung(&self) -> Rung {
        // What was not looked at, as tracefs is to be mounted first, is not lacking.
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
