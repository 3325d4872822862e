//! The machine under test: everything that becalm may change as root, read without becalm's code before and after, and compared byte by
//! byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::sched_getaffinity;
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use serde_json::Value;

use crate::program::{becalm, instances, path, run};
use crate::{Need, PATIENCE, machine_has};

/// Only one test can tune the machine at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// Directories that may contain becalm's own: root's journal, and programs under noise.
const PLACES: [&str; 4] = ["/run/becalm", "/dev/shm/becalm-inject-0", "/var/lib/becalm", "/tmp/becalm-inject-0"];

/// Files that remain in a journal's directory: the lock, and the last journal, archived.
const KEPT: [&str; 2] = ["lock", "restored.jsonl"];

/// A directory for the journal, and the original state of the machine, which is restored when the test ends.
pub struct Bench {
    journal: tempfile::TempDir,
    cpu: String,
    before: BTreeMap<PathBuf, Vec<u8>>,
    threads: BTreeMap<(i32, u64), String>,
    traces: Traces,
    _machine: MutexGuard<'static, ()>,
}

/// State that tuning does not change, but that careless recording and injecting leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Traces {
    /// Trace instances of ended becalms, and of other programs.
    instances: BTreeSet<String>,
    /// Mounts of kernel file systems: place and options.
    mounts: BTreeSet<String>,
    /// becalm's files in shared directories.
    files: BTreeSet<PathBuf>,
}

impl Bench {
    /// The current state of the machine; `None`, with a message, without root or a second CPU.
    pub fn new() -> Option<Self> {
        let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        if !machine_has(&[Need::Root, Need::TwoCpus]) {
            return None;
        }
        let allowed = sched_getaffinity(None).expect("the kernel tells where we may run");
        let cpu = (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu))?.to_string();
        let journal = tempfile::tempdir().expect("a directory can be created");
        Some(Self {
            journal,
            cpu,
            before: knobs(),
            threads: settled_threads(),
            traces: Traces::now(),
            _machine: machine,
        })
    }

    /// The directory of the journal.
    pub fn folder(&self) -> &str {
        path(self.place())
    }

    /// A directory for the test, with the journal.
    pub fn place(&self) -> &Path {
        self.journal.path()
    }

    /// The CPU to isolate.
    pub fn cpu(&self) -> &str {
        &self.cpu
    }

    /// The files that a plan may change, with their contents.
    pub fn originals(&self) -> &BTreeMap<PathBuf, Vec<u8>> {
        &self.before
    }

    /// A command line of `becalm tune`, with this journal.
    pub fn tune(&self, words: &[&str]) -> Command {
        let (what, rest) = words.split_first().expect("a subcommand is given");
        becalm(&[&["tune", what, "--journal", self.folder()], rest].concat())
    }

    /// The file of the journal.
    pub fn journal(&self) -> PathBuf {
        self.place().join("journal.jsonl")
    }

    /// Reads the threads' affinities again: during a long test, other threads appear and choose their CPUs.
    pub fn see_threads(&mut self) {
        self.threads = threads();
    }

    /// Checks that all settings, and the affinities of all threads from before, are as they were.
    #[track_caller]
    pub fn is_as_before(&self, when: &str) {
        assert!(!self.journal().exists(), "{when}: the journal is still there");
        let now = knobs();
        for (path, text) in &self.before {
            let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let now = now.get(path).map(|bytes| text_of(bytes));
            assert_eq!(now, Some(text_of(text)), "{when}: {}", path.display());
        }
        assert_eq!(now.len(), self.before.len(), "{when}: files came");
        let now = threads();
        let name = |tid: i32| fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
        let last = fs::read_to_string(self.place().join("restored.jsonl")).unwrap_or_default();
        let changed: Vec<_> = self
            .threads
            .iter()
            .filter_map(|(thread, cpus)| Some((thread, cpus, now.get(thread)?)))
            .filter(|(_, cpus, now)| cpus != now)
            .map(|(thread, cpus, now)| (thread.0, name(thread.0), cpus, now, told(&last, thread.0)))
            .collect();
        assert!(changed.is_empty(), "{when}: {changed:?}");
    }

    /// Also checks that no trace instance, mount or file of becalm's appeared or disappeared, including its own directory except for
    /// `named`.
    #[track_caller]
    pub fn is_untouched(&self, when: &str, named: &[&str]) {
        self.is_as_before(when);
        let begin = Instant::now();
        // Temporary changes by other programs pass.
        while Traces::now() != self.traces {
            assert!(begin.elapsed() < PATIENCE, "{when}: {}", Traces::now().difference_from(&self.traces));
            thread::sleep(Duration::from_millis(100));
        }
        let known = |name: &str| KEPT.contains(&name) || named.contains(&name);
        let left: Vec<String> = names(self.place()).into_iter().filter(|name| !known(name)).collect();
        assert!(left.is_empty(), "{when}: {left:?}");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if self.journal().exists() {
            let ended = run(self.tune(&["restore", "--force"]));
            eprintln!("restored after a failure: {ended:#?}");
        }
    }
}

