//! System management interrupts: the firmware takes a CPU, invisible to the kernel. Intel's processors count them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use becalm_units::CpuId;

use crate::file::FileError;

/// The register that counts them since reset, in its lower half (`MSR_SMI_COUNT`: Intel's Software Developer's Manual, volume 4). Other vendors'
/// processors do not have it.
const REGISTER: u64 = 0x34;

/// The counter of one CPU, open for reading, which needs root or `CAP_SYS_RAWIO`, and the kernel module `msr`.
#[derive(Debug)]
pub struct SmiCounter {
    file: File,
    cpu: CpuId,
}

impl SmiCounter {
    /// Opens the counter of a CPU, `dev/cpu/N/msr`, and reads it once. Fails if the module is not loaded, the right is missing, or the processor does
    /// not count them.
    pub fn open(root: &Path, cpu: CpuId) -> Result<Self, FileError> {
        let path = root.join(format!("dev/cpu/{cpu}/msr"));
        let fail =
            |source| FileError::Read { what: "the count of system management interrupts", path: path.clone(), source };
        let counter = Self { file: File::open(&path).map_err(fail)?, cpu };
        counter.read().map_err(fail)?;
        Ok(counter)
    }

    /// The CPU of the counter.
    pub const fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// The number since the processor was reset, modulo 2^32. The kernel interrupts the CPU to read it, unless the caller runs on it. Fails if the
    /// register cannot be read: the processor does not have it.
    pub fn read(&self) -> std::io::Result<u32> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, REGISTER)?;
        Ok(u64::from_ne_bytes(bytes) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_register_is_read_where_it_lies() {
        let root = tempfile::tempdir().unwrap();
        let cpu = CpuId::new(3);
        let error = SmiCounter::open(root.path(), cpu).unwrap_err().to_string();
        assert!(error.contains("dev/cpu/3/msr: No such file"), "{error}");
        let folder = root.path().join("dev/cpu/3");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("msr"), [0; 0x34]).unwrap();
        assert!(SmiCounter::open(root.path(), cpu).is_err());
        let mut registers = vec![0; 0x34];
        registers.extend((7_u64 << 32 | 41).to_ne_bytes());
        std::fs::write(folder.join("msr"), registers).unwrap();
        assert_eq!(SmiCounter::open(root.path(), cpu).unwrap().read().unwrap(), 41);
    }
}
