//! Cpuset partitions: control groups that take CPUs out of their parents', and out of load balancing.
//!
//! Version 2 has `cpuset.cpus.partition`; in version 1, they are groups with exclusive CPUs that are not balanced.

use std::path::{Path, PathBuf};

use becalm_units::CpuList;

use crate::file::{self, FileError, optional, parse, parse_cpus, path_below};
use crate::procfs::mountinfo::mounts;

/// A control group with CPUs of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partition {
    /// The group's directory, as seen from the machine's root.
    pub group: PathBuf,
    /// The kernel's state: `isolated`, `root`, or `isolated invalid (REASON)`; in version 1 `isolated`.
    pub state: String,
    /// The CPUs that the group has now.
    pub cpus: CpuList,
}

impl Partition {
    /// Whether its CPUs are excluded from load balancing.
    pub fn is_isolated(&self) -> bool {
        self.state == "isolated"
    }
}

/// The maximum depth of groups to search: partitions are at the top, because the parent of each must be one.
const DEEPEST: usize = 6;

/// Every partition of the machine except the root, including invalid ones; empty without a mount. Fails if the mounts, a group's directory or one of
/// its files cannot be read.
pub fn partitions(root: &Path) -> Result<Vec<Partition>, FileError> {
    let mut found = Vec::new();
    for mount in optional(mounts(root))?.unwrap_or_default() {
        match mount.kind.as_str() {
            "cgroup2" => descend(root, &mount.point, DEEPEST, &mut found, &partition_v2)?,
            "cgroup" if mount.has_option("cpuset") => descend(root, &mount.point, DEEPEST, &mut found, &partition_v1)?,
            _ => {}
        }
    }
    found.sort_unstable_by(|a, b| a.group.cmp(&b.group));
    found.dedup();
    Ok(found)
}

type PartitionReader = dyn Fn(&Path, &Path) -> Result<Option<Partition>, FileError>;

fn descend(
    root: &Path,
    group: &Path,
    deeper: usize,
    found: &mut Vec<Partition>,
    read_partition: &PartitionReader,
) -> Result<(), FileError> {
    for name in file::names(root, group)? {
        let child = group.join(&name);
        if name.contains('.') && name.starts_with("cpu") || !path_below(root, &child).is_dir() {
            continue;
        }
        found.extend(read_partition(root, &child)?);
        if deeper > 0 {
            descend(root, &child, deeper - 1, found, read_partition)?;
        }
    }
    Ok(())
}

fn partition_v2(root: &Path, group: &Path) -> Result<Option<Partition>, FileError> {
    let state = file::text(root, group.join("cpuset.cpus.partition"))?;
    let Some(state) = state.filter(|state| state != "member" && !state.is_empty()) else { return Ok(None) };
    let cpus = list(root, &group.join("cpuset.cpus.effective"))?;
    Ok(Some(Partition { group: group.to_owned(), state, cpus }))
}

fn partition_v1(root: &Path, group: &Path) -> Result<Option<Partition>, FileError> {
    let is =
        |name: &str, wanted: &str| Ok::<_, FileError>(file::text(root, group.join(name))?.as_deref() == Some(wanted));
    if !is("cpuset.cpu_exclusive", "1")? || !is("cpuset.sched_load_balance", "0")? {
        return Ok(None);
    }
    let cpus = list(root, &group.join("cpuset.cpus"))?;
    Ok(Some(Partition { group: group.to_owned(), state: "isolated".to_owned(), cpus }))
}

fn list(root: &Path, path: &Path) -> Result<CpuList, FileError> {
    Ok(optional(parse(root, path, "the CPUs of a control group", parse_cpus))?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn partitions_of_both_versions_are_found() {
        let root = tempfile::tempdir().unwrap();
        assert!(partitions(root.path()).unwrap().is_empty());
        write_tree(
            root.path(),
            &[
                (
                    "proc/self/mountinfo",
                    "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n1 2 0:1 / /v1 rw - cgroup none rw,cpuset\n",
                ),
                ("sys/fs/cgroup/cpuset.cpus.isolated", "2-3\n"),
                ("sys/fs/cgroup/system.slice/cpuset.cpus.partition", "member\n"),
                ("sys/fs/cgroup/a/rt/cpuset.cpus.partition", "isolated\n"),
                ("sys/fs/cgroup/a/rt/cpuset.cpus.effective", "2-3\n"),
                ("sys/fs/cgroup/b/cpuset.cpus.partition", "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n"),
                ("v1/quiet/cpuset.cpu_exclusive", "1\n"),
                ("v1/quiet/cpuset.sched_load_balance", "0\n"),
                ("v1/quiet/cpuset.cpus", "5\n"),
                ("v1/other/cpuset.cpu_exclusive", "0\n"),
            ],
        );
        let found = partitions(root.path()).unwrap();
        let seen: Vec<_> =
            found.iter().map(|it| (it.group.to_str().unwrap(), it.is_isolated(), it.cpus.len())).collect();
        assert_eq!(seen, [("/sys/fs/cgroup/a/rt", true, 2), ("/sys/fs/cgroup/b", false, 0), ("/v1/quiet", true, 1)]);
    }
}
