//! Knobs: the settings that a change can change.

use std::fmt;
use std::path::PathBuf;

use becalm_units::chosen;
use serde::{Deserialize, Serialize};

/// A setting with a value that can be read, changed and restored.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Knob {
    /// A file of the kernel.
    File {
        /// Its absolute path.
        path: PathBuf,
        /// The meaning of its text.
        meaning: Meaning,
    },
    /// The CPUs on which a thread may run: a list.
    Affinity {
        /// The thread ID.
        tid: i32,
        /// Its start, in clock ticks since boot; distinguishes it from a later thread with the same ID.
        start_ticks: u64,
        /// The name of the thread, of at most 15 bytes.
        comm: String,
    },
    /// A control group: `there` or `absent`.
    Group {
        /// Its directory, an absolute path.
        path: PathBuf,
    },
    /// Whether a control group of version 2 lets its children use a controller: `on` or `off`.
    Controller {
        /// The group's directory, an absolute path.
        path: PathBuf,
        /// The controller, as in the file: `cpuset`.
        name: String,
    },
    /// A property of a systemd unit, set until the next boot.
    Property {
        /// The unit that has the property: `system.slice`.
        unit: String,
        /// The property, as in `systemctl set-property`: `AllowedCPUs`.
        name: String,
    },
    /// Whether a systemd unit runs: `active` or `inactive`.
    Unit {
        /// The unit's name: `becalm.slice`.
        unit: String,
    },
}

/// The meaning of a file's text: it decides when two texts are the same value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Meaning {
    /// A word or a number.
    Word,
    /// A list of CPUs, `0-3,8`.
    CpuList,
    /// A mask of CPUs in hexadecimal words, `ff,ffffffff`.
    CpuMask,
    /// One of several words; the file marks the present one by brackets: `always [madvise] never`.
    Choice,
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, .. } => write!(f, "{}", path.display()),
            Self::Affinity { tid, comm, .. } => write!(f, "CPUs of {comm} ({tid})"),
            Self::Group { path } => write!(f, "{}/", path.display()),
            Self::Controller { path, name } => write!(f, "{}/cgroup.subtree_control: {name}", path.display()),
            Self::Property { unit, name } => write!(f, "{name} of {unit}"),
            Self::Unit { unit } => f.write_str(unit),
        }
    }
}

impl Knob {
    /// A file with a word or a number.
    pub fn word(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), meaning: Meaning::Word }
    }

    /// A file with a list of CPUs.
    pub fn cpu_list(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), meaning: Meaning::CpuList }
    }

    /// A file with a mask of CPUs.
    pub fn cpu_mask(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), meaning: Meaning::CpuMask }
    }

    /// A file that shows its value among the possible ones.
    pub fn choice(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), meaning: Meaning::Choice }
    }

    /// The value itself in a text that was read: for a choice only the chosen word. Writing it restores that value.
    pub fn value<'a>(&self, text: &'a str) -> &'a str {
        match self {
            Self::File { meaning: Meaning::Choice, .. } => chosen(text),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_choice_is_the_chosen_word() {
        assert_eq!(Knob::choice("/x").value("always [madvise] never\n"), "madvise");
        assert_eq!(Knob::word("/x").value("1\n"), "1\n");
    }
}
