//! Names of becalm's instances, and the removal of those whose process has ended.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use super::error::TracefsError;
use super::tracefs::Tracefs;

/// The name of an instance, `becalm-PID-START-NAMESPACE-SERIAL`, which identifies its process: pids are reused, and are meaningful only in their
/// namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstanceName {
    /// The number of the process that made the instance.
    pub pid: u32,
    /// When it started, in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub start: u64,
    /// The inode of its pid namespace; 0 if that could not be read.
    pub namespace: u64,
    /// Numbers the instances of one process.
    pub serial: u32,
}

impl InstanceName {
    /// The name of this process's first instance. Fails if `PROC_ROOT/self/stat` cannot be read.
    pub fn own(proc_root: &Path) -> Result<Self, TracefsError> {
        let path = proc_root.join("self/stat");
        let stat = fs::read(&path).map_err(|error| TracefsError::io("read", &path, error))?;
        let (pid, start) = pid_and_start(&stat)
            .ok_or_else(|| TracefsError::Content(path, "expected 'PID (NAME) ...' with 22 fields".to_owned()))?;
        Ok(Self { pid, start, namespace: own_namespace(proc_root), serial: 0 })
    }

    /// Whether the process is alive, according to `/proc`. Meaningful only within its own pid namespace.
    fn is_alive(self, proc_root: &Path) -> bool {
        match fs::read(proc_root.join(self.pid.to_string()).join("stat")) {
            // A stat that cannot be parsed is no reason to remove anything.
            Ok(stat) => pid_and_start(&stat).is_none_or(|(_, start)| start == self.start),
            Err(error) => error.kind() != io::ErrorKind::NotFound && error.raw_os_error() != Some(libc::ESRCH),
        }
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "becalm-{}-{}-{}-{}", self.pid, self.start, self.namespace, self.serial)
    }
}

/// A name that becalm does not create.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the name of an instance of becalm")]
pub struct ParseInstanceNameError(String);

impl FromStr for InstanceName {
    type Err = ParseInstanceNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || -> Option<Self> {
            let mut parts = text.strip_prefix("becalm-")?.split('-');
            let name = Self {
                pid: parts.next()?.parse().ok()?,
                start: parts.next()?.parse().ok()?,
                namespace: parts.next()?.parse().ok()?,
                serial: parts.next()?.parse().ok()?,
            };
            // Only what prints the same again: no further part, no leading zero or sign.
            (name.to_string() == text).then_some(name)
        };
        parse().ok_or_else(|| ParseInstanceNameError(text.to_owned()))
    }
}

/// Fields 1 and 22 of a `stat` file. The name in field 2 may contain spaces and parentheses.
fn pid_and_start(stat: &[u8]) -> Option<(u32, u64)> {
    let stat = String::from_utf8_lossy(stat);
    let (pid, rest) = stat.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    Some((pid.parse().ok()?, rest.split_ascii_whitespace().nth(19)?.parse().ok()?))
}

/// The inode of this process's pid namespace, from the link `pid:[4026531836]`; 0 if it cannot be read.
fn own_namespace(proc_root: &Path) -> u64 {
    let link = fs::read_link(proc_root.join("self/ns/pid"));
    let inode = |link: &Path| link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok();
    link.ok().as_deref().and_then(inode).unwrap_or(0)
}

/// The result of removing instances of dead processes.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// The names of the removed ones.
    pub removed: Vec<String>,
    /// Those that could not be removed, with the reason.
    pub failed: Vec<(String, TracefsError)>,
}

/// Removes becalm's instances whose process has ended. Leaves those of live processes, of other pid namespaces (where a pid means nothing) and of
/// other programs.
pub fn remove_dead(tracefs: &Tracefs, proc_root: &Path) -> Result<Leftovers, TracefsError> {
    let folder = tracefs.root().join("instances");
    let fail = |error| TracefsError::io("list", &folder, error);
    let namespace = own_namespace(proc_root);
    let mut leftovers = Leftovers::default();
    for entry in fs::read_dir(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let text = entry.file_name().to_string_lossy().into_owned();
        let Ok(name) = text.parse::<InstanceName>() else { continue };
        if name.namespace != namespace || name.is_alive(proc_root) {
            continue;
        }
        match remove_instance(&entry.path(), Duration::from_millis(100)) {
            Ok(()) => leftovers.removed.push(text),
            Err(error) => leftovers.failed.push((text, error)),
        }
    }
    Ok(leftovers)
}

