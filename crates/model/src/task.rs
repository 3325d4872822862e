//! Who a thread is: the kind, the name and the instance that its time is booked on.

use becalm_units::NumberMap;

use crate::{Kind, Label, Labels, Pid};

/// One thread, with the name under which it is shown as a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// [`Kind::Kthread`], [`Kind::Task`] or [`Kind::Becalm`].
    pub kind: Kind,
    /// Its stable name, the same on every CPU: `ksoftirqd`, `sshd`.
    pub source: Label,
    /// Which instance: `ksoftirqd/1 pid 23`.
    pub detail: Label,
}

/// The source of threads that nobody named.
pub const UNKNOWN: &str = "unknown";

/// The threads of a node by their number.
///
/// The recorder fills it from /proc and from the names in the kernel's switch events before it hands the events of
/// those threads to attribution. A number that the kernel gives to a new thread is set again.
#[derive(Clone, Default, Debug)]
pub struct Tasks {
    by_pid: NumberMap<Pid, Task>,
}

impl Tasks {
    /// A table of nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters a thread, or renames it.
    pub fn set(&mut self, pid: Pid, task: Task) {
        self.by_pid.insert(pid, task);
    }

    /// Enters a thread of which nothing but the number is known, as source `unknown`, detail `pid N`; one that is in
    /// the table already stays as it is.
    pub fn set_unknown(&mut self, pid: Pid, labels: &mut Labels) {
        self.by_pid.entry(pid).or_insert_with(|| Task {
            kind: Kind::Task,
            source: labels.intern(UNKNOWN),
            detail: labels.intern(&format!("pid {}", pid.0)),
        });
    }

    /// The thread of that number.
    pub fn get(&self, pid: Pid) -> Option<&Task> {
        self.by_pid.get(&pid)
    }
}
