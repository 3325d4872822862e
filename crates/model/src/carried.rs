//! The purpose of interrupts and of timers' softirqs. A timer interrupt may run the tick, wake a thread, or take a profiler's sample. An
//! interrupt from another CPU may flush address translations or pass packets on. A softirq runs the timers that have expired. The functions
//! show the purpose, and becalm charges the time accordingly.

use crate::Kind;

/// The runner of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carrier {
    /// The interrupt of a CPU's timer, or the softirq `hrtimer`.
    Timer,
    /// An interrupt from another CPU, or a thread that calls a function on its own CPU.
    Call,
    /// The softirq `timer`: the kernel's ordinary timers. The kernel has no event at the end of their functions.
    Wheel,
    /// The softirq `tasklet` or `hi`. The kernel has no event at the end of their functions.
    Tasklet,
    /// A work item, which a kworker runs.
    Work,
    /// The interrupt `irq_work`, for work that the kernel could not do at once. The kernel has no event of its functions.
    IrqWork,
}

/// The source of the kernel's tick.
pub const TICK: &str = "tick";

/// Interrupts of the CPUs' timers. A kernel without events of their functions shows only these names.
pub const TIMERS: [&str; 5] = ["local_timer", "arch_timer", "timer", "hyperv_stimer0", "untraced_timer"];

/// The functions of the tick: before Linux 6.9 `tick_sched_timer`.
const TICK_FUNCTIONS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

/// Interrupts from other CPUs, and those that a CPU sends to itself. If they run no function, they belong to the thread that they wake.
pub const SENT: [&str; 5] = ["call_function", "call_function_single", "reschedule", "irq_work", "ipi"];

/// The detail of `ipi` for the interrupt that x86 names `reschedule`.
pub const RESCHEDULING: &str = "Rescheduling interrupts";

/// Interrupts that can let a thread run without waking it. If the CPU switches to another thread right after one, that thread is its root.
pub const BRINGING: [&str; 7] = [
    "reschedule",
    "ipi:sched_ttwu_pending",
    "ipi:__cfsb_csd_unthrottle",
    "timer:dl_task_timer",
    "timer:hrtick",
    "timer:sched_cfs_period_timer",
    "timer:sched_rt_period_timer",
];

/// The source of a function: `tick`, `timer:hrtimer_wakeup`, `timer:process_timeout`, `ipi:flush_tlb_func`, `kworker:vmstat_update`. Tasklets
/// keep their names.
pub fn source(carrier: Carrier, function: &str) -> String {
    let name = plain(function);
    match carrier {
        Carrier::Timer if TICK_FUNCTIONS.contains(&name) => TICK.to_owned(),
        _ => format!("{}{name}", prefix(carrier)),
    }
}

/// The first part of the names of a carrier's sources.
pub const fn prefix(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Timer | Carrier::Wheel => "timer:",
        Carrier::Call => "ipi:",
        Carrier::Work => "kworker:",
        Carrier::IrqWork => "irq_work:",
        Carrier::Tasklet => "",
    }
}

/// The sources that are the tick of a recording with these interrupts. A kernel that does not name its ticks counts all timer interrupts.
pub fn tick_names<'a>(mut interrupts: impl Iterator<Item = &'a String>) -> &'static [&'static str] {
    if interrupts.any(|name| name == TICK) { &[TICK] } else { &TIMERS }
}

/// Whether an interrupt of this name is one of a CPU's timer: the tick, another function, or an unnamed one.
pub fn is_timer(source: &str) -> bool {
    source == TICK || source.starts_with("timer:") || TIMERS.contains(&source)
}

/// The fixed root of such a source, independent of the threads that it wakes.
pub fn root(source: &str) -> Option<(Kind, &str)> {
    match source {
        // It wakes threads, but comes without them, too.
        TICK => Some((Kind::Irq, source)),
        "ipi:rps_trigger_softirq" | "ipi:trigger_rx_softirq" => Some((Kind::Softirq, "net_rx")),
        "ipi:__blk_mq_complete_request_remote" => Some((Kind::Softirq, "block")),
        _ => None,
    }
}

/// Whether an activity of this kind and name, an interrupt or a softirq, runs the functions of a carrier, and is named by them.
pub fn runs(kind: Kind, source: &str, carrier: Carrier) -> bool {
    match kind {
        Kind::Irq => matches!(carrier, Carrier::Timer | Carrier::Call),
        Kind::Softirq => matches!((source, carrier), ("timer", Carrier::Wheel) | ("hrtimer", Carrier::Timer)),
        _ => false,
    }
}

/// The name without a suffix of the compiler: `tick_sched_timer.isra.0`.
pub fn plain(function: &str) -> &str {
    function.split('.').next().unwrap_or(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_no_suffix_of_the_compiler() {
        for function in ["tick_nohz_handler", "tick_sched_timer", "tick_sched_timer.isra.0"] {
            assert_eq!(source(Carrier::Timer, function), TICK);
        }
        assert_eq!(source(Carrier::Timer, "hrtimer_wakeup.cfi_jt"), "timer:hrtimer_wakeup");
        assert_eq!(source(Carrier::Wheel, "process_timeout"), "timer:process_timeout");
        assert_eq!(source(Carrier::Tasklet, "tcp_tasklet_func"), "tcp_tasklet_func");
        assert_eq!(source(Carrier::Work, "vmstat_update.cold"), "kworker:vmstat_update");
        assert_eq!(root(&source(Carrier::Call, "rps_trigger_softirq")), Some((Kind::Softirq, "net_rx")));
        assert_eq!(root("timer:hrtimer_wakeup"), None);
    }
}
