//! What a finished recording of detours or samples shows of itself.

use becalm_model::node::{CpuDoc, TracingDoc, Warning};
use becalm_model::warning;
use becalm_units::Nanos;

/// Warns of what the finished recording itself shows. `realtime_limit` is for how long of each second real-time loops could
/// be kept from their CPU; `None` if they could not.
pub fn closing_warnings(cpus: &[CpuDoc], tracing: Option<&TracingDoc>, realtime_limit: Option<Nanos>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let lost: u64 = cpus.iter().map(|cpu| cpu.lost_events).sum();
    let incomplete: u64 = cpus.iter().map(|cpu| cpu.incomplete).sum();
    if lost > 0 || incomplete > 0 {
        warnings.push(warning::lost_events(lost, incomplete));
    }
    // One or two are frames that were open when the trace began.
    for cpu in cpus.iter().filter(|cpu| cpu.unmatched_events > 2) {
        warnings.push(warning::unmatched_events(cpu));
    }
    for cpu in cpus.iter().filter(|cpu| cpu.cut_short) {
        warnings.push(warning::cut_short(cpu));
    }
    for cpu in cpus.iter().filter(|cpu| cpu.unstored > 0) {
        warnings.push(warning::unstored(cpu));
    }
    let disturbed = |cpu: &&CpuDoc| cpu.faults > 0 || cpu.voluntary_switches > 0;
    for cpu in cpus.iter().filter(disturbed) {
        warnings.push(warning::loop_disturbed(cpu));
    }
    if tracing.is_some() {
        // Detours that were not stored are no place for events either.
        let limit = |cpu: &CpuDoc| cpu.unstored_lengths.iter().map(|class| class.below_ns + cpu.t_min_ns).max();
        let contradicted =
            |cpu: &&CpuDoc| cpu.below_threshold_max_ns > cpu.threshold_ns.max(limit(cpu).unwrap_or_default());
        for cpu in cpus.iter().filter(contradicted) {
            warnings.push(warning::clocks_disagree(cpu));
        }
    }
    if let Some(limit) = realtime_limit {
        warnings.push(warning::rt_throttling(limit));
    }
    warnings
}
