//! Where the kernel's tracing is mounted, and which trace clocks it offers.

use std::path::{Path, PathBuf};

use crate::procfs::mountinfo::Mount;
use crate::procfs::{FileError, read};

/// The folder of tracefs, below the machine's root: where it is mounted, or inside a mounted debugfs. Nothing if
/// neither is mounted.
#[must_use]
pub fn mount_point(mounts: &[Mount]) -> Option<PathBuf> {
    let last = |kind: &str| mounts.iter().rev().find(|mount| mount.kind == kind);
    let inside = || last("debugfs").map(|mount| mount.point.join("tracing"));
    // The kernel mounts tracefs inside debugfs on first use, so a mount of its own that is not there is preferred.
    let own = mounts.iter().rev().find(|mount| mount.kind == "tracefs" && !mount.point.ends_with("debug/tracing"));
    own.or_else(|| last("tracefs")).map(|mount| mount.point.clone()).or_else(inside)
}

/// The trace clocks on offer, the chosen one first: `[local] global counter x86-tsc`.
///
/// # Errors
/// If `trace_clock` cannot be read.
pub fn clocks(root: &Path, tracefs: &Path) -> Result<Vec<String>, FileError> {
    let text = read(root, &tracefs.join("trace_clock").to_string_lossy(), "the trace clocks")?;
    let mut clocks: Vec<&str> = text.split_whitespace().collect();
    clocks.sort_by_key(|clock| !clock.starts_with('['));
    Ok(clocks.into_iter().map(|clock| clock.trim_matches(['[', ']']).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::mountinfo::parse_mounts;
    use crate::procfs::write_tree;

    #[test]
    fn finds_the_folder() {
        let point = |text: &str| mount_point(&parse_mounts(text).unwrap());
        let debugfs = "1 2 0:1 / /sys/kernel/debug rw - debugfs none rw\n";
        let inside = "1 2 0:1 / /sys/kernel/debug/tracing rw - tracefs none rw\n";
        let own = "1 2 0:1 / /sys/kernel/tracing rw - tracefs none rw\n";
        assert_eq!(point(""), None);
        assert_eq!(point(debugfs), Some("/sys/kernel/debug/tracing".into()));
        assert_eq!(point(&format!("{own}{debugfs}{inside}")), Some("/sys/kernel/tracing".into()));
        assert_eq!(point(&format!("{debugfs}{inside}")), Some("/sys/kernel/debug/tracing".into()));
    }

    #[test]
    fn lists_clocks() {
        let root = tempfile::tempdir().unwrap();
        write_tree(root.path(), &[("t/trace_clock", "local global [mono_raw] x86-tsc\n")]);
        assert_eq!(clocks(root.path(), Path::new("/t")).unwrap(), ["mono_raw", "local", "global", "x86-tsc"]);
        assert!(clocks(root.path(), Path::new("/u")).unwrap_err().to_string().contains("/u/trace_clock"));
    }
}
