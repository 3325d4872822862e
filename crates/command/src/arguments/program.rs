//! Programs to run.

use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use becalm_units::fault::{self, Result};

/// The system would refuse only after the start, and leave an empty recording.
pub fn refuse_missing(program: &str) -> Result<()> {
    let executable = |path: &Path| path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if program.contains('/') {
        if !executable(Path::new(program)) {
            fault::bail!("cannot start the command '{program}': there is no such program");
        }
        return Ok(());
    }
    // Without PATH the C library searches the system's directories.
    let Some(folders) = env::var_os("PATH") else { return Ok(()) };
    if !env::split_paths(&folders).any(|folder| executable(&folder.join(program))) {
        fault::bail!("cannot start the command '{program}': no directory of PATH has such a program");
    }
    Ok(())
}
