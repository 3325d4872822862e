//! Knobs and their values as text.

use becalm_model::Kind;
use becalm_model::tune::Family;
use becalm_units::{CpuList, cpus};

use crate::document::{Change, Knob};

/// The most characters of a value in a column; documents have all of it.
const LONGEST: usize = 24;

/// A value for a column: only the chosen word of a choice, and shortened if necessary.
pub(crate) fn shown(knob: &Knob, text: &str) -> String {
    let value = knob.value(text);
    if value.is_empty() {
        "-".to_owned()
    } else if value.chars().count() <= LONGEST {
        value.to_owned()
    } else {
        value.chars().take(LONGEST - 1).chain(['\u{2026}']).collect()
    }
}

/// A knob with its value before and after: `/proc/sys/vm/stat_interval: 1 -> 120`.
pub(crate) fn transition(knob: &str, from: &str, to: &str) -> String {
    if from == to { format!("{knob}: {from}") } else { format!("{knob}: {from} -> {to}") }
}

/// Why the kernel refuses to move an interrupt that it manages itself; `None` for other changes and reasons.
pub(crate) fn managed_interrupt(change: &Change, why: &str) -> Option<String> {
    // EPERM, and EIO in older kernels.
    let is_managed = why.contains("(os error 1)") || why.contains("(os error 5)");
    let path = change.knob.to_string();
    let number = path.strip_prefix("/proc/irq/")?.strip_suffix("/smp_affinity_list").filter(|_| is_managed)?;
    let list = |text: &str| text.parse::<CpuList>().ok();
    let left = list(&change.from)?.without(&list(&change.to)?);
    let handlers = change.removes.iter().filter(|noise| noise.kind == Kind::Irq).map(|noise| noise.source.as_str());
    let handlers = handlers.collect::<Vec<_>>().join(", ");
    let name = if handlers.is_empty() { String::new() } else { format!(" ({handlers})") };
    Some(format!(
        "cannot move IRQ {number}{name} off {}: the kernel manages its affinity; boot with isolcpus=managed_irq,domain,{left}",
        cpus(&left)
    ))
}

/// A refused change in a sentence.
pub(crate) fn refusal(change: &Change, why: &str) -> String {
    managed_interrupt(change, why).unwrap_or_else(|| format!("{}: {} is unchanged: {why}", change.family, change.knob))
}

/// The common key of changes that may share a row; `None` for a change with its own row.
pub(crate) fn alike(change: &Change) -> Option<String> {
    let path = match &change.knob {
        Knob::Affinity { .. } => return Some("tasks and kernel threads".to_owned()),
        Knob::File { path, .. } => path,
        _ => return None,
    };
    let text = path.to_string_lossy();
    if text.starts_with("/proc/irq/") && text.ends_with("_list") {
        return Some("interrupts".to_owned());
    }
    // The name of files that differ only in the CPU or the queue.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match change.family {
        Family::Cpuset | Family::Workqueue => None,
        _ => Some(format!("files {name}")),
    }
}

#[cfg(test)]
mod tests {
    use becalm_model::remedy::NoiseSource;

    use super::*;

    #[test]
    fn an_interrupt_that_the_kernel_manages_has_its_own_reason() {
        let change = Change {
            family: Family::Irq,
            knob: Knob::cpu_list("/proc/irq/36/smp_affinity_list"),
            from: "0-1".into(),
            to: "0".into(),
            or_else: Vec::new(),
            after: false,
            reason: String::new(),
            risk: None,
            removes: vec![NoiseSource::new(Kind::Irq, "nvme0q2"), NoiseSource::new(Kind::Kthread, "irq/nvme0q2")],
        };
        assert_eq!(
            refusal(&change, "'0': Operation not permitted (os error 1)"),
            "cannot move IRQ 36 (nvme0q2) off CPU 1: the kernel manages its affinity; boot with isolcpus=managed_irq,domain,1"
        );
        assert_eq!(
            refusal(&change, "'0': Invalid argument (os error 22)"),
            "irq: /proc/irq/36/smp_affinity_list is unchanged: '0': Invalid argument (os error 22)"
        );
    }

    #[test]
    fn long_values_are_cut_and_choices_shown() {
        assert_eq!(shown(&Knob::choice("/x"), "always [madvise] never"), "madvise");
        assert_eq!(shown(&Knob::word("/x"), ""), "-");
        assert_eq!(shown(&Knob::cpu_mask("/x"), &"f".repeat(90)).chars().count(), 24);
    }
}
