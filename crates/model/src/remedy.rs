//! The catalogue of known noise sources and their fixes: the one table behind advice, checks and plans.
//!
//! An unknown source gets the advice for its kind.

use serde::{Deserialize, Serialize};

use crate::carried::TIMERS;
use crate::family::Family;
use crate::node::MachineDoc;
use crate::{Kind, not_traced, unseen};

/// Sources of noise, as recordings name them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NoiseSource {
    /// The kind of the activity.
    pub kind: Kind,
    /// The name of the source; a final `*` stands for any ending.
    pub source: String,
}

impl NoiseSource {
    /// The noise of a source by its own name: an interrupt by its handler's name, a thread by its program's.
    pub fn new(kind: Kind, source: impl Into<String>) -> Self {
        Self { kind, source: source.into() }
    }

    /// Whether this is the source with this kind and name in a recording.
    pub fn matches(&self, kind: Kind, source: &str) -> bool {
        kind == self.kind && fits(&self.source, source)
    }
}

impl From<Known> for NoiseSource {
    fn from(known: Known) -> Self {
        let remedy = known.remedy();
        Self::new(remedy.kind, remedy.source)
    }
}

/// Whether a name matches a pattern; a final `*` in it stands for any ending.
fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

/// A row of the catalogue: a noise source and its fix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remedy {
    /// The kind of the activity.
    pub kind: Kind,
    /// The name of the source; a final `*` stands for any ending.
    pub source: &'static str,
    /// The families of knobs with a change that removes it at run time.
    pub families: &'static [Family],
    /// A sentence about what usually removes or reduces it; `None` if nothing is known, or if a later matching row has it.
    pub advice: Option<&'static str>,
    /// The requirement of the advice.
    pub needs: Option<Need>,
}

/// A requirement of advice on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// A kernel that stops the tick of a CPU with one runnable thread.
    StoppableTick,
    /// A kernel that runs the callbacks of memory reclaiming in threads that can be moved.
    MovableCallbacks,
    /// Control groups of version 2.
    NewGroups,
    /// Hardware and firmware of its own, not a host's.
    Metal,
}

impl Need {
    /// Whether a machine meets it; `None` if unknown.
    pub fn is_met(self, machine: &MachineDoc) -> Option<bool> {
        match self {
            Self::NewGroups => machine.cpu_groups.map(|version| version >= 2),
            Self::StoppableTick => machine.has_option("NO_HZ_FULL"),
            Self::MovableCallbacks => machine.has_option("RCU_NOCB_CPU"),
            Self::Metal if machine.hypervisor.is_some() => Some(false),
            // A document without a kernel does not describe its machine.
            Self::Metal => (!machine.kernel.is_empty()).then_some(true),
        }
    }

    /// The text if it is not met: what is missing, or what helps instead.
    pub const fn otherwise(self) -> &'static str {
        match self {
            Self::StoppableTick => {
                "the tick: this kernel cannot stop it because it was built without CONFIG_NO_HZ_FULL"
            }
            Self::MovableCallbacks => {
                "RCU callbacks: this kernel cannot move them because it was built without CONFIG_RCU_NOCB_CPU"
            }
            Self::NewGroups => "the quota of its control group took the CPU: raise cpu.cfs_quota_us of the group",
            Self::Metal => "not the guest's kernel: the host ran something else; dedicate CPUs to this guest",
        }
    }

    /// The advice if only some machines meet it, or if that is unknown; `None` to keep the row's advice.
    pub const fn in_doubt(self) -> Option<&'static str> {
        match self {
            Self::StoppableTick | Self::MovableCallbacks | Self::NewGroups => None,
            Self::Metal => Some(
                "not the kernel: on a guest the host ran something else (dedicate its CPUs); else firmware (turn off SMI sources)",
            ),
        }
    }
}

macro_rules! catalogue {
    ($($(#[doc = $doc:literal])+
        $known:ident: $kind:ident $source:literal, [$($family:ident),*], $advice:expr $(, needs $need:ident)?;)+) => {
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
                        families: &[$(Family::$family),*],
                        advice: $advice,
                        needs: catalogue!(@need $($need)?),
                    },)+
                }
            }
        }
    };
    (@need $need:ident) => { Some(Need::$need) };
    (@need) => { None };
}

