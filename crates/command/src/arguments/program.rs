//! Programs that are to be run.

use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use becalm_units::fault::{self, Result};

/// The system's own refusal would come after the start, and leave a recording of nothing.
pub fn refuse_missing(program: &str) -> Result<()> {
    let executable = |path: &Path| path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    if program.contains('/') {
        if !executable(Path::new(program)) {
            fault::bail!("cannot start the command '{program}': there is no such program");
        }
        return Ok(());
    }
    // Without PATH the C library looks where the system keeps its programs; so let it.
    let Some(folders) = env::var_os("PATH") else { return Ok(()) };
    if !env::split_paths(&folders).any(|folder| executable(&folder.join(program))) {
        fault::bail!("cannot start the command '{program}': no folder of PATH holds such a program");
    }
    Ok(())
}
