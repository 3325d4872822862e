//! Timers that were set on a CPU which idles now: they may fire on one that is awake anyway.

use crate::Noise;
use crate::draft::{Draft, Wish};
use crate::knob::Knob;

pub(super) fn add(draft: &mut Draft<'_>) {
    draft.change(Wish {
        knob: Knob::word("/proc/sys/kernel/timer_migration"),
        to: "1".to_owned(),
        reason: "timers that are set on an isolated CPU fire on another one",
        risk: "",
        removes: vec![Noise::new("softirq", "timer")],
    });
}
