//! The kernel's background work on memory.

use becalm_linux::file;
use becalm_linux::procfs::swaps::swaps;
use becalm_units::chosen;

use super::finding::Findings;
use super::subject::{COMMAND_LINE, Subject};
use super::words::some;
use crate::document::{Area, Severity};
use crate::{Family, Known};

const AREA: Area = Area::Memory;
const HUGE: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    huge_pages(subject, findings);
    merging(findings);
    balancing(subject, findings);
    compaction(findings);
    swapping(subject, findings);
}

fn huge_pages(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let path = format!("{HUGE}/enabled");
    let Some(enabled) = findings.setting(AREA, &path) else { return };
    let choice = chosen(&enabled.value).to_owned();
    if let Some(asked) = subject.line.last("transparent_hugepage").filter(|asked| *asked != choice) {
        findings
            .add(AREA, Severity::Note, format!("transparent_hugepage={asked} is given, and {choice} is set since"))
            .seen(COMMAND_LINE, format!("transparent_hugepage={asked}"))
            .seen(path.clone(), enabled.value.clone());
    }
    if choice != "always" {
        findings
            .add(AREA, Severity::Fine, format!("huge pages are made by themselves: {choice}"))
            .seen(path, enabled.value);
        return;
    }
    let finding =
        findings.add(AREA, Severity::Warning, "khugepaged joins pages of any process, and page faults clear huge ones");
    finding
        .seen(path, enabled.value)
        .boot("transparent_hugepage=madvise")
        .fix("leave it to programs that ask for it (madvise)")
        .by(Family::Memory)
        .lets(Known::Khugepaged)
        .lets(Known::Fault);
    if let Some(defrag) = findings.setting(AREA, &format!("{HUGE}/defrag")).filter(|it| chosen(&it.value) == "always") {
        findings
            .add(AREA, Severity::Warning, "a page fault may compact memory before it returns")
            .seen(defrag.path, defrag.value)
            .fix(format!("choose defer or madvise: echo madvise > {HUGE}/defrag"))
            .lets(Known::Fault);
    }
}

fn merging(findings: &mut Findings<'_>) {
    let path = "/sys/kernel/mm/ksm/run";
    match findings.number(AREA, path) {
        Some(1) => {
            findings
                .add(AREA, Severity::Warning, "ksmd looks for equal pages all the time, and makes writes to them fault")
                .seen(path, "1")
                .fix("switch it off")
                .by(Family::Memory)
                .lets(Known::Ksmd)
                .lets(Known::Fault);
        }
        Some(value) => {
            findings.add(AREA, Severity::Fine, "equal pages are not merged").seen(path, value.to_string());
        }
        None => {}
    }
}

fn balancing(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let path = "/proc/sys/kernel/numa_balancing";
    let Some(mode) = findings.number(AREA, path) else { return };
    let nodes = findings.read(AREA, file::names(subject.root, "/sys/devices/system/node")).unwrap_or_default();
    let nodes = nodes.iter().filter(|name| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok())).count();
    if mode == 0 || nodes == 1 {
        findings.add(AREA, Severity::Fine, "memory is not moved between NUMA nodes").seen(path, mode.to_string());
        return;
    }
    findings
        .add(AREA, Severity::Warning, "NUMA balancing unmaps pages to make accesses fault, and moves pages")
        .seen(path, mode.to_string())
        .boot("numa_balancing=disable")
        .fix("switch it off, and bind memory to the CPUs that use it")
        .by(Family::Memory)
        .lets(Known::Fault)
        .lets(Known::Flush)
        .lets(Known::AnyCallFunction);
}

fn compaction(findings: &mut Findings<'_>) {
    let path = "/proc/sys/vm/compaction_proactiveness";
    if let Some(value) = findings.number(AREA, path).filter(|value| *value > 0) {
        findings
            .add(AREA, Severity::Note, "kcompactd compacts memory ahead of need")
            .seen(path, value.to_string())
            .fix("set vm.compaction_proactiveness to 0")
            .lets(Known::Kcompactd);
    }
}

fn swapping(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let Some(swaps) = findings.read(AREA, swaps(subject.root)) else { return };
    if swaps.is_empty() {
        findings.add(AREA, Severity::Fine, "nothing is swapped out: there is no swap").seen("/proc/swaps", "none");
        return;
    }
    let names: Vec<&str> = swaps.iter().map(|swap| swap.name.as_str()).collect();
    let used: u64 = swaps.iter().map(|swap| swap.used_kib).sum();
    let swappiness = findings.setting(AREA, "/proc/sys/vm/swappiness");
    let title = "memory may be swapped out when it is short; a fault then waits for the disk";
    let finding = findings.add(AREA, Severity::Note, title);
    finding.seen("/proc/swaps", format!("{}, {used} KiB used", some(&names, 3)));
    finding.evidence.extend(swappiness);
    finding
        .fix("lock the job's memory (mlockall), or switch swapping off: swapoff -a")
        .lets(Known::Kswapd)
        .lets(Known::Fault);
}
