//! Functions that another CPU asks this one to run, by an interrupt.

use super::super::Need;
use super::{Advice, Function, Rows};
use crate::carried::Carrier;
use crate::family::Family;

const fn call(names: &'static [&'static str], does: &'static str) -> Function {
    Function::new(Carrier::Call, names, does)
}

const KERNEL_MEMORY: Advice =
    Some("load and unload modules and BPF programs, and resize the pool of huge pages, before the work, not during it");
const MEMBARRIER: Advice =
    Some("keep all threads of programs that call membarrier (user-space RCU, .NET, tcmalloc) off these CPUs");
const COUNTER_READS: Advice =
    Some("end perf sessions, and exclude these CPUs from monitors that read performance counters");
const REGISTERS: Advice =
    Some("stop programs that read registers of all CPUs: turbostat, and monitors of power and frequency");
const VIRTUAL_CPUS: Advice = Some("pin the virtual CPUs of guests to other CPUs");
const SETTLED_FREQUENCY: Advice = Some("set the scaling governor performance for these CPUs");
const RELIABLE_TSC: Advice = Some("boot with tsc=nowatchdog if the vendor guarantees a reliable time stamp counter");

/// Another thread of the process changed its memory.
pub(in super::super) const FLUSH_TLB: Function = call(
    &["flush_tlb_func", "flush_tlb_func_remote"],
    "flushes TLB entries after munmap, mprotect or page migration in a process whose threads also run on this CPU",
)
.fix("lock the memory of the process before the work, and let none of its threads free or remap memory during it")
.by(&[Family::Memory]);

/// The kernel changed its own code.
pub(in super::super) const CODE_CHANGE: Function = call(
    &["do_sync_core"],
    "makes the CPU notice changed kernel code: static branches, tracing, BPF trampolines, KFENCE",
)
.fix("load BPF programs, and start and stop tracing, before the work, not during it");

/// Another CPU passes packets on.
pub(in super::super) const RPS: Function = call(
    &["rps_trigger_softirq"],
    "starts the processing of packets that another CPU passed on (receive packet steering)",
)
.fix("take these CPUs out of rps_cpus of all receive queues")
.by(&[Family::Rps]);

