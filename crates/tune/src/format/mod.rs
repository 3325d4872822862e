//! Plans as files of other programs, which then make the changes at every boot: a profile of tuned, units of systemd, the
//! settings of Slurm.
//!
//! What is in a plan and cannot outlive a boot is left out, and said in the files: numbers of interrupts and of threads,
//! control groups that somebody must fill. These programs have their own ways for the same ends, which are used instead.

mod slurm;
mod systemd;
mod tuned;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use slurm::{NoTopology, Topology};

use crate::{Change, Family, Knob, Plan};

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
    /// All of them.
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

/// A file to be put in place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigFile {
    /// Where it belongs, from the root of the machine: `etc/tuned/profiles/becalm/tuned.conf`.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

impl ConfigFile {
    fn new(path: &str, lines: &[String]) -> Self {
        Self { path: PathBuf::from(path), text: lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect() }
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

/// The settings of a plan that have the same place after every boot: files of /proc/sys and /sys, but for those of single
/// interrupts and of control groups.
fn settings(plan: &Plan) -> impl Iterator<Item = (&Change, String)> {
    plan.steps.iter().filter_map(|change| {
        let Knob::File { path, .. } = &change.knob else { return None };
        let path = path.to_str()?;
        let kept = path.starts_with("/proc/sys/") || path.starts_with("/sys/") && !path.starts_with("/sys/fs/cgroup/");
        kept.then(|| (change, path.to_owned()))
    })
}

/// The name of a file of /proc/sys as sysctl(8) writes it: dots for slashes. A dot within a part, as in the names of some
/// network devices, becomes a slash.
fn sysctl_name(path: &str) -> Option<String> {
    let relative = path.strip_prefix("/proc/sys/")?;
    Some(
        relative
            .chars()
            .map(|c| {
                if c == '/' {
                    '.'
                } else if c == '.' {
                    '/'
                } else {
                    c
                }
            })
            .collect(),
    )
}

/// What stands at the head of each file: what it is for, and what it leaves to others.
fn head(plan: &Plan, how: &[&str]) -> Vec<String> {
    let (quiet, rest) = (&plan.cpus, &plan.housekeeping);
    let mut lines = vec![format!("# Written by becalm: CPU {quiet} quiet, CPU {rest} for everything else.")];
    lines.extend(how.iter().map(|line| format!("# {line}")));
    lines
}

/// What a plan has that none of these files can give, as remarks.
fn left_out(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    let threads = plan.steps.iter().filter(|change| matches!(change.knob, Knob::Affinity { .. })).count();
    if threads > 0 {
        lines.push(format!("# Left out: the CPUs of {threads} threads, which have other numbers after a boot."));
    }
    let interrupt =
        |change: &&Change| change.family == Family::Irq && change.knob.to_string().starts_with("/proc/irq/");
    let interrupts = plan.steps.iter().filter(interrupt).count();
    if interrupts > 0 {
        lines.push(format!(
            "# Left out: the CPUs of {interrupts} interrupts, which may have other numbers after a boot; irqaffinity= and \
             irqbalance keep them away."
        ));
    }
    lines
}

#[cfg(test)]
mod tests;