impl Traces {
    /// The differences since then.
    fn difference_from(&self, before: &Self) -> String {
        fn difference<T: Ord + std::fmt::Debug>(now: &BTreeSet<T>, before: &BTreeSet<T>) -> String {
            let came: Vec<_> = now.difference(before).collect();
            let went: Vec<_> = before.difference(now).collect();
            format!("came {came:?}, went {went:?}")
        }
        let instances = difference(&self.instances, &before.instances);
        let mounts = difference(&self.mounts, &before.mounts);
        let files = difference(&self.files, &before.files);
        format!("instances: {instances}; mounts: {mounts}; files: {files}")
    }

    fn now() -> Self {
        let is_of_living = |name: &String| {
            let pid = name.strip_prefix("becalm-").and_then(|rest| rest.split('-').next());
            pid.is_some_and(|pid| Path::new("/proc").join(pid).exists())
        };
        let kernels = [" - tracefs ", " - debugfs ", " - cgroup ", " - cgroup2 ", " - proc ", " - sysfs "];
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mounts = mounts.lines().filter(|line| kernels.iter().any(|kind| line.contains(kind)));
        Self {
            instances: instances().into_iter().filter(|name| !is_of_living(name)).collect(),
            // Without ids, which other mounts change.
            mounts: mounts.map(|line| line.split(' ').skip(3).collect::<Vec<_>>().join(" ")).collect(),
            files: files_of_becalm(),
        }
    }
}

/// Files in becalm's own directories. These may remain if empty, and that of the journal with the last one, archived, and the lock.
fn files_of_becalm() -> BTreeSet<PathBuf> {
    let mut left: Vec<PathBuf> = PLACES.map(PathBuf::from).into_iter().filter(|place| place.exists()).collect();
    let mut files = BTreeSet::new();
    while let Some(path) = left.pop() {
        if path.is_dir() && !path.is_symlink() {
            left.extend(names(&path).into_iter().map(|name| path.join(name)));
        } else if !KEPT.iter().any(|name| path.ends_with(name)) {
            files.insert(path);
        }
    }
    files
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// All files that a plan may change, with their contents.
pub fn knobs() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut paths: Vec<PathBuf> = [
        "/proc/irq/default_smp_affinity",
        "/proc/sys/kernel/watchdog_cpumask",
        "/proc/sys/kernel/nmi_watchdog",
        "/proc/sys/kernel/timer_migration",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/sys/vm/stat_interval",
        "/sys/kernel/mm/ksm/run",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
        "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
        "/sys/devices/virtual/workqueue/cpumask",
        "/sys/devices/system/cpu/online",
        "/sys/fs/cgroup/cgroup.subtree_control",
        "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance",
        "/sys/fs/cgroup/cpuset/cpuset.cpus",
        "/sys/fs/cgroup/cpuset/cpuset.mems",
    ]
    .map(PathBuf::from)
    .to_vec();
    let inside = |folder: &str, name: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join(name)).collect::<Vec<_>>()
    };
    paths.extend(inside("/proc/irq", "smp_affinity_list"));
    paths.extend(inside("/sys/devices/virtual/workqueue", "cpumask"));
    paths.extend(inside("/sys/fs/cgroup", "cpuset.cpus.partition"));
    paths.extend(inside("/sys/fs/cgroup/cpuset", "cpuset.cpus"));
    for cpu in inside("/sys/devices/system/cpu", "") {
        paths.push(cpu.join("online"));
        paths.push(cpu.join("cpufreq/scaling_governor"));
        paths.extend(inside(path(&cpu.join("cpuidle")), "disable"));
    }
    for device in inside("/sys/class/net", "queues") {
        paths.extend(inside(path(&device), "rps_cpus"));
    }
    paths.into_iter().filter_map(|path| Some((path.clone(), fs::read(&path).ok()?))).collect()
}

