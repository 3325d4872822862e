//! Tasklets, and work that the kernel defers to an interrupt of its own (`irq_work`).

use super::{Advice, Function, Rows};
use crate::carried::Carrier;
use crate::family::Family;

const fn tasklet(names: &'static [&'static str], does: &'static str) -> Function {
    Function::new(Carrier::Tasklet, names, does)
}

const fn irq_work(names: &'static [&'static str], does: &'static str) -> Function {
    Function::new(Carrier::IrqWork, names, does)
}

const ADAPTER: Advice = Some("move the interrupts of the adapter to other CPUs");
const DEVICE: &[Family] = &[Family::Irq];
const HARDWARE_ERRORS: Advice = Some("look for hardware errors in the kernel's log, and replace the part");
const GOVERNOR: Advice = Some("set the scaling governor performance for these CPUs");

pub(super) const ROWS: Rows = &[
    tasklet(&["tcp_tasklet_func"], "sends TCP data that waited for the network device")
        .fix("send from other CPUs, and move the network's interrupts there"),
    tasklet(&["usb_giveback_urb_bh"], "returns finished USB transfers to their drivers")
        .fix("move the interrupt of the USB controller to another CPU")
        .by(DEVICE),
    tasklet(&["mlx5_cq_tasklet_cb"], "handles completions of an InfiniBand or Ethernet adapter (mlx5)")
        .advised(ADAPTER)
        .by(DEVICE),
    tasklet(&["mlx4_cq_tasklet_cb"], "handles completions of an InfiniBand or Ethernet adapter (mlx4)")
        .advised(ADAPTER)
        .by(DEVICE),
    tasklet(&["megasas_complete_cmd_dpc"], "completes requests of a RAID controller (megaraid_sas)")
        .fix("move the interrupts of the controller to other CPUs")
        .by(DEVICE),
    tasklet(&["vmbus_on_event"], "handles a message for a device of a Hyper-V guest")
        .fix("write another CPU's number to channels/N/cpu of the device, below /sys/bus/vmbus/devices"),
    irq_work(&["nohz_full_kick_func"], "makes a CPU without a tick check whether it needs one")
        .fix("keep one runnable thread on each CPU, without perf events and timers of its CPU time"),
    irq_work(
        &["rcu_iw_handler"],
        "checks whether this CPU still handles interrupts, while an RCU grace period is late",
    ),
    irq_work(&["rcu_preempt_deferred_qs_handler"], "ends a delayed RCU read-side section of this CPU"),
    irq_work(&["rb_wake_up_waiters"], "wakes readers of the kernel's trace")
        .fix("end tracing, or read the trace only after the work"),
    irq_work(&["perf_pending_irq", "perf_pending_event"], "wakes a profiler that waits for samples")
        .fix("end perf sessions and profilers"),
    irq_work(&["wake_up_klogd_work_func"], "wakes readers of the kernel's messages, or prints messages")
        .fix("find the cause of frequent kernel messages (dmesg), and remove it"),
    irq_work(&["sugov_irq_work"], "starts a change of frequency (governor schedutil)")
        .advised(GOVERNOR)
        .by(&[Family::Frequency]),
    irq_work(&["dbs_irq_work"], "starts a change of frequency (governors ondemand and conservative)")
        .advised(GOVERNOR)
        .by(&[Family::Frequency]),
    irq_work(&["rto_push_irq_work_func"], "moves waiting real-time threads of this CPU to others")
        .fix("bind real-time threads, one to a CPU, or write NO_RT_PUSH_IPI to /sys/kernel/debug/sched/features"),
    irq_work(&["ghes_proc_in_irq"], "reports a hardware error that the firmware found").advised(HARDWARE_ERRORS),
    irq_work(&["mce_irq_work_cb"], "reports a hardware error that the processor found").advised(HARDWARE_ERRORS),
];
