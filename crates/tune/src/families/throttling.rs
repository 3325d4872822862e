//! Real-time throttling: the time that the kernel withholds from real-time threads, by default 50 ms of every second.
//!
//! Newer kernels (6.12 and later) use a deadline server for ordinary tasks on each CPU, shown in debugfs; older ones, and those with real-time group
//! scheduling, use a limit for the whole machine.

use becalm_linux::realtime::throttles;

use crate::draft::{PlanDraft, Wish, noise};
use crate::{Knob, Known};

const RISK: &str =
    "a real-time thread that never sleeps blocks its CPU for all other threads, also those that could end it";

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    let cpus = draft.division.cpus.clone();
    for cpu in cpus.iter() {
        draft.change(Wish {
            knob: Knob::word(format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime")),
            to: "0".to_owned(),
            reason: "ordinary tasks take this many ns of every second of the CPU from real-time threads",
            risk: Some(RISK),
            removes: noise(&[Known::Task]),
        });
    }
    if throttles(draft.machine.root()) == Some(false) {
        return;
    }
    draft.change(Wish {
        knob: Knob::word("/proc/sys/kernel/sched_rt_runtime_us"),
        to: "-1".to_owned(),
        reason: "real-time threads are stopped for the rest of every second beyond this many us",
        risk: Some(RISK),
        removes: noise(&[Known::RealTimeThrottling]),
    });
}
