//! Deferred work of the kernel: unbound work queues, and packets whose softirqs are steered to the CPUs.

use becalm_linux::file;
use becalm_units::CpuList;

use super::finding::Findings;
use super::subject::Subject;
use super::words::{cpus, some};
use crate::document::{Area, Evidence, Severity};
use crate::{Family, Known};

const AREA: Area = Area::Deferred;
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue";

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    workqueues(subject, findings);
    bound_for_speed(findings);
    steering(subject, findings, "rx-", "rps_cpus");
    steering(subject, findings, "tx-", "xps_cpus");
}

/// The checked CPUs in a mask, maybe none; `None`, with a finding, if it is not a mask.
fn hit(subject: &Subject<'_>, evidence: &Evidence, findings: &mut Findings<'_>) -> Option<CpuList> {
    match CpuList::from_mask(&evidence.value) {
        Ok(mask) => Some(subject.cpus.intersection(&mask)),
        Err(_) => {
            let value: String = evidence.value.chars().take(60).collect();
            let title = "a mask of CPUs could not be understood, so it was not checked";
            findings.add(AREA, Severity::Note, title).seen(evidence.path.clone(), value);
            None
        }
    }
}

fn workqueues(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let queues = findings.read(AREA, file::names(subject.root, WORKQUEUES)).unwrap_or_default();
    let own = queues.iter().map(|queue| format!("{WORKQUEUES}/{queue}/cpumask"));
    let paths: Vec<String> = std::iter::once(format!("{WORKQUEUES}/cpumask")).chain(own).collect();
    let mut found: Vec<(Evidence, CpuList)> = Vec::new();
    let mut away: Vec<Evidence> = Vec::new();
    for path in paths {
        let Some(evidence) = findings.setting(AREA, &path) else { continue };
        match hit(subject, &evidence, findings) {
            Some(hit) if hit.is_empty() => away.push(evidence),
            Some(hit) => found.push((evidence, hit)),
            None => {}
        }
    }
    if found.is_empty() {
        if !away.is_empty() {
            let title = format!("work queues that are bound to no CPU stay away from {}", subject.named());
            findings.add(AREA, Severity::Fine, title).evidence = away;
        }
        return;
    }
    let all: CpuList = found.iter().flat_map(|(_, hit)| hit.iter()).collect();
    let title = format!("work queues that are bound to no CPU may run on {}", cpus(&all));
    let finding = findings.add(AREA, Severity::Warning, title);
    finding.evidence.extend(found.into_iter().map(|(evidence, _)| evidence));
    finding
        .fix("take the CPUs out of the masks")
        .by(Family::Workqueue)
        .boot(format!("workqueue.unbound_cpus={}", subject.others))
        .lets(Known::Work);
}

/// Some work queues may give up being bound to the queuing CPU, and then follow the masks.
fn bound_for_speed(findings: &mut Findings<'_>) {
    let path = "/sys/module/workqueue/parameters/power_efficient";
    let Some(evidence) = findings.setting(AREA, path) else { return };
    if evidence.value == "Y" {
        let title = "work queues that may run anywhere are not bound to the CPU that queues";
        findings.add(AREA, Severity::Fine, title).seen(path, evidence.value);
    } else {
        let title = "work queues that could run anywhere run on the CPU that queues, for its warm caches";
        findings
            .add(AREA, Severity::Note, title)
            .seen(path, evidence.value)
            .boot("workqueue.power_efficient=1")
            .fix("let them follow the masks of unbound work queues")
            .lets(Known::Work);
    }
}

/// Receive and transmit packet steering: the CPUs of softirqs.
fn steering(subject: &Subject<'_>, findings: &mut Findings<'_>, queue: &str, file: &str) {
    let receiving = file == "rps_cpus";
    let mut found: Vec<Evidence> = Vec::new();
    let mut devices: Vec<String> = Vec::new();
    for device in findings.read(AREA, file::names(subject.root, "/sys/class/net")).unwrap_or_default() {
        let folder = format!("/sys/class/net/{device}/queues");
        let queues = findings.read(AREA, file::names(subject.root, &folder)).unwrap_or_default();
        for name in queues.iter().filter(|name| name.starts_with(queue)) {
            let Some(evidence) = findings.setting(AREA, &format!("{folder}/{name}/{file}")) else { continue };
            if !evidence.value.is_empty() && hit(subject, &evidence, findings).is_some_and(|hit| !hit.is_empty()) {
                found.push(evidence);
                devices.push(device.clone());
            }
        }
    }
    if found.is_empty() {
        return;
    }
    devices.dedup();
    let (severity, title) = if receiving {
        (Severity::Warning, format!("packets received by {} are handled on {}", some(&devices, 4), subject.named()))
    } else {
        // It chooses the queue by the sending CPU.
        (
            Severity::Fine,
            format!(
                "{} has a queue through which {} may send; that brings no foreign work",
                some(&devices, 4),
                subject.named()
            ),
        )
    };
    let finding = findings.add(AREA, severity, title);
    finding.evidence = found;
    if receiving {
        finding.fix("take the CPUs out of the queues' masks").by(Family::Rps);
        finding.lets(Known::NetRx).lets(Known::Rps).lets(Known::CallFunctionSingle);
    }
}
