//! The machine, as the node's document describes it.

use std::fs;
use std::path::Path;

use becalm_linux::procfs::cpuinfo::CpuInfo;
use becalm_linux::procfs::kernel;
use becalm_linux::sysfs;
use becalm_model::node::Machine;
use becalm_units::CpuList;

/// A list of CPUs in sysfs; empty where the kernel has no such file.
#[must_use]
pub fn cpu_list(root: &Path, name: &str) -> CpuList {
    let text = fs::read_to_string(root.join("sys/devices/system/cpu").join(name)).unwrap_or_default();
    // nohz_full reads "(null)" where the kernel was built with it and booted without.
    text.trim().parse().unwrap_or_default()
}

/// What the files below the root say of the machine. What cannot be read stays empty.
#[must_use]
pub fn describe(root: &Path) -> Machine {
    let processor = CpuInfo::read(root).unwrap_or_default();
    Machine {
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
