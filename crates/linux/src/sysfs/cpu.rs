//! /sys/devices/system/cpu: the existing, isolated and sibling CPUs, frequency and idle policy.

use std::path::Path;

use becalm_units::{CpuId, CpuList, Nanos};

use crate::file::{FileError, known, optional, parse, parse_cpus, read, value};

/// The lists of CPUs. Empty for features that the kernel lacks.
#[derive(Debug, Default)]
pub struct CpuSets {
    /// CPUs that the scheduler can use now.
    pub online: CpuList,
    /// CPUs that the kernel has room for, though they may never be plugged in; the online ones if it does not report them.
    pub possible: CpuList,
    /// CPUs that are plugged in, online or not; the online ones if the kernel does not report them.
    pub present: CpuList,
    /// Excluded from load balancing at boot (`isolcpus`).
    pub isolated: CpuList,
    /// Without a tick while one task runs (`nohz_full`).
    pub nohz_full: CpuList,
    /// Errors for unknown lists above, which then have the value for an unreported one.
    pub unread: Vec<FileError>,
}

impl CpuSets {
    /// Reads the lists. An unreadable one does not affect the others.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        let online = online(root)?;
        let mut unread = Vec::new();
        let mut told = |name| known(optional(list(root, name)), &mut unread).flatten();
        Ok(Self {
            possible: told("possible").unwrap_or_else(|| online.clone()),
            present: told("present").unwrap_or_else(|| online.clone()),
            isolated: told("isolated").unwrap_or_default(),
            nohz_full: told("nohz_full").unwrap_or_default(),
            unread,
            online,
        })
    }
}

/// CPUs that the scheduler can use now. Fails if the list cannot be read, or is invalid.
pub fn online(root: &Path) -> Result<CpuList, FileError> {
    list(root, "online")
}

fn list(root: &Path, name: &str) -> Result<CpuList, FileError> {
    cpu_list(root, &format!("sys/devices/system/cpu/{name}"))
}

/// A file that holds a list of CPUs. The kernel writes `(null)` for a list that was never set up.
fn cpu_list(root: &Path, name: &str) -> Result<CpuList, FileError> {
    parse(root, name, "a list of CPUs", |text| match text.trim() {
        "(null)" => Ok(CpuList::default()),
        text => parse_cpus(text),
    })
}

/// The NUMA node of a CPU; `None` if the kernel has no nodes, or does not report it.
pub fn node(root: &Path, cpu: CpuId) -> Option<u32> {
    let entries = std::fs::read_dir(root.join(format!("sys/devices/system/cpu/cpu{cpu}"))).ok()?;
    let number = |name: &str| name.strip_prefix("node")?.parse().ok();
    entries.flatten().find_map(|entry| number(entry.file_name().to_str()?))
}

/// The hardware threads of a CPU's core, including itself; `None` if the CPU is offline or the kernel does not report them. Fails if the file exists
/// and is not a list.
pub fn siblings(root: &Path, cpu: CpuId) -> Result<Option<CpuList>, FileError> {
    optional(cpu_list(root, &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")))
}

/// The properties that can distinguish two CPUs for a thread running there: those of the core, and the kernel's settings for the CPU.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CpuKind {
    /// The core's capacity relative to that of the largest one, 1024; `None` if all cores are equal and the kernel does not report it.
    pub capacity: Option<u32>,
    /// The highest frequency, in kHz.
    pub highest_khz: Option<u64>,
    /// The number of hardware threads of the core.
    pub threads: usize,
    /// Whether the CPU was excluded from load balancing at boot.
    pub isolated: bool,
    /// Whether it has no tick while one task runs.
    pub tickless: bool,
    /// The policy of its frequency.
    pub frequency: Option<FrequencyPolicy>,
}

/// The policy that chooses a CPU's frequency.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FrequencyPolicy {
    /// The driver; empty if the kernel names none.
    pub driver: String,
    /// The governor.
    pub governor: String,
}

impl CpuKind {
    /// Reads the kind of a CPU. Unreported properties are empty, and make no difference.
    pub fn read(root: &Path, cpu: CpuId) -> Self {
        let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/{name}");
        let sets = CpuSets::read(root).unwrap_or_default();
        Self {
            capacity: value(root, file("cpu_capacity"), "a core's capacity").ok(),
            highest_khz: value(root, file("cpufreq/cpuinfo_max_freq"), "a CPU's highest frequency").ok(),
            threads: siblings(root, cpu).ok().flatten().map_or(1, |threads| threads.len()),
            isolated: sets.isolated.contains(cpu),
            tickless: sets.nohz_full.contains(cpu),
            frequency: frequency_policy(root, cpu).ok().flatten(),
        }
    }
}

/// The policy that chooses a CPU's frequency: driver and governor. `None` without frequency scaling.
pub fn frequency_policy(root: &Path, cpu: CpuId) -> Result<Option<FrequencyPolicy>, FileError> {
    let file = |name: &str| {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
        optional(read(root, &path, "the frequency policy"))
    };
    let Some(governor) = file("scaling_governor")? else { return Ok(None) };
    let driver = file("scaling_driver")?.unwrap_or_default();
    Ok(Some(FrequencyPolicy { driver: driver.trim().to_owned(), governor: governor.trim().to_owned() }))
}

