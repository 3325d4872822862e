//! The control group of this process: which CPUs it may use, how much of them, and whether it may run in real time.
//!
//! Both versions are read. A limit of any ancestor applies, so all up to the root of the mount are checked; groups above the mount (outside a
//! container) are invisible.

use std::path::{Path, PathBuf};

use becalm_units::{CpuList, Nanos};

use crate::file::{FileError, FormatError, known, optional, parse, parse_cpus, path_below, value};
use crate::procfs::cgroup::{Membership, memberships, memberships_of};
use crate::procfs::mountinfo::{Mount, mounts};

/// The limits that apply to this process.
#[derive(Debug, Default)]
pub struct CgroupLimits {
    /// The CPUs of its cpuset; `None` without one.
    pub cpus: Option<CpuList>,
    /// The strictest limit on its CPU time.
    pub bandwidth: Option<Bandwidth>,
    /// The group of a v1 hierarchy without a real-time budget, which allows no real-time processes.
    pub no_realtime: Option<PathBuf>,
    /// Errors for groups with unknown limits.
    pub unread: Vec<FileError>,
}

/// The version of the control groups with this controller: 1 or 2; `None` if neither has it, or that cannot be read.
pub fn version(root: &Path, controller: &str) -> Option<u8> {
    let mounts = mounts(root).ok()?;
    if mounts.iter().any(|mount| mount.kind == "cgroup" && mount.has_option(controller)) {
        return Some(1);
    }
    let unified = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
    let controllers = std::fs::read_to_string(path_below(root, unified.point.join("cgroup.controllers"))).ok()?;
    controllers.split_whitespace().any(|known| known == controller).then_some(2)
}

/// The control groups that limit CPU time, in the version that this machine uses for it.
#[derive(Clone, Debug)]
pub struct CpuGroups {
    root: PathBuf,
    /// The mounts of the hierarchy; empty without one.
    mounts: Vec<Mount>,
    /// The controller of a v1 hierarchy; empty for v2.
    controller: &'static str,
}

/// The kernel's counts of a group that has a limit on CPU time: `cpu.stat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThrottleCounts {
    /// How many periods had threads that wanted to run.
    pub periods: u64,
    /// In how many of them the group had used up its time.
    pub throttled: u64,
    /// How long its threads were kept from running, summed over the CPUs.
    pub throttled_time: Nanos,
}

impl CpuGroups {
    /// Finds the hierarchy.
    pub fn find(root: &Path) -> Self {
        let mounts = mounts(root).unwrap_or_default();
        let is_v1 = mounts.iter().any(|mount| mount.kind == "cgroup" && mount.has_option("cpu"));
        Self { root: root.to_owned(), mounts, controller: if is_v1 { "cpu" } else { "" } }
    }

    /// The path of a process's group below the top of the hierarchy; empty for the topmost one, a process that is gone, or without groups.
    pub fn group_of(&self, pid: i32) -> String {
        let groups = memberships_of(&self.root, pid).unwrap_or_default();
        let is_it = |group: &&Membership| match self.controller {
            "" => group.controllers.is_empty(),
            controller => group.controllers.iter().any(|known| known == controller),
        };
        let path = groups.iter().find(is_it).map_or("", |group| group.path.as_str());
        if path == "/" { String::new() } else { path.to_owned() }
    }

    /// The counts of a group with a limit on CPU time; `None` without a limit, or if they cannot be read.
    pub fn throttling(&self, group: &str) -> Option<ThrottleCounts> {
        let controllers = if self.controller.is_empty() { Vec::new() } else { vec![self.controller.to_owned()] };
        let member = Membership { controllers, path: group.to_owned() };
        let folder = chain(&member, self.controller, &self.mounts)?.into_iter().next()?;
        let limit = match self.controller {
            "" => bandwidth_v2(&self.root, folder.clone()),
            _ => bandwidth_v1(&self.root, &folder),
        };
        limit.ok().flatten()?;
        let text = std::fs::read_to_string(path_below(&self.root, folder.join("cpu.stat"))).ok()?;
        Some(ThrottleCounts::parse(&text))
    }
}

impl ThrottleCounts {
    /// Skips other lines. Version 1 counts nanoseconds, version 2 microseconds.
    fn parse(text: &str) -> Self {
        let mut counts = Self::default();
        for (name, number) in text.lines().filter_map(|line| line.split_once(' ')) {
            let Ok(number) = number.trim().parse::<u64>() else { continue };
            match name {
                "nr_periods" => counts.periods = number,
                "nr_throttled" => counts.throttled = number,
                "throttled_time" => counts.throttled_time = Nanos::new(i64::try_from(number).unwrap_or(i64::MAX)),
                "throttled_usec" => counts.throttled_time = micros(i64::try_from(number).unwrap_or(i64::MAX)),
                _ => {}
            }
        }
        counts
    }

    /// The counts since an earlier look.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            throttled_time: self.throttled_time - earlier.throttled_time,
        }
    }
}

