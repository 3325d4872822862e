//! Warnings about a finished recording of detours or samples.

use becalm_model::node::{CpuDoc, TracingDoc, Warning};
use becalm_model::warning;
use becalm_units::Nanos;

/// The warnings of a finished recording. `intended` is the duration of every loop, if the recording ended by it.
pub fn closing_warnings(cpus: &[CpuDoc], tracing: Option<&TracingDoc>, intended: Option<Nanos>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let lost: u64 = cpus.iter().map(|cpu| cpu.lost_events).sum();
    let incomplete: u64 = cpus.iter().map(|cpu| cpu.incomplete).sum();
    if lost > 0 || incomplete > 0 {
        warnings.push(warning::lost_events(lost, incomplete));
    }
    // One or two are frames that were open when the trace started.
    for cpu in cpus.iter().filter(|cpu| cpu.unmatched_events > 2) {
        warnings.push(warning::unmatched_events(cpu));
    }
    for cpu in cpus.iter().filter(|cpu| cpu.cut_short) {
        warnings.push(warning::cut_short(cpu));
    }
    if let Some(intended) = intended {
        // All end at the same instant. A tenth is more than starting on a busy CPU takes.
        let least = Nanos::new(intended.get() / 10 * 9);
        let is_late = |cpu: &&CpuDoc| !cpu.cut_short && cpu.duration_ns < least;
        for cpu in cpus.iter().filter(is_late) {
            warnings.push(warning::began_late(cpu, intended));
        }
    }
    for cpu in cpus.iter().filter(|cpu| cpu.unstored > 0) {
        warnings.push(warning::unstored(cpu));
    }
    let disturbed = |cpu: &&CpuDoc| cpu.faults > 0 || cpu.voluntary_switches > 0;
    for cpu in cpus.iter().filter(disturbed) {
        warnings.push(warning::loop_disturbed(cpu));
    }
    if tracing.is_some() {
        // Unstored detours cannot contain events either.
        let limit = |cpu: &CpuDoc| cpu.unstored_lengths.iter().map(|class| class.below_ns + cpu.t_min_ns).max();
        let contradicted =
            |cpu: &&CpuDoc| cpu.below_threshold_max_ns > cpu.threshold_ns.max(limit(cpu).unwrap_or_default());
        for cpu in cpus.iter().filter(contradicted) {
            warnings.push(warning::clocks_disagree(cpu));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use becalm_units::CpuId;

    use super::*;

    #[test]
    fn loops_that_began_late_are_told_where_all_were_to_measure_as_long() {
        let whole = Nanos::from_millis(360);
        let cpu = |number, duration_ns| CpuDoc { duration_ns, ..CpuDoc::new(CpuId::new(number)) };
        let cpus = [cpu(0, whole - Nanos::from_micros(40)), cpu(1, Nanos::new(787))];
        let found = closing_warnings(&cpus, None, Some(whole));
        let told: Vec<&str> = found.iter().map(|warning| warning.message.as_str()).collect();
        let late = "the loop on CPU 1 measured for 787ns of 360ms: others had its CPU when it was to start";
        assert_eq!(told, [late]);
        assert_eq!(closing_warnings(&cpus, None, None), []);
        let short = [CpuDoc { cut_short: true, ..cpu(1, Nanos::new(787)) }];
        assert_eq!(closing_warnings(&short, None, Some(whole)).len(), 1, "why it is short is said once");
    }
}
