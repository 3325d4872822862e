//! What interrupts are for. A timer interrupt may be the tick, wake a thread or take a profiler's sample; one from another CPU may flush
//! translations or pass packets on. The functions that interrupts run tell it, and their time is charged to what they serve.

use crate::Kind;

/// What functions are run by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carrier {
    /// The interrupt of a CPU's timer, or the softirq `hrtimer`.
    Timer,
    /// An interrupt from another CPU, or a thread that asked its own CPU.
    Call,
    /// A softirq: `timer`, `tasklet` or `hi`.
    Softirq,
}

/// The source of the kernel's tick.
pub const TICK: &str = "tick";

/// The functions of the tick: before Linux 6.9 `tick_sched_timer`.
const TICK_FUNCTIONS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];

/// Interrupts from other CPUs, and those that a CPU sends to itself. Where they run no function, the threads that they wake tell what
/// they are for.
pub const SENT: [&str; 5] = ["call_function", "call_function_single", "reschedule", "irq_work", "ipi"];

/// What Arm's kernels call the interrupt `reschedule` of others, as the detail of `ipi`.
pub const RESCHEDULING: &str = "Rescheduling interrupts";

/// Interrupts that let a thread run without waking it: where the CPU goes to another thread right behind one, that thread is their root.
pub const BRINGING: [&str; 7] = [
    "reschedule",
    "ipi:sched_ttwu_pending",
    "ipi:__cfsb_csd_unthrottle",
    "timer:dl_task_timer",
    "timer:hrtick",
    "timer:sched_cfs_period_timer",
    "timer:sched_rt_period_timer",
];

/// The source that a function is: `tick`, `timer:hrtimer_wakeup`, `ipi:flush_tlb_func`; of a softirq, its own name.
#[must_use]
pub fn source(by: Carrier, function: &str) -> String {
    let name = plain(function);
    match by {
        Carrier::Timer if TICK_FUNCTIONS.contains(&name) => TICK.to_owned(),
        Carrier::Timer => format!("timer:{name}"),
        Carrier::Call => format!("ipi:{name}"),
        Carrier::Softirq => name.to_owned(),
    }
}

/// The root that such a source has, whichever threads it wakes.
#[must_use]
pub fn root(source: &str) -> Option<(Kind, &str)> {
    match source {
        // The scheduler wakes threads in it, and yet it comes without them.
        TICK => Some((Kind::Irq, source)),
        "ipi:rps_trigger_softirq" | "ipi:trigger_rx_softirq" => Some((Kind::Softirq, "net_rx")),
        "ipi:__blk_mq_complete_request_remote" => Some((Kind::Softirq, "block")),
        _ => None,
    }
}

/// A function's name without what compilers append to it: `tick_sched_timer.isra.0`.
fn plain(function: &str) -> &str {
    function.split('.').next().unwrap_or(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_sources_whatever_compilers_append_to_their_names() {
        for function in ["tick_nohz_handler", "tick_sched_timer", "tick_sched_timer.isra.0"] {
            assert_eq!(source(Carrier::Timer, function), TICK);
        }
        assert_eq!(source(Carrier::Timer, "hrtimer_wakeup.cfi_jt"), "timer:hrtimer_wakeup");
        assert_eq!(source(Carrier::Softirq, "process_timeout"), "process_timeout");
        assert_eq!(root(&source(Carrier::Call, "rps_trigger_softirq")), Some((Kind::Softirq, "net_rx")));
        assert_eq!(root("timer:hrtimer_wakeup"), None);
    }
}
