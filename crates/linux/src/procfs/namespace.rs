//! Whether the process and the kernel's events use the same thread numbers.

use std::fs;
use std::path::Path;

/// The file of the initial PID namespace, the same on every machine (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`).
const FIRST: &str = "pid:[4026531836]";

/// Whether the process is in its own PID namespace, as in most containers, where thread numbers differ from those in the kernel's events. False if
/// that is unknown.
pub fn has_own_numbers(root: &Path) -> bool {
    fs::read_link(root.join("proc/self/ns/pid")).is_ok_and(|link| link.as_os_str() != FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_namespace_has_the_kernels_numbers() {
        let root = tempfile::tempdir().unwrap();
        assert!(!has_own_numbers(root.path()));
        let folder = root.path().join("proc/self/ns");
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("pid:[4026532201]", folder.join("pid")).unwrap();
        assert!(has_own_numbers(root.path()));
        fs::remove_file(folder.join("pid")).unwrap();
        std::os::unix::fs::symlink(FIRST, folder.join("pid")).unwrap();
        assert!(!has_own_numbers(root.path()));
    }
}
