//! A tuned profile: one file, `tuned.conf`, in a directory named like the profile.
//!
//! tuned reads it with Python's configparser: `=` separates name and value, `#` starts a comment, even after a value.

use super::file::{ConfigFile, head, left_out, settings, sysctl_name};
use crate::{Family, Plan};

const PATH: &str = "etc/tuned/profiles/becalm/tuned.conf";

pub(super) fn files(plan: &Plan) -> Vec<ConfigFile> {
    let mut lines = head(
        plan,
        &[
            "Put it into /etc/tuned/profiles/becalm/ (before tuned 2.23: /etc/tuned/becalm/), then:",
            "tuned-adm profile becalm",
        ],
    );
    lines.extend(left_out(plan));
    let quiet = &plan.cpus;
    section(&mut lines, "main", &[format!("summary=CPU {quiet} isolated, profile {}", plan.profile)]);
    let variables = [format!("isolated_cores={quiet}"), format!("housekeeping_cores={}", plan.housekeeping)];
    section(&mut lines, "variables", &variables);
    let wants = |family: Family| plan.steps.iter().any(|change| change.family == family);
    section(&mut lines, "cpu", &frequency(plan));
    let named: Vec<(String, &str)> =
        settings(plan).filter_map(|(change, path)| Some((sysctl_name(&path)?, change.to.as_str()))).collect();
    section(&mut lines, "sysctl", &named.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>());
    let files = settings(plan).filter(|(change, path)| path.starts_with("/sys/") && change.family != Family::Frequency);
    section(&mut lines, "sysfs", &files.map(|(change, path)| format!("{path}={}", change.to)).collect::<Vec<_>>());
    if wants(Family::Irq) {
        section(&mut lines, "irqbalance", &["banned_cpus=${isolated_cores}".to_owned()]);
    }
    if wants(Family::Affinity) || wants(Family::Cpuset) || wants(Family::Irq) {
        // It moves threads and interrupts off the cores, including later ones.
        let mut scheduler = vec!["isolated_cores=${isolated_cores}".to_owned()];
        if wants(Family::Irq) {
            scheduler.push("default_irq_smp_affinity=calc".to_owned());
        }
        section(&mut lines, "scheduler", &scheduler);
    }
    if !plan.boot.is_empty() {
        // A leading + appends to the parameters of other profiles.
        section(&mut lines, "bootloader", &[format!("cmdline_becalm=+{}", plan.command_line())]);
    }
    vec![ConfigFile::new(PATH, &lines)]
}

/// The governor of the quiet CPUs, set by tuned's own plugin to make tuned aware of it.
fn frequency(plan: &Plan) -> Vec<String> {
    let governor = plan.steps.iter().find(|change| change.knob.to_string().ends_with("/scaling_governor"));
    let devices: Vec<String> = plan.cpus.iter().map(|cpu| format!("cpu{cpu}")).collect();
    let mut lines: Vec<String> = Vec::new();
    if let Some(change) = governor {
        lines.push(format!("devices={}", devices.join(",")));
        lines.push(format!("governor={}", change.to));
        let preference = plan.steps.iter().find(|it| it.knob.to_string().ends_with("/energy_performance_preference"));
        lines.extend(preference.map(|it| format!("energy_performance_preference={}", it.to)));
    }
    lines
}

fn section(lines: &mut Vec<String>, name: &str, options: &[String]) {
    if !options.is_empty() {
        lines.push(String::new());
        lines.push(format!("[{name}]"));
        lines.extend_from_slice(options);
    }
}
