//! Traces showing that a process was started by a program that chose its CPUs, such as `taskset`, and then became the process.
//!
//! The kernel does not record who chose a thread's CPUs. Two traces remain: bash and zsh store the started program in the variable `_`, which a
//! launcher passes on; and the launcher's parent has it in its command line (`sudo taskset -c 0 make`, `sh -c 'taskset -c 0 make'`). A launcher that
//! another shell started from a script leaves none.

use std::fs;
use std::path::Path;

use crate::file::path_below;

/// Programs that set the CPUs of another one.
const LAUNCHERS: [&str; 6] = ["taskset", "numactl", "hwloc-bind", "likwid-pin", "schedtool", "cset"];

/// The launcher that left a trace in a process; `None` if there is none, or its files cannot be read.
pub fn launcher(root: &Path, pid: i32, parent: i32) -> Option<&'static str> {
    let text = |pid: i32, name: &str| {
        let bytes = fs::read(path_below(root, format!("proc/{pid}/{name}"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let environment = text(pid, "environ");
    let started = environment.split('\0').find_map(|variable| variable.strip_prefix("_=")).and_then(known);
    // A shell's command line may have whole commands in one word.
    started.or_else(|| {
        text(parent, "cmdline").split(|c: char| c == '\0' || c.is_whitespace() || ";&|()".contains(c)).find_map(known)
    })
}

fn known(word: &str) -> Option<&'static str> {
    let name = word.rsplit('/').next().unwrap_or(word);
    LAUNCHERS.into_iter().find(|launcher| *launcher == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn traces_of_launchers() {
        let root = tempfile::tempdir().unwrap();
        write_tree(
            root.path(),
            &[
                ("proc/2/cmdline", "-bash\0"),
                ("proc/3/environ", "HOME=/root\0_=/usr/bin/taskset\0A=b\0"),
                ("proc/4/environ", "A_=/usr/bin/taskset\0_=/usr/bin/tasksetter\0"),
                ("proc/5/cmdline", "sh\0-c\0cd /;numactl -C0 make\0"),
                ("proc/6/cmdline", "sudo\0/opt/bin/taskset\0-c\0"),
            ],
        );
        let program = |pid, parent| launcher(root.path(), pid, parent);
        assert_eq!((program(3, 2), program(4, 2), program(7, 2), program(4, 9)), (Some("taskset"), None, None, None));
        assert_eq!((program(7, 5), program(7, 6)), (Some("numactl"), Some("taskset")));
    }
}
