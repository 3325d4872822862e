//! Takes a CPU offline and brings it back.

use std::fs;
use std::io;
use std::path::PathBuf;

use becalm_units::{CpuId, Ticks};

use super::now;

/// A CPU that is offline until this is dropped.
pub struct Unplugged {
    file: PathBuf,
    /// The counter just before and just after the CPU went.
    pub went: (Ticks, Ticks),
}

/// Takes a CPU offline. The first CPU of most machines cannot be taken.
pub fn offline(cpu: CpuId) -> io::Result<Unplugged> {
    let file = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
    let before = now();
    fs::write(&file, "0")?;
    Ok(Unplugged { file, went: (before, now()) })
}

impl Drop for Unplugged {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.file, "1") {
            eprintln!("cannot bring a CPU back with {}: {error}", self.file.display());
        }
    }
}
