//! /proc/PID/stat and the list of all threads: which thread a pid of the trace is.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use becalm_units::Nanos;

use crate::file::{FileError, FormatError, is_gone, optional, parse, path_below};

/// The kernel's flag for its own threads, `PF_KTHREAD` of `linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One thread, from its stat file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskStat {
    /// The thread's number, as /proc lists it.
    pub pid: i32,
    /// Its name, which may hold spaces, parentheses and newlines.
    pub comm: String,
    /// `R` running, `S` sleeping, `D` in the disk, `Z` zombie, ...
    pub state: char,
    /// The number of its parent process.
    pub ppid: i32,
    /// Whether it is a kernel thread.
    pub kthread: bool,
    /// The CPU on which it is, or last was.
    pub cpu: u32,
    /// When it was started, in clock ticks since boot; distinguishes two threads with the same number.
    pub start_ticks: u64,
}

/// A thread as /proc lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedThread {
    /// The thread's number, as /proc lists it.
    pub pid: i32,
    /// The number of its process.
    pub tgid: i32,
    /// The thread's name, at most 15 bytes for threads of processes.
    pub comm: String,
    /// Whether it is a kernel thread.
    pub kthread: bool,
}

impl TaskStat {
    /// Parses the text of `/proc/PID/stat`. Fails if it lacks the fields of proc(5).
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let error = || FormatError::new("'PID (NAME) STATE ...' was expected", text.trim());
        let (pid, rest) = text.split_once(" (").ok_or_else(error)?;
        // The name may contain ") ", the fields after it cannot.
        let (comm, rest) = rest.rsplit_once(") ").ok_or_else(error)?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // Fields are numbered from 1 as in proc(5); the state is number 3.
        let field = |number: usize| fields.get(number - 3).copied().ok_or_else(error);
        let flags: u64 = field(9)?.parse().map_err(|_| error())?;
        Ok(Self {
            pid: pid.trim().parse().map_err(|_| error())?,
            comm: comm.to_owned(),
            state: field(3)?.chars().next().ok_or_else(error)?,
            ppid: field(4)?.parse().map_err(|_| error())?,
            kthread: flags & KERNEL_THREAD != 0,
            start_ticks: field(22)?.parse().map_err(|_| error())?,
            // Texts of older kernels in tests end before it.
            cpu: fields.get(39 - 3).and_then(|number| number.parse().ok()).unwrap_or(0),
        })
    }

    /// Reads the stat file of a thread; `None` if it is gone. Fails if it exists and cannot be read or parsed.
    pub fn read(root: &Path, pid: i32) -> Result<Option<Self>, FileError> {
        // A thread that is not the first of its process is not listed in /proc, but found there. The process's own file adds up the times of all its
        // threads, which is slow for many threads.
        optional(parse(root, format!("proc/{pid}/task/{pid}/stat"), "a thread's name", Self::parse))
    }
}

/// The number of every thread of the machine, preceded by that of its process, sorted by thread. Threads that start or end meanwhile may be missing.
pub fn all_threads(root: &Path) -> Result<Vec<(i32, i32)>, FileError> {
    let mut threads = Vec::new();
    for tgid in numbered(root, "proc")?.unwrap_or_default() {
        let thread_numbers = numbered(root, &format!("proc/{tgid}/task"))?.unwrap_or_default();
        threads.extend(thread_numbers.into_iter().map(|tid| (tgid, tid)));
    }
    threads.sort_unstable_by_key(|(_, tid)| *tid);
    Ok(threads)
}

/// The kernel's account of a thread since it started: `/proc/PID/schedstat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Schedstat {
    /// Time on a CPU, without that which a hypervisor is known to have taken.
    pub ran: Nanos,
    /// Time on a run queue without a CPU.
    pub waited: Nanos,
    /// How often it got a CPU.
    pub runs: u64,
}

impl Schedstat {
    /// Reads the account of a thread; also of one that has ended and was not reaped. `None` if it is gone, or the kernel does not account.
    pub fn read(root: &Path, pid: i32) -> Option<Self> {
        let text = fs::read_to_string(path_below(root, format!("proc/{pid}/task/{pid}/schedstat")))
            .or_else(|_| fs::read_to_string(path_below(root, format!("proc/{pid}/schedstat"))));
        let numbers: Vec<i64> = text.ok()?.split_whitespace().map_while(|number| number.parse().ok()).collect();
        let [ran, waited, runs] = numbers[..] else { return None };
        Some(Self { ran: Nanos::new(ran), waited: Nanos::new(waited), runs: runs.max(0) as u64 })
    }
}

