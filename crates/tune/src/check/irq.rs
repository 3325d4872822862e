//! Device interrupts that are sent to the CPUs, may be, or will be from now on.

use becalm_linux::procfs::irq_affinity::{IrqAffinity, irq_affinities};
use becalm_linux::procfs::parse_kernel_list;
use becalm_units::CpuList;

use super::finding::Findings;
use super::subject::{COMMAND_LINE, Subject};
use super::words::{cpus, some};
use crate::document::{Area, Finding, Severity};
use crate::{Family, Kind, NoiseSource};

const AREA: Area = Area::Irq;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let irqs = findings.read(AREA, irq_affinities(subject.root)).unwrap_or_default();
    // An interrupt without handlers does not occur.
    let (used, _): (Vec<_>, Vec<_>) = irqs.into_iter().partition(|irq| !irq.handlers.is_empty());
    let here: Vec<&IrqAffinity> = used.iter().filter(|irq| subject.hit(&irq.effective).is_some()).collect();
    let may = |irq: &&IrqAffinity| subject.hit(&irq.effective).is_none() && subject.hit(&irq.allowed).is_some();
    let later: Vec<&IrqAffinity> = used.iter().filter(may).collect();
    if !here.is_empty() {
        let title = format!("{} on {}: {}", count(&here, "is handled", "are handled"), subject.named(), names(&here));
        let finding = findings.add(AREA, Severity::Warning, title);
        for irq in &here {
            finding.seen(format!("/proc/irq/{}/effective_affinity_list", irq.irq), irq.effective.to_string());
        }
        finding
            .fix("move them to other CPUs; those whose CPUs the kernel chooses need isolcpus=managed_irq")
            .by(Family::Irq);
        lets(finding, &here);
    }
    if !later.is_empty() {
        let title =
            format!("{} to {}: {}", count(&later, "may be moved", "may be moved"), subject.named(), names(&later));
        let finding = findings.add(AREA, Severity::Note, title);
        for irq in &later {
            finding.seen(format!("/proc/irq/{}/smp_affinity_list", irq.irq), irq.allowed.to_string());
        }
        finding.fix("remove the CPUs from their affinity, so no device that wakes up uses them").by(Family::Irq);
        lets(finding, &later);
    }
    if here.is_empty() && later.is_empty() && !used.is_empty() {
        let title = format!("no interrupt of a device may go to {} ({} looked at)", subject.named(), used.len());
        findings.add(AREA, Severity::Fine, title);
    }
    from_now_on(subject, findings);
}

fn count(irqs: &[&IrqAffinity], one: &str, many: &str) -> String {
    if irqs.len() == 1 { format!("1 interrupt {one}") } else { format!("{} interrupts {many}", irqs.len()) }
}

fn names(irqs: &[&IrqAffinity]) -> String {
    let names: Vec<String> = irqs.iter().map(|irq| format!("{} ({})", irq.handlers.join(", "), irq.irq)).collect();
    some(&names, 4)
}

/// The interrupt by the names of its handlers, and its consequences.
fn lets(finding: &mut Finding, irqs: &[&IrqAffinity]) {
    for name in irqs.iter().flat_map(|irq| &irq.handlers) {
        // A threaded handler runs on the CPU of the interrupt.
        finding.lets(NoiseSource::new(Kind::Irq, name)).lets(NoiseSource::new(Kind::Kthread, format!("irq/{name}")));
    }
}

/// The CPUs of interrupts requested from now on.
fn from_now_on(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    let path = "/proc/irq/default_smp_affinity";
    let asked = subject.line.last("irqaffinity");
    if let Some(text) = asked {
        let shown = format!("irqaffinity={text}");
        match parse_kernel_list(text, subject.count()) {
            Err(why) => {
                findings
                    .add(AREA, Severity::Error, format!("the kernel does not understand {shown}: {why}"))
                    .seen(COMMAND_LINE, shown)
                    .boot(format!("irqaffinity={}", subject.others))
                    .fix("write a list of CPUs that there are");
            }
            Ok(list) => {
                if let Some(hit) = subject.hit(&list) {
                    let title = format!("irqaffinity sends new interrupts to {}, which should be isolated", cpus(&hit));
                    findings
                        .add(AREA, Severity::Error, title)
                        .seen(COMMAND_LINE, shown)
                        .boot(format!("irqaffinity={}", subject.others))
                        .fix("name the other CPUs");
                }
            }
        }
    }
    let Some(evidence) = findings.setting(AREA, path) else { return };
    let Ok(mask) = CpuList::from_mask(&evidence.value) else {
        let title = "the CPUs of new interrupts could not be understood, so they were not checked";
        findings
            .add(AREA, Severity::Note, title)
            .seen(evidence.path, evidence.value.chars().take(60).collect::<String>());
        return;
    };
    match subject.hit(&mask) {
        Some(hit) => {
            let title = format!("interrupts that drivers ask for from now on may go to {}", cpus(&hit));
            findings
                .add(AREA, Severity::Note, title)
                .seen(path, evidence.value)
                .boot(format!("irqaffinity={}", subject.others))
                .fix("take the CPUs out of the default")
                .by(Family::Irq);
        }
        None => {
            let title = format!("interrupts that drivers ask for from now on stay away from {}", subject.named());
            findings.add(AREA, Severity::Fine, title).seen(path, evidence.value);
        }
    }
}
