//! Where every thread of the machine may run: from /proc/PID/task/TID/stat and status.

use std::path::Path;

use becalm_units::CpuList;

use super::task::{ListedThread, TaskStat, all_threads};
use crate::file::{FileError, FormatError, optional, parse, parse_cpus};

const WHAT: &str = "where a thread may run";

/// The kernel's flag for threads whose CPUs cannot be changed, `PF_NO_SETAFFINITY` of `linux/sched.h`.
const BOUND: u64 = 0x0400_0000;

/// A thread and where it may run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The thread: its number, process and name.
    pub task: ListedThread,
    /// The parent of its process, or the process that adopted it when the parent ended.
    pub ppid: i32,
    /// When it was started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Whether the kernel prevents moving it.
    pub bound: bool,
    /// The CPUs that it may run on; may include offline ones.
    pub cpus: CpuList,
}

/// The threads of the machine.
#[derive(Debug, Default)]
pub struct PlacedTasks {
    /// Every thread with a known place, sorted by number. Threads that start or end meanwhile may be missing.
    pub tasks: Vec<Placed>,
    /// Why the place of others is unknown: an error for each.
    pub unread: Vec<FileError>,
}

impl PlacedTasks {
    /// Reads where every thread may run. Unreadable threads do not affect the others.
    pub fn read(root: &Path) -> Result<Self, FileError> {
        let mut found = Self::default();
        for (tgid, tid) in all_threads(root)? {
            match placed_task(root, tgid, tid) {
                Ok(placed) => found.tasks.extend(placed),
                Err(error) => found.unread.push(error),
            }
        }
        Ok(found)
    }
}

/// The start time and the CPUs of one thread; `None` if it is gone. Fails if its files exist and cannot be read or parsed.
pub fn placement(root: &Path, tid: i32) -> Result<Option<(u64, CpuList)>, FileError> {
    let Some(stat) = TaskStat::read(root, tid)?.filter(runs) else { return Ok(None) };
    Ok(allowed_of(root, tid, tid)?.map(|cpus| (stat.start_ticks, cpus)))
}

fn placed_task(root: &Path, tgid: i32, tid: i32) -> Result<Option<Placed>, FileError> {
    let stat = format!("proc/{tgid}/task/{tid}/stat");
    let stat = optional(parse(root, stat, WHAT, |text| Ok((TaskStat::parse(text)?, is_bound(text)))))?;
    let Some((stat, bound)) = stat.filter(|(stat, _)| runs(stat)) else { return Ok(None) };
    let Some(cpus) = allowed_of(root, tgid, tid)? else { return Ok(None) };
    let task = ListedThread { pid: tid, tgid, comm: stat.comm, kthread: stat.kthread };
    Ok(Some(Placed { task, ppid: stat.ppid, start_ticks: stat.start_ticks, bound, cpus }))
}

/// A thread that ended but was not reaped runs nowhere.
const fn runs(stat: &TaskStat) -> bool {
    !matches!(stat.state, 'Z' | 'X')
}

fn allowed_of(root: &Path, tgid: i32, tid: i32) -> Result<Option<CpuList>, FileError> {
    optional(parse(root, format!("proc/{tgid}/task/{tid}/status"), WHAT, allowed))
}

/// The flags are the seventh field after the name.
fn is_bound(stat: &str) -> bool {
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let flags = rest.split_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & BOUND != 0)
}

fn allowed(status: &str) -> Result<CpuList, FormatError> {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let text = line.ok_or_else(|| FormatError::new("Cpus_allowed_list", "no such line"))?;
    parse_cpus(text)
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
        // Reads no files of whole processes, for which the kernel would add up all threads.
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
        let PlacedTasks { tasks: found, unread } = PlacedTasks::read(root.path()).unwrap();
        assert!(unread.is_empty(), "{unread:?}");
        let seen: Vec<(i32, bool)> = found.iter().map(|placed| (placed.task.pid, placed.bound)).collect();
        assert_eq!(seen, [(7, false), (9, true)]);
        assert_eq!((found[0].start_ticks, found[0].cpus.len()), (24, 4096));
        assert_eq!(placement(root.path(), 7).unwrap().unwrap().0, 24);
        assert_eq!(placement(root.path(), 8).unwrap(), None);
        assert_eq!(placement(root.path(), 10).unwrap(), None);
        // A thread that cannot be read is reported, and does not affect the others.
        for (name, text) in [("stat", "9 (a"), ("status", "Name:\ta\n"), ("status", "Cpus_allowed_list:\tall\n")] {
            let name = format!("proc/9/task/9/{name}");
            let before = std::fs::read_to_string(root.path().join(&name)).unwrap();
            write_tree(root.path(), &[(&name, text)]);
            let PlacedTasks { tasks, unread } = PlacedTasks::read(root.path()).unwrap();
            assert_eq!(tasks, found[..1], "{name}");
            assert!(unread.len() == 1 && unread[0].to_string().contains(&name), "{unread:?}");
            write_tree(root.path(), &[(&name, &before)]);
        }
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        let own = crate::sched::current_tid();
        // Taking a CPU offline meanwhile changes both, one after the other.
        let agree = || {
            let allowed = crate::sched::allowed_cpus().unwrap();
            placement(Path::new("/"), own).unwrap().unwrap().1 == allowed
        };
        assert!((0..3).any(|_| agree()));
        assert!(PlacedTasks::read(Path::new("/")).unwrap().tasks.iter().any(|placed| placed.task.pid == own));
    }
}
