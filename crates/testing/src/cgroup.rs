//! Control groups for tests, of either version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// A control group, removed on drop.
#[derive(Debug)]
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Creates a group limited to this many MiB of memory; `None` if that is impossible.
    #[must_use]
    pub fn with_memory(mebibytes: u32) -> Option<Self> {
        let (group, _) = Self::make("memory", "memory.limit_in_bytes")?;
        group.limit_memory(mebibytes)?;
        Some(group)
    }

    /// Sets another limit of its memory, in MiB; the calling thread frees what is above it. `None` if that is impossible.
    #[must_use]
    pub fn limit_memory(&self, mebibytes: u32) -> Option<()> {
        let old = "memory.limit_in_bytes";
        self.set(if self.0.join(old).exists() { old } else { "memory.max" }, &format!("{mebibytes}M"))
    }

    /// Creates a group limited to these CPUs; `None` if that is impossible.
    #[must_use]
    pub fn with_cpus(cpus: &str) -> Option<Self> {
        let (group, is_old) = Self::make("cpuset", "cpuset.cpus")?;
        group.set("cpuset.cpus", cpus)?;
        if is_old {
            // Tasks cannot be moved into a cpuset without memory nodes.
            group.set("cpuset.mems", fs::read_to_string(group.0.parent()?.join("cpuset.mems")).ok()?.trim())?;
        }
        Some(group)
    }

    /// Creates a group limited to `quota` microseconds per period; `None` if that is impossible.
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

    /// Creates a group with this name and these shares of CPU time, of 1,024 by default; `None` if that is impossible.
    #[must_use]
    pub fn with_shares(name: &str, shares: u32) -> Option<Self> {
        let (group, is_old) = Self::make_named("cpu", "cpu.shares", name)?;
        // Version 2 has weights, of 100 by default.
        let (file, value) = if is_old { ("cpu.shares", shares) } else { ("cpu.weight", shares * 100 / 1_024) };
        group.set(file, &value.to_string())?;
        Some(group)
    }

    /// Its path as in `/proc/PID/cgroup`.
    ///
    /// # Panics
    ///
    /// If its name is no text.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/{}", self.0.file_name().and_then(|name| name.to_str()).expect("its name is a text"))
    }

    /// How often its limit on memory kept a process from getting some.
    ///
    /// # Panics
    ///
    /// If the kernel does not count that.
    #[must_use]
    pub fn memory_failures(&self) -> u64 {
        let read = |name: &str| fs::read_to_string(self.0.join(name)).ok();
        let old = read("memory.failcnt").and_then(|text| text.trim().parse().ok());
        let events = || read("memory.events")?.lines().find_map(|line| line.strip_prefix("max ")?.trim().parse().ok());
        old.or_else(events).expect("a group of the controller memory counts that")
    }

    /// Adds one thread of a process. `None` if a group of version 2 cannot: its process must be in the top-level group then.
    #[must_use]
    pub fn take_thread(&self, thread: i32) -> Option<()> {
        if self.0.join("tasks").exists() {
            return self.set("tasks", &thread.to_string());
        }
        self.set("cgroup.type", "threaded")?;
        self.set("cgroup.threads", &thread.to_string())
    }

    /// Moves a thread back to the group above. `None` if that is impossible.
    #[must_use]
    pub fn release_thread(&self, thread: i32) -> Option<()> {
        fs::write(self.0.parent()?.join("tasks"), thread.to_string()).ok()
    }

    /// The number of times that the kernel throttled its threads, and the total time, from `cpu.stat`.
    ///
    /// # Panics
    ///
    /// If the file is unreadable or lacks these values.
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

    /// A group of a controller, and whether its hierarchy has this file, i.e. is of version 1.
    fn make(controller: &str, file_of_old: &str) -> Option<(Self, bool)> {
        Self::make_named(controller, file_of_old, "group")
    }

    fn make_named(controller: &str, file_of_old: &str, name: &str) -> Option<(Self, bool)> {
        let new = Path::new("/sys/fs/cgroup");
        let old = new.join(controller);
        let is_old = old.join(file_of_old).exists();
        if !is_old {
            // If it is delegated already, or missing, creating or configuring the group will show it.
            let _ = fs::write(new.join("cgroup.subtree_control"), format!("+{controller}"));
        }
        let parent = if is_old { old.as_path() } else { new };
        let group = parent.join(format!("becalm-test-{}-{name}", std::process::id()));
        fs::create_dir(&group).ok()?;
        Some((Self(group), is_old))
    }

    fn set(&self, file: &str, value: &str) -> Option<()> {
        fs::write(self.0.join(file), value).ok()
    }

    /// The command, to run inside.
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
        // The kernel releases the last process after a moment.
        for _ in 0..1_000 {
            if fs::remove_dir(&self.0).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
