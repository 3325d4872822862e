//! systemd files: a slice for the job, drop-ins that keep everything else off its CPUs, and boot-time settings by sysctl.d and tmpfiles.d.
//!
//! systemd has no setting for isolated partitions: the slice owns its CPUs because nothing else may use them, but its threads are still balanced
//! among them.

use super::file::{ConfigFile, head, left_out, settings, sysctl_name};
use crate::{Family, Plan};

/// Everything that systemd starts is in one of these.
const OTHERS: [(&str, &str); 4] =
    [("system.slice", "Slice"), ("user.slice", "Slice"), ("machine.slice", "Slice"), ("init.scope", "Scope")];

pub(super) fn files(plan: &Plan) -> Vec<ConfigFile> {
    let rest = plan.housekeeping.to_string();
    let mut slice = head(plan, &["Run a job in it: systemd-run --slice=becalm.slice --scope COMMAND"]);
    if !plan.boot.is_empty() {
        slice.push("# Add to the kernel's command line (GRUB_CMDLINE_LINUX, or /etc/kernel/cmdline):".to_owned());
        slice.push(format!("# {}", plan.command_line()));
    }
    slice.extend(left_out(plan));
    let text = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    slice.extend(text(&["", "[Unit]", "Description=CPUs for a job that must not be disturbed", "", "[Slice]"]));
    slice.push(format!("AllowedCPUs={}", plan.cpus));
    let mut files = vec![ConfigFile::new("etc/systemd/system/becalm.slice", &slice)];
    let drop_in = |lines: Vec<String>| {
        let mut all = head(plan, &[]);
        all.extend(lines);
        all
    };
    let wants = |family: Family| plan.steps.iter().any(|change| change.family == family);
    if wants(Family::Cpuset) || wants(Family::Affinity) {
        for (unit, section) in OTHERS {
            let path = format!("etc/systemd/system/{unit}.d/50-becalm.conf");
            files.push(ConfigFile::new(&path, &drop_in(vec![format!("[{section}]"), format!("AllowedCPUs={rest}")])));
        }
        // For systemd itself, and everything started before there is a cpuset.
        let manager = drop_in(vec!["[Manager]".to_owned(), format!("CPUAffinity={}", words(&rest))]);
        files.push(ConfigFile::new("etc/systemd/system.conf.d/50-becalm.conf", &manager));
    }
    if wants(Family::Irq) {
        let banned = format!("Environment=IRQBALANCE_BANNED_CPULIST={}", plan.cpus);
        let lines = drop_in(vec!["[Service]".to_owned(), banned]);
        files.push(ConfigFile::new("etc/systemd/system/irqbalance.service.d/50-becalm.conf", &lines));
    }
    let sysctls: Vec<String> =
        settings(plan).filter_map(|(change, path)| Some(format!("{} = {}", sysctl_name(&path)?, change.to))).collect();
    if !sysctls.is_empty() {
        files.push(ConfigFile::new("etc/sysctl.d/50-becalm.conf", &drop_in(sysctls)));
    }
    let written: Vec<String> = settings(plan)
        .filter(|(_, path)| path.starts_with("/sys/"))
        .map(|(change, path)| format!("w {} - - - - {}", escaped(&path), escaped(&change.to)))
        .collect();
    if !written.is_empty() {
        files.push(ConfigFile::new("etc/tmpfiles.d/50-becalm.conf", &drop_in(written)));
    }
    files
}

/// A list in systemd's format: separated by blanks.
fn words(list: &str) -> String {
    list.replace(',', " ")
}

/// A word for tmpfiles.d, where `%` is special and blanks separate words.
fn escaped(text: &str) -> String {
    text.replace('%', "%%").replace(' ', "\\x20")
}
