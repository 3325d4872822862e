//! Machines made of files, which `becalm tune audit` and `becalm tune plan` read.

use std::fs;
use std::path::Path;

/// Writes all of them into a folder.
pub fn write_all(folder: &Path) {
    untuned(&folder.join("untuned"));
    isolated(&folder.join("isolated"));
    misled(&folder.join("misled"));
    cores(&folder.join("cores"));
    write(&folder.join("taken"), &[("etc/sysctl.d/50-becalm.conf", "vm.stat_interval = 5\n")]);
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A virtual machine of two CPUs as it comes, the one on which the run `busy` was recorded.
fn untuned(root: &Path) {
    write(
        root,
        &[
            ("proc/sys/kernel/hostname", "node1\n"),
            ("proc/sys/kernel/osrelease", "6.12.9\n"),
            ("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda1 quiet\n"),
            (
                "boot/config-6.12.9",
                "CONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_RT_GROUP_SCHED=y\nCONFIG_HZ=250\n",
            ),
            ("proc/cpuinfo", "model name : Example CPU at 2.6 GHz\nflags : tsc constant_tsc nonstop_tsc hypervisor\n"),
            ("proc/stat", "cpu0 100 0 100 9000 0 0 0 1 0 0\ncpu1 5000 0 100 9000 0 0 0 30 0 0\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/devices/system/cpu/isolated", "\n"),
            ("sys/devices/system/cpu/nohz_full", "\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock tsc \n"),
            ("proc/irq/default_smp_affinity", "3\n"),
            ("proc/irq/27/smp_affinity_list", "0-1\n"),
            ("proc/irq/27/effective_affinity_list", "1\n"),
            ("proc/irq/27/virtio1-req.0/.keep", ""),
            ("proc/irq/28/smp_affinity_list", "0-1\n"),
            ("proc/irq/28/effective_affinity_list", "0\n"),
            ("proc/irq/28/virtio2-input.0/.keep", ""),
            ("sys/devices/virtual/workqueue/cpumask", "3\n"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "3\n"),
            ("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n"),
            ("proc/sys/kernel/watchdog_cpumask", "0-1\n"),
            ("proc/sys/kernel/soft_watchdog", "1\n"),
            ("proc/sys/kernel/nmi_watchdog", "1\n"),
            ("proc/sys/vm/stat_interval", "1\n"),
            ("proc/sys/kernel/timer_migration", "1\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("sys/kernel/mm/ksm/run", "0\n"),
            ("proc/swaps", "Filename Type Size Used Priority\n"),
            ("proc/2/task/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
            ("proc/2/task/2/status", "Cpus_allowed_list:\t0-1\n"),
            ("proc/60/task/60/stat", "60 (gremlin) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
            ("proc/60/task/60/status", "Cpus_allowed_list:\t0-1\n"),
        ],
    );
}

/// Four CPUs, three of which are as quiet as Linux can make them.
fn isolated(root: &Path) {
    untuned(root);
    write(
        root,
        &[
            ("proc/sys/kernel/hostname", "rt\n"),
            (
                "proc/cmdline",
                "isolcpus=managed_irq,domain,1-3 nohz_full=1-3 rcu_nocbs=1-3 irqaffinity=0 nosoftlockup tsc=nowatchdog \
                 rcu_nocb_poll mitigations=off\n",
            ),
            ("proc/cpuinfo", "model name : Example CPU at 2.6 GHz\nflags : tsc constant_tsc nonstop_tsc\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/devices/system/cpu/isolated", "1-3\n"),
            ("sys/devices/system/cpu/nohz_full", "1-3\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm \n"),
            ("proc/irq/default_smp_affinity", "1\n"),
            ("proc/irq/27/smp_affinity_list", "0\n"),
            ("proc/irq/27/effective_affinity_list", "0\n"),
            ("proc/irq/28/smp_affinity_list", "0\n"),
            ("sys/devices/virtual/workqueue/cpumask", "1\n"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "1\n"),
            ("proc/sys/kernel/watchdog_cpumask", "0\n"),
            ("proc/sys/kernel/soft_watchdog", "0\n"),
            ("proc/sys/kernel/nmi_watchdog", "0\n"),
            ("proc/sys/vm/stat_interval", "60\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("proc/2/task/2/status", "Cpus_allowed_list:\t0\n"),
            ("proc/60/task/60/status", "Cpus_allowed_list:\t0\n"),
        ],
    );
    for cpu in 1..4 {
        for (name, value) in [("runtime", "0\n"), ("period", "1000000000\n")] {
            write(root, &[(&format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/{name}"), value)]);
        }
    }
}

/// The same, after somebody edited its command line and booted another kernel.
fn misled(root: &Path) {
    isolated(root);
    write(
        root,
        &[
            ("proc/cmdline", "isolcpus=1-3 isolcpus=2-3 nohz_full=1-3 rcu_nocb=1-3 irqaffinity=0-1 preempt=full\n"),
            ("boot/config-6.12.9", "CONFIG_RCU_NOCB_CPU=y\nCONFIG_PROVE_LOCKING=y\nCONFIG_HZ=250\n"),
        ],
    );
    fs::remove_file(root.join("sys/devices/system/cpu/nohz_full")).unwrap();
}

/// Four CPUs on two cores, with frequencies and control groups of version 2.
fn cores(root: &Path) {
    untuned(root);
    let online = "sys/devices/system/cpu/online";
    write(
        root,
        &[(online, "0-3\n"), ("proc/irq/27/smp_affinity_list", "0-3\n"), ("proc/irq/28/smp_affinity_list", "1\n")],
    );
    for (name, text) in [("cgroup.controllers", "cpuset cpu memory\n"), ("cgroup.subtree_control", "cpu memory\n")] {
        write(root, &[(&format!("sys/fs/cgroup/{name}"), text)]);
    }
    for cpu in 0..4 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        let siblings = if cpu % 2 == 0 { "0,2\n" } else { "1,3\n" };
        write(
            root,
            &[
                (&format!("{folder}/topology/thread_siblings_list"), siblings),
                (&format!("{folder}/online"), "1\n"),
                (&format!("{folder}/cpufreq/scaling_governor"), "powersave\n"),
                (&format!("{folder}/cpufreq/scaling_available_governors"), "performance powersave\n"),
                (&format!("{folder}/cpufreq/related_cpus"), &format!("{cpu}\n")),
            ],
        );
    }
}
