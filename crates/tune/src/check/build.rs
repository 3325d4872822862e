//! How the kernel was built: debug options that slow down every lock, allocation or access.

use super::finding::Findings;
use super::subject::Subject;
use crate::Known;
use crate::document::{Area, Evidence, Severity};

const AREA: Area = Area::Build;

/// Options that cost time everywhere, and their effects.
const SLOW: &[(&str, &str)] = &[
    ("PROVE_LOCKING", "every lock is checked"),
    ("DEBUG_LOCK_ALLOC", "every lock is checked"),
    ("LOCK_STAT", "every lock is timed"),
    ("DEBUG_ATOMIC_SLEEP", "sleeping places are checked"),
    ("DEBUG_PREEMPT", "places that depend on the CPU are checked"),
    ("PREEMPT_TRACER", "each stretch without preemption is timed"),
    ("IRQSOFF_TRACER", "each stretch without interrupts is timed"),
    ("KASAN", "every access to memory is checked"),
    ("KCSAN", "accesses to memory are sampled for races"),
    ("KMSAN", "every access to memory is checked"),
    ("DEBUG_PAGEALLOC_ENABLE_DEFAULT", "free pages are unmapped"),
    ("SLUB_DEBUG_ON", "every object of the kernel is checked"),
    ("DEBUG_OBJECTS_ENABLE_DEFAULT", "every object of the kernel is tracked"),
    ("DEBUG_KMEMLEAK_AUTO_SCAN", "a thread looks for memory that was lost"),
    ("RCU_EQS_DEBUG", "entries into the kernel are checked"),
    ("DEBUG_TIMEKEEPING", "every reading of the clock is checked"),
];

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings<'_>) {
    if let Some(config) = &subject.config {
        let slow: Vec<&(&str, &str)> = SLOW.iter().filter(|(option, _)| config.has(option)).collect();
        if slow.is_empty() {
            let title = "the kernel was built without options for debugging that cost time everywhere";
            findings.add(AREA, Severity::Fine, title).seen(config.path.clone(), format!("none of {}", SLOW.len()));
        } else {
            let mut why: Vec<&str> = slow.iter().map(|(_, why)| *why).collect();
            why.dedup();
            let finding = findings.add(
                AREA,
                Severity::Warning,
                format!("the kernel was built for debugging: {}", why.join(", ")),
            );
            finding.evidence = slow
                .iter()
                .map(|(option, _)| Evidence::new(config.path.clone(), format!("CONFIG_{option}=y")))
                .collect();
            finding.fix("boot the kernel that the distribution offers for production");
        }
    }
    kfence(findings);
}

/// KFENCE periodically opens a gate for one allocation, and patches code on all CPUs to do so.
fn kfence(findings: &mut Findings<'_>) {
    let path = "/sys/module/kfence/parameters/sample_interval";
    if let Some(ms) = findings.number(AREA, path).filter(|ms| *ms > 0) {
        let title =
            format!("KFENCE samples an allocation every {ms}ms, and interrupts all CPUs for that on most kernels");
        findings
            .add(AREA, Severity::Warning, title)
            .seen(path, ms.to_string())
            .boot("kfence.sample_interval=0")
            .fix(format!("echo 0 > {path}"))
            .lets(Known::AllocationGateWorker)
            .lets(Known::AllocationGate)
            .lets(Known::CodeChange)
            .lets(Known::AnyCallFunction);
    }
}
