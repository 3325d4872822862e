//! The check on fake machines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use becalm_units::{CpuId, CpuList, Nanos};
use proptest::prelude::*;

use super::*;
use crate::document::{Area, Chosen, Evidence, Severity, TicksFrom};
use crate::{Family, Kind, Known, NoiseSource};

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const LISTS: &str = "isolcpus=managed_irq,domain,1-3 nohz_full=1-3 rcu_nocbs=1-3";

/// A machine of four CPUs, three of them as quiet as Linux allows.
fn quiet() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            (
                "proc/cmdline",
                &format!("quiet {LISTS} irqaffinity=0 nosoftlockup tsc=reliable mitigations=off rcu_nocb_poll\n"),
            ),
            ("proc/sys/kernel/osrelease", "6.12.9\n"),
            (
                "boot/config-6.12.9",
                "CONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_HZ=1000\nCONFIG_RT_GROUP_SCHED=y\n",
            ),
            ("proc/cpuinfo", "model name : X\nflags : tsc constant_tsc nonstop_tsc tsc_adjust\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/devices/system/cpu/possible", "0-3\n"),
            ("sys/devices/system/cpu/present", "0-3\n"),
            ("sys/devices/system/cpu/isolated", "1-3\n"),
            ("sys/devices/system/cpu/nohz_full", "1-3\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n"),
            ("proc/irq/default_smp_affinity", "1\n"),
            ("proc/irq/9/smp_affinity_list", "0\n"),
            ("proc/irq/9/acpi/.keep", ""),
            ("sys/devices/virtual/workqueue/cpumask", "1\n"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
            ("proc/self/mountinfo", "1 2 0:1 / /sys/kernel/tracing rw - tracefs none rw\n"),
            ("sys/kernel/tracing/tracing_on", "1\n"),
            ("sys/kernel/tracing/current_tracer", "nop\n"),
            ("sys/kernel/tracing/set_event", ""),
            ("proc/sys/kernel/watchdog_cpumask", "0\n"),
            ("proc/sys/kernel/soft_watchdog", "0\n"),
            ("proc/sys/kernel/nmi_watchdog", "0\n"),
            ("proc/sys/vm/stat_interval", "60\n"),
            ("proc/sys/kernel/timer_migration", "1\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
            ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
            ("sys/kernel/debug/sched/fair_server/cpu1/runtime", "0\n"),
            ("sys/kernel/debug/sched/fair_server/cpu1/period", "1000000000\n"),
            ("sys/kernel/debug/sched/fair_server/cpu2/runtime", "0\n"),
            ("sys/kernel/debug/sched/fair_server/cpu2/period", "1000000000\n"),
            ("sys/kernel/debug/sched/fair_server/cpu3/runtime", "0\n"),
            ("sys/kernel/debug/sched/fair_server/cpu3/period", "1000000000\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("sys/kernel/mm/ksm/run", "0\n"),
            ("proc/sys/kernel/numa_balancing", "0\n"),
            ("proc/sys/vm/compaction_proactiveness", "0\n"),
            ("proc/swaps", "Filename Type Size Used Priority\n"),
            // Flags of a kernel thread, and of one that is bound.
            ("proc/2/task/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
            ("proc/2/task/2/status", "Cpus_allowed_list:\t0\n"),
            ("proc/9/task/9/stat", "9 (ksoftirqd/1) S 2 0 0 0 -1 69206080 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
            ("proc/9/task/9/status", "Cpus_allowed_list:\t1\n"),
        ],
    );
    root
}

fn check(root: &Path) -> Check {
    super::check(root, choose(root, None).unwrap(), &[])
}

fn list(text: &str) -> CpuList {
    text.parse().unwrap()
}

/// The finding whose title contains these words.
#[track_caller]
fn found<'a>(check: &'a Check, words: &str) -> &'a Finding {
    let titles: Vec<_> = check.findings.iter().map(|it| (it.severity, it.title.as_str())).collect();
    check.findings.iter().find(|it| it.title.contains(words)).unwrap_or_else(|| panic!("no '{words}' in {titles:#?}"))
}

