//! Whether there is a hypervisor, and how much steal time it reports.

use becalm_linux::procfs::stat::Stat;
use becalm_linux::sysfs::machine::hypervisor;

use super::finding::Findings;
use super::subject::Subject;
use crate::Known;
use crate::document::{Area, Severity};

const AREA: Area = Area::Hypervisor;

/// From this share of a CPU's busy time on, steal exceeds the noise of a tuned machine.
const MUCH: f64 = 0.001;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let Some(name) = findings.read(AREA, hypervisor(subject.root)).flatten() else { return };
    let Some(stat) = findings.read(AREA, Stat::read(subject.root)) else { return };
    let (mut steal, mut busy) = (0_i64, 0_i64);
    for times in subject.cpus.iter().filter_map(|cpu| stat.cpu(cpu)) {
        steal = steal.saturating_add(times.steal.get());
        // `user` includes `guest`.
        for part in [times.user, times.nice, times.system, times.irq, times.softirq, times.steal] {
            busy = busy.saturating_add(part.get());
        }
    }
    let share = if busy > 0 { steal as f64 / busy as f64 } else { 0.0 };
    let percent = format!("{:.2}%", share * 100.0);
    if share >= MUCH {
        let title = format!(
            "the hypervisor ({name}) took {percent} of the time that {} wanted to run, since boot",
            subject.named()
        );
        findings
            .add(AREA, Severity::Note, title)
            .seen("/proc/stat", format!("steal {percent} of the time that was not idle"))
            .fix("on the host: give each virtual CPU a CPU of its own, isolated there")
            .lets(Known::Unseen);
    } else {
        let title = format!("the kernel runs under a hypervisor ({name}), with nearly no steal time since boot");
        findings
            .add(AREA, Severity::Note, title)
            .seen("/proc/stat", format!("steal {percent} of the time that was not idle"))
            .lets(Known::Unseen);
    }
}
