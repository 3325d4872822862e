//! Stable names of threads: the part that is the same between runs, CPUs and machines is the source, the rest the instance.
//!
//! Kernel threads have CPU, device or interrupt numbers in their names, which must not lead to separate rows in a table of sources. Processes keep
//! their names.

use std::borrow::Cow;

/// The stable name of a thread, and the part that identifies the instance: `kworker/1:2-events` is `kworker`, `1:2-events`; `irq/25-virtio1-req` is
/// `irq/virtio1-req`, `25`. A process's name is kept whole; its instance is empty.
pub fn stable_name(comm: &str, kthread: bool) -> (Cow<'_, str>, &str) {
    if !kthread {
        return (Cow::Borrowed(comm), "");
    }
    if let Some((number, device)) = comm.strip_prefix("irq/").and_then(|rest| rest.split_once('-')) {
        // The second thread of an interrupt, which runs its primary handler, is called irq/25-s-name.
        let device = device.strip_prefix("s-").unwrap_or(device);
        return (Cow::Owned(format!("irq/{device}")), number);
    }
    if let Some((name, instance)) = comm.split_once('/').filter(|(name, _)| !name.is_empty()) {
        return (Cow::Borrowed(name), instance);
    }
    for name in NUMBERED {
        match comm.strip_prefix(name) {
            Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                return (Cow::Borrowed(name.trim_end_matches(['-', '_', '.'])), number);
            }
            _ => {}
        }
    }
    (Cow::Borrowed(comm), "")
}

/// Kernel threads with a number that follows without a slash. A list, because other names end in digits of their own (`jbd2`).
const NUMBERED: [&str; 9] =
    ["kswapd", "kcompactd", "kdamond.", "loop", "scsi_eh_", "scsi_tmf_", "kvm-nx-lpage-recovery-", "kdmflush-", "spi"];

/// Kernel threads, by the prefixes of their names.
const KERNEL_NAMES: [&str; 52] = [
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "cpuhp/",
    "rcuc/",
    "rcuog/",
    "rcuop/",
    "rcuos/",
    "rcuob/",
    "rcub/",
    "rcu_",
    "irq/",
    "jbd2/",
    "idle_inject/",
    "watchdog/",
    "ktimers/",
    "irq_work/",
    "backlog_napi/",
    "napi/",
    "posixcputmr/",
    "swapper",
    "kthreadd",
    "kswapd",
    "kcompactd",
    "kdamond.",
    "khugepaged",
    "ksmd",
    "kauditd",
    "khungtaskd",
    "kdevtmpfs",
    "oom_reaper",
    "writeback",
    "kblockd",
    "scsi_eh_",
    "scsi_tmf_",
    "xfsaild/",
    "btrfs-",
    "dmcrypt_write/",
    "kvm-",
    "pool_workqueue_",
    "watchdogd",
    "hwrng",
    "psimon",
    "sugov:",
    "usb-storage",
    "ptlrpcd_",
    "txg_sync",
    "txg_quiesce",
    "ext4lazyinit",
    "iou-sqp-",
    "iou-wrk-",
    "vhost-",
];

/// Others, by their whole names, because names of programs have them as prefixes: `nfsdcld`.
const WHOLE_KERNEL_NAMES: [&str; 3] = ["nfsd", "lockd", "cifsd"];

/// Whether a thread that has ended was probably the kernel's, judged by its name. A process may take any name, so use this only if
/// [`TaskStat`](super::task::TaskStat) has nothing.
pub fn looks_like_kthread(comm: &str) -> bool {
    KERNEL_NAMES.iter().any(|name| comm.starts_with(name)) || WHOLE_KERNEL_NAMES.contains(&comm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kernel_threads_have_a_source_and_an_instance() {
        for (comm, source, instance) in [
            ("kworker/1:2-events", "kworker", "1:2-events"),
            ("kworker/u8:1+ext4-rsv-conversion", "kworker", "u8:1+ext4-rsv-conversion"),
            ("kworker/R-rcu_gp", "kworker", "R-rcu_gp"),
            ("ksoftirqd/1", "ksoftirqd", "1"),
            ("migration/3", "migration", "3"),
            ("cpuhp/0", "cpuhp", "0"),
            ("rcuc/1", "rcuc", "1"),
            ("rcu_preempt", "rcu_preempt", ""),
            ("rcu_exp_par_gp_kthread_worker/0", "rcu_exp_par_gp_kthread_worker", "0"),
            ("irq/25-virtio1-req", "irq/virtio1-req", "25"),
            ("irq/24-s-ACPI:Ged", "irq/ACPI:Ged", "24"),
            ("jbd2/vda1-8", "jbd2", "vda1-8"),
            ("jbd2", "jbd2", ""),
            ("kswapd0", "kswapd", "0"),
            ("scsi_eh_12", "scsi_eh", "12"),
            ("kdamond.0", "kdamond", "0"),
            ("loopback", "loopback", ""),
            ("swapper/7", "swapper", "7"),
            ("/", "/", ""),
            ("", "", ""),
        ] {
            assert_eq!(stable_name(comm, true), (Cow::Borrowed(source), instance), "{comm}");
        }
    }

    #[test]
    fn processes_keep_their_names() {
        for comm in ["sshd", "kworker/1:2", "irq/25-x", "loop0"] {
            assert_eq!(stable_name(comm, false), (Cow::Borrowed(comm), ""));
        }
    }

    #[test]
    fn the_guess_holds_on_this_machine() {
        let tasks = crate::procfs::placement::PlacedTasks::read(std::path::Path::new("/")).unwrap().tasks;
        let tasks = tasks.iter().map(|placed| &placed.task);
        for task in tasks.filter(|task| task.comm.starts_with("kworker/") || task.comm.starts_with("ksoftirqd/")) {
            assert_eq!(looks_like_kthread(&task.comm), task.kthread, "{}", task.comm);
        }
        assert!(looks_like_kthread("kdamond.0") && !looks_like_kthread("sshd") && !looks_like_kthread("gremlin"));
    }
}
