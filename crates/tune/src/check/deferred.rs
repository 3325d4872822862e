//! Work that the kernel puts off: unbound work queues, and packets whose softirqs are steered to the CPUs.

use becalm_linux::small_file;
use becalm_units::CpuList;

use super::finding::{Area, Evidence, Findings, Severity};
use super::subject::Subject;
use super::{cpus, some};
use crate::Family;

const AREA: Area = Area::Deferred;
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue";

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    workqueues(subject, findings);
    steering(subject, findings, "rx-", "rps_cpus");
    steering(subject, findings, "tx-", "xps_cpus");
}

/// The CPUs of a mask that are among those checked. What is no mask is a finding.
fn hit(subject: &Subject<'_>, evidence: &Evidence, findings: &mut Findings<'_>) -> Option<CpuList> {
    match CpuList::from_mask(&evidence.value) {
        Ok(mask) => subject.hit(&mask),
        Err(_) => {
            let value: String = evidence.value.chars().take(60).collect();
            let title = "a mask of CPUs could not be understood, so it was not checked";
            findings.add(AREA, Severity::Note, title).seen(evidence.path.clone(), value);
            None
        }
    }
}

fn workqueues(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let queues = findings.read(AREA, small_file::names(subject.root, WORKQUEUES)).unwrap_or_default();
    let own = queues.iter().map(|queue| format!("{WORKQUEUES}/{queue}/cpumask"));
    let paths: Vec<String> = std::iter::once(format!("{WORKQUEUES}/cpumask")).chain(own).collect();
    let mut found: Vec<(Evidence, CpuList)> = Vec::new();
    let mut seen = false;
    for path in paths {
        let Some(evidence) = findings.setting(AREA, &path) else { continue };
        seen = true;
        let hit = hit(subject, &evidence, findings);
        found.extend(hit.map(|hit| (evidence, hit)));
    }
    if found.is_empty() {
        if seen {
            let title = format!("work queues that are bound to no CPU stay away from {}", subject.named());
            findings.add(AREA, Severity::Fine, title).seen(format!("{WORKQUEUES}/cpumask"), "the other CPUs");
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
        .lets("workqueue", "*");
}

/// Receive and transmit packet steering: whose softirqs run where.
fn steering(subject: &Subject<'_>, findings: &mut Findings<'_>, queue: &str, file: &str) {
    let receiving = file == "rps_cpus";
    let mut found: Vec<Evidence> = Vec::new();
    let mut devices: Vec<String> = Vec::new();
    for device in findings.read(AREA, small_file::names(subject.root, "/sys/class/net")).unwrap_or_default() {
        let folder = format!("/sys/class/net/{device}/queues");
        let queues = findings.read(AREA, small_file::names(subject.root, &folder)).unwrap_or_default();
        for name in queues.iter().filter(|name| name.starts_with(queue)) {
            let Some(evidence) = findings.setting(AREA, &format!("{folder}/{name}/{file}")) else { continue };
            if !evidence.value.is_empty() && hit(subject, &evidence, findings).is_some() {
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
        (Severity::Note, format!("{} send by a queue that is chosen for {}", some(&devices, 4), subject.named()))
    };
    let finding = findings.add(AREA, severity, title);
    finding.evidence = found;
    finding.fix("take the CPUs out of the queues' masks").by(Family::Rps);
    if receiving {
        finding.lets("softirq", "net_rx").lets("irq", "call_function_single");
    } else {
        finding.lets("softirq", "net_tx");
    }
}
