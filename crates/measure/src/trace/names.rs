//! Names: of threads, from /proc and kernel events, and of everything else, interned.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use becalm_linux::procfs::names::{looks_like_kthread, stable_name};
use becalm_linux::procfs::task::TaskStat;
use becalm_model::{Kind, Labels, Pid, Task, Tasks};
use becalm_units::NumberMap;

/// The names of a recording.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The names of sources and their details.
    pub labels: Labels,
    /// All threads seen so far.
    pub tasks: Tasks,
    comms: NumberMap<Pid, Box<[u8]>>,
    own: HashSet<Pid>,
    /// Whether threads are kernel threads, as far as known.
    kernel: NumberMap<Pid, bool>,
    /// The last thread seen: most consecutive events belong to one thread.
    last: Pid,
    /// In a PID namespace, maps our threads' numbers in that namespace to those in kernel events.
    numbers: Option<BTreeMap<i32, i32>>,
    proc_root: PathBuf,
}

impl Names {
    /// No names yet; threads will be looked up below this root.
    pub fn new(root: &Path) -> Self {
        Self { proc_root: root.to_owned(), ..Self::default() }
    }

    /// No names yet, for the trace of another machine or another time. All names come from that trace.
    pub fn for_file() -> Self {
        let mut names = Self::new(Path::new("/"));
        // Thread numbers of the trace mean nothing on this machine.
        names.translate_own(BTreeMap::new());
        names
    }

    /// The name of a thread in kernel events.
    pub fn name_of(&self, pid: Pid) -> Option<String> {
        self.comms.get(&pid).map(|comm| String::from_utf8_lossy(comm).into_owned())
    }

    /// Kernel events number threads differently from this process and its `/proc` from now on. `numbers` maps our own threads' numbers here to those
    /// in the events.
    pub fn translate_own(&mut self, numbers: BTreeMap<i32, i32>) {
        self.numbers = Some(numbers);
    }

    /// Registers a thread of becalm by its own number. In a PID namespace, a thread whose number in the events is unknown is identified by its name.
    pub fn set_own(&mut self, pid: Pid) {
        let known = self.numbers.as_ref().map_or(Some(pid.0), |numbers| numbers.get(&pid.0).copied());
        let Some(pid) = known.map(Pid) else { return };
        self.own.insert(pid);
        // If the trace named it earlier, name it again.
        if let Some(comm) = self.comms.remove(&pid) {
            self.see(pid, &comm);
        }
    }

    /// Registers whether a thread is a kernel thread, regardless of its name.
    pub fn set_kernel(&mut self, pid: Pid, is_kernel: bool) {
        self.kernel.insert(pid, is_kernel);
        if let Some(comm) = self.comms.remove(&pid) {
            self.see(pid, &comm);
        }
    }

    /// Whether [`Self::set_kernel`] was called for this thread.
    pub fn is_told(&self, pid: Pid) -> bool {
        self.kernel.contains_key(&pid)
    }

    /// A thread was on the CPU when an event was written. If no switch event named it, /proc does.
    pub fn meet(&mut self, pid: Pid) {
        if pid == self.last || pid == Pid::IDLE {
            return;
        }
        self.last = pid;
        // In a PID namespace, /proc uses other numbers.
        if self.numbers.is_none()
            && !self.comms.contains_key(&pid)
            && let Ok(Some(stat)) = TaskStat::read(&self.proc_root, pid.0)
        {
            self.see(pid, stat.comm.as_bytes());
        }
    }

    /// A thread with this name was seen in the kernel's events.
    ///
    /// The name may contain padding zeros. A thread that renames itself, or executes another program, gets its latest name.
    pub fn see(&mut self, pid: Pid, comm: &[u8]) {
        let comm = comm.split(|byte| *byte == 0).next().unwrap_or_default();
        if self.comms.get(&pid).is_some_and(|known| **known == *comm) {
            return;
        }
        self.comms.insert(pid, comm.into());
        let name = String::from_utf8_lossy(comm);
        // In a PID namespace, /proc has another thread under this number.
        let kthread = match self.numbers.is_none().then(|| TaskStat::read(&self.proc_root, pid.0)) {
            Some(Ok(Some(stat))) => stat.kthread,
            _ => self.kernel.get(&pid).copied().unwrap_or_else(|| looks_like_kthread(&name)),
        };
        let task = if self.own.contains(&pid) {
            let detail = self.labels.intern(&format!("{name} pid {}", pid.0));
            Task { kind: Kind::Becalm, source: self.labels.intern("becalm"), detail }
        } else {
            let (source, _) = stable_name(&name, kthread);
            let detail =
                if kthread || *source != *name { format!("{name} pid {}", pid.0) } else { format!("pid {}", pid.0) };
            let kind = if kthread { Kind::Kthread } else { Kind::Task };
            let source = if source.is_empty() { self.labels.intern("?") } else { self.labels.intern(&source) };
            Task { kind, source, detail: self.labels.intern(&detail) }
        };
        self.tasks.set(pid, task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &Names, pid: i32) -> (Kind, &str, &str) {
        let task = names.tasks.get(Pid(pid)).unwrap();
        (task.kind, names.labels.text(task.source), names.labels.text(task.detail))
    }

    #[test]
    fn threads_get_stable_names() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/30/task/30")).unwrap();
        let stat = format!("30 (looks/like) S 2 0 0 0 -1 {} 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0 0", 0x0020_0000);
        std::fs::write(root.path().join("proc/30/task/30/stat"), stat).unwrap();
        let mut names = Names::new(root.path());
        names.set_own(Pid(7));
        names.see(Pid(7), b"becalm\0\0");
        names.see(Pid(12), b"kworker/1:2\0\0\0\0\0");
        names.see(Pid(20), b"sshd\0");
        names.see(Pid(30), b"looks/like\0");
        assert_eq!(named(&names, 7), (Kind::Becalm, "becalm", "becalm pid 7"));
        assert_eq!(named(&names, 12), (Kind::Kthread, "kworker", "kworker/1:2 pid 12"));
        assert_eq!(named(&names, 20), (Kind::Task, "sshd", "pid 20"));
        assert_eq!(named(&names, 30), (Kind::Kthread, "looks", "looks/like pid 30"));
        // A shell becomes another program.
        names.see(Pid(20), b"sleep\0");
        assert_eq!(named(&names, 20), (Kind::Task, "sleep", "pid 20"));
        // In a PID namespace, our own threads have other numbers, and /proc has other threads under these numbers.
        let mut inside = Names::new(root.path());
        inside.translate_own(BTreeMap::from([(7, 30)]));
        inside.set_own(Pid(7));
        inside.set_own(Pid(12));
        inside.see(Pid(30), b"becalm\0");
        inside.see(Pid(7), b"sshd\0");
        inside.see(Pid(12), b"cron\0");
        assert_eq!(named(&inside, 30), (Kind::Becalm, "becalm", "becalm pid 30"));
        assert_eq!(named(&inside, 7), (Kind::Task, "sshd", "pid 7"));
        assert_eq!(named(&inside, 12), (Kind::Task, "cron", "pid 12"));
        // A thread turns out to be our own.
        names.set_own(Pid(20));
        assert_eq!(named(&names, 20).0, Kind::Becalm);
    }
}
