//! Plans: every change in order, boot parameters, and notes.

use becalm_model::tune::{Family, Profile};
use becalm_units::CpuList;
use serde::{Deserialize, Serialize};

use super::{BootParameter, Change};

/// The changes that make some CPUs quiet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The CPUs that become quiet, for the command.
    pub cpus: CpuList,
    /// The requested CPUs that are left idle, for the system.
    pub left_idle: CpuList,
    /// Hardware threads of the same cores that are taken offline.
    pub siblings: CpuList,
    /// The housekeeping CPUs: never empty.
    pub housekeeping: CpuList,
    /// The purpose of the CPUs.
    pub profile: Profile,
    /// Every change, in order of application; they are undone in reverse.
    pub steps: Vec<Change>,
    /// The boot parameters, for settings that need a reboot.
    pub boot: Vec<BootParameter>,
    /// Notes, such as on knobs left alone.
    pub notes: Vec<Note>,
}

impl Plan {
    /// The boot parameters as a text to append to the kernel's command line; may be empty.
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
    /// The observation, and its consequence.
    pub text: String,
}
