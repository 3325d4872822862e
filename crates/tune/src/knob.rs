//! When two values of a knob mean the same, and which knobs there are.

use std::path::{Component, Path};

use becalm_linux::procfs::mountinfo::mounts;
use becalm_units::CpuList;

use crate::{Knob, Meaning};

/// Whether two texts are the same value of a knob, as the kernel prints values in its own way.
///
/// Of a thread's CPUs only those that are online count: the kernel forgets the others.
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
            // systemd separates the parts of a list of CPUs by blanks.
            let list = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(",").parse::<CpuList>().ok();
            list(a).zip(list(b)).map(|(a, b)| a == b)
        }
        _ => None,
    };
    equal.unwrap_or(a == b)
}

/// Where plans change files, and restoring brings them back. Control groups may be mounted elsewhere.
const PLACES: [&str; 3] = ["/proc/sys", "/proc/irq", "/sys"];

/// Refuses a knob that is no setting of the kernel or of systemd: a journal that names one was not written by becalm.
///
/// # Errors
/// Says why.
pub(crate) fn check_place(knob: &Knob, root: &Path) -> Result<(), String> {
    match knob {
        Knob::File { path, .. } | Knob::Group { path } | Knob::Controller { path, .. } => {
            let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
            let is_known = || PLACES.iter().any(|place| path.starts_with(place)) || is_control_group(path, root);
            if plain && path.is_absolute() && is_known() {
                return Ok(());
            }
            Err(format!("{} is no setting of the kernel, so it is left alone", path.display()))
        }
        // systemctl would take it for an option.
        Knob::Property { unit, name } if unit.starts_with('-') || name.starts_with('-') => {
            Err(format!("'{unit}' is no unit of systemd"))
        }
        Knob::Unit { unit } if unit.starts_with('-') => Err(format!("'{unit}' is no unit of systemd")),
        Knob::Affinity { .. } | Knob::Property { .. } | Knob::Unit { .. } => Ok(()),
    }
}

fn is_control_group(path: &Path, root: &Path) -> bool {
    let is_group = |kind: &str| matches!(kind, "cgroup" | "cgroup2" | "cpuset");
    mounts(root).unwrap_or_default().iter().any(|mount| is_group(&mount.kind) && path.starts_with(&mount.point))
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
        // What cannot be understood is compared as it is.
        assert!(same(&list, "what\n", "what") && !same(&list, "what", "0"));
    }

    #[test]
    fn only_settings_are_brought_back() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        std::fs::write(
            root.path().join("proc/self/mountinfo"),
            "42 23 0:13 / /dev/cpuset rw,relatime shared:7 - cgroup cpuset rw,cpuset\n",
        )
        .unwrap();
        let check = |knob: &Knob| check_place(knob, root.path());
        for path in
            ["/proc/sys/vm/stat_interval", "/sys/fs/cgroup/x", "/dev/cpuset/a/cpuset.cpus", "/proc/irq/1/smp_affinity"]
        {
            assert_eq!(check(&Knob::word(path)), Ok(()), "{path}");
        }
        for path in ["/etc/shadow", "/proc/sys/../../etc/shadow", "sys/x", "/system/x", "/proc/1/mem", "/dev/cpusets"] {
            assert!(check(&Knob::word(path)).unwrap_err().contains(path), "{path}");
            assert!(check(&Knob::Group { path: path.into() }).is_err(), "{path}");
        }
        let unit = |unit: &str| Knob::Unit { unit: unit.to_owned() };
        assert!(check(&unit("becalm.slice")).is_ok() && check(&unit("--root=/x")).is_err());
        let property = |unit: &str, name: &str| Knob::Property { unit: unit.to_owned(), name: name.to_owned() };
        assert!(check(&property("a.slice", "AllowedCPUs")).is_ok() && check(&property("-x", "AllowedCPUs")).is_err());
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
