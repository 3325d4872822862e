//! Boot parameters other than CPU lists: missing, ignored or mistyped ones.

use becalm_linux::file;

use super::finding::Findings;
use super::subject::{COMMAND_LINE, Subject};
use super::words::cpus;
use crate::Known;
use crate::document::{Area, Severity};

const AREA: Area = Area::Boot;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    mistyped(subject, findings);
    nohz(subject, findings);
    skew_tick(subject, findings);
    rcu_nocb_poll(subject, findings);
    mitigations(subject, findings);
    preemption(subject, findings);
    unbound_cpus(subject, findings);
    managed_power(subject, findings);
}

/// Names so long that a similar one is a typo.
const KNOWN: &[&str] = &[
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "irqaffinity",
    "skew_tick",
    "nosoftlockup",
    "nowatchdog",
    "nmi_watchdog",
    "clocksource",
    "mitigations",
    "threadirqs",
    "processor.max_cstate",
    "intel_idle.max_cstate",
    "transparent_hugepage",
    "kthread_cpus",
    "workqueue.unbound_cpus",
    "numa_balancing",
    "intel_pstate",
    "cpuidle.off",
];

/// The largest number of different letters in a typo.
const NEAR: usize = 2;

fn mistyped(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    for parameter in subject.line.iter() {
        let name = parameter.name.replace('-', "_");
        if KNOWN.contains(&name.as_str()) || name.len() < 7 {
            continue;
        }
        let meant = KNOWN.iter().map(|known| (distance(&name, known), known)).min().filter(|(far, _)| *far <= NEAR);
        if let Some((_, meant)) = meant {
            let title = format!("{} is no parameter of the kernel; {meant} may have been meant", parameter.name);
            let value = parameter.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
            let shown = format!("{}{value}", parameter.name);
            findings.add(AREA, Severity::Error, title).seen(COMMAND_LINE, shown).fix("correct it, and reboot");
        }
    }
}

/// The number of insertions, deletions and replacements (Levenshtein distance), row by row.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

fn nohz(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    if subject.line.last("nohz").is_some_and(|value| matches!(value, "off" | "0" | "n" | "no")) {
        let with_list = subject.line.has("nohz_full");
        let severity = if with_list { Severity::Error } else { Severity::Warning };
        let title = match with_list {
            true => "nohz=off keeps every tick, so nohz_full has no effect",
            false => "nohz=off keeps the tick of all CPUs, also idle ones",
        };
        findings
            .add(AREA, severity, title)
            .seen(COMMAND_LINE, "nohz=off")
            .fix("leave the parameter out")
            .lets(Known::Tick)
            .lets(Known::LocalTimer);
    }
}

fn skew_tick(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let ticking = subject.cpus.without(&subject.sets.nohz_full);
    if ticking.len() > 1 && subject.line.last("skew_tick") != Some("1") {
        let title = format!("{} tick at the same moment, and wait for each other's locks then", cpus(&ticking));
        findings.add(AREA, Severity::Note, title).seen(COMMAND_LINE, "no skew_tick=1").boot("skew_tick=1").fix(
            "for latency, boot with skew_tick=1; jobs of many ranks lose less to ticks that come together, without it",
        );
    }
}

fn rcu_nocb_poll(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let offloaded = subject.line.has("rcu_nocbs") || !subject.sets.nohz_full.is_empty();
    if offloaded && !subject.line.has("rcu_nocb_poll") {
        findings
            .add(AREA, Severity::Note, "CPUs whose callbacks run elsewhere must wake the thread that runs them")
            .seen(COMMAND_LINE, "no rcu_nocb_poll")
            .boot("rcu_nocb_poll")
            .fix("let those threads poll: it costs the other CPUs power, and matters only to real time");
    }
}

fn mitigations(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let names = findings.read(AREA, file::names(subject.root, folder)).unwrap_or_default();
    let mut active = Vec::new();
    for name in names {
        let evidence = findings.setting(AREA, &format!("{folder}/{name}"));
        active.extend(evidence.filter(|evidence| evidence.value.contains("Mitigation")));
    }
    if !active.is_empty() && subject.line.last("mitigations") != Some("off") {
        let title = format!("{} mitigations of processor bugs make each entry into the kernel longer", active.len());
        let finding = findings.add(AREA, Severity::Note, title);
        finding.evidence = active;
        finding
            .boot("mitigations=off")
            .fix("only if all code on this machine is trusted: it removes the protection between processes")
            .lets(Known::Edge);
    }
}

