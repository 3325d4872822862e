//! Timers set on a CPU that is idle now: they may fire on one that is awake anyway.

use crate::draft::{PlanDraft, Wish, noise};
use crate::{Knob, Known};

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    draft.change(Wish {
        knob: Knob::word("/proc/sys/kernel/timer_migration"),
        to: "1".to_owned(),
        reason: "timers that are set on an isolated CPU fire on another one",
        risk: None,
        removes: noise(&[Known::Timer, Known::AnySoftTimer, Known::AnyTimer]),
    });
}