/// A limit on CPU time: when the processes of a group have used up the quota, they wait for the next period.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bandwidth {
    /// CPU time for all CPUs together.
    pub quota: Nanos,
    /// The period of the quota.
    pub period: Nanos,
    /// The directory of the group with the limit, as seen from the machine's root.
    pub group: PathBuf,
}

impl Bandwidth {
    /// The limit in CPUs.
    pub fn cpus(&self) -> f64 {
        self.quota.get() as f64 / self.period.get().max(1) as f64
    }
}

impl CgroupLimits {
    /// Reads the limits of this process. An unreadable file costs only its own limit. Fails if the process's groups or the mounts cannot be read.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        // A kernel without control groups has no such file.
        let Some(groups) = optional(memberships(root))? else { return Ok(Self::default()) };
        let mounts = mounts(root)?;
        let chain =
            |controller: &str| groups.iter().find_map(|group| chain(group, controller, &mounts)).unwrap_or_default();
        let (unified, mut limits) = (chain(""), Self::default());
        let unread = &mut limits.unread;
        limits.cpus = known(first(root, &unified, "cpuset.cpus.effective"), unread).flatten();
        if limits.cpus.is_none() {
            limits.cpus = known(first(root, &chain("cpuset"), "cpuset.effective_cpus"), unread).flatten();
        }
        for group in unified {
            limits.tighten(bandwidth_v2(root, group));
        }
        for group in chain("cpu") {
            limits.tighten(bandwidth_v1(root, &group));
            let realtime = known(number(root, &group.join("cpu.rt_runtime_us")), &mut limits.unread).flatten();
            if limits.no_realtime.is_none() && realtime == Some(0) {
                limits.no_realtime = Some(group);
            }
        }
        Ok(limits)
    }

    fn tighten(&mut self, found: Result<Option<Bandwidth>, FileError>) {
        let Some(found) = known(found, &mut self.unread).flatten() else { return };
        if self.bandwidth.as_ref().is_none_or(|known| found.cpus() < known.cpus()) {
            self.bandwidth = Some(found);
        }
    }
}

/// The directories of a group and its ancestors in the mounted hierarchy of a controller (empty for v2), innermost first.
fn chain(group: &Membership, controller: &str, mounts: &[Mount]) -> Option<Vec<PathBuf>> {
    let unified = controller.is_empty();
    let here = if unified { group.controllers.is_empty() } else { group.controllers.iter().any(|c| c == controller) };
    let mount = mounts.iter().rev().find(|mount| match mount.kind.as_str() {
        "cgroup2" => unified,
        "cgroup" => !unified && mount.has_option(controller),
        _ => false,
    });
    let mount = mount.filter(|_| here)?;
    // A bind mount shows only part of the hierarchy. A group outside of it has no directory here, as in a container that shares the host's cgroup
    // namespace; the top of the mount is then the container's own group.
    let relative = match Path::new(&group.path).strip_prefix(&mount.root) {
        Ok(relative) if !group.path.starts_with("/..") => relative,
        _ => Path::new(""),
    };
    // Joining components rather than paths leaves no trailing slash.
    let folder: PathBuf = mount.point.components().chain(relative.components()).collect();
    Some(folder.ancestors().take_while(|path| path.starts_with(&mount.point)).map(Path::to_owned).collect())
}

/// A list of CPUs from the innermost group that has the file: if a controller is not enabled for a group, its parent's settings apply.
fn first(root: &Path, groups: &[PathBuf], name: &str) -> Result<Option<CpuList>, FileError> {
    for group in groups {
        let path = group.join(name);
        let cpus = optional(parse(root, &path, "the CPUs of the control group", parse_cpus))?;
        if cpus.is_some() {
            return Ok(cpus);
        }
    }
    Ok(None)
}

/// `cpu.max`: `max 100000` or `50000 100000`, in microseconds.
fn bandwidth_v2(root: &Path, group: PathBuf) -> Result<Option<Bandwidth>, FileError> {
    let path = group.join("cpu.max");
    let limit = optional(parse(root, &path, "the limit on CPU time", |text| {
        let error = || FormatError::new("'QUOTA PERIOD' was expected", text.trim());
        let (quota, period) = text.trim().split_once(' ').ok_or_else(error)?;
        let micros = |text: &str| text.parse().map(micros).map_err(|_| error());
        if quota == "max" { Ok(None) } else { Ok(Some((micros(quota)?, micros(period)?))) }
    }))?;
    Ok(limit.flatten().map(|(quota, period)| Bandwidth { quota, period, group }))
}

fn bandwidth_v1(root: &Path, group: &Path) -> Result<Option<Bandwidth>, FileError> {
    let quota = number(root, &group.join("cpu.cfs_quota_us"))?.filter(|quota| *quota >= 0);
    let period = number(root, &group.join("cpu.cfs_period_us"))?;
    let limit = quota.zip(period);
    Ok(limit.map(|(quota, period)| Bandwidth { quota: micros(quota), period: micros(period), group: group.to_owned() }))
}

/// Saturates after 292 years, so no file can cause a panic.
fn micros(us: i64) -> Nanos {
    Nanos::from_micros(us.clamp(0, i64::MAX / 1_000))
}