pub(super) const ROWS: Rows = &[
    FLUSH_TLB,
    call(
        &["do_flush_tlb_all"],
        "flushes the whole TLB after large changes of the kernel's own memory: vmalloc areas, huge pages, memory hotplug",
    )
    .advised(KERNEL_MEMORY),
    call(
        &["do_kernel_range_flush"],
        "flushes TLB entries of kernel memory that was unmapped: vmalloc areas, thread stacks, modules, BPF programs",
    )
    .advised(KERNEL_MEMORY),
    call(&["__cpa_flush_tlb"], "flushes TLB entries of kernel pages whose protection or caching changed")
        .advised(KERNEL_MEMORY),
    call(&["__cpa_flush_all"], "flushes TLB and caches after protection or caching of many kernel pages changed")
        .advised(KERNEL_MEMORY),
    call(
        &["tlb_remove_table_smp_sync"],
        "waits until this CPU reads no page table that is about to be freed, mostly by khugepaged",
    )
    .fix("write madvise or never to /sys/kernel/mm/transparent_hugepage/enabled")
    .by(&[Family::Memory]),
    call(&["flush_ldt"], "reloads the segment table after modify_ldt in a process with threads on this CPU")
        .fix("let the process call modify_ldt before its threads start"),
    call(&["cr4_update_pce"], "allows or forbids RDPMC after a thread of the process mapped or unmapped a counter")
        .fix("map performance counters before the work, not during it"),
    call(&["ipi_mb"], "runs a memory barrier for the system call membarrier of a thread on another CPU")
        .advised(MEMBARRIER),
    call(&["ipi_sync_core"], "makes the CPU notice code that a just-in-time compiler changed (membarrier, SYNC_CORE)")
        .advised(MEMBARRIER),
    call(&["ipi_rseq"], "restarts a restartable sequence of the process (membarrier, RSEQ)").advised(MEMBARRIER),
    call(&["ipi_sync_rq_state"], "notes that a process registered for membarrier")
        .fix("let programs register for membarrier before the work, not during it"),
    CODE_CHANGE,
    call(&["ftrace_sync_ipi"], "makes the CPU notice another function tracer")
        .fix("start and stop function tracing before the work, not during it"),
    call(&["nohz_csd_func"], "starts load balancing on this CPU, which was idle, for all idle CPUs")
        .fix("isolate the CPUs, with a cpuset partition or isolcpus=")
        .by(&[Family::Cpuset]),
    call(&["sched_ttwu_pending"], "makes threads runnable on this CPU that another CPU woke")
        .fix("keep other threads off these CPUs: with a cpuset partition, isolcpus=, or taskset")
        .by(&[Family::Affinity, Family::Cpuset]),
    call(&["__hrtick_start"], "starts the scheduler's precise timer for the end of a time slice")
        .fix("write NO_HRTICK, then NO_HRTICK_DL, to /sys/kernel/debug/sched/features"),
    call(&["__cfsb_csd_unthrottle"], "lets control groups run again that had used up their CPU quota")
        .fix("raise or remove the quota of the control group: cpu.max")
        .needs(Need::NewGroups),
    call(&["rcu_exp_handler"], "asks this CPU to end its part of an expedited RCU grace period")
        .fix("write 1 to /sys/kernel/rcu_normal, or boot with rcupdate.rcu_normal_after_boot=1"),
    call(
        &["rcu_barrier_handler", "rcu_barrier_func"],
        "queues a callback behind all RCU callbacks of this CPU, for example to unload a module or to unmount",
    )
    .fix("unmount file systems and unload modules before the work, not during it"),
    call(
        &["trc_read_check_handler"],
        "checks whether this CPU is in a read-side section of Tasks Trace RCU, when BPF programs are changed or removed",
    )
    .fix("load and remove BPF programs before the work, not during it"),
    call(&["remote_function"], "reads, starts or stops performance events of this CPU or of a thread on it")
        .advised(COUNTER_READS),
    call(&["__perf_event_read"], "reads a performance counter of this CPU for another CPU").advised(COUNTER_READS),
    call(&["mon_event_count"], "reads a counter of cache use or memory bandwidth (resctrl)")
        .fix("stop monitors that read the files of resctrl"),
    call(&["__rdmsr_on_cpu"], "reads a model-specific register of this CPU for a driver").advised(REGISTERS),
    call(&["__rdmsr_safe_on_cpu"], "reads a model-specific register of this CPU for a program").advised(REGISTERS),
    call(&["__wrmsr_on_cpu"], "writes a model-specific register of this CPU")
        .fix("set frequency and power limits before the work, not during it"),
    call(&["cpuid_smp_cpuid"], "runs the instruction CPUID for a reader of /dev/cpu/N/cpuid")
        .fix("end programs that read /dev/cpu/N/cpuid before the work"),
    call(&["do_drv_write"], "sets this CPU's frequency (driver acpi-cpufreq)")
        .advised(SETTLED_FREQUENCY)
        .by(&[Family::Frequency]),
    call(&["do_drv_read"], "reads this CPU's frequency setting (driver acpi-cpufreq)")
        .advised(SETTLED_FREQUENCY)
        .by(&[Family::Frequency]),
    call(
        &["aperfmperf_snapshot_khz"],
        "measures this CPU's frequency for a reader of /proc/cpuinfo or scaling_cur_freq (old kernels)",
    )
    .fix("stop programs that read /proc/cpuinfo or scaling_cur_freq"),
    call(&["retrigger_next_event"], "sets this CPU's timer again after the wall clock was set")
        .fix("set the wall clock before the work, and let the NTP service slew it instead of stepping it"),
    call(&["clocksource_verify_one_cpu"], "compares this CPU's clock source with that of a CPU that found it unstable")
        .advised(RELIABLE_TSC),
    call(&["watchdog_check_skew_remote"], "compares this CPU's clock source with that of the boot CPU, regularly")
        .advised(RELIABLE_TSC),
    RPS,
    call(&["trigger_rx_softirq"], "frees packets that this CPU received and that another CPU has read")
        .fix("write 0 to /proc/sys/net/core/skb_defer_max"),
    call(&["__blk_mq_complete_request_remote"], "completes a disk request that a thread on this CPU submitted")
        .fix("do I/O on other CPUs, or write 0 to /sys/block/DISK/queue/rq_affinity"),
    call(
        &["invalidate_bh_lru"],
        "empties this CPU's cache of disk buffers, when a block device is closed or a page of it cannot be moved",
    )
    .fix("mount, unmount and check block devices before the work, not during it"),
    call(&["ack_kick", "ack_flush"], "makes a virtual CPU that runs here return from its guest (KVM)")
        .advised(VIRTUAL_CPUS),
    call(&["__loaded_vmcs_clear"], "stores the state of a virtual CPU that moves to another CPU (KVM on Intel)")
        .advised(VIRTUAL_CPUS),
];