#[track_caller]
fn is(check: &Check, severity: Severity, area: Area, words: &str) {
    let it = found(check, words);
    assert_eq!((it.severity, it.area), (severity, area), "{it:#?}");
}

#[test]
fn a_quiet_machine_has_nothing_to_do() {
    let root = quiet();
    let check = check(root.path());
    assert_eq!((check.choice.cpus.to_string(), check.choice.chosen), ("1-3".to_owned(), Chosen::KeptApart));
    let grave: Vec<_> = check.findings.iter().filter(|it| it.severity > Severity::Fine).collect();
    assert!(grave.is_empty(), "{grave:#?}");
    assert!(check.findings.len() > 12, "{:#?}", check.findings);
    assert_eq!((check.worst(), check.count(Severity::Fine)), (Some(Severity::Fine), check.findings.len()));
}

/// A machine as distributions ship it: nothing keeps noise off CPUs 1-3.
fn untuned() -> tempfile::TempDir {
    let root = quiet();
    write(
        root.path(),
        &[
            ("proc/cmdline", "quiet\n"),
            ("sys/devices/system/cpu/isolated", "\n"),
            ("sys/devices/system/cpu/nohz_full", "(null)\n"),
            ("proc/irq/default_smp_affinity", "f\n"),
            ("proc/irq/36/smp_affinity_list", "0-3\n"),
            ("proc/irq/36/effective_affinity_list", "2\n"),
            ("proc/irq/36/virtio1-req.0/.keep", ""),
            ("proc/irq/37/smp_affinity_list", "0-3\n"),
            ("proc/irq/37/effective_affinity_list", "0\n"),
            ("proc/irq/37/virtio2-rx/.keep", ""),
            ("proc/irq/38/smp_affinity_list", "0-3\n"),
            ("sys/devices/virtual/workqueue/cpumask", "f\n"),
            ("sys/devices/virtual/workqueue/writeback/cpumask", "f\n"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "e\n"),
            ("sys/kernel/tracing/set_event", "sched:sched_switch\n"),
            ("sys/kernel/tracing/instances/left/tracing_on", "1\n"),
            ("sys/kernel/tracing/instances/left/current_tracer", "function\n"),
            ("sys/kernel/tracing/instances/becalm-1-0/tracing_on", "1\n"),
            ("sys/kernel/tracing/instances/becalm-1-0/current_tracer", "function\n"),
            ("proc/sys/kernel/watchdog_cpumask", "0-3\n"),
            ("proc/sys/kernel/soft_watchdog", "1\n"),
            ("proc/sys/kernel/nmi_watchdog", "1\n"),
            ("proc/sys/vm/stat_interval", "1\n"),
            ("proc/sys/kernel/timer_migration", "0\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("sys/kernel/debug/sched/fair_server/cpu2/runtime", "50000000\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm \n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_driver", "acpi-cpufreq\n"),
            ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
            ("sys/devices/system/cpu/cpu3/cpuidle/state0/name", "C6\n"),
            ("sys/devices/system/cpu/cpu3/cpuidle/state0/latency", "133\n"),
            ("sys/devices/system/cpu/cpu3/cpuidle/state0/disable", "0\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("sys/kernel/mm/transparent_hugepage/defrag", "[always] defer madvise never\n"),
            ("sys/kernel/mm/ksm/run", "1\n"),
            ("proc/sys/kernel/numa_balancing", "1\n"),
            ("proc/swaps", "Filename Type Size Used Priority\n/swap file 1024 7 -2\n"),
            ("sys/module/kfence/parameters/sample_interval", "100\n"),
            (
                "boot/config-6.12.9",
                "CONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_RT_GROUP_SCHED=y\nCONFIG_KASAN=y\nCONFIG_PROVE_LOCKING=y\n",
            ),
            ("proc/2/task/2/status", "Cpus_allowed_list:\t0-3\n"),
            ("proc/50/task/50/stat", "50 (irqbalance) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
            ("proc/50/task/50/status", "Cpus_allowed_list:\t0-3\n"),
        ],
    );
    root
}

#[test]
fn an_untuned_machine() {
    let root = untuned();
    let check = check(root.path());
    assert_eq!((check.choice.cpus.to_string(), check.choice.chosen), ("1-3".to_owned(), Chosen::AllButFirst));
    for (severity, area, words) in [
        (Severity::Warning, Area::Isolation, "balances load over CPUs 1-3"),
        (Severity::Warning, Area::Isolation, "never stopped on CPUs 1-3"),
        (Severity::Warning, Area::Isolation, "callbacks of RCU run on CPUs 1-3"),
        (Severity::Warning, Area::Irq, "1 interrupt is handled on CPUs 1-3: virtio1-req.0 (36)"),
        (Severity::Note, Area::Irq, "1 interrupt may be moved to CPUs 1-3: virtio2-rx (37)"),
        (Severity::Note, Area::Irq, "from now on may go to CPUs 1-3"),
        (Severity::Warning, Area::Irq, "irqbalance runs, and moves"),
        (Severity::Warning, Area::Deferred, "bound to no CPU may run on CPUs 1-3"),
        (Severity::Warning, Area::Deferred, "packets received by eth0"),
        (Severity::Warning, Area::Tasks, "1 kernel thread that could be moved may run on CPUs 1-3: kthreadd"),
        (Severity::Warning, Area::Tasks, "1 thread of processes may run on CPUs 1-3: irqbalance"),
        (Severity::Note, Area::Tasks, "held up for 50ms of every 1s"),
        (Severity::Note, Area::Tasks, "loses 50ms of every 1s to waiting threads"),
        (Severity::Warning, Area::Timers, "detector of soft lockups"),
        (Severity::Warning, Area::Timers, "detector of hard lockups"),
        (Severity::Warning, Area::Timers, "every 1s each busy CPU folds"),
        (Severity::Note, Area::Timers, "timers that are set on an isolated CPU fire there"),
        (Severity::Warning, Area::Clock, "found the TSC unstable"),
        (Severity::Warning, Area::Power, "the governor schedutil of acpi-cpufreq changes the frequency of CPU 1"),
        (Severity::Note, Area::Power, "turbo is on"),
        (Severity::Note, Area::Power, "may sleep in C6, and takes 133us"),
        (Severity::Warning, Area::Memory, "khugepaged"),
        (Severity::Warning, Area::Memory, "a page fault may compact"),
        (Severity::Warning, Area::Memory, "ksmd"),
        (Severity::Warning, Area::Memory, "NUMA balancing"),
        (Severity::Note, Area::Memory, "swapped out when it is short"),
        (Severity::Warning, Area::Tracing, "events are being traced"),
        (Severity::Warning, Area::Build, "built for debugging: every lock is checked, every access"),
        (Severity::Warning, Area::Build, "KFENCE"),
        (Severity::Note, Area::Boot, "tick at the same moment"),
    ] {
        is(&check, severity, area, words);
    }
    assert_eq!(check.count(Severity::Error), 0, "{:#?}", check.findings);
    assert!(check.findings.is_sorted_by_key(|it| std::cmp::Reverse(it.severity)));
}

#[test]
fn findings_of_an_untuned_machine_say_where_they_come_from_and_what_to_do() {
    let root = untuned();
    let check = check(root.path());
    let irq = found(&check, "is handled");
    assert_eq!(irq.evidence, [Evidence::new("/proc/irq/36/effective_affinity_list", "2")]);
    assert_eq!(irq.fix.as_ref().unwrap().family, Some(Family::Irq));
    assert!(irq.noise.contains(&NoiseSource::new(Kind::Irq, "virtio1-req.0")));
    let traced: Vec<_> = found(&check, "being traced").evidence.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(traced, ["/sys/kernel/tracing/instances/left/current_tracer", "/sys/kernel/tracing/set_event"]);
    assert_eq!(found(&check, "never stopped").fix.as_ref().unwrap().boot.as_deref(), Some("nohz_full=1-3"));
}

#[test]
fn parameters_that_this_kernel_cannot_obey() {
    let root = quiet();
    write(
        root.path(),
        &[
            (
                "proc/cmdline",
                &format!("{LISTS} preempt=full clocksource=tsc kthread_cpus=0-1 nosoftlockup threadirqs\n"),
            ),
            ("boot/config-6.12.9", "CONFIG_HZ=250\n"),
            ("proc/sys/kernel/soft_watchdog", "1\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ],
    );
    fs::remove_file(root.path().join("sys/devices/system/cpu/nohz_full")).unwrap();
    let check = check(root.path());
    for (area, words) in [
        (Area::Isolation, "nohz_full is given, and this kernel ignores it"),
        (Area::Isolation, "rcu_nocbs is given, and this kernel ignores it"),
        (Area::Boot, "preempt=full is given, and this kernel ignores it"),
        (Area::Boot, "threadirqs is given, and this kernel ignores it"),
        (Area::Boot, "kthread_cpus is given and has no effect"),
        (Area::Clock, "clocksource=tsc is given, and the kernel uses hpet"),
        (Area::Timers, "nosoftlockup is given, and the detector runs"),
    ] {
        is(&check, Severity::Error, area, words);
    }
    let evidence = &found(&check, "nohz_full is given").evidence;
    assert!(evidence.contains(&Evidence::new("/boot/config-6.12.9", "CONFIG_NO_HZ_FULL is not set")), "{evidence:?}");
    assert!(evidence.contains(&Evidence::new("/sys/devices/system/cpu/nohz_full", "no such file")), "{evidence:?}");
}

#[test]
fn without_its_configuration_a_kernel_is_judged_by_its_files() {
    let root = quiet();
    fs::remove_file(root.path().join("boot/config-6.12.9")).unwrap();
    let check = check(root.path());
    is(&check, Severity::Note, Area::Build, "does not tell how it was built");
    assert_eq!(check.count(Severity::Error), 0, "{:#?}", check.findings);
    fs::remove_file(root.path().join("sys/devices/system/cpu/nohz_full")).unwrap();
    is(&self::check(root.path()), Severity::Error, Area::Isolation, "nohz_full is given, and this kernel ignores it");
}

#[test]
fn lists_that_do_not_hold() {
    let root = quiet();
    let check_with = |line: &str| {
        write(root.path(), &[("proc/cmdline", line)]);
        check(root.path())
    };
    for (line, severity, words) in [
        ("isolcpus=1-3 nohz_full=2-3 rcu_nocbs=1-3", Severity::Warning, "do not agree: CPU 1 is not in all"),
        ("isolcpus=1-3 nohz_full=2-3", Severity::Error, "nohz_full names 2-3, and the kernel took 1-3"),
        ("isolcpus=2-3 nohz_full=1-3", Severity::Error, "isolcpus names 2-3, and the kernel isolated 1-3"),
        ("isolcpus=1-4", Severity::Error, "the kernel ignores isolcpus=1-4: a CPU that this machine can have"),
        ("isolcpus=all", Severity::Error, "the kernel ignores isolcpus=all: flags, then a list"),
        ("isolcpus=1-3 isolcpus=1", Severity::Error, "isolcpus is there twice"),
        ("isolcpus=io_queue,domain,1-3", Severity::Warning, "does not know the flag io_queue"),
        ("isolcpus=1-3", Severity::Note, "lacks the flag managed_irq"),
        ("nohz_full=3-1", Severity::Error, "the kernel ignores nohz_full=3-1"),
        ("nohz_full=1-3 isolcpus=nohz,domain,1", Severity::Error, "the kernel keeps one and drops the other"),
        ("rcu_nocbs=x", Severity::Error, "rcu_nocbs=x is no list, so the kernel takes all"),
        ("isol_cpus=1-3", Severity::Error, "isol_cpus is no parameter of the kernel; isolcpus may"),
        ("nohz-full=1-3 nohz=off", Severity::Error, "nohz=off keeps every tick"),
        ("irqaffinity=0-1", Severity::Error, "irqaffinity sends new interrupts to CPU 1"),
        ("workqueue.unbound_cpus=N", Severity::Error, "sends work to CPU 3"),
        ("idle=poll", Severity::Note, "idle CPUs poll"),
        ("transparent_hugepage=never", Severity::Note, "and madvise is set since"),
    ] {
        let check = check_with(line);
        assert_eq!(found(&check, words).severity, severity, "{line}");
    }
    // The kernel's own spelling is valid, and so is a name that is not close to a known one.
    let check = check_with(&format!("{LISTS} rcu-nocb-poll nmi_watchdog=0 isolated_thing=1"));
    assert!(!check.findings.iter().any(|it| it.title.contains("no parameter")), "{:#?}", check.findings);
}

#[test]
fn a_machine_with_no_cpu_left() {
    let root = quiet();
    write(root.path(), &[("sys/devices/system/cpu/isolated", "0-3\n"), ("proc/cmdline", "isolcpus=0-3\n")]);
    let check = check(root.path());
    is(&check, Severity::Error, Area::Isolation, "no housekeeping CPU is left");
    is(&check, Severity::Error, Area::Isolation, "every online CPU is isolated");
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[("sys/devices/system/cpu/online", "0\n")]);
    assert_eq!(choose(root.path(), None).unwrap().chosen, Chosen::OnlyOne);
    is(&self::check(root.path()), Severity::Error, Area::Isolation, "no housekeeping CPU is left");
}

#[test]
fn partitions_count_as_isolation_and_invalid_ones_as_errors() {
    let root = quiet();
    write(
        root.path(),
        &[
            ("proc/cmdline", "quiet\n"),
            ("sys/devices/system/cpu/isolated", "\n"),
            ("sys/devices/system/cpu/nohz_full", "\n"),
            ("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n"),
            ("sys/fs/cgroup/quiet/cpuset.cpus.partition", "isolated\n"),
            ("sys/fs/cgroup/quiet/cpuset.cpus.effective", "2-3\n"),
            ("sys/fs/cgroup/broken/cpuset.cpus.partition", "root invalid (Parent is not a partition root)\n"),
        ],
    );
    let check = check(root.path());
    assert_eq!((check.choice.cpus.to_string(), check.choice.chosen), ("2-3".to_owned(), Chosen::KeptApart));
    is(&check, Severity::Fine, Area::Isolation, "the scheduler moves no thread to CPUs 2-3");
    is(&check, Severity::Error, Area::Isolation, "/sys/fs/cgroup/broken is not in force");
    assert!(found(&check, "not in force").evidence[0].value.contains("Parent is not a partition root"));
}

#[test]
fn cores_with_32_threads() {
    let root = quiet();
    let all = "0-31";
    write(root.path(), &[("proc/cmdline", "quiet\n"), ("sys/devices/system/cpu/isolated", "\n")]);
    for name in ["online", "possible", "present"] {
        write(root.path(), &[(&format!("sys/devices/system/cpu/{name}"), all)]);
    }
    for cpu in 0..32 {
        write(root.path(), &[(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), all)]);
    }
    let check_with = |named: &str| super::check(root.path(), choose(root.path(), Some(&list(named))).unwrap(), &[]);
    let part = check_with("4-7");
    is(&part, Severity::Warning, Area::Isolation, "CPUs 0-3,8-31 share cores with CPUs 4-7");
    is(&part, Severity::Note, Area::Isolation, "4 of 4 CPUs share their core");
    let one = check_with("5");
    assert!(!one.findings.iter().any(|it| it.title.contains("share their core")));
}

#[test]
fn a_machine_of_4096_cpus() {
    let root = quiet();
    let quiet = "isolcpus=managed_irq,domain,1-N nohz_full=1-4095 rcu_nocbs=all:1/1 nosoftlockup\n";
    write(
        root.path(),
        &[("proc/cmdline", quiet), ("proc/irq/77/smp_affinity_list", "0-4095\n"), ("proc/irq/77/nvme/.keep", "")],
    );
    for name in ["online", "possible", "present"] {
        write(root.path(), &[(&format!("sys/devices/system/cpu/{name}"), "0-4095\n")]);
    }
    for name in ["isolated", "nohz_full"] {
        write(root.path(), &[(&format!("sys/devices/system/cpu/{name}"), "1-4095\n")]);
    }
    let mask = list("0-4095").to_mask();
    write(root.path(), &[("sys/devices/virtual/workqueue/cpumask", &mask)]);
    for cpu in 0..4096 {
        write(root.path(), &[(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"), "powersave\n")]);
    }
    let check = check(root.path());
    assert_eq!(check.choice.cpus.to_string(), "1-4095");
    is(&check, Severity::Warning, Area::Deferred, "may run on CPUs 1-4095");
    is(&check, Severity::Warning, Area::Power, "the governor powersave of  changes the frequency of CPUs 1-4095");
    is(&check, Severity::Warning, Area::Irq, "1 interrupt is handled on CPUs 1-4095: nvme (77)");
    is(&check, Severity::Warning, Area::Isolation, "do not agree: CPU 0 is not in all");
    assert_eq!(check.count(Severity::Error), 0, "{:#?}", check.findings.iter().map(|it| &it.title).collect::<Vec<_>>());
}

#[test]
fn ticks_that_were_counted() {
    let root = quiet();
    let count = |cpu, interrupts, from| TickCount {
        cpu: CpuId::new(cpu),
        interrupts,
        are_ticks: false,
        during: Nanos::from_secs(1),
        from,
    };
    let measured = |preempted| TicksFrom::Measured { preempted };
    let check_with = |ticks: &[TickCount]| super::check(root.path(), choose(root.path(), None).unwrap(), ticks);
    let check = check_with(&[count(1, 2, measured(0)), count(2, 1000, measured(1)), count(3, 1000, measured(400))]);
    is(&check, Severity::Fine, Area::Tick, "the tick is gone on CPU 1: 2 timer interrupts a second");
    is(&check, Severity::Error, Area::Tick, "the tick runs on CPU 2, although nohz_full");
    is(&check, Severity::Warning, Area::Tick, "the tick runs on CPU 3, as other threads ran there, too");
    assert!(found(&check, "although nohz_full").noise.contains(&NoiseSource::from(Known::LocalTimer)));
    write(root.path(), &[("sys/devices/system/cpu/nohz_full", "1\n")]);
    let check = check_with(&[
        count(2, 250, TicksFrom::Recorded),
        count(3, 251, TicksFrom::Recorded),
        count(0, 999, measured(0)),
    ]);
    is(
        &check,
        Severity::Warning,
        Area::Tick,
        "the tick runs on CPUs 2-3, while a thread runs: 250 to 251 timer interrupts",
    );
    // Other CPUs than those in question do not matter.
    assert!(!check.findings.iter().any(|it| it.title.contains("999")));
    // Timer interrupts more frequent than any tick are not called the tick, unless the kernel names its ticks.
    let often = count(2, 2_000, measured(0));
    let check = check_with(&[often, TickCount { are_ticks: true, ..count(3, 250, measured(0)) }]);
    is(&check, Severity::Note, Area::Tick, "not only the tick interrupts CPU 2");
    is(&check, Severity::Warning, Area::Tick, "the tick runs on CPU 3, while a thread runs: 250 ticks a second");
}

#[test]
fn what_cannot_be_read_or_understood_is_said_and_nothing_more() {
    let root = quiet();
    let unreadable = root.path().join("sys/kernel/tracing/set_event");
    // Root can read every file, so a directory in its place simulates an unreadable one.
    fs::remove_file(&unreadable).unwrap();
    fs::create_dir(&unreadable).unwrap();
    let garbage =
        ["proc/irq/default_smp_affinity", "sys/devices/virtual/workqueue/cpumask", "proc/sys/kernel/watchdog_cpumask"];
    let numbers = ["proc/sys/vm/stat_interval", "sys/kernel/mm/ksm/run", "proc/sys/kernel/sched_rt_runtime_us"];
    for name in garbage.into_iter().chain(numbers) {
        write(root.path(), &[(name, "\u{0}garbage\u{fffd}\n")]);
    }
    let check = check(root.path());
    for name in garbage.into_iter().chain(numbers).chain(["sys/kernel/tracing/set_event"]) {
        let path = format!("/{name}");
        let it = check.findings.iter().find(|it| it.evidence.iter().any(|seen| seen.path == path));
        assert_eq!(it.map(|it| it.severity), Some(Severity::Note), "{name}: {it:#?}");
    }
    assert_eq!(check.worst(), Some(Severity::Note), "{:#?}", check.findings);
}

#[test]
fn a_file_that_only_root_may_read() {
    let root = quiet();
    let path = root.path().join("proc/sys/vm/stat_interval");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        // Root can read everything, so there must be no finding.
        assert_eq!(check(root.path()).worst(), Some(Severity::Fine));
        return;
    }
    let check = check(root.path());
    let it = found(&check, "a setting of the kernel could not be read");
    assert_eq!((it.severity, it.fix.as_ref().unwrap().text.as_str()), (Severity::Note, "run becalm as root"));
}

#[test]
fn a_machine_that_tells_nothing() {
    let root = tempfile::tempdir().unwrap();
    assert!(choose(root.path(), None).unwrap_err().to_string().contains("sys/devices/system/cpu/online"));
    write(root.path(), &[("sys/devices/system/cpu/online", "0-1\n")]);
    let check = check(root.path());
    assert_eq!(check.choice.cpus.to_string(), "1");
    assert!(check.findings.iter().any(|it| it.severity == Severity::Note && it.evidence[0].path == "/proc/cmdline"));
    assert_eq!(check.count(Severity::Error), 0, "{:#?}", check.findings);
}

#[test]
fn cpus_that_do_not_run_are_refused() {
    let root = quiet();
    let error = choose(root.path(), Some(&list("2-9"))).unwrap_err().to_string();
    assert_eq!(error, "CPUs 4-9 are not online; online are 0-3");
    assert!(choose(root.path(), Some(&list(""))).is_err());
    let dead = tempfile::tempdir().unwrap();
    write(dead.path(), &[("sys/devices/system/cpu/online", "\n")]);
    assert!(choose(dead.path(), None).unwrap_err().to_string().contains("no CPU is online"));
    assert_eq!(choose(root.path(), Some(&list("2"))).unwrap().others.to_string(), "0-1,3");
}

#[test]
fn costs_rank_findings_of_one_severity() {
    let root = quiet();
    write(
        root.path(),
        &[
            ("sys/kernel/mm/ksm/run", "1\n"),
            ("proc/irq/36/smp_affinity_list", "1\n"),
            ("proc/irq/36/virtio1/.keep", ""),
        ],
    );
    let mut check = check(root.path());
    let source = |kind, name: &str, total| RecordedSource {
        cpu: CpuId::new(1),
        kind,
        source: name.to_owned(),
        count: 1,
        total: Nanos::new(total),
    };
    let observed = vec![(CpuId::new(1), Nanos::from_secs(1))];
    let sources = vec![source(Kind::Irq, "virtio1", 4_000_000), source(Kind::Kthread, "ksmd", 9_000_000)];
    add_costs(&mut check, &RecordedNoise { observed, sources });
    let warnings: Vec<&Finding> = check.findings.iter().filter(|it| it.severity == Severity::Warning).collect();
    assert!(warnings[0].title.contains("ksmd") && warnings[1].title.contains("virtio1"), "{warnings:#?}");
    let cost = warnings[1].cost.as_ref().unwrap();
    assert!((cost.ratio - 0.004).abs() < 1e-12 && cost.sources[0].source == "virtio1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_command_line_and_no_file_makes_it_panic(line in "([a-z_]{0,9}=?|isolcpus=|nohz_full=|rcu_nocbs=|irqaffinity=|[0-9a-zN,:/-]{0,8}|\"| ){0,12}", file in "\\PC{0,20}") {
        let root = quiet();
        let choice = choose(root.path(), Some(&list("1-2"))).unwrap();
        write(root.path(), &[("proc/cmdline", &line)]);
        for name in ["proc/swaps", "proc/cpuinfo", "proc/self/mountinfo", "proc/stat", "boot/config-6.12.9", "proc/irq/9/smp_affinity_list",
            "sys/devices/system/cpu/isolated", "sys/devices/system/cpu/possible", "proc/2/task/2/stat", "proc/sys/kernel/numa_balancing"] {
            write(root.path(), &[(name, &file)]);
        }
        let check = super::check(root.path(), choice, &[]);
        prop_assert!(!check.findings.is_empty());
    }
}

/// A clock is a hypervisor's only if it has the name of one, not because there is a hypervisor.
#[test]
fn only_clocks_of_hypervisors_are_offered_by_them() {
    let clocks = "sys/devices/system/clocksource/clocksource0";
    for (flags, clock, severity, title) in [
        ("tsc hypervisor", "hpet", Severity::Warning, "the kernel keeps time with hpet: each reading is slow"),
        ("tsc hypervisor", "acpi_pm", Severity::Warning, "the kernel keeps time with acpi_pm: each reading is slow"),
        (
            "tsc hypervisor",
            "kvm-clock",
            Severity::Note,
            "the kernel keeps time with kvm-clock, which kvm offers, not with the TSC",
        ),
        (
            "tsc",
            "hpet",
            Severity::Warning,
            "the kernel found the TSC unstable and keeps time with hpet: each reading is slow",
        ),
    ] {
        let root = quiet();
        write(
            root.path(),
            &[
                ("proc/cpuinfo", &format!("model name : X\nflags : {flags}\n")),
                (&format!("{clocks}/current_clocksource"), &format!("{clock}\n")),
                (&format!("{clocks}/available_clocksource"), &format!("{clock} \n")),
            ],
        );
        let check = check(root.path());
        let found = check.findings.iter().find(|finding| finding.area == Area::Clock).unwrap();
        assert_eq!((found.severity, found.title.as_str()), (severity, title));
    }
}

/// An unreadable file is named, and the information from others is kept.
#[test]
fn a_file_that_cannot_be_read_costs_no_other() {
    let root = quiet();
    let status = |text: &str| write(root.path(), &[("proc/4/task/4/status", text)]);
    let stray = "4 (stray) S 2 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n";
    write(root.path(), &[("proc/4/task/4/stat", stray)]);
    status("Cpus_allowed_list:\t0-3\n");
    let titles = |root: &Path| -> Vec<String> {
        let is_of_area = |finding: &&Finding| matches!(finding.area, Area::Tasks | Area::Isolation);
        check(root).findings.iter().filter(is_of_area).map(|finding| finding.title.clone()).collect()
    };
    let before = titles(root.path());
    assert!(before.iter().any(|title| title.contains("stray")), "{before:?}");
    write(
        root.path(),
        &[
            ("proc/5/task/5/stat", "5 (odd"),
            ("proc/6/task/6/stat", &stray.replace('4', "6")),
            ("proc/6/task/6/status", "Name:\todd\n"),
            ("sys/devices/system/cpu/possible", "all\n"),
        ],
    );
    let mut after = titles(root.path());
    for named in [
        "it is not known where 2 threads may run, so they were not checked",
        "a list of CPUs could not be understood, so it was not checked",
    ] {
        let at = after.iter().position(|title| title == named);
        after.remove(at.unwrap_or_else(|| panic!("{named}: {after:?}")));
    }
    assert_eq!(after, before);
}