/// Stops and removes an instance, retrying for `patience` while a reader still has one of its files open. Succeeds if it is already gone.
pub(super) fn remove_instance(folder: &Path, patience: Duration) -> Result<(), TracefsError> {
    for file in ["tracing_on", "events/enable"] {
        // If these fail, removal decides: it stops and disables everything itself.
        let _ =
            fs::OpenOptions::new().write(true).open(folder.join(file)).and_then(|mut f| io::Write::write(&mut f, b"0"));
    }
    let start = Instant::now();
    loop {
        match fs::remove_dir(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && start.elapsed() < patience => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(TracefsError::io("remove the trace instance", folder, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, start: u64) -> String {
        format!(
            "{pid} (a (b) c) S 1 {pid} {pid} 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 {start} 1000 2 18446744073709551615\n"
        )
    }

    #[test]
    fn names_read_back_and_foreign_ones_do_not() {
        let name = InstanceName { pid: 12, start: 345, namespace: 4_026_531_836, serial: 2 };
        assert_eq!(name.to_string().parse(), Ok(name));
        for foreign in ["becalm", "becalm-1-2-3", "becalm-1-2-3-4-5", "becalm-01-2-3-4", "osnoise", "becalm-+1-2-3-4"] {
            assert!(foreign.parse::<InstanceName>().is_err(), "{foreign}");
        }
    }

    #[test]
    fn this_process_is_alive() {
        let own = InstanceName::own(Path::new("/proc")).unwrap();
        assert_eq!(own.pid, std::process::id());
        assert_ne!(own.namespace, 0);
        assert!(own.is_alive(Path::new("/proc")));
        assert!(!InstanceName { start: own.start + 1, ..own }.is_alive(Path::new("/proc")));
    }

    #[test]
    fn only_instances_of_dead_processes_of_this_namespace_go() {
        let proc = tempfile::tempdir().unwrap();
        for pid in [7, 8] {
            fs::create_dir(proc.path().join(pid.to_string())).unwrap();
            fs::write(proc.path().join(format!("{pid}/stat")), stat(pid, 100)).unwrap();
        }
        fs::create_dir_all(proc.path().join("self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[55]", proc.path().join("self/ns/pid")).unwrap();
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("events")).unwrap();
        let all = [
            "becalm-7-100-55-0", // alive
            "becalm-8-99-55-0",  // its pid was used again
            "becalm-9-100-55-3", // gone
            "becalm-9-100-56-0", // of a container
            "trace-cmd",
        ];
        for name in all {
            fs::create_dir_all(tree.path().join("instances").join(name)).unwrap();
        }
        let mut leftovers = remove_dead(&Tracefs::at(tree.path()).unwrap(), proc.path()).unwrap();
        leftovers.removed.sort();
        assert_eq!(leftovers.removed, ["becalm-8-99-55-0", "becalm-9-100-55-3"]);
        assert!(leftovers.failed.is_empty());
        assert_eq!(fs::read_dir(tree.path().join("instances")).unwrap().count(), 3);
    }

    #[test]
    fn one_that_cannot_be_removed_is_reported() {
        let proc = tempfile::tempdir().unwrap();
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("events")).unwrap();
        // Unlike the kernel's, a directory here is not removed with its content.
        fs::create_dir_all(tree.path().join("instances/becalm-9-1-0-0/options")).unwrap();
        let leftovers = remove_dead(&Tracefs::at(tree.path()).unwrap(), proc.path()).unwrap();
        assert!(leftovers.removed.is_empty());
        let message = leftovers.failed[0].1.to_string();
        assert!(
            message.starts_with("cannot remove the trace instance ") && message.contains("becalm-9-1-0-0"),
            "{message}"
        );
    }
}
