//! Functions of timers: precise ones in the timer's interrupt or the softirq `hrtimer`, ordinary ones in the softirq `timer`.

use super::super::Need;
use super::{Advice, Function, Rows};
use crate::carried::Carrier;
use crate::family::Family;

const fn precise(names: &'static [&'static str], does: &'static str) -> Function {
    Function::new(Carrier::Timer, names, does)
}

const fn ordinary(names: &'static [&'static str], does: &'static str) -> Function {
    Function::new(Carrier::Wheel, names, does)
}

const SLEEPERS: Advice = Some("keep the thread that it wakes off these CPUs, and set kernel.timer_migration to 1");
const TIMER_USERS: Advice = Some("keep programs that set timers off these CPUs, and set kernel.timer_migration to 1");
const SLEEPER_FAMILIES: &[Family] = &[Family::Timers, Family::Affinity, Family::Cpuset];
const SAMPLING: Advice = Some("end perf sessions and profilers: they sample these CPUs or rotate their counters");
const SOCKETS: Advice = Some("move the threads that use the connection, and the network's interrupts, to other CPUs");
const DEADLINE: Advice = Some("keep threads of the class SCHED_DEADLINE off these CPUs");
const DISK_REQUESTS: Advice = Some("do I/O on other CPUs, and move the disk's interrupts there");

/// The kernel's tick.
pub(in super::super) const TICK: Function = precise(
    &["tick_nohz_handler", "tick_sched_timer"],
    "is the tick: accounts CPU time, and checks time slices and timers",
)
.fix("the tick: boot with nohz_full= and rcu_nocbs= for these CPUs, and keep one runnable thread on each")
.needs(Need::StoppableTick);

/// The timer of the soft lockup detector.
pub(in super::super) const LOCKUP_TIMER: Function =
    precise(&["watchdog_timer_fn"], "checks for lockups of this CPU, every few seconds")
        .fix("set kernel.watchdog to 0, or take these CPUs out of kernel.watchdog_cpumask")
        .by(&[Family::Watchdog]);

