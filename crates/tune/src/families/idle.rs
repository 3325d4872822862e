//! Idle states: a waiting CPU should not sleep so deeply that waking up takes long.

use becalm_linux::sysfs::cpu::idle_states;
use becalm_units::Nanos;

use crate::draft::{PlanDraft, Wish};
use crate::{Knob, Profile};

/// States with a longer exit latency are switched off.
const LATENCY_MAX: Nanos = Nanos::from_micros(10);

/// How long a guest's idle CPU polls for work before it returns to the hypervisor, in ns: the kernel's default
/// (`Documentation/virt/guest-halt-polling.rst`).
const POLLING: u64 = 200_000;

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    if draft.request.profile == Profile::CloudGuest {
        polling(draft);
        return;
    }
    let cpus = draft.division.cpus.clone();
    for cpu in cpus.iter() {
        let states = match idle_states(draft.machine.root(), cpu) {
            Ok(states) => states,
            Err(error) => {
                draft.note(format!("{error}; the idle states of CPU {cpu} are left alone"));
                continue;
            }
        };
        for (number, state) in states.iter().enumerate().filter(|(_, state)| state.exit_latency > LATENCY_MAX) {
            draft.change(Wish {
                knob: Knob::word(format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}/disable")),
                to: "1".to_owned(),
                reason: &format!("waking CPU {cpu} from {} takes up to {}", state.name, state.exit_latency),
                risk: Some("more power and heat, and less turbo for the others"),
                removes: Vec::new(),
            });
        }
    }
}

/// Returning an idle virtual CPU costs a VM exit, and it may come back late.
fn polling(draft: &mut PlanDraft<'_>) {
    let path = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";
    if draft.read(path).and_then(|now| now.parse::<u64>().ok()).is_some_and(|now| now < POLLING) {
        draft.change(Wish {
            knob: Knob::word(path),
            to: POLLING.to_string(),
            reason: "an idle CPU polls for this many ns before it is given back to the hypervisor",
            risk: Some("all idle CPUs of the guest spend time polling"),
            removes: Vec::new(),
        });
    }
}