const TICK: Option<&str> =
    Some("the tick: boot with nohz_full= and rcu_nocbs= for these CPUs, and keep one runnable thread on each");
const NOT_THE_TICK: &str = "timers, not only the tick; the recording does not name them: look for profilers, and for programs that often sleep for short times";
const SAMPLING: Option<&str> = Some("a profiler samples these CPUs or rotates their counters: end perf sessions");
const COUNTER_READS: Option<&str> =
    Some("a monitor on another CPU reads the performance counters of these CPUs: exclude them from it");
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
    Tick: Irq "tick", [], TICK, needs StoppableTick;
    /// Samples of a profiler.
    Sampling: Irq "timer:perf_*", [], SAMPLING;
    /// The timer of the soft lockup detector.
    LockupTimer: Irq "timer:watchdog_timer_fn", [Watchdog],
        Some("the soft lockup detector: set kernel.watchdog to 0, or take these CPUs out of kernel.watchdog_cpumask");
    /// Any other high-resolution timer.
    AnyTimer: Irq "timer:*", [Timers], OTHER_TIMERS;
    /// Another CPU reads this CPU's performance counters.
    CounterRead: Irq "ipi:__perf_*", [], COUNTER_READS;
    /// Another CPU changes or reads this CPU's performance counters.
    CounterCall: Irq "ipi:remote_function", [], COUNTER_READS;
    /// Another CPU changed memory that it shares with this one.
    Flush: Irq "ipi:flush_tlb*", [Memory], OTHER_CPUS;
    /// Another CPU passes packets on to this one.
    Rps: Irq "ipi:rps_*", [Rps], NETWORK;
    /// The kernel changes its own code.
    CodeChange: Irq "ipi:do_sync_core", [],
        Some("the kernel changes its own code: load BPF programs and start tracing before the work, not during it");
    /// Another CPU starts load balancing on this one.
    BalancingCall: Irq "ipi:nohz_csd_func", [], Some("load balancing: isolate the CPUs, with a cpuset partition or isolcpus=");
    /// Another CPU calls any other function on this one.
    AnyCall: Irq "ipi:*", [], OTHER_CPUS;
    /// The interrupt of a CPU's timer, as named on x86.
    LocalTimer: Irq "local_timer", [], TICK, needs StoppableTick;
    /// The interrupt of a CPU's timer, as named on Arm.
    ArchTimer: Irq "arch_timer", [], TICK, needs StoppableTick;
    /// The timer of a machine without per-CPU timers.
    SharedTimer: Irq "timer", [], TICK, needs StoppableTick;
    /// The interrupt of a CPU's timer under Hyper-V, which has no event.
    HyperVTimer: Irq "hyperv_stimer0", [], TICK, needs StoppableTick;
    /// The interrupt of a CPU's timer without kernel events.
    UntracedTimer: Irq "untraced_timer", [], TICK, needs StoppableTick;
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
    Writeback: Workqueue "kworker:wb_workfn", [Workqueue], None;
    /// Folding of a CPU's memory statistics.
    VmstatUpdate: Workqueue "kworker:vmstat_update", [Vmstat], None;
    /// Folding of memory statistics, and its watchdog.
    AnyVmstatWorker: Workqueue "kworker:vmstat_*", [Vmstat], None;
    /// Folding of memory statistics in an unnamed worker.
    AnyVmstat: Workqueue "vmstat_*", [], None;
    /// The gate of the kernel's sampling allocator (KFENCE).
    AllocationGateWorker: Workqueue "kworker:toggle_allocation_gate", [], None;
    /// The gate of the kernel's sampling allocator in an unnamed worker.
    AllocationGate: Workqueue "toggle_allocation_gate", [], None;
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

/// If timer interrupts exceed the tick rate by more than this factor, not all of them are ticks.
const TICKS_AND_MORE: f64 = 1.5;
/// The tick rate assumed for a kernel that hides its own: the highest possible one, per second.
const HIGHEST_TICK_HZ: f64 = 1_000.0;

/// Whether unnamed timer interrupts at this rate, per CPU and second, can be the tick of any of these machines.
pub fn may_be_the_tick<'a>(rate_hz: f64, machines: impl IntoIterator<Item = &'a MachineDoc>) -> bool {
    let tick_hz = machines.into_iter().map(|machine| machine.tick_hz().unwrap_or(HIGHEST_TICK_HZ));
    rate_hz <= TICKS_AND_MORE * tick_hz.reduce(f64::max).unwrap_or(HIGHEST_TICK_HZ)
}

