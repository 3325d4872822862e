//! What limits the numbers of a recording, as values with their figures and the next step.

use becalm_model::node::{CpuDoc, TracingDoc, Warning};
use becalm_units::{CpuId, CpuList, Nanos};

fn warning(code: &str, message: String, advice: &str) -> Warning {
    Warning { code: code.to_owned(), message, advice: advice.to_owned() }
}

/// The processor's own counter cannot be used.
pub fn slow_clock(why: &str) -> Warning {
    warning(
        "slow_clock",
        format!("the loops read CLOCK_MONOTONIC_RAW, which takes longer than a counter: {why}"),
        "nothing to do if this is a virtual machine without an invariant counter; short detours stay unseen",
    )
}

/// The counters of the CPUs differ.
pub fn counters_differ(proven: Nanos) -> Warning {
    warning(
        "counters_differ",
        format!("the counters of the measured CPUs differ by at least {proven}"),
        "times on different CPUs cannot be compared to better than that; each CPU's own detours are right",
    )
}

/// A counter ran backwards.
pub fn backwards(count: u64) -> Warning {
    warning(
        "counter_backwards",
        format!("the counter was seen to run backwards {count} times"),
        "do not trust this recording: the machine's counter is broken; report it to its vendor",
    )
}

/// CPUs that were left out.
pub fn left_out(cpus: &CpuList) -> Warning {
    warning(
        "cpus_left_out",
        format!("CPU {cpus} is online, but this process may not use it, so it was not measured"),
        "run becalm outside of the cgroup or container that forbids it",
    )
}

/// Tracing cannot be had.
pub fn no_tracing(why: &str) -> Warning {
    warning(
        "no_tracing",
        format!("the sources of detours are unknown, as the kernel's trace cannot be had: {why}"),
        "run becalm without arguments to see what is missing and how to get it",
    )
}

/// Events that this kernel lacks.
pub fn missing_events(missing: &[String]) -> Warning {
    warning(
        "missing_events",
        format!("some kernel events cannot be recorded: {}", missing.join("; ")),
        "what they would show counts as edge or unseen",
    )
}

/// Functions have no names.
pub fn no_symbols(why: &str) -> Warning {
    warning(
        "no_symbols",
        format!("work items and handlers go by address: {why}"),
        "run as root with kernel.kptr_restrict at 1 or 0",
    )
}

/// Memory is not locked.
pub fn not_locked() -> Warning {
    warning(
        "memory_not_locked",
        "the loops' memory could not be locked, so that a page fault of their own may show as a detour".to_owned(),
        "run as root, with CAP_IPC_LOCK or a larger limit (ulimit -l)",
    )
}

/// Every CPU is measured, so that collecting disturbs.
pub fn no_free_cpu() -> Warning {
    warning(
        "no_free_cpu",
        "all CPUs that becalm may use are measured, so its collector runs on them: its time shows as kind self"
            .to_owned(),
        "leave one CPU out of --cpus to keep the collector off the measured ones",
    )
}

/// No guard process could be started, for this reason.
pub fn no_janitor(why: &str) -> Warning {
    warning(
        "no_janitor",
        format!(
            "no guard process could be started ({why}): after a kill -9 the trace instance stays until the next becalm \
             removes it"
        ),
        "nothing to do unless becalm is killed",
    )
}

/// What the finished recording itself shows.
pub fn of_cpus(cpus: &[CpuDoc], tracing: Option<&TracingDoc>, realtime_limit: Option<Nanos>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let lost: u64 = cpus.iter().map(|cpu| cpu.lost_events).sum();
    let incomplete: u64 = cpus.iter().map(|cpu| cpu.incomplete).sum();
    if lost > 0 || incomplete > 0 {
        warnings.push(warning(
            "lost_events",
            format!("{lost} kernel events were lost, which leaves {incomplete} detours with incomplete sources"),
            "give the trace more room with --trace-buffer",
        ));
    }
    // One or two are frames that were open when the trace began.
    for cpu in cpus.iter().filter(|cpu| cpu.unmatched_events > 2) {
        warnings.push(warning(
            "unmatched_events",
            format!(
                "on CPU {} the kernel's trace lacks {} switches, entries or exits among {} events, without admitting to a loss",
                cpu.cpu, cpu.unmatched_events, cpu.events
            ),
            "the time since the event before each goes to the thread that the next one names; all books still close",
        ));
    }
    for cpu in cpus.iter().filter(|cpu| cpu.cut_short) {
        warnings.push(warning(
            "cut_short",
            format!("the loop on CPU {} ended early, after {:.3}", cpu.cpu, cpu.duration_ns),
            "its CPU went offline or left the cpuset, or its buffer was full (--buffer)",
        ));
    }
    let disturbed = |cpu: &&CpuDoc| cpu.faults > 0 || cpu.voluntary_switches > 0;
    for cpu in cpus.iter().filter(disturbed) {
        warnings.push(warning(
            "loop_disturbed",
            format!(
                "becalm's own loop on CPU {} took {} page faults and slept {} times while it measured",
                cpu.cpu, cpu.faults, cpu.voluntary_switches
            ),
            "lock its memory (run as root or raise ulimit -l); such detours show as kind fault",
        ));
    }
    if tracing.is_some() {
        let contradicted = |cpu: &&CpuDoc| cpu.below_threshold_max_ns > cpu.threshold_ns;
        for cpu in cpus.iter().filter(contradicted) {
            warnings.push(warning(
                "clocks_disagree",
                format!(
                    "on CPU {} the trace shows an interrupt of {} outside of every detour, above the threshold of {}",
                    cpu.cpu, cpu.below_threshold_max_ns, cpu.threshold_ns
                ),
                "the trace and the loop disagree; do not trust the sources of this CPU, and report it to becalm's developers",
            ));
        }
    }
    if let Some(limit) = realtime_limit {
        warnings.push(warning(
            "rt_throttling",
            format!("real-time loops may be kept from their CPU for up to {limit} a second by RT throttling"),
            "to measure without it: echo -1 > /proc/sys/kernel/sched_rt_runtime_us, and put it back afterwards",
        ));
    }
    warnings
}

/// Pages of the trace that could not be decoded.
pub fn broken_pages(pages: u64, cpu: CpuId, why: &str) -> Warning {
    warning(
        "broken_pages",
        format!("{pages} pages of the kernel's trace could not be decoded, the first on CPU {cpu}: {why}"),
        "the sources of the detours around them are wrong; report this with the kernel's version",
    )
}
