//! Where every thread of the machine may run.
//!
//! One thread at a time is handed to the caller: on a machine of 4,096 CPUs there are tens of thousands, and the lists of
//! their CPUs together would fill the memory.

use std::path::Path;

use becalm_units::CpuList;

use super::task::{TaskStat, each_thread};
use super::{FileError, FormatError, optional, parse};

/// A thread and its CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Who it is.
    pub stat: TaskStat,
    /// The number of its process.
    pub tgid: i32,
    /// The CPUs that it may run on.
    pub allowed: CpuList,
}

/// Calls `visit` with every thread. Those that come or go meanwhile may be missing.
///
/// # Errors
/// If /proc cannot be listed, or a thread's file cannot be read or understood.
pub fn for_each_placement(root: &Path, mut visit: impl FnMut(&Placement)) -> Result<(), FileError> {
    each_thread(root, |tgid, pid| {
        let folder = format!("proc/{tgid}/task/{pid}");
        let stat = optional(parse(root, &format!("{folder}/stat"), "a thread's name", TaskStat::parse))?;
        let allowed = optional(parse(root, &format!("{folder}/status"), "a thread's CPUs", allowed))?;
        if let (Some(stat), Some(allowed)) = (stat, allowed) {
            visit(&Placement { stat, tgid, allowed });
        }
        Ok(())
    })
}

fn allowed(text: &str) -> Result<CpuList, FormatError> {
    let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(str::trim);
    let line = line.ok_or_else(|| FormatError::new("Cpus_allowed_list", "no such line"))?;
    line.parse().map_err(|_| FormatError::new("a list of CPUs was expected", line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::write_tree;

    #[test]
    fn threads_with_their_cpus() {
        let root = tempfile::tempdir().unwrap();
        // PF_KTHREAD and PF_NO_SETAFFINITY.
        let stat = "2 (ksoftirqd/1) S 0 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n";
        write_tree(
            root.path(),
            &[
                ("proc/2/task/2/stat", stat),
                ("proc/2/task/2/status", "Name: ksoftirqd/1\nCpus_allowed_list:\t1\n"),
                ("proc/3/task/3/stat", "3 (gone) S 0 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
                ("proc/interrupts", ""),
            ],
        );
        let mut seen = Vec::new();
        for_each_placement(root.path(), |it| seen.push(it.clone())).unwrap();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].stat.kthread && seen[0].stat.fixed);
        assert_eq!((seen[0].allowed.to_string(), seen[0].stat.comm.as_str()), ("1".to_owned(), "ksoftirqd/1"));
        write_tree(root.path(), &[("proc/2/task/2/status", "Name: x\n")]);
        assert!(for_each_placement(root.path(), |_| {}).is_err());
    }

    #[test]
    fn this_machine() {
        let mut seen = 0;
        for_each_placement(Path::new("/"), |it| seen += usize::from(!it.allowed.is_empty())).unwrap();
        assert!(seen > 0);
    }
}
