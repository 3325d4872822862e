//! Equality of a knob's values, and the permitted knobs.

use std::path::{Component, Path};

use becalm_linux::procfs::mountinfo::mounts;
use becalm_units::CpuList;

use crate::{Knob, Meaning};

/// Whether two texts are the same value of a knob: the kernel prints values in its own format.
///
/// For a thread, only its online CPUs count: the kernel forgets the others.
pub(crate) fn same(knob: &Knob, a: &str, b: &str, online: &CpuList) -> bool {
    let (a, b) = (a.trim(), b.trim());
    let lists = |read: fn(&str) -> Option<CpuList>| read(a).zip(read(b));
    let list = |text: &str| text.parse::<CpuList>().ok();
    let equal = match knob {
        Knob::File { meaning: Meaning::CpuList, .. } => lists(list).map(|(a, b)| a == b),
        Knob::File { meaning: Meaning::CpuMask, .. } => {
            lists(|text| CpuList::from_mask(text).ok()).map(|(a, b)| a == b)
        }
        Knob::File { meaning: Meaning::Choice, .. } => Some(knob.value(a) == knob.value(b)),
        Knob::Affinity { .. } => lists(list).map(|(a, b)| a.intersection(online) == b.intersection(online)),
        Knob::Property { .. } => {
            // systemd separates the parts of a CPU list by blanks.
            let list = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(",").parse::<CpuList>().ok();
            list(a).zip(list(b)).map(|(a, b)| a == b)
        }
        _ => None,
    };
    equal.unwrap_or(a == b)
}

/// Whether a thread may run on exactly its original CPUs, including offline ones; true for other knobs.
pub(crate) fn is_whole(knob: &Knob, now: &str, original: &str) -> bool {
    let list = |text: &str| text.trim().parse::<CpuList>().ok();
    !matches!(knob, Knob::Affinity { .. }) || list(now) == list(original)
}

/// The files changed by the families outside of control groups; `*` stands for any part of a name without a slash.
const FILES: [&str; 22] = [
    "/proc/irq/default_smp_affinity",
    "/proc/irq/*/smp_affinity_list",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/vm/stat_interval",
    "/sys/class/net/*/queues/rx-*/rps_cpus",
    "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/online",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
    "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
];

/// The files of control groups changed by the families.
const GROUP_FILES: [&str; 4] = ["cpuset.cpus", "cpuset.mems", "cpuset.cpus.partition", "cpuset.sched_load_balance"];

/// The groups that they create, and the systemd units that they change.
const GROUPS: [&str; 3] = ["becalm", "becalm.rest", "becalm.slice"];
const UNITS: [&str; 4] = ["init.scope", "system.slice", "user.slice", "becalm.slice"];

/// Rejects a knob that no family changes: becalm did not write a journal that contains one.
///
/// # Errors
/// With the reason.
pub(crate) fn check_place(knob: &Knob, root: &Path) -> Result<(), String> {
    let known = match knob {
        Knob::File { path, .. } => FILES.iter().any(|pattern| fits(path, pattern)) || is_group_file(path, root),
        Knob::Group { path } => GROUPS.iter().any(|name| path.ends_with(name)) && is_control_group(path, root),
        Knob::Controller { path, name } => name == "cpuset" && is_control_group(path, root),
        Knob::Property { unit, name } => UNITS.contains(&unit.as_str()) && name == "AllowedCPUs",
        Knob::Unit { unit } => unit == "becalm.slice",
        Knob::Affinity { .. } => true,
    };
    if known { Ok(()) } else { Err(format!("becalm tune never changes {knob}, so it is left alone")) }
}

fn fits(path: &Path, pattern: &str) -> bool {
    let Some(path) = path.to_str() else { return false };
    let fits = |(part, pattern): (&str, &str)| match pattern.split_once('*') {
        Some((head, "")) => part.strip_prefix(head).is_some_and(|rest| !matches!(rest, "" | "." | "..")),
        _ => part == pattern,
    };
    path.split('/').count() == pattern.split('/').count() && path.split('/').zip(pattern.split('/')).all(fits)
}

fn is_group_file(path: &Path, root: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    GROUP_FILES.contains(&name) && path.parent().is_some_and(|group| is_control_group(group, root))
}

