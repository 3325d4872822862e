//! Waiting for other processes with a limit. Without one, a process that is stopped, or in a frozen control group, would block the caller forever.
//! The error names the process, its state, and how to continue it.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::file;
use crate::procfs::cgroup::memberships_of;
use crate::procfs::locks::lock_holder;
use crate::procfs::mountinfo::{Mount, mounts};
use crate::procfs::task::TaskStat;
use crate::signals::{process_end, wait_readable};

/// The time between two checks if the kernel does not wake.
const PAUSE: Duration = Duration::from_millis(10);

/// A process that keeps another one waiting, with a description for messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// Its number.
    pub pid: i32,
    /// Its name; empty if it is not known.
    pub name: String,
    /// The reason why it does not continue, if known.
    pub hold: Option<Hold>,
}

/// Reasons why a process does not continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hold {
    /// A signal stopped it.
    Stopped,
    /// The process with this number traces it and stopped it.
    Traced(i32),
    /// Its control group is frozen: the text to write, and the file.
    Frozen(&'static str, PathBuf),
    /// It waits in the kernel, and no signal ends that.
    Uninterruptible,
}

impl Stuck {
    /// The current state of a process, according to /proc.
    pub fn look(root: &Path, pid: i32) -> Self {
        let stat = TaskStat::read(root, pid).ok().flatten();
        let state = stat.as_ref().map_or('?', |stat| stat.state);
        let hold = frozen(root, pid).or_else(|| match state {
            'T' => Some(Hold::Stopped),
            't' => Some(Hold::Traced(tracer(root, pid).unwrap_or(0))),
            'D' => Some(Hold::Uninterruptible),
            _ => None,
        });
        Self { pid, name: stat.map(|stat| stat.comm).unwrap_or_default(), hold }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.pid;
        write!(f, "process {pid}")?;
        if !self.name.is_empty() {
            write!(f, " ({})", becalm_units::printable(&self.name))?;
        }
        match &self.hold {
            None => Ok(()),
            Some(Hold::Stopped) => write!(f, ", which is stopped; continue it with: kill -CONT {pid}"),
            Some(Hold::Traced(tracer)) => {
                write!(f, ", which the debugger in process {tracer} has stopped; detach that")
            }
            Some(Hold::Frozen(word, file)) => {
                write!(f, ", whose control group is frozen; thaw it with: echo {word} > {}", file.display())
            }
            Some(Hold::Uninterruptible) => {
                f.write_str(", which waits in the kernel for a device or file system (state D)")
            }
        }
    }
}

/// The process that traces another.
fn tracer(root: &Path, pid: i32) -> Option<i32> {
    let text = file::text(root, format!("proc/{pid}/status")).ok()??;
    text.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse().ok()
}

/// The innermost frozen control group of a process.
fn frozen(root: &Path, pid: i32) -> Option<Hold> {
    let mounts = mounts(root).ok()?;
    for group in memberships_of(root, pid).ok()? {
        let is_second = group.controllers.is_empty();
        if !is_second && !group.controllers.iter().any(|name| name == "freezer") {
            continue;
        }
        let is_its = |mount: &&Mount| match is_second {
            true => mount.kind == "cgroup2",
            false => mount.kind == "cgroup" && mount.has_option("freezer"),
        };
        let Some(mount) = mounts.iter().rev().find(is_its) else { continue };
        let Ok(below) = Path::new(&group.path).strip_prefix(&mount.root) else { continue };
        let (name, word, thaw) = match is_second {
            true => ("cgroup.freeze", "0", "cgroup.freeze"),
            false => ("freezer.self_freezing", "THAWED", "freezer.state"),
        };
        let folders = below.ancestors().map(|below| mount.point.join(below));
        let mut folders = folders.filter(|folder| {
            file::text(root, folder.join(name)).is_ok_and(|text| text.is_some_and(|text| text == "1"))
        });
        if let Some(folder) = folders.next() {
            return Some(Hold::Frozen(word, folder.join(thaw)));
        }
    }
    None
}