/// The threads that have existed for a second. Younger ones, of programs next to the tests, still choose their CPUs.
fn settled_threads() -> BTreeMap<(i32, u64), String> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec.unsigned_abs();
    let second = rustix::param::clock_ticks_per_second();
    let mut threads = threads();
    threads.retain(|(_, start), _| start.saturating_add(second) <= now.saturating_mul(second));
    threads
}

/// The affinity, class and priority of each thread, by its id and start. Skips ended threads, even if their process has other threads or
/// was not waited for: their affinity is never restored.
fn threads() -> BTreeMap<(i32, u64), String> {
    let mut found = BTreeMap::new();
    for process in fs::read_dir("/proc").expect("proc can be listed").flatten() {
        for thread in fs::read_dir(process.path().join("task")).into_iter().flatten().flatten() {
            let text = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
            let (stat, status) = (text("stat"), text("status"));
            // From the third field on, because a name may contain anything.
            let fields: Vec<&str> = stat.rsplit_once(") ").map_or_else(Vec::new, |(_, rest)| rest.split(' ').collect());
            let field = |number: usize| fields.get(number - 3).copied().unwrap_or_default();
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
            let tid = thread.file_name().to_string_lossy().parse().ok();
            if let (Ok(start), Some(cpus), Some(tid)) = (field(22).parse(), cpus, tid)
                && !matches!(field(3), "Z" | "X")
            {
                found.insert((tid, start), format!("CPUs {cpus}, class {}, priority {}", field(41), field(40)));
            }
        }
    }
    found
}

/// The journal's entries about a thread, line by line: nothing else shows why it stayed on the CPUs it was moved to.
fn told(journal: &str, tid: i32) -> Vec<String> {
    let (mut told, mut ours) = (Vec::new(), BTreeSet::new());
    for line in journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let entries = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let is_of = |entry: &Value| [&entry["knob"]["tid"], &entry["tid"]].iter().any(|found| **found == tid);
        if is_of(&line["change"]) {
            ours.extend(line["step"].as_u64());
        }
        told.extend(
            entries(&line["threads"]).iter().filter(|entry| is_of(entry)).map(|entry| format!("noted: {entry}")),
        );
        if line["step"].as_u64().is_some_and(|step| ours.contains(&step)) {
            told.push(line.to_string());
        }
    }
    told
}

/// Takes a CPU offline until dropped.
pub struct Offline(PathBuf);

impl Offline {
    /// `None` if the CPU cannot be taken offline.
    pub fn take(cpu: u32) -> Option<Self> {
        let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        fs::write(&switch, "0").ok().map(|()| Self(switch))
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        fs::write(&self.0, "1").expect("a CPU that was taken can be brought back");
    }
}

/// Changes a kernel setting until dropped.
pub struct ChangedSetting {
    file: PathBuf,
    before: String,
}

