//! Sources of noise that recordings name otherwise than by a function, or that plans and checks name.

use super::functions;
use super::{Fix, Need, NoiseSource};
use crate::Kind;
use crate::family::Family;

/// A row of the catalogue: a noise source and its fix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remedy {
    /// The kind of the activity.
    pub kind: Kind,
    /// The name of the source; a final `*` matches any ending.
    pub source: &'static str,
    /// What removes or reduces it. Without advice, that of a later matching row applies.
    pub fix: Fix,
}

impl From<Known> for NoiseSource {
    fn from(known: Known) -> Self {
        let remedy = known.remedy();
        Self::new(remedy.kind, remedy.source)
    }
}

macro_rules! catalogue {
    ($($(#[doc = $doc:literal])+
        $known:ident: $kind:ident $source:literal, $(as $function:ident)?
            $([$($family:ident),*], $advice:expr $(, needs $need:ident)?)?;)+) => {
        /// The known noise sources. If several match a name, the first one applies.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Known {
            $($(#[doc = $doc])+ $known,)+
        }

        impl Known {
            /// Every known source; within a kind, specific ones precede general ones.
            pub const ALL: &[Self] = &[$(Self::$known,)+];

            /// The row of the catalogue.
            pub const fn remedy(self) -> Remedy {
                match self {
                    $(Self::$known => Remedy {
                        kind: Kind::$kind,
                        source: $source,
                        fix: catalogue!(@fix $(as $function)? $([$($family),*], $advice $(, needs $need)?)?),
                    },)+
                }
            }
        }
    };
    (@fix as $function:ident) => { functions::$function.fix };
    (@fix [$($family:ident),*], $advice:expr $(, needs $need:ident)?) => {
        Fix { families: &[$(Family::$family),*], advice: $advice, needs: catalogue!(@need $($need)?) }
    };
    (@need $need:ident) => { Some(Need::$need) };
    (@need) => { None };
}

const UNKNOWN_CALL: Option<&str> = Some(
    "other CPUs interrupt these; the recording does not show why. Possible causes: packets (set rps_cpus), reads of performance counters, \
     memory shared with other CPUs",
);
const OTHER_CPUS: Option<&str> =
    Some("other CPUs interrupt these: keep threads of one process, and its memory, away from isolated CPUs");
const NETWORK: Option<&str> =
    Some("it follows the network's interrupts: move those, and set the queues' rps_cpus and xps_cpus");
const OTHER_TIMERS: Option<&str> = Some("timers started on these CPUs: set kernel.timer_migration, or isolate them");

catalogue! {
    /// The kernel's tick.
    Tick: Irq "tick", as TICK;
    /// The timer of the soft lockup detector.
    LockupTimer: Irq "timer:watchdog_timer_fn", as LOCKUP_TIMER;
    /// Any other high-resolution timer.
    AnyTimer: Irq "timer:*", [Timers], OTHER_TIMERS;
    /// Another CPU changed memory that it shares with this one.
    Flush: Irq "ipi:flush_tlb*", as FLUSH_TLB;
    /// Another CPU passes packets on to this one.
    Rps: Irq "ipi:rps_*", as RPS;
    /// The kernel changes its own code.
    CodeChange: Irq "ipi:do_sync_core", as CODE_CHANGE;
    /// Another CPU calls any other function on this one.
    AnyCall: Irq "ipi:*", [], OTHER_CPUS;
    /// The interrupt of a CPU's timer, as named on x86.
    LocalTimer: Irq "local_timer", as TICK;
    /// The interrupt of a CPU's timer, as named on Arm.
    ArchTimer: Irq "arch_timer", as TICK;
    /// The timer of a machine without per-CPU timers.
    SharedTimer: Irq "timer", as TICK;
    /// The interrupt of a CPU's timer under Hyper-V, which has no event.
    HyperVTimer: Irq "hyperv_stimer0", as TICK;
    /// The interrupt of a CPU's timer without kernel events.
    UntracedTimer: Irq "untraced_timer", as TICK;
    /// Another CPU asks this CPU's scheduler to run.
    Reschedule: Irq "reschedule", [], OTHER_CPUS;
    /// Another CPU runs a function on all CPUs, for example after unmapping memory.
    CallFunction: Irq "call_function", [Memory], UNKNOWN_CALL;
    /// Another CPU runs a function on this one.
    CallFunctionSingle: Irq "call_function_single", [], UNKNOWN_CALL;
    /// Another CPU runs a function on this one or on all.
    AnyCallFunction: Irq "call_function*", [], UNKNOWN_CALL;
    /// Work that the kernel defers to an interrupt of its own.
    IrqWork: Irq "irq_work", [], OTHER_CPUS;
    /// The interrupt of any device.
    Device: Irq "*", [Irq], Some("move it to another CPU: write that CPU's number to /proc/irq/N/smp_affinity_list");
    /// Packets that arrive from the network.
    NetRx: Softirq "net_rx", [Rps], NETWORK;
    /// Packets that were sent.
    NetTx: Softirq "net_tx", [], NETWORK;
    /// The kernel's ordinary timers.
    Timer: Softirq "timer", [Timers], OTHER_TIMERS;
    /// A timer that wakes no thread, run by a softirq.
    AnySoftTimer: Softirq "timer:*", [Timers], OTHER_TIMERS;
    /// The kernel's precise timers.
    Hrtimer: Softirq "hrtimer", [], OTHER_TIMERS;
    /// Callbacks of the kernel's memory reclaiming.
    Rcu: Softirq "rcu", [], Some("boot with rcu_nocbs= for these CPUs"), needs MovableCallbacks;
    /// The scheduler's load balancing.
    Balancing: Softirq "sched", [Cpuset],
        Some("load balancing: isolate the CPUs, with a cpuset partition or isolcpus=");
    /// Completed disk requests.
    Block: Softirq "block", [], Some("it follows the disk's interrupts: move those");
    /// Writeback of files.
    Writeback: Workqueue "kworker:wb_workfn", as WRITEBACK;
    /// Folding of a CPU's memory statistics.
    VmstatUpdate: Workqueue "kworker:vmstat_update", as VMSTAT_UPDATE;
    /// Folding of memory statistics, and its watchdog.
    AnyVmstatWorker: Workqueue "kworker:vmstat_*", [Vmstat], None;
    /// Folding of memory statistics in an unnamed worker.
    AnyVmstat: Workqueue "vmstat_*", [], None;
    /// The gate of the kernel's sampling allocator (KFENCE).
    AllocationGateWorker: Workqueue "kworker:toggle_allocation_gate", as ALLOCATION_GATE;
    /// The gate of the kernel's sampling allocator in an unnamed worker.
    AllocationGate: Workqueue "toggle_allocation_gate", as ALLOCATION_GATE;
    /// Work items that kernel threads run.
    Work: Workqueue "*", [], Some(
        "take these CPUs out of /sys/devices/virtual/workqueue/cpumask; items bound to a CPU need their cause removed",
    );
    /// A CPU's thread for callbacks of memory reclaiming.
    Rcuc: Kthread "rcuc", [], None;
    /// The thread of a soft lockup detector.
    Watchdog: Kthread "watchdog", [Watchdog], None;
    /// The thread that moves tasks between CPUs, and that runs the soft lockup detector.
    Migration: Kthread "migration", [Watchdog, Cpuset], None;
    /// The thread of an interrupt's handler, on the same CPU as the interrupt.
    IrqThread: Kthread "irq/*", [Irq], None;
    /// The threads that run work items.
    Kworker: Kthread "kworker", [Workqueue], None;
    /// The thread that joins pages into huge ones.
    Khugepaged: Kthread "khugepaged", [Memory], None;
    /// The thread that merges identical pages.
    Ksmd: Kthread "ksmd", [Memory], None;
    /// The thread that compacts memory.
    Kcompactd: Kthread "kcompactd", [], None;
    /// The thread that swaps memory out.
    Kswapd: Kthread "kswapd", [], None;
    /// Any kernel thread without its own row.
    Kthread: Kthread "*", [Affinity],
        Some("move it with taskset -p where it may move; threads bound to a CPU need their cause removed");
    /// Any user process.
    Task: Task "*", [Affinity, Cpuset, Throttling],
        Some("keep processes off these CPUs: with a cpuset partition, isolcpus=, or taskset");
    /// Page faults of the measuring thread.
    Fault: Fault "*", [Memory], Some("lock and touch the memory before the work: mlockall, huge pages");
    /// The limit on the time of real-time threads.
    RealTimeThrottling: Throttling "rt_throttling", [Throttling],
        Some("the limit on real-time threads took the CPU: sysctl kernel.sched_rt_runtime_us=-1 lifts it");
    /// The limit on the time of a control group.
    Quota: Throttling "cfs_bandwidth", [],
        Some("the quota of its control group took the CPU: raise cpu.max of the group"), needs NewGroups;
    /// VM exits from a guest to its host and back.
    UnseenExit: Unseen "exit_to_host", [], Some(
        "the hypervisor handles something of this guest: pin its CPUs, give them to it alone, pass devices through",
    );
    /// Short stalls of a processor without a hypervisor.
    UnseenStall: Unseen "stall", [], Some("hardware or firmware: look for power states, and for SMI sources in the BIOS");
    /// The host of a guest ran something else, or the firmware did.
    UnseenLong: Unseen "long", [], Some("not the kernel: firmware; turn off SMI sources in the BIOS"), needs Metal;
    /// The host of a guest ran something else, according to its steal time.
    UnseenStolen: Unseen "stolen", [], Some(
        "the hypervisor ran something else (steal time): reserve the host's CPUs for this guest, or reduce the host's other load",
    );
    /// System management interrupts.
    UnseenSmi: Unseen "smi", [], Some(
        "system management interrupts: look in the BIOS for USB legacy support, power and memory error management, and in drivers \
         that poll the firmware",
    );
    /// The other hardware thread of a core.
    UnseenSibling: Unseen "sibling", [], Some(
        "the other hardware thread of the core was in the kernel or ran something else: leave it idle, or switch SMT off",
    );
    /// The host of a guest ran something else in the middle of the kernel's work.
    PreemptedByHost: Unseen "preempted_by_host", [], Some(
        "the host took the CPU in the middle of the guest kernel's work: dedicate its CPUs to this guest",
    );
    /// Time during which another program had changed the trace.
    NotTraced: NotTraced "*", [], Some(
        "another program changed becalm's trace: record again without it (trace-cmd reset -a resets every tracing instance)",
    );
    /// Time without the kernel's knowledge.
    Unseen: Unseen "*", [],
        Some("not the kernel: firmware (turn off SMI sources in the BIOS), or the other hardware thread of the core"), needs Metal;
    /// Non-maskable interrupts, of a watchdog or a profiler.
    Nmi: Nmi "*", [Watchdog],
        Some("the watchdog or a profiler: set kernel.nmi_watchdog to 0, end perf sessions");
    /// The measuring program itself.
    Becalm: Becalm "*", [], Some("becalm's own work: leave it a CPU that is not measured");
    /// The entry into the kernel and the exit.
    Edge: Edge "*", [], None;
}
