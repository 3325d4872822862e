//! Receive packet steering: the CPUs on which the network stack processes packets that arrived elsewhere.
//!
//! Transmit steering (XPS) is left alone: it chooses the queue by the sending CPU, and gives other CPUs no work.

use crate::draft::{PlanDraft, noise};
use crate::{Knob, Known};

const FOLDER: &str = "/sys/class/net";

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    for device in draft.entries(FOLDER) {
        for queue in draft.entries(format!("{FOLDER}/{device}/queues")) {
            if queue.starts_with("rx-") {
                let reason = format!("received packets of {device}");
                let removes = noise(&[Known::NetRx, Known::Rps]);
                let knob = Knob::cpu_mask(format!("{FOLDER}/{device}/queues/{queue}/rps_cpus"));
                draft.move_away(knob, &reason, None, removes);
            }
        }
    }
}
