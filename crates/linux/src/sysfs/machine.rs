//! The machine as a whole: clock source, hypervisor, lockdown.

use std::path::Path;

use becalm_units::bracketed;

use crate::clock::asked_processor;
use crate::file::{FileError, optional, read};
use crate::procfs::cpuinfo::CpuInfo;

const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0";

/// The kernel's current clock source: `tsc`, `hpet`, `arch_sys_counter`. On x86, any other than `tsc` may mean that the kernel does not trust the
/// time-stamp counter.
pub fn clocksource(root: &Path) -> Result<Option<String>, FileError> {
    let text = optional(read(root, format!("{CLOCKSOURCE}/current_clocksource"), "the clock source"))?;
    Ok(text.map(|text| text.trim().to_owned()))
}

/// The hypervisor below the kernel, by the best available name; `None` on bare metal.
///
/// Sources: the hypervisor's own directory in /sys (Xen), the firmware's product, the kernel's paravirtual clock, and on x86 the processor's flag,
/// which alone gives the name `unknown`.
pub fn hypervisor(root: &Path) -> Result<Option<String>, FileError> {
    let file = |name: &str| optional(read(root, name, "the hypervisor"));
    if let Some(kind) = file("sys/hypervisor/type")?.filter(|kind| !matches!(kind.trim(), "" | "none")) {
        return Ok(Some(kind.trim().to_owned()));
    }
    let clocks = file(&format!("{CLOCKSOURCE}/available_clocksource"))?.unwrap_or_default();
    let offers = |clock: &str| clocks.split_whitespace().any(|offered| offered.starts_with(clock));
    for (clock, name) in [("kvm-clock", "kvm"), ("hyperv_clocksource", "hyperv"), ("xen", "xen")] {
        if offers(clock) {
            return Ok(Some(name.to_owned()));
        }
    }
    let vendor = file("sys/class/dmi/id/sys_vendor")?.unwrap_or_default();
    for (product, name) in [("QEMU", "qemu"), ("VMware", "vmware"), ("Amazon EC2", "nitro"), ("innotek", "virtualbox")]
    {
        // Amazon's bare-metal machines carry the same vendor; there the processor's flag decides below.
        if vendor.starts_with(product) && (name != "nitro" || cpu_says_so(root)?) {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(cpu_says_so(root)?.then(|| "unknown".to_owned()))
}

fn cpu_says_so(root: &Path) -> Result<bool, FileError> {
    // Without /proc, ask the processor itself, but only about this machine.
    let asked = || root == Path::new("/") && asked_processor().is_some_and(|processor| processor.guest);
    Ok(optional(CpuInfo::read(root))?.map_or_else(asked, |info| info.has_hypervisor()))
}

/// How far the kernel is locked down, even against root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Lockdown {
    /// Not at all, or the kernel does not support it.
    #[default]
    None,
    /// No changes to the kernel. Tracing works.
    Integrity,
    /// No reading of the kernel either: no tracefs, no kernel addresses.
    Confidentiality,
}

impl Lockdown {
    /// Parses the file's text, `none [integrity] confidentiality`. An unknown future mode counts as the strictest.
    pub fn parse(text: &str) -> Self {
        match bracketed(text) {
            None | Some("none") => Self::None,
            Some("integrity") => Self::Integrity,
            Some(_) => Self::Confidentiality,
        }
    }

    /// Reads `sys/kernel/security/lockdown`. Returns none if securityfs is not mounted, as in containers.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        let text = optional(read(root, "sys/kernel/security/lockdown", "the kernel's lockdown"))?;
        Ok(text.map_or(Self::None, |text| Self::parse(&text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn the_mode_of_lockdown_is_the_word_in_brackets() {
        assert_eq!(Lockdown::parse("[none] integrity confidentiality\n"), Lockdown::None);
        assert_eq!(Lockdown::parse("none [integrity] confidentiality\n"), Lockdown::Integrity);
        assert_eq!(Lockdown::parse("none integrity [confidentiality]\n"), Lockdown::Confidentiality);
        assert_eq!(Lockdown::parse("none [total]\n"), Lockdown::Confidentiality);
    }

    #[test]
    fn hypervisors_go_by_their_best_name() {
        let named = |files: &[(&str, &str)]| {
            let root = tempfile::tempdir().unwrap();
            write_tree(root.path(), files);
            hypervisor(root.path()).unwrap()
        };
        let virtual_cpu = ("proc/cpuinfo", "flags : tsc hypervisor\n");
        let clock = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        assert_eq!(named(&[]), None);
        assert_eq!(named(&[virtual_cpu]).as_deref(), Some("unknown"));
        assert_eq!(named(&[(clock, "tsc kvm-clock \n")]).as_deref(), Some("kvm"));
        assert_eq!(named(&[("sys/hypervisor/type", "xen\n"), (clock, "kvm-clock")]).as_deref(), Some("xen"));
        let amazon = ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(named(&[amazon]), None);
        assert_eq!(named(&[amazon, virtual_cpu]).as_deref(), Some("nitro"));
    }
}
