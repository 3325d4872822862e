//! A machine as a tree of the kernel's files: four CPUs, of which firmware and users could have put anything into any file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::tree;

/// The files by their paths.
pub static MACHINE: LazyLock<Value> = LazyLock::new(|| {
    let mut files: Map<String, Value> =
        FILES.iter().map(|(path, text)| ((*path).to_owned(), Value::from(*text))).collect();
    let mut add = |path: String, text: &str| drop(files.insert(path, text.into()));
    add("/proc/meminfo".to_owned(), "MemTotal:       16252928 kB\nMemFree:         8126464 kB\n");
    for cpu in 0..4 {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        add(format!("{folder}/topology/thread_siblings_list"), ["0,2\n", "1,3\n"][cpu % 2]);
        add(format!("{folder}/topology/physical_package_id"), "0\n");
        add(format!("{folder}/cpufreq/scaling_available_governors"), "performance powersave\n");
        add(format!("{folder}/cpufreq/scaling_governor"), "powersave\n");
        add(format!("{folder}/cpufreq/scaling_driver"), "intel_pstate\n");
        add(format!("{folder}/cpufreq/related_cpus"), &format!("{cpu}\n"));
        add(format!("{folder}/cpuidle/state1/name"), "C6\n");
        add(format!("{folder}/cpuidle/state1/latency"), "133\n");
        add(format!("{folder}/cpuidle/state1/disable"), "0\n");
        if cpu > 0 {
            add(format!("{folder}/online"), "1\n");
        }
    }
    files.into()
});

