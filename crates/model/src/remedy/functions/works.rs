//! Functions of work items, which kworkers run.

use super::{Advice, Function, Rows};
use crate::carried::Carrier;
use crate::family::Family;

const fn work(names: &'static [&'static str], does: &'static str) -> Function {
    Function::new(Carrier::Work, names, does)
}

/// A work item of a queue that is not bound to a CPU.
const fn unbound(names: &'static [&'static str], does: &'static str) -> Function {
    work(names, does).fix("take these CPUs out of /sys/devices/virtual/workqueue/cpumask").by(&[Family::Workqueue])
}

/// A work item of a queue that a boot parameter detaches from the CPUs.
const fn power_efficient(names: &'static [&'static str], does: &'static str) -> Function {
    work(names, does)
        .fix("boot with workqueue.power_efficient=1, and take these CPUs out of /sys/devices/virtual/workqueue/cpumask")
}

/// A work item of the queue `writeback`.
const fn writeback(names: &'static [&'static str], does: &'static str) -> Function {
    work(names, does)
        .fix("take these CPUs out of /sys/devices/virtual/workqueue/writeback/cpumask")
        .by(&[Family::Workqueue])
}

const ISOLATED_GROUPS: Advice =
    Some("raise memory.high and memory.max of the group, or isolate the CPUs with isolcpus= on Linux 6.12 or later");
const GROUPS: Advice = Some("start and stop services, containers and logins before the work, not during it");
const BPF: Advice = Some("load and remove BPF programs before the work, not during it");
const KERNEL_MEMORY: Advice =
    Some("start and end threads, and load modules and BPF programs, before the work, not during it");
const EXPEDITED: Advice = Some("write 1 to /sys/kernel/rcu_normal, or boot with rcupdate.rcu_normal_after_boot=1");
const COMPLETIONS: Advice = Some("do I/O on other CPUs, and move the disk's interrupts there");

/// Folding of a CPU's memory statistics.
pub(in super::super) const VMSTAT_UPDATE: Function =
    work(&["vmstat_update"], "adds this CPU's memory statistics to those of the machine")
        .fix("raise vm.stat_interval, or isolate the CPUs with isolcpus= on Linux 6.12 or later")
        .by(&[Family::Vmstat]);

/// The gate of the kernel's sampling allocator (KFENCE).
pub(in super::super) const ALLOCATION_GATE: Function =
    work(&["toggle_allocation_gate"], "lets KFENCE, the kernel's sampling memory checker, take the next allocation")
        .fix("boot with kfence.sample_interval=0, or write 0 to /sys/module/kfence/parameters/sample_interval");

/// Writeback of files.
pub(in super::super) const WRITEBACK: Function = writeback(&["wb_workfn"], "writes changed files to disk");

