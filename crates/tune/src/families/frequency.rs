//! The frequency of the CPUs: always the highest; for benchmarks without turbo, whose frequency depends on other CPUs.

use becalm_units::CpuList;

use crate::draft::{PlanDraft, Wish};
use crate::{Knob, Profile};

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) fn add(draft: &mut PlanDraft<'_>) {
    let cpus = draft.division.cpus.clone();
    for cpu in cpus.iter() {
        let folder = format!("{CPUS}/cpu{cpu}/cpufreq");
        let Some(offered) = draft.read(format!("{folder}/scaling_available_governors")) else { continue };
        // Several CPUs may share a clock, and so a policy.
        let shared = draft.read(format!("{folder}/related_cpus")).unwrap_or_default();
        let shared: Option<CpuList> = shared.split_whitespace().collect::<Vec<_>>().join(",").parse().ok();
        let others = shared.unwrap_or_default().without(&draft.division.cleared());
        if !others.is_empty() {
            draft.note(format!("CPU {cpu} shares its clock with CPU {others}, so its frequency is left alone"));
            continue;
        }
        if offered.split_whitespace().any(|governor| governor == "performance") {
            draft.change(Wish {
                knob: Knob::word(format!("{folder}/scaling_governor")),
                to: "performance".to_owned(),
                reason: "the CPU does not need time to reach its full frequency",
                risk: Some("more power and heat"),
                removes: Vec::new(),
            });
        }
        let preferences = draft.read(format!("{folder}/energy_performance_available_preferences")).unwrap_or_default();
        if preferences.split_whitespace().any(|preference| preference == "performance") {
            draft.change(Wish {
                knob: Knob::word(format!("{folder}/energy_performance_preference")),
                to: "performance".to_owned(),
                reason: "the processor prefers speed over energy",
                risk: Some("more power and heat"),
                removes: Vec::new(),
            });
        }
    }
    if draft.request.profile == Profile::Benchmark {
        for (path, off) in [("intel_pstate/no_turbo", "1"), ("cpufreq/boost", "0")] {
            draft.change(Wish {
                knob: Knob::word(format!("{CPUS}/{path}")),
                to: off.to_owned(),
                reason: "turbo depends on heat and on what the other CPUs do",
                risk: Some("all CPUs run at their nominal frequency"),
                removes: Vec::new(),
            });
        }
    }
}
