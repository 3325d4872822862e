//! Plans as files of other programs, which then make the changes at every boot: a profile of tuned, units of systemd, the
//! settings of Slurm.
//!
//! What is in a plan and cannot outlive a boot is left out, and said in the files: numbers of interrupts and of threads,
//! control groups that somebody must fill. These programs have their own ways for the same ends, which are used instead.

mod file;
mod slurm;
mod systemd;
mod tuned;

use std::fmt;
use std::str::FromStr;

pub use file::ConfigFile;
pub use slurm::{NoTopology, Topology};

use crate::Plan;

/// The programs whose files can be written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// A profile of tuned.
    Tuned,
    /// A slice, drop-ins and settings of systemd.
    Systemd,
    /// Settings of Slurm: core specialization.
    Slurm,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Tuned, Self::Systemd, Self::Slurm];

    /// The name by which it is chosen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tuned => "tuned",
            Self::Systemd => "systemd",
            Self::Slurm => "slurm",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no format has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no format; there are {known}", known = Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// The files that make a plan's changes at every boot.
///
/// `topology` says how the machine's CPUs share cores, which Slurm counts by.
#[must_use]
pub fn files(format: Format, plan: &Plan, topology: &Topology) -> Vec<ConfigFile> {
    match format {
        Format::Tuned => tuned::files(plan),
        Format::Systemd => systemd::files(plan),
        Format::Slurm => slurm::files(plan, topology),
    }
}

#[cfg(test)]
mod tests;