/// The values of a process's environment variables, in the order of `names`; `None` for one that is not set. Fails if the process is gone, or belongs
/// to another user.
pub fn environment(root: &Path, pid: i32, names: &[&str]) -> io::Result<Vec<Option<String>>> {
    let text = fs::read(path_below(root, format!("proc/{pid}/environ")))?;
    let text = String::from_utf8_lossy(&text);
    let value = |name: &&str| {
        text.split('\0').find_map(|variable| variable.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    Ok(names.iter().map(value).collect())
}

/// The command line of a process, with blanks between its arguments; empty for a kernel thread, or one that is gone.
pub fn command(root: &Path, pid: i32) -> String {
    let text = fs::read(path_below(root, format!("proc/{pid}/cmdline"))).unwrap_or_default();
    let arguments = text.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    arguments.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// The numbers of all processes. Fails if the directory cannot be read.
pub fn processes(root: &Path) -> Result<Vec<i32>, FileError> {
    Ok(numbered(root, "proc")?.unwrap_or_default())
}

/// The numbers of the threads of a process; empty if it is gone.
pub fn threads_of(root: &Path, process: i32) -> Result<Vec<i32>, FileError> {
    Ok(numbered(root, &format!("proc/{process}/task"))?.unwrap_or_default())
}

/// The entries of a directory that are numbers; `None` if the directory is gone.
fn numbered(root: &Path, name: &str) -> Result<Option<Vec<i32>>, FileError> {
    let path = path_below(root, name);
    let failed = |source| FileError::Read { what: "the list of threads", path: path.clone(), source };
    // A process may end between any two entries; proc itself must exist.
    let listing = match fs::read_dir(&path) {
        Ok(listing) => listing,
        Err(error) if is_gone(&error) && name != "proc" => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut numbers = Vec::new();
    for entry in listing {
        match entry {
            Ok(entry) => numbers.extend(number(&entry.file_name())),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(Some(numbers))
}

fn number(name: &OsStr) -> Option<i32> {
    name.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_may_hold_anything() {
        let tail = "S 2 0 0 0 -1 69238848 0 0 0 0 3 0 0 0 20 0 1 0 24 0 0";
        let task = TaskStat::parse(&format!("14 (ksoftirqd/0) {tail}\n")).unwrap();
        assert_eq!((task.pid, task.comm.as_str(), task.state, task.ppid), (14, "ksoftirqd/0", 'S', 2));
        assert!(task.kthread && task.start_ticks == 24);
        for comm in ["a b", "a) S 1 (b", "(sd-pam)", ") ", "", "x\ny"] {
            let task = TaskStat::parse(&format!("7 ({comm}) {}", tail.replace("69238848", "4194304"))).unwrap();
            assert!(task.comm == comm && !task.kthread, "{comm}");
        }
    }

    #[test]
    fn this_process_and_one_that_is_gone() {
        let root = Path::new("/");
        let own = std::process::id().cast_signed();
        let task = TaskStat::read(root, own).unwrap().unwrap();
        assert!(task.pid == own && !task.kthread);
        assert_eq!(TaskStat::read(root, i32::MAX).unwrap(), None);
    }

    #[test]
    fn every_thread_is_listed() {
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("listed) R (x".to_owned());
        let thread = thread.spawn(move || told.recv()).unwrap();
        let own = std::process::id().cast_signed();
        // The thread names itself when it starts to run, which may be after spawn returns.
        let found = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            let threads = all_threads(Path::new("/")).unwrap();
            assert!(threads.is_sorted_by_key(|(_, tid)| *tid));
            let mut others = threads.iter().filter(|(tgid, tid)| *tgid == own && *tid != own);
            others.any(|(_, tid)| {
                let stat = TaskStat::read(Path::new("/"), *tid).unwrap();
                stat.is_some_and(|stat| stat.comm == "listed) R (x")
            })
        });
        drop(tell);
        assert!(thread.join().unwrap().is_err());
        assert!(found);
        assert!(all_threads(Path::new("/none")).unwrap_err().to_string().contains("/none/proc"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9]{0,3} ?[(]?[a-z() ]{0,8}[)]? ?([A-Z0-9-]{1,4} ){0,24}") {
            let _ = TaskStat::parse(&text);
        }
    }
}
