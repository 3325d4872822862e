//! Control groups that a test makes, of whichever version the machine has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// A control group, removed when it is dropped.
#[derive(Debug)]
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes a group that may use so many MiB of memory; `None` where none can be had.
    #[must_use]
    pub fn with_memory(mebibytes: u32) -> Option<Self> {
        let (group, is_old) = Self::make("memory", "memory.limit_in_bytes")?;
        group.set(if is_old { "memory.limit_in_bytes" } else { "memory.max" }, &format!("{mebibytes}M"))?;
        Some(group)
    }

    /// Makes a group that may use these CPUs; `None` where none can be had.
    #[must_use]
    pub fn with_cpus(cpus: &str) -> Option<Self> {
        let (group, is_old) = Self::make("cpuset", "cpuset.cpus")?;
        group.set("cpuset.cpus", cpus)?;
        if is_old {
            // Without memory nothing can be moved there.
            group.set("cpuset.mems", fs::read_to_string(group.0.parent()?.join("cpuset.mems")).ok()?.trim())?;
        }
        Some(group)
    }

    /// Makes a group whose threads may run for so many microseconds of each period; `None` where none can be had.
    #[must_use]
    pub fn with_time(quota: u32, period: u32) -> Option<Self> {
        let (group, is_old) = Self::make("cpu", "cpu.shares")?;
        if is_old {
            group.set("cpu.cfs_period_us", &period.to_string())?;
            group.set("cpu.cfs_quota_us", &quota.to_string())?;
        } else {
            group.set("cpu.max", &format!("{quota} {period}"))?;
        }
        Some(group)
    }

    /// Takes one thread of a process in. `None` where a group of version 2 cannot: the process has to be in the topmost one then.
    #[must_use]
    pub fn take_thread(&self, thread: i32) -> Option<()> {
        if self.0.join("tasks").exists() {
            return self.set("tasks", &thread.to_string());
        }
        self.set("cgroup.type", "threaded")?;
        self.set("cgroup.threads", &thread.to_string())
    }

    /// How often the kernel kept its threads from running, and for how long, by its `cpu.stat`.
    ///
    /// # Panics
    ///
    /// If the file cannot be read or does not say so.
    #[must_use]
    pub fn throttled(&self) -> (u64, Duration) {
        let text = fs::read_to_string(self.0.join("cpu.stat")).expect("a group of the controller cpu has it");
        let number = |name: &str| -> Option<u64> {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        };
        let time = number("throttled_time").map(Duration::from_nanos);
        let time = time.or_else(|| number("throttled_usec").map(Duration::from_micros));
        (number("nr_throttled").expect("a number"), time.expect("a time"))
    }

    /// A group of a controller, and whether it is of version 1, whose hierarchy has this file.
    fn make(controller: &str, file_of_old: &str) -> Option<(Self, bool)> {
        let new = Path::new("/sys/fs/cgroup");
        let old = new.join(controller);
        let is_old = old.join(file_of_old).exists();
        if !is_old {
            // Where it is handed down already, or not there, making the group or setting it tells.
            let _ = fs::write(new.join("cgroup.subtree_control"), format!("+{controller}"));
        }
        let parent = if is_old { old.as_path() } else { new };
        let group = parent.join(format!("becalm-test-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        Some((Self(group), is_old))
    }

    fn set(&self, file: &str, value: &str) -> Option<()> {
        fs::write(self.0.join(file), value).ok()
    }

    /// The command, to be run inside.
    #[must_use]
    pub fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#]).arg(&self.0);
        inside.arg(command.get_program()).args(command.get_args());
        inside
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // The kernel takes a moment to forget the last process.
        for _ in 0..1_000 {
            if fs::remove_dir(&self.0).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