pub(super) const ROWS: Rows = &[
    VMSTAT_UPDATE,
    work(&["vmstat_shepherd"], "looks for CPUs whose memory statistics were not added up")
        .fix("raise vm.stat_interval")
        .by(&[Family::Vmstat]),
    work(&["lru_add_drain_per_cpu"], "moves pages from this CPU's cache to the machine's page lists")
        .fix("switch transparent huge pages off, and avoid compaction, page migration and drop_caches during the work")
        .by(&[Family::Memory]),
    work(
        &["drain_local_pages_wq"],
        "returns free pages of this CPU to the machine, when memory is short (old kernels)",
    )
    .fix("keep memory free, and avoid compaction and memory hotplug during the work"),
    work(
        &["drain_local_stock", "drain_local_memcg_stock"],
        "returns memory that this CPU reserved for a control group, which has reached its limit",
    )
    .advised(ISOLATED_GROUPS),
    work(
        &["drain_local_obj_stock"],
        "returns kernel memory that this CPU reserved for a control group, which has reached its limit",
    )
    .advised(ISOLATED_GROUPS),
    unbound(&["flush_memcg_stats_dwork"], "adds up the memory statistics of control groups, every 2 seconds"),
    work(&["high_work_func"], "reclaims memory of a control group that exceeds memory.high")
        .fix("raise memory.high of the control group"),
    work(&["flush_cpu_slab"], "returns this CPU's objects to a slab cache that shrinks or is removed")
        .fix("unload modules and shrink slab caches before the work, not during it"),
    work(&["mmput_async_fn"], "frees the memory of a process that ended"),
    work(&["drain_vmap_area_work", "purge_vmap_node"], "unmaps freed kernel memory on all CPUs (vmalloc)")
        .advised(KERNEL_MEMORY),
    work(&["pcpu_balance_workfn"], "keeps per-CPU memory in reserve"),
    ALLOCATION_GATE,
    work(&["psi_avgs_work"], "updates the averages of pressure (PSI), every 2 seconds while threads are busy")
        .fix("boot with psi=0 if no program reads /proc/pressure"),
    work(&["wait_rcu_exp_gp"], "runs an expedited RCU grace period").advised(EXPEDITED),
    work(&["sync_rcu_exp_select_node_cpus"], "asks CPUs to end their part of an expedited RCU grace period")
        .advised(EXPEDITED),
    work(&["process_srcu"], "advances a grace period of sleepable RCU"),
    work(&["srcu_invoke_callbacks"], "runs this CPU's callbacks of sleepable RCU"),
    unbound(
        &["kfree_rcu_monitor"],
        "collects memory that is freed after an RCU grace period, on any CPU since Linux 6.12",
    ),
    unbound(&["kfree_rcu_work"], "frees memory after an RCU grace period, on any CPU since Linux 6.12"),
    WRITEBACK,
    writeback(&["wb_update_bandwidth_workfn"], "estimates how fast a disk writes"),
    work(&["blk_mq_run_work_fn"], "passes waiting requests to a disk")
        .fix("do I/O on other CPUs, and isolate these with isolcpus=: the block layer then leaves them out"),
    work(&["blk_mq_requeue_work"], "passes requests to a disk again").fix("do I/O on other CPUs"),
    work(&["blk_mq_timeout_work"], "looks for disk requests without an answer").fix("do I/O on other CPUs"),
    work(&["iomap_dio_complete_work", "dio_aio_complete_work"], "finishes a direct write to a file")
        .advised(COMPLETIONS),
    unbound(&["ext4_end_io_rsv_work"], "marks written parts of a file as valid (ext4)"),
    work(&["xfs_end_io"], "marks written parts of a file as valid (XFS)").advised(COMPLETIONS),
    work(&["xfs_inodegc_worker"], "frees files that were deleted on this CPU, or left its cache (XFS)")
        .fix("delete and close files on other CPUs"),
    work(&["xfs_log_worker"], "writes the log of an idle file system, every 30 seconds (XFS)")
        .fix("raise fs.xfs.xfssyncd_centisecs"),
    unbound(&["btrfs_work_helper"], "compresses, checks or writes data (Btrfs)"),
    unbound(&["loop_workfn"], "reads or writes the file behind a loop device"),
    unbound(&["nvme_keep_alive_work"], "tells a remote NVMe target that this machine is alive"),
    unbound(&["rpc_async_schedule"], "advances a remote procedure call, mostly of NFS"),
    unbound(&["xs_stream_data_receive_workfn"], "receives replies of remote procedure calls, mostly of NFS"),
    work(&["disk_events_workfn"], "asks a drive whether its medium was changed")
        .fix("write 0 to /sys/module/block/parameters/events_dfl_poll_msecs"),
    unbound(&["flush_to_ldisc"], "passes on the input of terminals, pseudoterminals and serial lines"),
    work(&["console_callback"], "draws the virtual console")
        .fix("print less on the virtual console: lower kernel.printk"),
    work(&["fb_flashcursor"], "lets the cursor of the framebuffer console blink")
        .fix("write 0 to /sys/class/graphics/fbcon/cursor_blink"),
    work(&["output_poll_execute"], "looks for displays that were connected, every 10 seconds")
        .fix("write N to /sys/module/drm_kms_helper/parameters/poll"),
    unbound(&["crng_reseed"], "gives the random number generator a new seed, about once a minute"),
    unbound(&["sched_tick_remote"], "does the scheduler's part of the tick for a CPU that runs without one"),
    power_efficient(&["sync_hw_clock"], "sets the hardware clock, every 11 minutes while NTP keeps the time"),
    unbound(&["linkwatch_event"], "reports that network links went up or down"),
    unbound(&["cleanup_net"], "removes network namespaces, mostly of containers that ended"),
    power_efficient(&["neigh_periodic_work"], "forgets old neighbors on the network"),
    power_efficient(&["neigh_managed_work"], "keeps the addresses of chosen neighbors on the network up to date"),
    power_efficient(&["gc_worker"], "removes old entries from the table of network connections (conntrack)"),
    power_efficient(&["phy_state_machine"], "checks the link of a network port"),
    work(&["tcp_tsq_workfn"], "sends TCP data that waited for the network device")
        .fix("send from other CPUs, and move the network's interrupts there"),
    work(&["flush_backlog"], "drops received packets of a network device that is removed")
        .fix("remove network devices and containers before the work, not during it"),
    work(&["bpf_prog_free_deferred"], "frees a BPF program").advised(BPF),
    unbound(&["bpf_map_free_deferred"], "frees a BPF map"),
    work(&["css_killed_work_fn"], "takes a removed control group out of service").advised(GROUPS),
    work(&["css_release_work_fn"], "lets go of a removed control group").advised(GROUPS),
    work(&["css_free_rwork_fn"], "frees a removed control group").advised(GROUPS),
    work(&["update_pages_handler"], "changes the size of this CPU's trace buffer")
        .fix("set the size of trace buffers before the work, not during it"),
    work(&["delayed_fput"], "closes files that the kernel itself had open"),
    work(&["pm_runtime_work"], "suspends or wakes a device")
        .fix("write on to power/control of the device, below /sys/devices"),
    work(&["page_reporting_process"], "reports free memory to the hypervisor")
        .fix("turn off free page reporting of the balloon device, on the host"),
    work(&["update_balloon_size_func"], "gives memory to the hypervisor, or takes it back")
        .fix("keep the size of the guest's memory balloon constant, on the host"),
    work(&["dbs_work_handler"], "chooses the frequency of CPUs (governors ondemand and conservative)")
        .fix("set the scaling governor performance for these CPUs")
        .by(&[Family::Frequency]),
    work(&["throttle_active_work"], "checks whether the processor is still slowed down by heat")
        .fix("cool the processor better, or lower its load"),
    work(&["edac_mc_workq_function"], "asks the memory controller for corrected errors, every second")
        .fix("raise /sys/module/edac_core/parameters/edac_mc_poll_msec"),
    work(&["mce_gen_pool_process"], "reports hardware errors that the processor found")
        .fix("look for hardware errors in the kernel's log, and replace the part"),
];
