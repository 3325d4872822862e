//! Plans: every change in order, what only a reboot can give, and what there is to know.

use becalm_model::tune::{Family, Profile};
use becalm_units::CpuList;
use serde::{Deserialize, Serialize};

use super::{BootParameter, Change};

/// What is to be done to make some CPUs quiet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The CPUs that become quiet, on which a command may run.
    pub cpus: CpuList,
    /// The CPUs that were asked for and are left idle, for the system's use.
    pub left_idle: CpuList,
    /// Hardware threads of the same cores that are taken offline.
    pub siblings: CpuList,
    /// The CPUs to which everything else is moved: never empty.
    pub housekeeping: CpuList,
    /// What the CPUs are wanted for.
    pub profile: Profile,
    /// Every change, in the order in which they are made; they are undone in reverse.
    pub steps: Vec<Change>,
    /// What only a reboot can give.
    pub boot: Vec<BootParameter>,
    /// What there is to know, and what was left alone.
    pub notes: Vec<Note>,
}

impl Plan {
    /// The boot parameters as one text to add to the kernel's command line; empty if nothing is to be added.
    pub fn command_line(&self) -> String {
        self.boot.iter().map(BootParameter::text).collect::<Vec<_>>().join(" ")
    }
}

/// Something to know about a family of knobs that is no change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Note {
    /// The family that was being planned.
    pub family: Family,
    /// What was seen, and what follows.
    pub text: String,
}
