//! The folders that recordings are written into.

use std::path::{Path, PathBuf};

use anyhow::Result;
use becalm_linux::procfs::kernel;

use crate::exit::UsageError;

/// The name of a recording that was given none: `HOST-TIME.becalm`, or `HOST-TIME-2.becalm` and so on for others of the same
/// second.
pub fn default_path(root: &Path) -> PathBuf {
    default_path_of(&kernel::hostname(root).unwrap_or_else(|_| "localhost".to_owned()))
}

/// The same of a node that was given another name than its host's.
pub fn default_path_of(node: &str) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    free_name(Path::new(""), &format!("{node}-{now}"))
}

/// The first of these names in a folder that nothing bears.
fn free_name(folder: &Path, stem: &str) -> PathBuf {
    let mut path = folder.join(format!("{stem}.becalm"));
    let mut number = 2_u64;
    while path.symlink_metadata().is_ok() {
        path = folder.join(format!("{stem}-{number}.becalm"));
        number += 1;
    }
    path
}

/// The bundle's writer refuses more, and for good; this only spares the user ten seconds.
pub fn refuse_existing(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() {
        return Err(UsageError("the name of the recording is empty; give one, like -o quiet.becalm".to_owned()).into());
    }
    if path.exists() && !path.is_dir() {
        anyhow::bail!(
            "cannot store the recording in {}: it exists and is not a folder; give another name",
            path.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_of_the_same_second_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["vm-T.becalm", "vm-T-2.becalm", "vm-T-3.becalm"] {
            let path = free_name(folder.path(), "vm-T");
            assert_eq!(path, folder.path().join(name));
            std::fs::create_dir(path).unwrap();
        }
    }
}