fn is_control_group(path: &Path, root: &Path) -> bool {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_group = |kind: &str| matches!(kind, "cgroup" | "cgroup2" | "cpuset");
    let below = || mounts(root).unwrap_or_default().into_iter().filter(|mount| is_group(&mount.kind));
    plain && below().any(|mount| path.starts_with(&mount.point))
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_units::CpuId;
    use proptest::prelude::*;

    fn cpus(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    #[test]
    fn values_are_compared_by_what_they_mean() {
        let online = cpus("0-3");
        let same = |knob: &Knob, a: &str, b: &str| super::same(knob, a, b, &online);
        let list = Knob::cpu_list("/x");
        assert!(same(&list, "0,1,2\n", "0-2") && !same(&list, "0-2", "0-3") && same(&list, "\n", ""));
        let mask = Knob::cpu_mask("/x");
        assert!(same(&mask, "00000003", "3\n") && same(&mask, "00000000,00000003", "3") && !same(&mask, "3", "7"));
        let choice = Knob::choice("/x");
        assert!(same(&choice, "always [madvise] never\n", "madvise") && !same(&choice, "[always] never", "never"));
        let task = Knob::Affinity { tid: 1, start_ticks: 0, comm: "init".into() };
        assert!(same(&task, "0-127", "0-3") && !same(&task, "0-127", "0-2"));
        let property = Knob::Property { unit: "system.slice".into(), name: "AllowedCPUs".into() };
        assert!(same(&property, "0-1 3", "0,1,3") && same(&property, "", ""));
        assert!(same(&Knob::word("/x"), "root\n", "root") && !same(&Knob::word("/x"), "root", "root invalid (x)"));
        // Values that cannot be parsed are compared as text.
        assert!(same(&list, "what\n", "what") && !same(&list, "what", "0"));
    }

    #[test]
    fn only_what_families_change_is_brought_back() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        std::fs::write(
            root.path().join("proc/self/mountinfo"),
            "42 23 0:13 / /dev/cpuset rw,relatime shared:7 - cgroup cpuset rw,cpuset\n",
        )
        .unwrap();
        let check = |knob: &Knob| check_place(knob, root.path());
        for path in [
            "/proc/sys/vm/stat_interval",
            "/proc/irq/1/smp_affinity_list",
            "/sys/class/net/eth0.1/queues/rx-0/rps_cpus",
            "/sys/devices/system/cpu/cpu17/cpuidle/state3/disable",
            "/dev/cpuset/becalm/cpuset.cpus",
            "/dev/cpuset/cpuset.sched_load_balance",
        ] {
            assert_eq!(check(&Knob::word(path)), Ok(()), "{path}");
        }
        for path in [
            "/etc/shadow",
            // With these a user could become root.
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/sys/kernel/uevent_helper",
            "/dev/cpuset/release_agent",
            "/dev/cpuset/a/cgroup.procs",
            "/proc/sys/vm/../kernel/core_pattern",
            "/proc/irq/../smp_affinity_list",
            "/proc/irq//smp_affinity_list",
            "/dev/cpuset/../../etc/cpuset.cpus",
            "/dev/cpusets/cpuset.cpus",
            "/tmp/cpuset.cpus",
            "proc/sys/vm/stat_interval",
            "/proc/sys/vm/stat_interval/",
            "/x/proc/sys/vm/stat_interval",
        ] {
            assert!(check(&Knob::word(path)).unwrap_err().contains("never changes"), "{path}");
        }
        let group = |path: &str| check(&Knob::Group { path: path.into() });
        assert!(group("/dev/cpuset/becalm").is_ok() && group("/dev/cpuset/becalm.rest").is_ok());
        assert!(group("/dev/cpuset/docker").is_err() && group("/tmp/becalm").is_err());
        let controller = |name: &str| check(&Knob::Controller { path: "/dev/cpuset".into(), name: name.to_owned() });
        assert!(controller("cpuset").is_ok() && controller("memory").is_err());
        let unit = |unit: &str| check(&Knob::Unit { unit: unit.to_owned() });
        assert!(unit("becalm.slice").is_ok() && unit("--root=/x").is_err() && unit("sshd.service").is_err());
        let property = |unit: &str, name: &str| check(&Knob::Property { unit: unit.to_owned(), name: name.to_owned() });
        assert!(property("system.slice", "AllowedCPUs").is_ok() && property("-x", "AllowedCPUs").is_err());
        assert!(property("system.slice", "ExecStart").is_err() && property("sshd.service", "AllowedCPUs").is_err());
    }

    proptest! {
        #[test]
        fn masks_read_back(ids in proptest::collection::btree_set(0_u32..5000, 0..40)) {
            let list: CpuList = ids.into_iter().map(CpuId::new).collect();
            prop_assert_eq!(CpuList::from_mask(&list.to_mask()).ok(), Some(list));
        }

        #[test]
        fn comparing_never_panics(a in "[0-9a-f,\\[\\] -]{0,12}", b in "[0-9a-f,\\[\\] -]{0,12}") {
            for knob in [Knob::word("/x"), Knob::cpu_list("/x"), Knob::cpu_mask("/x"), Knob::choice("/x")] {
                prop_assert!(same(&knob, &a, &a, &CpuList::default()));
                let _ = same(&knob, &a, &b, &CpuList::default());
            }
        }
    }
}
