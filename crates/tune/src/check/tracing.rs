//! Tracing left enabled: each event costs time where it happens.

use becalm_linux::file;
use becalm_linux::ftrace::mount_point;
use becalm_linux::procfs::mountinfo::mounts;

use super::finding::Findings;
use super::subject::Subject;
use super::words::some;
use crate::Known;
use crate::document::{Area, Evidence, Severity};

const AREA: Area = Area::Tracing;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let Some(mounts) = findings.read(AREA, mounts(subject.root)) else { return };
    // Without a mount, only perf and eBPF can have enabled it, and they leave no trace here.
    let Some(top) = mount_point(&mounts) else { return };
    let top = top.to_string_lossy().into_owned();
    let instances = format!("{top}/instances");
    let names = findings.read(AREA, file::names(subject.root, &instances)).unwrap_or_default();
    let mut found = Vec::new();
    // becalm's own instances exist only during a recording.
    for name in names.iter().filter(|name| !name.starts_with("becalm-")) {
        found.extend(active(&format!("{instances}/{name}"), findings));
    }
    found.extend(active(&top, findings));
    if let Some(probes) = findings.setting(AREA, &format!("{top}/kprobe_events")).filter(|it| !it.value.is_empty()) {
        let names: Vec<&str> = probes.value.lines().filter_map(|line| line.split_whitespace().next()).collect();
        let title = format!("probes of the kernel's functions are defined: {}", some(&names, 3));
        let path = probes.path.clone();
        findings
            .add(AREA, Severity::Note, title)
            .seen(path.clone(), names.len().to_string())
            .fix(format!("if no program needs them: echo > {path}"));
    }
    if found.is_empty() {
        let title = "no event of the kernel is traced";
        findings.add(AREA, Severity::Fine, title).seen(format!("{top}/set_event"), "");
        return;
    }
    let finding =
        findings.add(AREA, Severity::Warning, "the kernel's events are being traced: each costs time where it happens");
    finding.evidence = found;
    finding
        .fix(format!("end the tracing, or: echo 0 > {top}/events/enable; echo nop > {top}/current_tracer"))
        .lets(Known::Edge);
}

/// The active tracer or events of a tracefs directory that records.
fn active(folder: &str, findings: &mut Findings<'_>) -> Vec<Evidence> {
    let mut found = Vec::new();
    let is_on = findings.setting(AREA, &format!("{folder}/tracing_on")).is_some_and(|it| it.value == "1");
    if !is_on {
        return found;
    }
    found.extend(
        findings
            .setting(AREA, &format!("{folder}/current_tracer"))
            .filter(|it| it.value != "nop" && !it.value.is_empty()),
    );
    let events = findings.setting(AREA, &format!("{folder}/set_event")).filter(|it| !it.value.is_empty());
    found.extend(events.map(|it| {
        let names: Vec<&str> = it.value.lines().collect();
        Evidence::new(it.path, some(&names, 3))
    }));
    found
}
