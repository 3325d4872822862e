//! Memory statistics: each CPU periodically folds its own counts into those of the machine.

use crate::draft::{PlanDraft, Wish, noise};
use crate::{Knob, Known};

/// Seconds; the kernel's default is 1.
const INTERVAL: u32 = 120;

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    let path = "/proc/sys/vm/stat_interval";
    let Some(now) = draft.read(path) else { return };
    if now.parse::<u32>().is_ok_and(|seconds| seconds >= INTERVAL) {
        return;
    }
    draft.change(Wish {
        knob: Knob::word(path),
        to: INTERVAL.to_string(),
        reason: "every CPU folds its memory statistics this often, in seconds",
        risk: Some("the counts of /proc/vmstat and /proc/meminfo lag by up to that long, on all CPUs"),
        removes: noise(&[Known::VmstatUpdate]),
    });
}
