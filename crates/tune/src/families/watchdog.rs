//! The lockup detectors: one thread and one hardware counter on every watched CPU.
//!
//! They keep watching the housekeeping CPUs: without them a machine is harder to repair.

use crate::draft::{PlanDraft, Wish, noise};
use crate::{Knob, Known, Profile};

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    let removes = || noise(&[Known::Watchdog, Known::Migration, Known::LockupTimer, Known::Nmi]);
    draft.move_away(
        Knob::cpu_list("/proc/sys/kernel/watchdog_cpumask"),
        "the lockup detectors' timer, thread and counter",
        Some("lockups of these CPUs are not detected"),
        removes(),
    );
    // While the detector is on, it occupies a performance counter of each CPU, watched or not.
    if draft.request.profile == Profile::Benchmark {
        draft.change(Wish {
            knob: Knob::word("/proc/sys/kernel/nmi_watchdog"),
            to: "0".to_owned(),
            reason: "the hard lockup detector occupies a performance counter",
            risk: Some("hard lockups are not detected on any CPU"),
            removes: noise(&[Known::Nmi]),
        });
    }
}
