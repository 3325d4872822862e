//! The hardware and everything below the kernel: counter, hypervisor, frequency and sleep states.

use std::path::Path;

use becalm_linux::clock::choose;
use becalm_linux::sysfs::{cpu, machine};
use becalm_model::audit::{Ability, Answer};
use becalm_units::{CpuList, Nanos};

/// From this exit latency on, waking an idle CPU is a detour of its own.
const DEEP_SLEEP: Nanos = Nanos::from_micros(10);

/// The counter that the loops read.
pub(super) fn counter(root: &Path) -> Answer {
    match choose(root).why_not_native {
        None => Answer::available(Ability::Counter, "the processor's own, of constant rate, never stopping"),
        Some(why) => Answer::limited(
            Ability::Counter,
            why,
            "the loops read CLOCK_MONOTONIC_RAW: their steps are longer, and short detours are not seen",
            "on a virtual machine, let the hypervisor pass on an invariant TSC",
        ),
    }
}

/// Whether time can be taken below the kernel.
pub(super) fn hypervisor(root: &Path) -> Answer {
    match machine::hypervisor(root) {
        Ok(None) => Answer::available(Ability::Hypervisor, "none seen: the kernel runs on bare metal"),
        Ok(Some(name)) => Answer::limited(
            Ability::Hypervisor,
            format!("the kernel runs under a hypervisor ({name})"),
            "its interruptions have no kernel event and are reported as unseen; steal time bounds them",
            "",
        ),
        Err(error) => {
            let consequence = "whether a hypervisor makes detours is not known";
            Answer::limited(Ability::Hypervisor, error.to_string(), consequence, "")
        }
    }
}

/// Whether the CPUs run at one frequency and wake up at once. No answers if the kernel does not control that.
pub(super) fn power(root: &Path, cpus: &CpuList) -> Vec<Answer> {
    let mut answers = Vec::new();
    let slowed = cpus.iter().find_map(|cpu| {
        let cpu::FrequencyPolicy { driver, governor } = cpu::frequency_policy(root, cpu).ok()??;
        (governor != "performance").then_some((cpu, driver, governor))
    });
    if let Some((cpu, driver, governor)) = slowed {
        answers.push(Answer::limited(
            Ability::Power,
            format!("CPU {cpu} chooses its frequency by the governor {governor} ({driver})"),
            "steps of the loop change with the frequency, most of all in the first milliseconds",
            "cpupower frequency-set -g performance",
        ));
    }
    let deep = cpus.iter().find_map(|cpu| {
        let states = cpu::idle_states(root, cpu).ok()?;
        let deepest = states.into_iter().filter(|state| !state.disabled).max_by_key(|state| state.exit_latency)?;
        (deepest.exit_latency >= DEEP_SLEEP).then_some((cpu, deepest))
    });
    if let Some((cpu, state)) = deep {
        answers.push(Answer::limited(
            Ability::Power,
            format!("CPU {cpu} may sleep in {}, which takes {} to leave", state.name, state.exit_latency),
            "no matter to a loop that never sleeps; a job that waits wakes up late",
            "hold /dev/cpu_dma_latency at 0 while the job runs",
        ));
    }
    answers
}