fn preemption(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    if let Some(value) = subject.line.last("preempt").filter(|_| subject.built_with("PREEMPT_DYNAMIC") == Some(false)) {
        let (path, option) = subject.option("PREEMPT_DYNAMIC");
        findings
            .add(AREA, Severity::Error, format!("preempt={value} is given, and this kernel ignores it"))
            .seen(COMMAND_LINE, format!("preempt={value}"))
            .seen(path, option)
            .fix("its preemption was chosen when it was built; boot another, or leave the parameter out");
    }
    let realtime = findings.setting(AREA, "/sys/kernel/realtime").is_some_and(|evidence| evidence.value == "1");
    if realtime {
        findings
            .add(
                AREA,
                Severity::Fine,
                "the kernel is a real-time one: interrupts and softirqs run in threads, by priority",
            )
            .seen("/sys/kernel/realtime", "1");
    } else if subject.line.has("threadirqs") && subject.built_with("IRQ_FORCED_THREADING") == Some(false) {
        let (path, option) = subject.option("IRQ_FORCED_THREADING");
        findings
            .add(AREA, Severity::Error, "threadirqs is given, and this kernel ignores it")
            .seen(COMMAND_LINE, "threadirqs")
            .seen(path, option)
            .fix("boot a kernel that was built with CONFIG_IRQ_FORCED_THREADING");
    }
}

fn unbound_cpus(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let Some(value) = subject.line.last("workqueue.unbound_cpus") else { return };
    let list = becalm_linux::procfs::parse_kernel_list(value, subject.count());
    let shown = format!("workqueue.unbound_cpus={value}");
    match list {
        Err(why) => {
            findings
                .add(AREA, Severity::Error, format!("the kernel does not understand {shown}: {why}"))
                .seen(COMMAND_LINE, shown)
                .fix("write a list of CPUs that there are");
        }
        Ok(list) => {
            if let Some(hit) = subject.hit(&list) {
                findings
                    .add(
                        AREA,
                        Severity::Error,
                        format!("{shown} sends work to {}, which should be isolated", cpus(&hit)),
                    )
                    .seen(COMMAND_LINE, shown)
                    .boot(format!("workqueue.unbound_cpus={}", subject.others))
                    .fix("name the other CPUs");
            }
        }
    }
}

/// Parameters of drivers that are not in charge.
fn managed_power(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let driver = "/sys/devices/system/cpu/cpuidle/current_driver";
    let Some(is) = findings.setting(AREA, driver) else { return };
    for (parameter, wanted) in [("intel_idle.max_cstate", "intel_idle"), ("processor.max_cstate", "acpi_idle")] {
        // intel_idle.max_cstate=0 hands the CPUs to the other driver.
        let Some(value) = subject.line.last(parameter).filter(|value| *value != "0") else { continue };
        if is.value != wanted {
            let title = format!("{parameter}={value} has no effect: the driver {} decides how CPUs sleep", is.value);
            findings
                .add(AREA, Severity::Note, title)
                .seen(COMMAND_LINE, format!("{parameter}={value}"))
                .seen(driver, is.value.clone())
                .fix("limit the sleep of the driver that is in charge, see the findings on power");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A plain implementation of the distance's definition.
    fn plain(a: &[char], b: &[char]) -> usize {
        match (a, b) {
            ([], rest) | (rest, []) => rest.len(),
            ([x, a @ ..], [y, b @ ..]) if x == y => plain(a, b),
            ([_, short_a @ ..], [_, short_b @ ..]) => {
                1 + plain(short_a, b).min(plain(a, short_b)).min(plain(short_a, short_b))
            }
        }
    }

    proptest! {
        #[test]
        fn distances_are_levenshteins(a in "[abc]{0,6}", b in "[abc]{0,6}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(distance(&a, &b), plain(&chars(&a), &chars(&b)));
        }
    }
}
