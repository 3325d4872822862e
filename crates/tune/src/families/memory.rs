//! The kernel's background work on memory, which interrupts every CPU: huge pages, merging, NUMA balancing.
//!
//! Programs and the administrator decide whether programs get huge pages at all, except for real time.

use crate::draft::{PlanDraft, Wish, noise};
use crate::{Knob, Known, Profile};

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    if draft.request.profile == Profile::Rt {
        draft.change(Wish {
            knob: Knob::choice(format!("{HUGE_PAGES}/enabled")),
            to: "never".to_owned(),
            reason: "huge pages are made and split at unpredictable moments",
            risk: Some("programs of the whole machine that gain from huge pages become slower"),
            removes: noise(&[Known::Khugepaged, Known::Flush, Known::CallFunction]),
        });
    } else {
        draft.change(Wish {
            knob: Knob::word(format!("{HUGE_PAGES}/khugepaged/defrag")),
            to: "0".to_owned(),
            reason: "khugepaged moves pages about to make room for huge ones",
            risk: Some("pages that were small when touched become huge less often"),
            removes: noise(&[Known::Khugepaged, Known::Flush, Known::CallFunction]),
        });
    }
    let merging = "/sys/kernel/mm/ksm/run";
    if draft.read(merging).as_deref() == Some("1") {
        draft.change(Wish {
            knob: Knob::word(merging),
            to: "0".to_owned(),
            reason: "ksmd compares and merges pages",
            risk: Some("equal pages of virtual machines are no longer merged; merged ones stay merged"),
            removes: noise(&[Known::Ksmd, Known::Flush, Known::CallFunction]),
        });
    }
    draft.change(Wish {
        knob: Knob::word("/proc/sys/kernel/numa_balancing"),
        to: "0".to_owned(),
        reason: "pages are unmapped now and then to see who uses them",
        risk: Some("programs that bind neither threads nor memory may end up far from their pages"),
        removes: noise(&[Known::Fault, Known::Flush, Known::CallFunction]),
    });
}
