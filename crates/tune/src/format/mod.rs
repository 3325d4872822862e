//! Plans as files of other programs, which then make the changes at every boot: a profile of tuned, units of systemd, the
//! settings of Slurm.
//!
//! What is in a plan and cannot outlive a boot is left out, and said in the files: numbers of interrupts and of threads,
//! control groups that somebody must fill. These programs have their own ways for the same ends, which are used instead.

mod file;
mod slurm;
mod systemd;
mod tuned;

use becalm_units::UnknownName;

pub use file::ConfigFile;
pub use slurm::{NoTopology, Topology};

use crate::Plan;

/// The programs whose files can be written.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Format {
    /// A profile of tuned.
    Tuned,
    /// A slice, drop-ins and settings of systemd.
    Systemd,
    /// Settings of Slurm: core specialization.
    Slurm,
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Format>("format", text)
}

/// The files that make a plan's changes at every boot.
///
/// `topology` says how the machine's CPUs share cores, which Slurm counts by.
pub fn files(format: Format, plan: &Plan, topology: &Topology) -> Vec<ConfigFile> {
    match format {
        Format::Tuned => tuned::files(plan),
        Format::Systemd => systemd::files(plan),
        Format::Slurm => slurm::files(plan, topology),
    }
}

#[cfg(test)]
mod tests;