pub(super) const ROWS: Rows = &[
    TICK,
    precise(&["hrtimer_wakeup"], "wakes a thread that slept for a set time: nanosleep, poll, futex")
        .advised(SLEEPERS)
        .by(SLEEPER_FAMILIES),
    precise(&["timerfd_tmrproc"], "marks a timerfd as expired and wakes its reader")
        .advised(TIMER_USERS)
        .by(SLEEPER_FAMILIES),
    precise(&["posix_timer_fn"], "sends the signal of a timer of timer_create")
        .advised(TIMER_USERS)
        .by(SLEEPER_FAMILIES),
    precise(&["it_real_fn"], "sends the signal SIGALRM of alarm or setitimer")
        .advised(TIMER_USERS)
        .by(SLEEPER_FAMILIES),
    precise(&["alarmtimer_fired"], "runs timers that can wake the machine from suspend")
        .advised(TIMER_USERS)
        .by(SLEEPER_FAMILIES),
    LOCKUP_TIMER,
    precise(&["perf_mux_hrtimer_handler"], "rotates the performance events that share this CPU's counters")
        .advised(SAMPLING),
    precise(&["perf_swevent_hrtimer"], "takes a sample for a profiler").advised(SAMPLING),
    precise(&["uncore_pmu_hrtimer"], "reads the counters of the processor's shared units before they overflow (Intel)")
        .advised(SAMPLING),
    precise(&["amd_uncore_hrtimer"], "reads the counters of the processor's shared units before they overflow (AMD)")
        .advised(SAMPLING),
    precise(&["rapl_hrtimer_handle"], "reads the energy counters before they overflow").advised(SAMPLING),
    precise(&["hrtick"], "ends the time slice of a thread precisely")
        .fix("write NO_HRTICK, then NO_HRTICK_DL, to /sys/kernel/debug/sched/features"),
    precise(
        &["dl_task_timer"],
        "refills the budget of a SCHED_DEADLINE thread, or that of the fair server for ordinary threads",
    )
    .fix("write 0 to /sys/kernel/debug/sched/fair_server/cpuN/runtime; keep SCHED_DEADLINE threads off these CPUs")
    .by(&[Family::Throttling]),
    precise(&["inactive_task_timer"], "takes back the bandwidth of a SCHED_DEADLINE thread that sleeps")
        .advised(DEADLINE),
    precise(&["sched_rt_period_timer"], "starts a new period of the limit on real-time threads")
        .fix("set kernel.sched_rt_runtime_us to -1")
        .by(&[Family::Throttling]),
    precise(&["sched_cfs_period_timer"], "starts a new period of a control group's CPU quota")
        .fix("raise or remove the quota of the control group: cpu.max")
        .needs(Need::NewGroups),
    precise(&["sched_cfs_slack_timer"], "passes unused CPU quota of a control group to its other CPUs")
        .fix("raise or remove the quota of the control group: cpu.max")
        .needs(Need::NewGroups),
    precise(&["napi_watchdog"], "polls a network queue whose interrupts are deferred")
        .fix("move the queue's interrupt to another CPU, or write 0 to gro_flush_timeout of the network device")
        .by(&[Family::Irq]),
    precise(&["qdisc_watchdog"], "sends packets that the queueing discipline held back, such as fq or tbf")
        .fix("send from other CPUs, or choose a queueing discipline without pacing"),
    precise(&["tcp_pace_kick"], "sends the next packet of a paced TCP connection").advised(SOCKETS),
    precise(&["tcp_compressed_ack_kick"], "sends an acknowledgment that TCP had held back").advised(SOCKETS),
    precise(&["apic_timer_fn"], "runs the timer of a guest's virtual CPU (KVM)")
        .fix("pin the virtual CPUs of guests to other CPUs"),
    precise(&["bpf_timer_cb"], "runs the timer of a BPF program").fix("end the program that loaded the BPF program"),
    precise(&["bfq_idle_slice_timer"], "ends the wait for the next disk request of a process (scheduler bfq)")
        .fix("write none or mq-deadline to /sys/block/DISK/queue/scheduler"),
    precise(&["iocg_waitq_timer_fn"], "lets disk requests of a control group start (io.cost)")
        .fix("write enable=0 for the disk to io.cost.qos"),
    precise(&["idle_inject_timer_fn"], "forces idle time on this CPU to save power (idle injection)")
        .fix("turn off the cooling device or power limit that injects idle time"),
    precise(&["pm_suspend_timer_fn"], "suspends a device that is not used")
        .fix("write on to power/control of the device, below /sys/devices"),
    precise(&["prb_retire_rx_blk_timer_expired"], "hands captured packets to a program (packet socket)")
        .fix("end packet captures, such as tcpdump"),
    ordinary(&["delayed_work_timer_fn"], "queues a work item whose delay is over")
        .fix("remove the cause of the work item that it queues: see the work items of this CPU"),
    ordinary(&["process_timeout"], "wakes a thread whose wait has timed out")
        .fix("keep the thread that it wakes off these CPUs")
        .by(&[Family::Affinity, Family::Cpuset]),
    ordinary(&["tcp_write_timer"], "sends a TCP packet again, or probes a closed window").advised(SOCKETS),
    ordinary(&["tcp_delack_timer"], "sends a delayed TCP acknowledgment").advised(SOCKETS),
    ordinary(&["tcp_keepalive_timer"], "checks whether an idle TCP connection is still alive").advised(SOCKETS),
    ordinary(&["reqsk_timer_handler"], "repeats the reply to a new TCP connection").advised(SOCKETS),
    ordinary(&["tw_timer_handler"], "forgets a TCP connection that was closed a minute ago").advised(SOCKETS),
    ordinary(&["neigh_timer_handler"], "checks whether a neighbor on the network can be reached").advised(SOCKETS),
    ordinary(
        &["clocksource_watchdog"],
        "compares the time stamp counter with another clock, twice a second; in Linux 6 on each CPU in turn",
    )
    .fix("boot with tsc=nowatchdog if the vendor guarantees a reliable time stamp counter"),
    ordinary(&["mce_timer_fn"], "looks for corrected hardware errors, every few minutes")
        .fix("boot with mce=ignore_ce, or write 0 to /sys/devices/system/machinecheck/machinecheck0/check_interval"),
    ordinary(&["blk_rq_timed_out_timer"], "looks for disk requests without an answer").advised(DISK_REQUESTS),
    ordinary(&["blk_stat_timer_fn"], "evaluates the latency of disk requests, to throttle writeback")
        .fix("write 0 to /sys/block/DISK/queue/wbt_lat_usec"),
    ordinary(&["ioc_timer_fn"], "divides the time of a disk among control groups (io.cost)")
        .fix("write enable=0 for the disk to io.cost.qos"),
    ordinary(&["throtl_pending_timer_fn"], "lets disk requests start that a limit held back (io.max)")
        .fix("remove the limits in io.max of the control groups"),
    ordinary(&["commit_timeout"], "wakes the journal of ext4 after changes, every 5 seconds")
        .fix("write to ext4 on other CPUs, or raise the mount option commit="),
    ordinary(&["fq_flush_timeout"], "lets the IOMMU forget addresses of finished transfers")
        .fix("boot with iommu.strict=1, which costs throughput, or keep drivers' I/O off these CPUs"),
    ordinary(&["poll_timer_fn"], "wakes the thread that checks pressure triggers (PSI)")
        .fix("end programs that set pressure triggers, such as systemd-oomd, or boot with psi=0"),
    ordinary(&["wq_watchdog_timer_fn"], "checks whether work queues make progress")
        .fix("write 0 to /sys/module/workqueue/parameters/watchdog_thresh"),
    ordinary(
        &["mix_interrupt_randomness"],
        "mixes the times of this CPU's interrupts into the random number generator",
    )
    .fix("move the interrupts of devices to other CPUs")
    .by(&[Family::Irq]),
    ordinary(&["serial8250_timeout"], "polls a serial port without an interrupt")
        .fix("close the serial port, or give it an interrupt"),
    ordinary(&["serial8250_backup_timeout"], "looks for lost interrupts of a serial port").fix("close the serial port"),
    ordinary(&["dev_watchdog"], "checks every few seconds whether a network device still sends"),
    ordinary(&["pool_mayday_timeout"], "calls another worker for work items that make no progress"),
    ordinary(&["idle_worker_timeout"], "ends workers that have been idle for minutes"),
    ordinary(&["do_nocb_deferred_wakeup_timer"], "wakes the thread that runs offloaded RCU callbacks of this CPU"),
];