/// The files that are there once.
const FILES: [(&str, &str); 71] = [
    ("/proc/cmdline", "quiet isolcpus=managed_irq,domain,1-3 nohz_full=1-3 rcu_nocbs=1-3 irqaffinity=0 nosoftlockup\n"),
    ("/proc/cpuinfo", "model name : X\nflags : tsc constant_tsc nonstop_tsc tsc_adjust hypervisor\n"),
    ("/proc/interrupts", "CPU0 CPU1\n 5: 1 2 PCI-MSIX-0 1-edge nvme0q1\nLOC: 1 2 Local timer interrupts\n"),
    ("/proc/softirqs", "CPU0 CPU1\nTIMER: 1 2\nRCU: 1 2\n"),
    ("/proc/stat", "cpu 1 2\ncpu0 1 2 3 4 5 6 7 8\ncpu1 1 2 3 4 5 6 7 8\nctxt 5\nbtime 6\nprocesses 7\n"),
    ("/proc/kallsyms", "ffffffff81000000 T _text\nffffffff81000100 t tick_nohz [x]\n"),
    ("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1024 512 -2\n"),
    ("/proc/self/status", STATUS),
    ("/proc/self/uid_map", "0 0 4294967295\n"),
    ("/proc/self/limits", "Max realtime priority 0 0\nMax locked memory 8388608 8388608 bytes\n"),
    (
        "/proc/self/mountinfo",
        "1 2 0:1 / /sys/kernel/tracing rw - tracefs none rw\n2 2 0:2 / /sys/fs/cgroup rw - cgroup2 none rw\n",
    ),
    ("/proc/self/cgroup", "0::/user.slice\n"),
    ("/proc/1/stat", "1 (init) S 0 1 1 0 -1 4194560 0 0 0 0 3 0 0 0 20 0 1 0 1 0 0\n"),
    ("/proc/1/status", "Cpus_allowed_list:\t0-3\n"),
    ("/proc/1/task/1/stat", "1 (init) S 0 1 1 0 -1 4194560 0 0 0 0 3 0 0 0 20 0 1 0 1 0 0\n"),
    ("/proc/1/task/1/status", "Cpus_allowed_list:\t0-3\n"),
    ("/proc/9/stat", "9 (ksoftirqd/1) S 2 0 0 0 -1 69206080 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
    ("/proc/9/status", "Cpus_allowed_list:\t1\n"),
    ("/proc/9/task/9/stat", "9 (ksoftirqd/1) S 2 0 0 0 -1 69206080 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
    ("/proc/9/task/9/status", "Cpus_allowed_list:\t1\n"),
    ("/proc/irq/default_smp_affinity", "f\n"),
    ("/proc/irq/5/smp_affinity_list", "0-3\n"),
    ("/proc/irq/5/effective_affinity_list", "2\n"),
    ("/proc/irq/5/nvme0q1/.keep", ""),
    ("/proc/irq/9/smp_affinity_list", "0\n"),
    ("/proc/sys/kernel/hostname", "node7.cluster\n"),
    ("/proc/sys/kernel/osrelease", "6.12.9\n"),
    ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n"),
    ("/proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000001\n"),
    ("/proc/sys/kernel/kptr_restrict", "1\n"),
    ("/proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("/proc/sys/kernel/perf_event_max_sample_rate", "100000\n"),
    ("/proc/sys/kernel/perf_cpu_time_max_percent", "25\n"),
    ("/proc/sys/kernel/watchdog_cpumask", "0-3\n"),
    ("/proc/sys/kernel/soft_watchdog", "1\n"),
    ("/proc/sys/kernel/nmi_watchdog", "1\n"),
    ("/proc/sys/kernel/timer_migration", "1\n"),
    ("/proc/sys/kernel/numa_balancing", "1\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("/proc/sys/vm/stat_interval", "1\n"),
    ("/proc/sys/vm/compaction_proactiveness", "20\n"),
    ("/boot/config-6.12.9", "CONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_HZ=1000\n"),
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/sys/devices/system/cpu/possible", "0-3\n"),
    ("/sys/devices/system/cpu/present", "0-3\n"),
    ("/sys/devices/system/cpu/isolated", "1-3\n"),
    ("/sys/devices/system/cpu/nohz_full", "1-3\n"),
    ("/sys/devices/system/cpu/smt/active", "1\n"),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n"),
    ("/sys/devices/virtual/workqueue/cpumask", "f\n"),
    ("/sys/devices/virtual/workqueue/writeback/cpumask", "f\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0,2\n"),
    ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "f\n"),
    ("/sys/class/net/eth0/queues/tx-0/xps_cpus", "f\n"),
    ("/sys/kernel/mm/ksm/run", "1\n"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", "1\n"),
    ("/sys/kernel/tracing/trace_clock", "[local] mono_raw x86-tsc ppc-tb\n"),
    ("/sys/kernel/tracing/tracing_on", "1\n"),
    ("/sys/kernel/tracing/current_tracer", "nop\n"),
    ("/sys/kernel/tracing/set_event", "sched:sched_switch\n"),
    ("/sys/kernel/tracing/printk_formats", "0xffffffff81000000 : \"Rescheduling interrupts\"\n"),
    ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n"),
    ("/sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n"),
    ("/sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n"),
    ("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n"),
];

/// A process that may do everything.
const STATUS: &str = "Uid:\t0 0 0 0\nGid:\t0 0 0 0\nGroups:\t4 27\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3\n\
                      voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n";

/// Makes the folder the machine that edits made of [`MACHINE`]. What differs from it is put back by the next call, so that an input
/// costs no more than its edits.
///
/// # Panics
/// If the folder cannot be written.
pub fn put(root: &Path, edited: &Value, before: &mut BTreeSet<String>) {
    let valid = MACHINE.as_object().expect("files by path");
    let none = Map::new();
    let edited = edited.as_object().unwrap_or(&none);
    if before.is_empty() {
        valid.iter().for_each(|(path, value)| tree::write(root, path, &tree::contents(value)));
    }
    for path in std::mem::take(before) {
        remove(root, &path);
        if let Some(value) = valid.get(&path) {
            tree::write(root, &path, &tree::contents(value));
        }
    }
    for path in valid.keys().chain(edited.keys()).filter(|path| valid.get(*path) != edited.get(*path)) {
        remove(root, path);
        if let Some(value) = edited.get(path) {
            tree::write(root, path, &tree::contents(value));
        }
        before.insert(path.clone());
    }
    // From now on the valid files are there.
    before.insert(String::new());
}

fn remove(root: &Path, path: &str) {
    let Some(place) = tree::place(root, path) else { return };
    let _ = fs::remove_file(&place);
    // A file that an input put in the place of a folder, or folders for a file of its own.
    let mut parent = place.parent();
    while let Some(folder) = parent.filter(|folder| *folder != root && fs::remove_dir(folder).is_ok()) {
        parent = folder.parent();
    }
}