/// Waits until a child of this process has ended, and reaps it.
pub fn wait_for_child(pid: i32, limit: Duration) -> Result<(), Stuck> {
    let Some(child) = Pid::from_raw(pid) else { return Ok(()) };
    let end = Instant::now() + limit;
    // Before Linux 5.3, there is no descriptor for its end.
    let ends = process_end(pid.unsigned_abs()).ok();
    loop {
        match waitpid(Some(child), WaitOptions::NOHANG) {
            Ok(None) | Err(Errno::INTR) => {}
            // Ended, or already reaped.
            Ok(Some(_)) | Err(_) => return Ok(()),
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Stuck::look(Path::new("/"), pid));
        }
        if ends.is_none() || wait_readable([ends.as_ref().map(AsFd::as_fd)], left).is_err() {
            thread::sleep(PAUSE.min(left));
        }
    }
}

/// Locks a file or directory (flock) exclusively. Fails if another process keeps the lock, which the error names, or with the error of flock(2).
pub fn lock(file: &File, limit: Duration) -> io::Result<()> {
    let end = Instant::now() + limit;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < end => thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => {
                let root = Path::new("/");
                let holder = lock_holder(root, file).ok().flatten().map(|pid| Stuck::look(root, pid).to_string());
                let holder = holder.as_deref().unwrap_or("another process");
                let text = format!("it has been locked for {limit:?} by {holder}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::file::write_tree;

    /// A sleeping process, which is finally killed and reaped.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Self(Command::new("sleep").arg("1000").spawn().unwrap())
        }

        fn pid(&self) -> i32 {
            self.0.id().cast_signed()
        }

        fn signal(&self, name: &str) {
            assert!(Command::new("kill").args([name, &self.pid().to_string()]).status().unwrap().success());
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_child_that_is_stopped_is_named_and_waited_for_no_longer() {
        let sleeper = Sleeper::start();
        sleeper.signal("-STOP");
        let begin = Instant::now();
        let stuck = wait_for_child(sleeper.pid(), Duration::from_millis(300)).unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        assert_eq!(stuck.hold, Some(Hold::Stopped));
        let text = stuck.to_string();
        assert!(text.contains("(sleep)") && text.ends_with(&format!("kill -CONT {}", sleeper.pid())), "{text}");
        sleeper.signal("-KILL");
        assert_eq!(wait_for_child(sleeper.pid(), Duration::from_secs(20)), Ok(()));
    }

    #[test]
    fn a_lock_that_is_never_given_back_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (File::open(folder.path()).unwrap(), File::open(folder.path()).unwrap());
        lock(&first, Duration::ZERO).unwrap();
        let error = lock(&second, Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains(&format!("by process {}", std::process::id())), "{error}");
        drop(first);
        lock(&second, Duration::ZERO).unwrap();
    }

    #[test]
    fn frozen_groups_of_both_versions_are_found_also_above() {
        let root = tempfile::tempdir().unwrap();
        let stat = "7 (a) S 2 0 0 0 -1 0 0 0 0 0 3 0 0 0 20 0 1 0 24 0 0\n";
        write_tree(
            root.path(),
            &[
                ("proc/7/task/7/stat", stat),
                ("proc/7/cgroup", "3:freezer:/a/b\n0::/c/d\n"),
                (
                    "proc/self/mountinfo",
                    "1 2 0:1 / /cg/freezer rw - cgroup none rw,freezer\n2 2 0:2 / /cg/two rw - cgroup2 none rw\n",
                ),
                ("cg/freezer/a/b/freezer.self_freezing", "0\n"),
                ("cg/freezer/a/freezer.self_freezing", "0\n"),
                ("cg/two/c/d/cgroup.freeze", "0\n"),
                ("cg/two/c/cgroup.freeze", "1\n"),
            ],
        );
        let hold = || Stuck::look(root.path(), 7).hold;
        assert_eq!(hold(), Some(Hold::Frozen("0", "/cg/two/c/cgroup.freeze".into())));
        write_tree(root.path(), &[("cg/freezer/a/freezer.self_freezing", "1\n")]);
        assert_eq!(hold(), Some(Hold::Frozen("THAWED", "/cg/freezer/a/freezer.state".into())));
        assert!(Stuck::look(root.path(), 7).to_string().ends_with("echo THAWED > /cg/freezer/a/freezer.state"));
    }
}
