//! Files of other programs, and what several of them say of a plan.

use std::path::PathBuf;

use crate::{Change, Family, Knob, Plan};

/// A file to be put in place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigFile {
    /// Where it belongs, from the root of the machine: `etc/tuned/profiles/becalm/tuned.conf`.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
}

impl ConfigFile {
    pub(super) fn new(path: &str, lines: &[String]) -> Self {
        Self { path: PathBuf::from(path), text: lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect() }
    }
}

/// The settings of a plan that have the same place after every boot: files of /proc/sys and /sys, but for those of single
/// interrupts and of control groups, wherever these are mounted. No path with a control character is among them: in these files, one line
/// after the other, there is no way to write it.
pub(super) fn settings(plan: &Plan) -> impl Iterator<Item = (&Change, String)> {
    plan.steps.iter().filter(|change| change.family != Family::Cpuset).filter_map(|change| {
        let Knob::File { path, .. } = &change.knob else { return None };
        let path = path.to_str()?;
        let is_of_every_boot = path.starts_with("/proc/sys/") || path.starts_with("/sys/");
        (is_of_every_boot && !path.contains(char::is_control)).then(|| (change, path.to_owned()))
    })
}

/// The name of a file of /proc/sys as sysctl(8) writes it: dots for slashes. A dot within a part, as in the names of some
/// network devices, becomes a slash.
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

/// What stands at the head of each file: what it is for, and what it leaves to others.
pub(super) fn head(plan: &Plan, how: &[&str]) -> Vec<String> {
    let (quiet, rest) = (&plan.cpus, &plan.housekeeping);
    let mut lines = vec![format!("# Written by becalm: CPU {quiet} quiet, CPU {rest} for everything else.")];
    lines.extend(how.iter().map(|line| format!("# {line}")));
    lines
}

/// What a plan has that none of these files can give, as remarks.
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
