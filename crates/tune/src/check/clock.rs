//! The kernel's clock source, and its watchdog.

use becalm_linux::procfs::cpuinfo::CpuInfo;
use becalm_linux::sysfs::machine::hypervisor;

use super::finding::Findings;
use super::subject::{COMMAND_LINE, Subject};
use crate::Known;
use crate::document::{Area, Severity};

const AREA: Area = Area::Clock;
const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Name prefixes of hypervisor clocks, which a guest reads without a VM exit. Other clocks of a guest are emulated devices.
const OF_HYPERVISORS: [&str; 3] = ["kvm-clock", "hyperv_clocksource", "xen"];
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let Some(current) = findings.setting(AREA, CURRENT) else { return };
    let available = findings.setting(AREA, AVAILABLE).map(|evidence| evidence.value).unwrap_or_default();
    let current = current.value;
    if let Some(asked) = subject.line.last("clocksource").filter(|asked| *asked != current) {
        findings
            .add(AREA, Severity::Error, format!("clocksource={asked} is given, and the kernel uses {current}"))
            .seen(COMMAND_LINE, format!("clocksource={asked}"))
            .seen(CURRENT, current.clone())
            .seen(AVAILABLE, available.clone())
            .fix("the kernel's log says why it does not trust it (dmesg | grep -i clocksource)");
    }
    let processor = findings.read(AREA, CpuInfo::read(subject.root)).unwrap_or_default();
    // Other processors have a single counter without alternatives.
    if !processor.has("tsc") {
        return;
    }
    let guest = findings.read(AREA, hypervisor(subject.root)).flatten();
    if current == "tsc" {
        watchdog(subject, &processor, findings);
        return;
    }
    let dropped = !available.split_whitespace().any(|clock| clock == "tsc") && guest.is_none();
    let unstable = subject.line.last("tsc") == Some("unstable");
    let offered = guest.as_ref().filter(|_| OF_HYPERVISORS.iter().any(|clock| current.starts_with(clock)));
    let (severity, title) = if let Some(name) = offered {
        (Severity::Note, format!("the kernel keeps time with {current}, which {name} offers, not with the TSC"))
    } else {
        let why = if dropped { "found the TSC unstable and keeps" } else { "keeps" };
        (Severity::Warning, format!("the kernel {why} time with {current}: each reading is slow"))
    };
    let finding = findings.add(AREA, severity, title);
    finding.seen(CURRENT, current).seen(AVAILABLE, available);
    if unstable {
        finding.seen(COMMAND_LINE, "tsc=unstable").fix("leave tsc=unstable out");
    } else if guest.is_some() {
        finding
            .fix("let the hypervisor pass on an invariant TSC, then boot with clocksource=tsc")
            .boot("clocksource=tsc");
    } else {
        finding
            .fix("see the kernel's log for the reason; a new firmware may help. tsc=reliable silences the check only");
    }
}

/// Every half second the kernel compares the TSC with another clock, on one CPU after the other, unless it trusts the TSC.
fn watchdog(subject: &Subject<'_>, processor: &CpuInfo, findings: &mut Findings<'_>) {
    let known = ["tsc_reliable", "tsc_adjust"].into_iter().find(|flag| processor.has(flag));
    let told = subject.line.last("tsc").filter(|value| matches!(*value, "reliable" | "nowatchdog"));
    match (known, told) {
        (None, None) => {
            findings
                .add(
                    AREA,
                    Severity::Note,
                    "the kernel may check the TSC against another clock, twice a second, on each CPU in turn",
                )
                .seen("/proc/cpuinfo", "flags without tsc_reliable and tsc_adjust")
                .seen(COMMAND_LINE, "no tsc=reliable, no tsc=nowatchdog")
                .boot("tsc=nowatchdog")
                .fix("boot with tsc=nowatchdog, where the TSC is known to be good (becalm cost clock)")
                .lets(Known::Timer)
                .lets(Known::AnySoftTimer);
        }
        (known, told) => {
            let finding = findings.add(AREA, Severity::Fine, "the kernel keeps time with the TSC, and trusts it");
            finding.seen(CURRENT, "tsc");
            if let Some(flag) = known {
                finding.seen("/proc/cpuinfo", flag);
            }
            if let Some(value) = told {
                finding.seen(COMMAND_LINE, format!("tsc={value}"));
            }
        }
    }
}
