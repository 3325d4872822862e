//! Files of other programs, and their common parts.

use std::path::PathBuf;

use crate::{Change, Family, Knob, Plan};

/// A file to be put in place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigFile {
    /// Its place below the root of the machine: `etc/tuned/profiles/becalm/tuned.conf`.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
}

impl ConfigFile {
    pub(super) fn new(path: &str, lines: &[String]) -> Self {
        Self { path: PathBuf::from(path), text: lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect() }
    }
}

/// The settings of a plan with the same path after every boot: files of /proc/sys and /sys, except those of single interrupts and of control groups,
/// wherever these are mounted. Paths with control characters are excluded, because these line-based formats cannot represent them.
pub(super) fn settings(plan: &Plan) -> impl Iterator<Item = (&Change, String)> {
    plan.steps.iter().filter(|change| change.family != Family::Cpuset).filter_map(|change| {
        let Knob::File { path, .. } = &change.knob else { return None };
        let path = path.to_str()?;
        let is_of_every_boot = path.starts_with("/proc/sys/") || path.starts_with("/sys/");
        (is_of_every_boot && !path.contains(char::is_control)).then(|| (change, path.to_owned()))
    })
}

/// The name of a file of /proc/sys in sysctl(8) notation: dots for slashes. A dot within a part, as in some network devices, becomes a slash.
pub(super) fn sysctl_name(path: &str) -> Option<String> {
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

/// The header of each file: its purpose, and what it leaves to others.
pub(super) fn head(plan: &Plan, how: &[&str]) -> Vec<String> {
    let (quiet, rest) = (&plan.cpus, &plan.housekeeping);
    let mut lines = vec![format!("# Written by becalm: CPU {quiet} isolated, CPU {rest} for housekeeping.")];
    lines.extend(how.iter().map(|line| format!("# {line}")));
    lines
}

/// The parts of a plan that none of these files can express, as comments.
pub(super) fn left_out(plan: &Plan) -> Vec<String> {
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
