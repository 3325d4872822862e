//! Workers of unbound work queues: the global mask, and those of single queues, including writeback.
//!
//! Work queued on a specific CPU stays there.

use crate::draft::{PlanDraft, noise};
use crate::{Knob, Known};

const FOLDER: &str = "/sys/devices/virtual/workqueue";

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    // The masks of the queues first: the global mask limits them.
    for queue in draft.entries(FOLDER) {
        let reason = format!("workers of the queue {queue}");
        let removes = if queue == "writeback" { noise(&[Known::Writeback]) } else { Vec::new() };
        draft.move_away(Knob::cpu_mask(format!("{FOLDER}/{queue}/cpumask")), &reason, None, removes);
    }
    draft.move_away(
        Knob::cpu_mask(format!("{FOLDER}/cpumask")),
        "work that may run on any CPU",
        None,
        noise(&[Known::Kworker]),
    );
}