/// A sleep state of an idle CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdleState {
    /// Its name: `POLL`, `C1`, `C6`.
    pub name: String,
    /// The wake-up latency.
    pub exit_latency: Nanos,
    /// Whether it was disabled.
    pub disabled: bool,
}

/// The idle states of a CPU, the lightest first; empty on a kernel without an idle driver. Fails if a state's files cannot be read, or are not
/// numbers.
pub fn idle_states(root: &Path, cpu: CpuId) -> Result<Vec<IdleState>, FileError> {
    let mut states = Vec::new();
    // The kernel numbers them without gaps, 10 at most (CPUIDLE_STATE_MAX).
    for number in 0..10 {
        let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}/{name}");
        let Some(name) = optional(read(root, file("name"), "an idle state"))? else { break };
        let latency: u32 = value(root, file("latency"), "an idle state's latency")?;
        let disable: u64 = value(root, file("disable"), "whether an idle state is off")?;
        states.push(IdleState {
            name: name.trim().to_owned(),
            exit_latency: Nanos::from_micros(latency.into()),
            disabled: disable != 0,
        });
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn kinds_differ_by_core_and_by_how_the_kernel_treats_the_cpu() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("sys/devices/system/cpu");
        let write = |name: String, text: &str| {
            let path = base.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("online".to_owned(), "0-4\n");
        write("isolated".to_owned(), "4\n");
        for (cpu, capacity, siblings) in [(0, 1024, "0-1"), (1, 1024, "0-1"), (2, 640, "2"), (4, 1024, "0-1")] {
            write(format!("cpu{cpu}/cpu_capacity"), &format!("{capacity}\n"));
            write(format!("cpu{cpu}/topology/thread_siblings_list"), siblings);
        }
        let kind = |cpu| CpuKind::read(root.path(), CpuId::new(cpu));
        assert_eq!(kind(0), kind(1));
        assert_eq!((kind(0).capacity, kind(0).threads, kind(2).threads), (Some(1024), 2, 1));
        assert!(kind(4) != kind(0) && kind(4) == CpuKind { isolated: true, ..kind(0) });
        // Two CPUs about which nothing is known are of one kind.
        assert_eq!(kind(3), CpuKind { threads: 1, ..CpuKind::default() });
    }

    #[test]
    fn a_cpu_may_have_a_node() {
        let root = tempfile::tempdir().unwrap();
        let base = "sys/devices/system/cpu";
        write_tree(root.path(), &[(&format!("{base}/cpu3/node12/cpumap"), "8\n"), (&format!("{base}/cpu4/nodes"), "")]);
        let [known, missing, unknown] = [3, 4, 5].map(|cpu| node(root.path(), CpuId::new(cpu)));
        assert_eq!((known, missing, unknown), (Some(12), None, None));
    }

    #[test]
    fn the_lists_of_cpus_are_read() {
        let root = tempfile::tempdir().unwrap();
        let base = "sys/devices/system/cpu";
        write_tree(
            root.path(),
            &[
                (&format!("{base}/online"), "0-1,3\n"),
                (&format!("{base}/possible"), "0-7\n"),
                (&format!("{base}/isolated"), "\n"),
                (&format!("{base}/nohz_full"), "  (null)\n"),
                (&format!("{base}/cpu3/topology/thread_siblings_list"), "1,3\n"),
                (&format!("{base}/cpu3/cpufreq/scaling_governor"), "powersave\n"),
                (&format!("{base}/cpu3/cpuidle/state0/name"), "C6\n"),
                (&format!("{base}/cpu3/cpuidle/state0/latency"), "133\n"),
                (&format!("{base}/cpu3/cpuidle/state0/disable"), "0\n"),
            ],
        );
        let sets = CpuSets::read(root.path()).unwrap();
        assert_eq!((sets.online.to_string(), sets.possible.len()), ("0-1,3".to_owned(), 8));
        assert_eq!(sets.present, sets.online);
        assert!(sets.isolated.is_empty() && sets.nohz_full.is_empty());
        let cpu = CpuId::new(3);
        assert_eq!(siblings(root.path(), cpu).unwrap().unwrap().to_string(), "1,3");
        assert_eq!(siblings(root.path(), CpuId::new(2)).unwrap(), None);
        assert_eq!(
            frequency_policy(root.path(), cpu).unwrap(),
            Some(FrequencyPolicy { driver: String::new(), governor: "powersave".to_owned() })
        );
        let state = IdleState { name: "C6".into(), exit_latency: Nanos::from_micros(133), disabled: false };
        assert_eq!(idle_states(root.path(), cpu).unwrap(), [state]);
        // An unreadable list does not affect the others.
        write_tree(root.path(), &[(&format!("{base}/possible"), "some\n"), (&format!("{base}/isolated"), "3\n")]);
        let sets = CpuSets::read(root.path()).unwrap();
        assert!(sets.unread.len() == 1 && sets.unread[0].to_string().contains("/possible"), "{:?}", sets.unread);
        assert_eq!((sets.isolated.to_string(), sets.possible), ("3".to_owned(), sets.online));
        write_tree(root.path(), &[(&format!("{base}/online"), "all\n")]);
        assert!(CpuSets::read(root.path()).unwrap_err().to_string().contains("'all'"));
    }

    #[test]
    fn the_cpus_of_this_machine_are_read() {
        let sets = CpuSets::read(Path::new("/")).unwrap();
        assert!(!sets.online.is_empty() && sets.online.without(&sets.possible).is_empty());
    }
}
