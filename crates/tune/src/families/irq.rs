//! Device interrupts: `/proc/irq/N/smp_affinity_list`, and `default_smp_affinity` for future ones.
//!
//! Interrupts managed by the kernel (one queue per CPU) refuse a change; this shows only on an attempt, because only debugfs identifies them.

use std::path::Path;

use becalm_linux::procfs::interrupts::Interrupts;
use becalm_linux::procfs::placement::PlacedTasks;

use crate::draft::PlanDraft;
use crate::{Kind, Knob, NoiseSource};

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    let root = draft.machine.root();
    let names = Interrupts::read(root).unwrap_or_default();
    draft.move_away(
        Knob::cpu_mask("/proc/irq/default_smp_affinity"),
        "interrupts that are set up from now on",
        None,
        Vec::new(),
    );
    let mut numbers: Vec<u32> = draft.entries("/proc/irq").iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    for number in numbers {
        let handlers = names.device(number).map_or_else(|| folders(draft, number), |device| device.names.clone());
        let reason = match &handlers[..] {
            [] => format!("interrupt {number}, which has no handler now"),
            names => format!("interrupts of {}", names.join(", ")),
        };
        let removes = handlers.iter().flat_map(|name| {
            // Its thread, if it has one, follows it.
            [NoiseSource::new(Kind::Irq, name.as_str()), NoiseSource::new(Kind::Kthread, format!("irq/{name}"))]
        });
        let removes = removes.collect();
        draft.move_away(Knob::cpu_list(format!("/proc/irq/{number}/smp_affinity_list")), &reason, None, removes);
    }
    if let Ok(PlacedTasks { tasks, .. }) = draft.machine.tasks()
        && let Some(daemon) = tasks.iter().find(|placed| placed.task.comm == "irqbalance")
    {
        draft.note(format!(
            "irqbalance runs (pid {}) and will move interrupts back within seconds: stop it, or have it spare the CPUs with \
             IRQBALANCE_BANNED_CPULIST={}",
            daemon.task.pid,
            draft.division.cleared()
        ));
    }
}

/// The handlers of an interrupt not yet counted on any CPU: each has a directory.
fn folders(draft: &mut PlanDraft<'_>, number: u32) -> Vec<String> {
    let folder = format!("/proc/irq/{number}");
    let names = draft.entries(&folder).into_iter();
    names.filter(|name| draft.machine.has_folder(&Path::new(&folder).join(name))).collect()
}
