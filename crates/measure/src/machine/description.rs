//! The machine's part of the node's document.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use becalm_linux::procfs::config::KernelConfig;
use becalm_linux::procfs::cpuinfo::CpuInfo;
use becalm_linux::procfs::{kernel, meminfo};
use becalm_linux::realtime::has_fair_servers;
use becalm_linux::sysfs;
use becalm_linux::sysfs::cache::{caches, data_levels};
use becalm_linux::sysfs::cgroup;
use becalm_model::node::{BUILD_OPTIONS, MachineDoc, Warning};
use becalm_model::{node_name, warning};
use becalm_units::{CpuId, CpuList};

/// A CPU list in sysfs; empty if the kernel has no such file.
pub fn cpu_list(root: &Path, name: &str) -> CpuList {
    let text = fs::read_to_string(root.join("sys/devices/system/cpu").join(name)).unwrap_or_default();
    // nohz_full reads "(null)" if the kernel supports it and was booted without it.
    text.trim().parse().unwrap_or_default()
}

/// The machine's name as a node of a bundle.
#[derive(Clone, Debug)]
pub struct Host {
    /// The host's name, reduced to what file names may contain, or `localhost`.
    pub node: String,
    /// A warning if the host's name could not be read.
    pub warning: Option<Warning>,
}

impl Host {
    /// Reads the host name below a root.
    pub fn read(root: &Path) -> Self {
        let (name, warning) = match kernel::hostname(root) {
            Ok(name) => (name, None),
            Err(error) => (String::new(), Some(warning::no_host_name(&error.to_string()))),
        };
        Self { node: node_name(&name), warning }
    }
}

/// The highest frequency that the kernel would set on a CPU; `None` if it does not control the frequency.
fn highest_hz(root: &Path, cpu: CpuId) -> Option<u64> {
    let path = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"));
    fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()?.checked_mul(1_000)
}

/// Describes the machine from the files below the root. Fields that cannot be read stay empty.
pub fn describe(root: &Path) -> MachineDoc {
    let processor = CpuInfo::read(root).unwrap_or_default();
    let online = cpu_list(root, "online");
    let first = online.iter().next();
    let caches = first.and_then(|cpu| caches(root, cpu).ok()).unwrap_or_default();
    MachineDoc {
        kernel: kernel::release(root).unwrap_or_default(),
        processor: processor.model,
        hypervisor: sysfs::machine::hypervisor(root).unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        cache_bytes: data_levels(&caches).into_iter().map(|(_, bytes)| bytes as u64).collect(),
        memory_bytes: meminfo::total_bytes(root).ok(),
        highest_hz: first.and_then(|cpu| highest_hz(root, cpu)),
        online,
        isolated: cpu_list(root, "isolated"),
        nohz_full: cpu_list(root, "nohz_full"),
        command_line: kernel::command_line(root).unwrap_or_default(),
        built_with: built_with(root),
        cpu_groups: cgroup::version(root, "cpu"),
        fair_servers: has_fair_servers(root),
    }
}

/// The build options on which advice depends.
fn built_with(root: &Path) -> BTreeMap<String, String> {
    let Some(config) = KernelConfig::read(root).ok().flatten() else { return BTreeMap::new() };
    let value = |option: &&str| ((*option).to_owned(), config.value(option).unwrap_or("n").to_owned());
    BUILD_OPTIONS.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_memory_and_frequency_are_told_where_they_are_known() {
        let root = tempfile::tempdir().unwrap();
        let bare = describe(root.path());
        assert_eq!((bare.cache_bytes.len(), bare.memory_bytes, bare.highest_hz), (0, None, None));
        let cpu = "sys/devices/system/cpu";
        let files = [
            (format!("{cpu}/online"), "2-3\n"),
            (format!("{cpu}/cpu2/cpufreq/cpuinfo_max_freq"), "3500000\n"),
            (format!("{cpu}/cpu2/cache/index0/type"), "Data\n"),
            (format!("{cpu}/cpu2/cache/index0/level"), "1\n"),
            (format!("{cpu}/cpu2/cache/index0/size"), "32K\n"),
            (format!("{cpu}/cpu2/cache/index1/type"), "Unified\n"),
            (format!("{cpu}/cpu2/cache/index1/level"), "2\n"),
            (format!("{cpu}/cpu2/cache/index1/size"), "1M\n"),
            ("proc/meminfo".to_owned(), "MemTotal: 1024 kB\n"),
            ("proc/sys/kernel/osrelease".to_owned(), "6.12.1\n"),
            ("boot/config-6.12.1".to_owned(), "CONFIG_HZ=250\n# CONFIG_NO_HZ_FULL is not set\nCONFIG_RCU_NOCB_CPU=y\n"),
            ("proc/self/mountinfo".to_owned(), "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n"),
            ("sys/fs/cgroup/cgroup.controllers".to_owned(), "cpuset cpu io\n"),
        ];
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = describe(root.path());
        assert_eq!(machine.cache_bytes, [32 << 10, 1 << 20]);
        assert_eq!((machine.memory_bytes, machine.highest_hz), (Some(1 << 20), Some(3_500_000_000)));
        assert_eq!((machine.cpu_groups, machine.fair_servers), (Some(2), Some(true)));
        assert_eq!(machine.built_with["HZ"], "250");
        let has = |option| (bare.has_option(option), machine.has_option(option));
        assert_eq!([has("NO_HZ_FULL"), has("RCU_NOCB_CPU")], [(None, Some(false)), (None, Some(true))]);
        assert_eq!((bare.cpu_groups, bare.fair_servers), (None, None));
    }

    #[test]
    fn a_host_without_a_name_is_told() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::read(root.path());
        assert_eq!(host.node, "localhost");
        assert!(host.warning.unwrap().message.contains("cannot read the host's name from"));
        fs::create_dir_all(root.path().join("proc/sys/kernel")).unwrap();
        fs::write(root.path().join("proc/sys/kernel/hostname"), "vm\n").unwrap();
        let host = Host::read(root.path());
        assert_eq!((host.node.as_str(), host.warning.is_none()), ("vm", true));
    }
}
