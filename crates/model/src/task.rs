//! Threads: the kind, name and instance to which their time is charged.

use becalm_units::NumberMap;

use crate::{Kind, Label, Labels, Pid};

/// A thread, with its name as a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// [`Kind::Kthread`], [`Kind::Task`] or [`Kind::Becalm`].
    pub kind: Kind,
    /// Its stable name, the same on every CPU: `ksoftirqd`, `sshd`.
    pub source: Label,
    /// The instance: `ksoftirqd/1 pid 23`.
    pub detail: Label,
}

/// The source of unnamed threads.
pub const UNKNOWN: &str = "unknown";

/// The threads of a node by their number.
///
/// The recorder fills it from /proc and from names in the kernel's switch events, before it hands the events of those threads to attribution. When
/// the kernel reuses a number for a new thread, the entry is replaced.
#[derive(Clone, Default, Debug)]
pub struct Tasks {
    by_pid: NumberMap<Pid, Task>,
}

impl Tasks {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a thread, or renames it.
    pub fn set(&mut self, pid: Pid, task: Task) {
        self.by_pid.insert(pid, task);
    }

    /// Adds a thread with only its number, as source `unknown`, detail `pid N`; an existing entry is unchanged.
    pub fn set_unknown(&mut self, pid: Pid, labels: &mut Labels) {
        self.by_pid.entry(pid).or_insert_with(|| Task {
            kind: Kind::Task,
            source: labels.intern(UNKNOWN),
            detail: labels.intern(&format!("pid {}", pid.0)),
        });
    }

    /// The thread with this number.
    pub fn get(&self, pid: Pid) -> Option<&Task> {
        self.by_pid.get(&pid)
    }
}
