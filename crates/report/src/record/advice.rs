//! What can be done about a source: one sentence, for the sources that take most.

use becalm_model::Kind;

/// What usually removes or lessens a source, if there is something.
#[must_use]
pub fn against(kind: Kind, source: &str) -> Option<&'static str> {
    Some(match (kind, source) {
        (Kind::Irq, "local_timer" | "timer") => {
            "the tick: boot with nohz_full= and rcu_nocbs= for these CPUs, and keep one runnable thread on each"
        }
        (Kind::Irq, "reschedule" | "call_function" | "call_function_single" | "irq_work") => {
            "other CPUs interrupt these: keep threads of one process, and its memory, away from isolated CPUs"
        }
        (Kind::Irq, _) => "move it to another CPU: write that CPU's number to /proc/irq/N/smp_affinity_list",
        (Kind::Softirq, "net_rx" | "net_tx") => {
            "it follows the network's interrupts: move those, and set the queues' rps_cpus and xps_cpus"
        }
        (Kind::Softirq, "timer" | "hrtimer") => {
            "timers started on these CPUs: set kernel.timer_migration, or isolate them"
        }
        (Kind::Softirq, "rcu") => "boot with rcu_nocbs= for these CPUs",
        (Kind::Softirq, "sched") => "load balancing: isolate the CPUs, with a cpuset partition or isolcpus=",
        (Kind::Softirq, "block") => "it follows the disk's interrupts: move those",
        (Kind::Softirq, _) => return None,
        (Kind::Workqueue, _) => {
            "take these CPUs out of /sys/devices/virtual/workqueue/cpumask; items bound to a CPU need their cause removed"
        }
        (Kind::Kthread, _) => {
            "move it with taskset -p where it may move; threads bound to a CPU need their cause removed"
        }
        (Kind::Task, _) => "keep processes off these CPUs: with a cpuset partition, isolcpus=, or taskset",
        (Kind::Fault, _) => "lock and touch the memory before the work: mlockall, huge pages",
        (Kind::Throttling, _) => {
            "a bandwidth limit took the CPU: see kernel.sched_rt_runtime_us, and cpu.max of the cgroup"
        }
        (Kind::Unseen, _) => {
            "not the kernel: the hypervisor (dedicate its CPUs), firmware (turn off SMI sources), or a hardware sibling"
        }
        (Kind::Nmi, _) => "the watchdog or a profiler: set kernel.nmi_watchdog to 0, end perf sessions",
        (Kind::Becalm, _) => "becalm's own work: leave it a CPU that is not measured",
        (Kind::Edge, _) => return None,
    })
}
