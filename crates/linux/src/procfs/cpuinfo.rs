//! /proc/cpuinfo: the processor's model and its features.
//!
//! Its format differs between architectures; only the first CPU's model and flags are read.

use std::collections::BTreeSet;
use std::path::Path;

use crate::file::{FileError, parse};

/// The first processor of the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuInfo {
    /// The model: `AMD EPYC`, `ARM implementer 0x41 part 0xd0c`, `POWER9`; empty if the file does not contain it.
    pub model: String,
    flags: BTreeSet<String>,
}

impl CpuInfo {
    /// Parses the file's text. Missing values are empty: no text is invalid.
    pub fn parse(text: &str) -> Self {
        let field = |name: &str| {
            let fields = text.lines().filter_map(|line| line.split_once(':'));
            let found = fields.into_iter().find(|(key, value)| key.trim() == name && !value.trim().is_empty());
            found.map(|(_, value)| value.trim())
        };
        let arm = || {
            let part = format!("ARM implementer {} part {}", field("CPU implementer")?, field("CPU part")?);
            Some(part)
        };
        let model = field("model name").map(str::to_owned).or_else(arm);
        // POWER writes "cpu : POWER9 (architected)", s390 "vendor_id", old ARM kernels "Processor", RISC-V "uarch".
        let fallback = || ["cpu", "Processor", "uarch", "isa", "vendor_id"].into_iter().find_map(field);
        let flags = field("flags").or_else(|| field("Features")).unwrap_or_default();
        Self {
            model: model.or_else(|| fallback().map(str::to_owned)).unwrap_or_default(),
            flags: flags.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// Reads `proc/cpuinfo`. Fails if it cannot be read, or is empty.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        parse(root, "proc/cpuinfo", "the processor's model", |text| Ok(Self::parse(text)))
    }

    /// Whether the processor has a flag (x86: `nonstop_tsc`) or feature (ARM: `asimd`).
    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    /// Whether an x86 processor reports a hypervisor below the kernel.
    pub(crate) fn has_hypervisor(&self) -> bool {
        self.has("hypervisor")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_of_x86_has_its_model() {
        let text = "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nflags\t\t: tsc constant_tsc nonstop_tsc\n\
                    bugs\t: x\n\nprocessor\t: 1\nflags : hypervisor\n";
        let info = CpuInfo::parse(text);
        assert_eq!(info.model, "AMD EPYC");
        assert!(info.has("constant_tsc") && info.has("nonstop_tsc") && !info.has_hypervisor() && !info.has("stop"));
    }

    #[test]
    fn processors_of_other_architectures_have_their_model() {
        let arm = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(CpuInfo::parse(arm).model, "ARM implementer 0x41 part 0xd0c");
        assert!(CpuInfo::parse(arm).has("asimd"));
        assert_eq!(CpuInfo::parse("cpu\t\t: POWER9 (architected)\n").model, "POWER9 (architected)");
        assert_eq!(CpuInfo::parse("nothing").model, "");
    }

    #[test]
    fn the_processor_of_this_machine_is_read() {
        assert!(!CpuInfo::read(Path::new("/")).unwrap().model.is_empty());
    }
}
