//! Where every thread of the machine may run: from /proc/PID/task/TID/stat and status.

use std::path::Path;

use becalm_units::CpuList;

use super::task::{ListedThread, TaskStat, threads};
use crate::file::{FileError, FormatError, optional, parse};

/// The kernel's mark of threads whose CPUs nobody may change, `PF_NO_SETAFFINITY` of `linux/sched.h`.
const BOUND: u64 = 0x0400_0000;

/// A thread and where it may run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The thread: its number, process and name.
    pub task: ListedThread,
    /// The process that started its own, or whoever took that over when it ended.
    pub ppid: i32,
    /// When it was started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Whether the kernel keeps anybody from moving it.
    pub bound: bool,
    /// Where it may run. CPUs that are offline may be among them.
    pub cpus: CpuList,
}

/// Every thread of the machine, sorted by number. Threads that come or go meanwhile may be missing.
///
/// # Errors
/// If /proc cannot be listed, or a thread's files cannot be understood.
pub fn placed_tasks(root: &Path) -> Result<Vec<Placed>, FileError> {
    let stats = threads(root, |tgid, pid, text| Ok((tgid, pid, TaskStat::parse(text)?, is_bound(text))))?;
    let mut placed = Vec::new();
    for (tgid, pid, stat, bound) in stats.into_iter().filter(|(_, _, stat, _)| runs(stat)) {
        let Some(cpus) = allowed_of(root, tgid, pid)? else { continue };
        let (ppid, start_ticks) = (stat.ppid, stat.start_ticks);
        let task = ListedThread { pid, tgid, comm: stat.comm, kthread: stat.kthread };
        placed.push(Placed { task, ppid, start_ticks, bound, cpus });
    }
    placed.sort_unstable_by_key(|placed| placed.task.pid);
    Ok(placed)
}

/// Where one thread may run, and when it was started; `None` if it is gone.
///
/// # Errors
/// If its files are there and cannot be read or understood.
pub fn placement(root: &Path, tid: i32) -> Result<Option<(u64, CpuList)>, FileError> {
    let Some(stat) = TaskStat::read(root, tid)?.filter(runs) else { return Ok(None) };
    Ok(allowed_of(root, tid, tid)?.map(|cpus| (stat.start_ticks, cpus)))
}

/// A thread that ended but was not waited for runs nowhere.
const fn runs(stat: &TaskStat) -> bool {
    !matches!(stat.state, 'Z' | 'X')
}

fn allowed_of(root: &Path, tgid: i32, tid: i32) -> Result<Option<CpuList>, FileError> {
    optional(parse(root, format!("proc/{tgid}/task/{tid}/status"), "where a thread may run", allowed))
}

/// The flags are the seventh field behind the name.
fn is_bound(stat: &str) -> bool {
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let flags = rest.split_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & BOUND != 0)
}

fn allowed(status: &str) -> Result<CpuList, FormatError> {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let text = line.ok_or_else(|| FormatError::new("Cpus_allowed_list", "no such line"))?;
    text.parse().map_err(|_| FormatError::new("a list of CPUs was expected", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::write_tree;

    #[test]
    fn threads_and_their_cpus() {
        let root = tempfile::tempdir().unwrap();
        let stat = |pid: i32, state: char, flags: u64| {
            format!("{pid} (a) b) {state} 2 0 0 0 -1 {flags} 0 0 0 0 3 0 0 0 20 0 1 0 24 0 0\n")
        };
        let (free, bound) = (stat(7, 'S', 0x0020_0000), stat(9, 'S', 0x0420_0000));
        let zombie = stat(8, 'Z', 0);
        // Nothing is read from the files of whole processes, for which the kernel adds up all threads.
        let status = "Name:\ta\nCpus_allowed:\tff\nCpus_allowed_list:\t0-4095\n";
        write_tree(
            root.path(),
            &[
                ("proc/7/task/7/stat", &free),
                ("proc/7/task/7/status", status),
                ("proc/8/task/8/stat", &zombie),
                ("proc/8/task/8/status", status),
                ("proc/9/task/9/stat", &bound),
                ("proc/9/task/9/status", status),
            ],
        );
        let found = placed_tasks(root.path()).unwrap();
        let seen: Vec<(i32, bool)> = found.iter().map(|placed| (placed.task.pid, placed.bound)).collect();
        assert_eq!(seen, [(7, false), (9, true)]);
        assert_eq!((found[0].start_ticks, found[0].cpus.len()), (24, 4096));
        assert_eq!(placement(root.path(), 7).unwrap().unwrap().0, 24);
        assert_eq!(placement(root.path(), 8).unwrap(), None);
        assert_eq!(placement(root.path(), 10).unwrap(), None);
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        let own = crate::sched::current_tid();
        // Whoever takes a CPU offline meanwhile changes both, one after the other.
        let agree = || {
            let allowed = crate::sched::allowed_cpus().unwrap();
            placement(Path::new("/"), own).unwrap().unwrap().1 == allowed
        };
        assert!((0..3).any(|_| agree()));
        assert!(placed_tasks(Path::new("/")).unwrap().iter().any(|placed| placed.task.pid == own));
    }
}
