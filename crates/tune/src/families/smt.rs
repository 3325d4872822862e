//! The other hardware threads of the CPUs' cores: work there slows the CPU down, without any kernel event.
//!
//! They are taken offline. Those in a cpuset of version 1 stay online: the kernel permanently removes offline CPUs from those cpusets.

use std::path::PathBuf;

use becalm_units::CpuList;

use super::cpuset::{Hierarchy, hierarchy};
use crate::Knob;
use crate::draft::{PlanDraft, Wish};

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    let siblings = draft.division.siblings.clone();
    let losing = match hierarchy(draft.machine) {
        Some(Hierarchy::One { folder, .. }) if !siblings.is_empty() => losing(draft, folder, &siblings),
        _ => Vec::new(),
    };
    if let Some(first) = losing.first() {
        draft.note(format!(
            "{} control groups of version 1, such as {}, would lose CPU {siblings} for good if it went offline; it stays \
             online",
            losing.len(),
            first.display()
        ));
        return;
    }
    for cpu in siblings.iter() {
        draft.change(Wish {
            knob: Knob::word(format!("/sys/devices/system/cpu/cpu{cpu}/online")),
            to: "0".to_owned(),
            reason: "it shares a core with an isolated CPU",
            risk: Some("programs that ran there have one CPU less"),
            removes: Vec::new(),
        });
    }
    if !siblings.is_empty() {
        draft.note(format!(
            "interrupts whose CPUs the kernel alone chooses leave CPU {siblings} when it goes offline, and come back at a reboot only"
        ));
    }
}

/// The groups below a directory whose cpusets contain one of the CPUs. The top group follows the online CPUs.
fn losing(draft: &mut PlanDraft<'_>, folder: PathBuf, cpus: &CpuList) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![(folder, true)]);
    while let Some((folder, is_top)) = folders.pop() {
        for name in draft.entries(&folder) {
            if draft.machine.has_folder(&folder.join(&name)) {
                folders.push((folder.join(name), false));
            }
        }
        let held = draft.read(folder.join("cpuset.cpus")).and_then(|held| held.parse::<CpuList>().ok());
        if !is_top && held.is_some_and(|held| !held.intersection(cpus).is_empty()) {
            found.push(folder);
        }
    }
    found.sort_unstable();
    found
}