fn number(root: &Path, path: &Path) -> Result<Option<i64>, FileError> {
    optional(value(root, path, "a limit of the control group"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn version_2_takes_the_strictest_ancestor() {
        let root = tempfile::tempdir().unwrap();
        write_tree(
            root.path(),
            &[
                ("proc/self/cgroup", "0::/a/b/c\n"),
                ("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n"),
                ("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
                ("sys/fs/cgroup/a/cpuset.cpus.effective", "2-3\n"),
                ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "200000 100000\n"),
                ("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n"),
            ],
        );
        let limits = CgroupLimits::read(root.path()).unwrap();
        assert_eq!(limits.cpus.unwrap().to_string(), "2-3");
        let bandwidth = limits.bandwidth.unwrap();
        assert_eq!((bandwidth.cpus(), bandwidth.group), (0.5, "/sys/fs/cgroup/a".into()));
    }

    #[test]
    fn version_1_and_containers() {
        let root = tempfile::tempdir().unwrap();
        write_tree(
            root.path(),
            &[
                ("proc/self/cgroup", "3:cpuset:/docker/x\n1:cpu,cpuacct:/docker/x\n0::/\n"),
                (
                    "proc/self/mountinfo",
                    "1 2 0:1 /docker/x /sys/fs/cgroup/cpu ro - cgroup none rw,cpu,cpuacct\n\
                 1 2 0:1 /docker/x /sys/fs/cgroup/cpuset ro - cgroup none rw,cpuset\n",
                ),
                ("sys/fs/cgroup/cpuset/cpuset.effective_cpus", "4\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/cpu/cpu.rt_runtime_us", "0\n"),
            ],
        );
        let limits = CgroupLimits::read(root.path()).unwrap();
        assert_eq!(limits.cpus.unwrap().to_string(), "4");
        assert_eq!(limits.bandwidth.unwrap().cpus(), 1.5);
        assert_eq!(limits.no_realtime, Some("/sys/fs/cgroup/cpu".into()));
        assert_eq!((version(root.path(), "cpu"), version(root.path(), "no such controller")), (Some(1), None));
    }

    #[test]
    fn a_group_without_limits_has_none() {
        let root = tempfile::tempdir().unwrap();
        let has_none = |limits: CgroupLimits| {
            let CgroupLimits { cpus, bandwidth, no_realtime, unread } = limits;
            (cpus, bandwidth, no_realtime, unread.len()) == (None, None, None, 0)
        };
        assert!(has_none(CgroupLimits::read(root.path()).unwrap()));
        write_tree(
            root.path(),
            &[
                ("proc/self/cgroup", "1:cpu:/../x\n"),
                ("proc/self/mountinfo", "1 2 0:1 / /c rw - cgroup none rw,cpu\n"),
                ("c/cpu.cfs_quota_us", "-1\n"),
                ("c/cpu.cfs_period_us", "100000\n"),
                ("c/cpu.rt_runtime_us", "950000\n"),
            ],
        );
        assert!(has_none(CgroupLimits::read(root.path()).unwrap()));
    }

    #[test]
    fn a_file_that_cannot_be_read_costs_only_its_limit() {
        let files = [
            ("proc/self/cgroup", "1:cpu:/a\n0::/a\n"),
            (
                "proc/self/mountinfo",
                "1 2 0:1 / /c rw - cgroup none rw,cpu\n1 2 0:1 / /u rw - cgroup2 none rw\n1 2 a fuse line\n",
            ),
            ("u/a/cpuset.cpus.effective", "1-3\n"),
            ("u/cpu.max", "50000 100000\n"),
            ("u/a/cpu.max", "20000 100000\n"),
            ("c/a/cpu.rt_runtime_us", "0\n"),
        ];
        for (broken, cpus, share, realtime) in [
            ("none", Some("1-3"), 0.2, true),
            ("u/a/cpuset.cpus.effective", None, 0.2, true),
            ("u/a/cpu.max", Some("1-3"), 0.5, true),
            ("c/a/cpu.cfs_quota_us", Some("1-3"), 0.2, true),
            ("c/a/cpu.rt_runtime_us", Some("1-3"), 0.2, false),
        ] {
            let root = tempfile::tempdir().unwrap();
            write_tree(root.path(), &files);
            write_tree(root.path(), &[(broken, "lots\n")]);
            let limits = CgroupLimits::read(root.path()).unwrap();
            let unread: Vec<String> = limits.unread.iter().map(ToString::to_string).collect();
            assert_eq!(unread.len(), usize::from(broken != "none"), "{unread:?}");
            assert!(unread.iter().all(|error| error.contains(broken)), "{unread:?}");
            assert_eq!(limits.cpus.map(|cpus| cpus.to_string()).as_deref(), cpus, "{broken}");
            assert_eq!(limits.bandwidth.unwrap().cpus(), share, "{broken}");
            assert_eq!(limits.no_realtime.is_some(), realtime, "{broken}");
        }
    }

    #[test]
    fn the_cgroup_of_this_process_is_read() {
        let limits = CgroupLimits::read(Path::new("/")).unwrap();
        assert!(limits.cpus.is_none_or(|cpus| !cpus.is_empty()));
    }
}
