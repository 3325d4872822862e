//! Plans as files of other programs, which then make the changes at every boot: a tuned profile, systemd units, Slurm settings.
//!
//! Parts of a plan that cannot outlive a boot are left out, with a comment in the files: numbers of interrupts and threads, and control groups that
//! need to be filled. If these programs have their own means to the same end, those are used instead.

mod file;
mod slurm;
mod systemd;
mod tuned;

use becalm_units::UnknownName;

pub use file::ConfigFile;
pub use slurm::{NoTopology, Topology};

use crate::Plan;

/// Programs whose files can be written.
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
    /// A tuned profile.
    Tuned,
    /// A systemd slice, drop-ins and settings.
    Systemd,
    /// Slurm settings: core specialization.
    Slurm,
}

fn unknown(text: &str) -> UnknownName {
    UnknownName::new::<Format>("format", text)
}

/// Files that make a plan's changes at every boot.
///
/// `topology` has the machine's cores and their CPUs, for Slurm's numbering.
pub fn files(format: Format, plan: &Plan, topology: &Topology) -> Vec<ConfigFile> {
    match format {
        Format::Tuned => tuned::files(plan),
        Format::Systemd => systemd::files(plan),
        Format::Slurm => slurm::files(plan, topology),
    }
}

#[cfg(test)]
mod tests;
