//! The machine, as the node's document describes it.

use std::fs;
use std::path::Path;

use becalm_linux::procfs::cpuinfo::CpuInfo;
use becalm_linux::procfs::kernel;
use becalm_linux::sysfs;
use becalm_model::node::{MachineDoc, Warning};
use becalm_model::{node_name, warning};
use becalm_units::CpuList;

/// A list of CPUs in sysfs; empty where the kernel has no such file.
#[must_use]
pub fn cpu_list(root: &Path, name: &str) -> CpuList {
    let text = fs::read_to_string(root.join("sys/devices/system/cpu").join(name)).unwrap_or_default();
    // nohz_full reads "(null)" where the kernel was built with it and booted without.
    text.trim().parse().unwrap_or_default()
}

/// The name that the machine has as a node of a bundle.
#[derive(Clone, Debug)]
pub struct Host {
    /// The host's name as far as it may stand in names of files, or `localhost`.
    pub node: String,
    /// Why it is that; `None` where it is the host's own.
    pub warning: Option<Warning>,
}

impl Host {
    /// Of the machine below a root.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let (name, warning) = match kernel::hostname(root) {
            Ok(name) => (name, None),
            Err(error) => (String::new(), Some(warning::no_host_name(&error.to_string()))),
        };
        Self { node: node_name(&name), warning }
    }
}

/// What the files below the root say of the machine. What cannot be read stays empty.
#[must_use]
pub fn describe(root: &Path) -> MachineDoc {
    let processor = CpuInfo::read(root).unwrap_or_default();
    MachineDoc {
        kernel: kernel::release(root).unwrap_or_default(),
        processor: processor.model,
        hypervisor: sysfs::machine::hypervisor(root).unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        online: cpu_list(root, "online"),
        isolated: cpu_list(root, "isolated"),
        nohz_full: cpu_list(root, "nohz_full"),
        command_line: kernel::command_line(root).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