/// Whether a fix for a source can exist: not for the processor itself, nor for gaps in the trace that nothing else caused.
fn has_remedy(kind: Kind, source: &str) -> bool {
    match kind {
        Kind::NotTraced => ![not_traced::MISSING_SWITCH, not_traced::LOST_EVENTS].contains(&source),
        Kind::Unseen => source != unseen::SHORT,
        _ => true,
    }
}

/// A sentence about what removes or reduces a source on these machines, or about the missing requirement. `None` if nothing is known. `timers_tick`
/// says whether unnamed timer interrupts may be the tick; see [`may_be_the_tick`].
pub fn advice<'a>(
    kind: Kind,
    source: &str,
    machines: impl IntoIterator<Item = &'a MachineDoc>,
    timers_tick: bool,
) -> Option<&'static str> {
    if !has_remedy(kind, source) {
        return None;
    }
    if kind == Kind::Irq && TIMERS.contains(&source) && !timers_tick {
        return Some(NOT_THE_TICK);
    }
    let rows = Known::ALL.iter().map(|known| known.remedy());
    let row = rows.filter(|row| row.kind == kind && fits(row.source, source)).find(|row| row.advice.is_some())?;
    let Some(need) = row.needs else { return row.advice };
    let met: Vec<Option<bool>> = machines.into_iter().map(|machine| need.is_met(machine)).collect();
    let all = |is_met| !met.is_empty() && met.iter().all(|met| *met == Some(is_met));
    match (all(true), all(false)) {
        (true, _) => row.advice,
        (_, true) => Some(need.otherwise()),
        _ => need.in_doubt().or(row.advice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_matched_by_kind_and_name() {
        let noise = NoiseSource::new(Kind::Task, "sshd");
        let matches = |kind, source| noise.matches(kind, source);
        assert!(matches(Kind::Task, "sshd") && !matches(Kind::Kthread, "sshd") && !matches(Kind::Task, "sshd2"));
        let workers = NoiseSource::new(Kind::Workqueue, "kworker:*");
        assert!(workers.matches(Kind::Workqueue, "kworker:vmstat_update"));
        assert!(!workers.matches(Kind::Workqueue, "other"));
        assert!(NoiseSource::from(Known::Task).matches(Kind::Task, "anything"));
    }

    #[test]
    fn no_source_is_hidden_behind_a_more_general_one() {
        for (at, known) in Known::ALL.iter().enumerate() {
            let row = known.remedy();
            let hides =
                |earlier: &&Known| earlier.remedy().kind == row.kind && fits(earlier.remedy().source, row.source);
            assert_eq!(Known::ALL[..at].iter().find(hides), None, "{known:?}");
        }
    }

    #[test]
    fn nothing_is_advised_that_no_machine_can_do() {
        let machine = |options: &[(&str, &str)], cpu_groups| MachineDoc {
            built_with: options.iter().map(|(option, value)| ((*option).to_owned(), (*value).to_owned())).collect(),
            cpu_groups,
            ..MachineDoc::default()
        };
        let able = machine(&[("NO_HZ_FULL", "y"), ("RCU_NOCB_CPU", "y")], Some(2));
        let unable = machine(&[("NO_HZ_FULL", "n"), ("RCU_NOCB_CPU", "n")], Some(1));
        let unknown = MachineDoc::default();
        for (kind, source, advised, otherwise) in [
            (Kind::Irq, "tick", "boot with nohz_full=", "CONFIG_NO_HZ_FULL"),
            (Kind::Irq, "local_timer", "boot with nohz_full=", "CONFIG_NO_HZ_FULL"),
            (Kind::Softirq, "rcu", "boot with rcu_nocbs=", "CONFIG_RCU_NOCB_CPU"),
            (Kind::Throttling, "cfs_bandwidth", "cpu.max", "cpu.cfs_quota_us"),
        ] {
            let says = |machines: &[&MachineDoc], part: &str| {
                let advice = advice(kind, source, machines.iter().copied(), true).unwrap();
                assert!(advice.contains(part), "{advice}");
            };
            says(&[&able], advised);
            says(&[&unknown], advised);
            says(&[], advised);
            says(&[&able, &unable], advised);
            says(&[&unable], otherwise);
            says(&[&unable, &unable], otherwise);
        }
    }

    /// A guest has no firmware to change, and bare metal no host.
    #[test]
    fn a_guest_is_not_advised_of_firmware_nor_bare_metal_of_a_host() {
        let metal = MachineDoc { kernel: "Linux 6.12".to_owned(), ..MachineDoc::default() };
        let guest = MachineDoc { hypervisor: Some("kvm".to_owned()), ..metal.clone() };
        for source in ["long", "anything"] {
            let advice =
                |machines: &[&MachineDoc]| super::advice(Kind::Unseen, source, machines.iter().copied(), true).unwrap();
            assert!(advice(&[&metal]).contains("SMI") && !advice(&[&metal]).contains("host"));
            assert!(advice(&[&guest]).contains("host") && !advice(&[&guest]).contains("SMI"));
            for machines in [&[][..], &[&metal, &guest], &[&MachineDoc::default(), &metal]] {
                assert!(advice(machines).contains("host") && advice(machines).contains("SMI"));
            }
        }
    }

    #[test]
    fn unnamed_timers_are_not_called_the_tick_if_they_cannot_be() {
        let machine = MachineDoc { built_with: [("HZ".to_owned(), "250".to_owned())].into(), ..MachineDoc::default() };
        assert!(may_be_the_tick(260.0, [&machine]) && !may_be_the_tick(1_250.0, [&machine]));
        // A kernel that hides its tick rate may have 1,000 ticks per second.
        assert!(may_be_the_tick(1_250.0, []) && !may_be_the_tick(1_600.0, []));
        for source in TIMERS {
            assert_eq!(advice(Kind::Irq, source, [], true), TICK, "{source}");
            assert_eq!(advice(Kind::Irq, source, [], false), Some(NOT_THE_TICK), "{source}");
        }
        assert_eq!(advice(Kind::Irq, "tick", [], false), TICK);
        // The softirq of this name is another source.
        assert_eq!(advice(Kind::Softirq, "timer", [], false), OTHER_TIMERS);
    }

    #[test]
    fn what_cannot_be_removed_has_no_advice() {
        for (kind, source) in [
            (Kind::Unseen, unseen::SHORT),
            (Kind::NotTraced, not_traced::MISSING_SWITCH),
            (Kind::NotTraced, not_traced::LOST_EVENTS),
        ] {
            assert_eq!(advice(kind, source, [], true), None, "{source}");
        }
        assert!(advice(Kind::NotTraced, not_traced::TRACE_CHANGED, [], true).is_some());
    }

    #[test]
    fn functions_of_interrupts_have_their_own_advice() {
        let advice = |source| advice(Kind::Irq, source, [], true).unwrap();
        for (source, part) in [
            ("timer:perf_swevent_hrtimer", "perf sessions"),
            ("timer:hrtimer_wakeup", "timer_migration"),
            ("timer:a_timer_of_a_module", "timer_migration"),
            ("ipi:__perf_event_read", "monitor"),
            ("ipi:rps_trigger_softirq", "rps_cpus"),
            ("ipi:flush_tlb_func", "threads of one process"),
        ] {
            assert!(advice(source).contains(part), "{source}: {}", advice(source));
        }
    }

    #[test]
    fn a_source_without_advice_of_its_own_has_that_of_its_kind() {
        let advice = |kind, source| advice(kind, source, [], true);
        assert_eq!(advice(Kind::Kthread, "ksmd"), advice(Kind::Kthread, "any"));
        assert_eq!(advice(Kind::Irq, "local_timer"), TICK);
        assert!(advice(Kind::Irq, "nvme0q1").is_some_and(|text| text.contains("smp_affinity_list")));
        assert_eq!((advice(Kind::Softirq, "tasklet"), advice(Kind::Edge, "edge")), (None, None));
        let quiet = [Kind::Softirq, Kind::Edge, Kind::Throttling];
        for kind in Kind::ALL.iter().filter(|kind| !quiet.contains(kind)) {
            assert!(advice(*kind, "any").is_some(), "{kind}");
        }
    }
}
