//! Lockup detectors, memory statistics, and timer migration.

use becalm_units::CpuList;

use super::finding::Findings;
use super::subject::{COMMAND_LINE, Subject};
use super::words::cpus;
use crate::document::{Area, Severity};
use crate::{Family, Known};

const AREA: Area = Area::Timers;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    watchdogs(subject, findings);
    vmstat(subject, findings);
    migration(findings);
}

fn watchdogs(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let mask = "/proc/sys/kernel/watchdog_cpumask";
    let watched = match findings.setting(AREA, mask) {
        None => subject.sets.online.clone(),
        Some(evidence) => match evidence.value.parse::<CpuList>() {
            Ok(list) => list,
            Err(error) => {
                let title = "the CPUs that lockup detectors watch could not be understood";
                findings.add(AREA, Severity::Note, title).seen(mask, error.to_string());
                return;
            }
        },
    };
    for (file, parameter, what, noise) in [
        (
            "soft_watchdog",
            "nosoftlockup",
            "the detector of soft lockups stops the running thread every few seconds",
            Known::Migration,
        ),
        ("nmi_watchdog", "nmi_watchdog=0", "the detector of hard lockups sends non-maskable interrupts", Known::Nmi),
    ] {
        let path = format!("/proc/sys/kernel/{file}");
        let Some(switch) = findings.number(AREA, &path) else { continue };
        let Some(hit) = subject.hit(&watched).filter(|_| switch == 1) else {
            let title = format!(
                "no {} lockup detector runs on {}",
                if file == "soft_watchdog" { "soft" } else { "hard" },
                subject.named()
            );
            findings.add(AREA, Severity::Fine, title).seen(path, switch.to_string()).seen(mask, watched.to_string());
            continue;
        };
        let finding = findings.add(AREA, Severity::Warning, format!("{what} on {}", cpus(&hit)));
        finding.seen(path, switch.to_string()).seen(mask, watched.to_string());
        finding.boot(parameter).fix("take the CPUs out of the mask").by(Family::Watchdog).lets(noise);
    }
    // Requested at boot, and switched on again since.
    for parameter in ["nowatchdog", "nosoftlockup"] {
        if subject.line.has(parameter) && findings.number(AREA, "/proc/sys/kernel/soft_watchdog") == Some(1) {
            findings
                .add(
                    AREA,
                    Severity::Error,
                    format!("{parameter} is given, and the detector runs: it was switched on again"),
                )
                .seen(COMMAND_LINE, parameter)
                .seen("/proc/sys/kernel/soft_watchdog", "1")
                .fix("find the sysctl that does it, in /etc/sysctl.d")
                .by(Family::Watchdog);
        }
    }
}

/// From this interval on, in seconds, folding the statistics is as rare as the residual tick in the kernel's own advice.
const RARE_S: i64 = 10;

fn vmstat(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let path = "/proc/sys/vm/stat_interval";
    let Some(seconds) = findings.number(AREA, path) else { return };
    if seconds >= RARE_S {
        findings.add(AREA, Severity::Fine, "statistics of memory are folded seldom").seen(path, seconds.to_string());
        return;
    }
    let title = format!("every {seconds}s each busy CPU folds its statistics of memory, in a work item");
    // The kernel leaves tickless CPUs alone.
    let apart = subject.cpus.without(&subject.sets.nohz_full).is_empty();
    let severity = if apart { Severity::Note } else { Severity::Warning };
    findings
        .add(AREA, severity, title)
        .seen(path, seconds.to_string())
        .fix("make it rare")
        .by(Family::Vmstat)
        .lets(Known::AnyVmstatWorker)
        .lets(Known::AnyVmstat);
}

fn migration(findings: &mut Findings<'_>) {
    let path = "/proc/sys/kernel/timer_migration";
    match findings.number(AREA, path) {
        // The kernel moves them off isolated CPUs, and never onto them (`get_nohz_timer_target`).
        Some(0) => {
            findings
                .add(AREA, Severity::Note, "timers that are set on an isolated CPU fire there, and not on another one")
                .seen(path, "0")
                .fix("let them move")
                .by(Family::Timers)
                .lets(Known::Timer)
                .lets(Known::AnySoftTimer)
                .lets(Known::Hrtimer)
                .lets(Known::AnyTimer);
        }
        Some(switch) => {
            findings
                .add(AREA, Severity::Fine, "timers that are set on an isolated CPU fire on another one")
                .seen(path, switch.to_string());
        }
        None => {}
    }
}