impl ChangedSetting {
    /// `None` if it cannot be changed.
    pub fn new(file: &str, value: &str) -> Option<Self> {
        let before = fs::read_to_string(file).ok()?;
        fs::write(file, value).ok().map(|()| Self { file: file.into(), before })
    }
}

impl Drop for ChangedSetting {
    fn drop(&mut self) {
        fs::write(&self.file, &self.before).expect("a setting that was changed can be put back");
    }
}

/// Steps the wall clock until dropped, and then sets it to the correct time.
pub struct SteppedClock {
    /// The offset of the wall clock from the monotonic clock, which cannot be set, in nanoseconds.
    ahead: i128,
}

impl SteppedClock {
    /// Steps the clock; `None` if it cannot be set.
    pub fn new(seconds: i64) -> Option<Self> {
        let ahead = nanos(clock_gettime(ClockId::Realtime)) - nanos(clock_gettime(ClockId::Monotonic));
        set_wall(ahead + i128::from(seconds) * 1_000_000_000).then_some(Self { ahead })
    }
}

impl Drop for SteppedClock {
    fn drop(&mut self) {
        assert!(set_wall(self.ahead), "a clock that was set can be put back");
    }
}

fn nanos(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// Sets the wall clock's offset; returns whether that was allowed.
fn set_wall(ahead: i128) -> bool {
    let wall = nanos(clock_gettime(ClockId::Monotonic)) + ahead;
    let part = |ns: i128| i64::try_from(ns).expect("the wall clock is within centuries");
    let wall = Timespec { tv_sec: part(wall / 1_000_000_000), tv_nsec: part(wall % 1_000_000_000) };
    clock_settime(ClockId::Realtime, wall).is_ok()
}

/// An in-memory file system with these options, unmounted on drop.
pub struct Mounted(tempfile::TempDir);

impl Mounted {
    /// Mounts it in a new directory.
    pub fn tmpfs(options: &str) -> Self {
        let folder = tempfile::tempdir().expect("a directory can be created");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path()).status();
        assert!(status.expect("mount runs").success(), "no file system with {options}");
        Self(folder)
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_runs_nowhere() {
        let mut ends = Command::new("true").spawn().expect("it is everywhere");
        let id = ends.id();
        let has_ended = || fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "));
        while !has_ended() {
            thread::sleep(Duration::from_millis(1));
        }
        let is_there = |id: u32| threads().keys().any(|(tid, _)| tid.unsigned_abs() == id);
        assert!(is_there(std::process::id()) && !is_there(id));
        ends.wait().expect("it has ended");
    }

    #[test]
    fn a_journal_tells_of_a_thread_by_the_number_of_its_step() {
        let step = |number: usize, tid: i32| {
            let change = format!(r#"{{"knob":{{"is":"affinity","tid":{tid}}},"from":"0-1"}}"#);
            format!(r#"{{"record":"step","step":{number},"change":{change}}}"#)
        };
        let journal = [
            r#"{"record":"begin","plan":{"steps":[]}}"#.to_owned(),
            step(0, 7),
            step(1, 74),
            r#"{"record":"threads","threads":[{"tid":7,"cpus":"0-1"},{"tid":8,"cpus":"0"}]}"#.to_owned(),
            step(2, 8),
            r#"{"record":"restored","step":2,"gone":true}"#.to_owned(),
            r#"{"record":"restored","step":0,"gone":false}"#.to_owned(),
        ];
        let told = |tid: i32| told(&journal.join("\n"), tid);
        assert_eq!(told(8).len(), 3, "{:?}", told(8));
        assert!(told(8)[0].starts_with("noted: ") && told(8)[1].contains(r#""step":2"#) && told(8)[2].contains("true"));
        assert!(told(7)[2].contains(r#""gone":false"#), "{:?}", told(7));
        assert!(told(74)[0].contains(r#""step":1"#) && told(9).is_empty());
    }
}
