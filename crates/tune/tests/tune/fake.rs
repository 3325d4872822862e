//! A machine made of files, which behaves as the kernel does where that matters: it prints values in its own way, refuses
//! some, makes and removes what belongs to control groups, and moves threads.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use becalm_linux::file::{path_below, write};
use becalm_linux::procfs::placement::PlacedTasks;
use becalm_tune::Machine;
use becalm_units::{CpuId, CpuList};

/// `EIO`, of interrupts that the kernel manages.
pub const EIO: i32 = 5;
/// `EBUSY`, of files that are in use.
pub const EBUSY: i32 = 16;
/// `EINVAL`.
pub const EINVAL: i32 = 22;
/// `EROFS`.
pub const EROFS: i32 = 30;

/// A machine of files, whose writing can be made to fail.
pub struct Fake {
    root: PathBuf,
    /// Files whose writing fails, with the error's number.
    pub faults: BTreeMap<PathBuf, i32>,
    /// Files of which the kernel makes something else than was written.
    pub rounds: BTreeMap<PathBuf, String>,
    /// Threads that start another one just before they are given other CPUs, with its number.
    pub forks: BTreeMap<i32, i32>,
}

impl Fake {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), faults: BTreeMap::new(), rounds: BTreeMap::new(), forks: BTreeMap::new() }
    }

    /// The text of a file, as anybody sees it.
    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(path_below(&self.root, path)).unwrap().trim().to_owned()
    }

    /// What another program does.
    pub fn set(&self, path: &str, text: &str) {
        fs::write(path_below(&self.root, path), text).unwrap();
    }

    /// What kernels before 6.2 do when a partition comes or goes, or a group gets other CPUs: every thread that may be moved gets
    /// these CPUs, whatever it had.
    fn give_everybody(&self, cpus: &CpuList) -> io::Result<()> {
        let placed = PlacedTasks::read(&self.root).map_err(io::Error::other)?;
        placed
            .tasks
            .iter()
            .filter(|placed| !placed.bound)
            .try_for_each(|placed| self.set_affinity(placed.task.pid, cpus))
    }

    /// Those online that no partition has.
    fn left(&self) -> CpuList {
        let mut left: CpuList = self.text_of(Path::new("/sys/devices/system/cpu/online")).parse().unwrap();
        for group in ["becalm", "becalm.slice"] {
            let folder = Path::new("/sys/fs/cgroup").join(group);
            if matches!(self.text_of(&folder.join("cpuset.cpus.partition")).trim(), "isolated" | "root") {
                left = left.without(&self.text_of(&folder.join("cpuset.cpus")).trim().parse().unwrap());
            }
        }
        left
    }

    fn text_of(&self, path: &Path) -> String {
        fs::read_to_string(path_below(&self.root, path)).unwrap_or_default()
    }

    /// What the kernel makes of a value; nothing if it takes it as it is.
    fn printed(&self, path: &Path, text: &str) -> io::Result<Option<String>> {
        if let Some(rounded) = self.rounds.get(path) {
            return Ok(Some(rounded.clone()));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let invalid = || io::Error::from_raw_os_error(EINVAL);
        let list = || text.parse::<CpuList>().map_err(|_| invalid());
        Ok(match name.as_str() {
            "smp_affinity_list" | "watchdog_cpumask" => {
                if list()?.is_empty() {
                    return Err(invalid());
                }
                Some(format!("{}\n", list()?))
            }
            "cpuset.cpus" | "cpuset.mems" => Some(format!("{}\n", list()?)),
            // Without leading zeros, as `%*pb` does.
            "default_smp_affinity" | "rps_cpus" | "cpumask" => {
                let trimmed = text.trim().trim_start_matches(['0', ',']);
                Some(format!("{}\n", if trimmed.is_empty() { "0" } else { trimmed }))
            }
            "enabled" => {
                let words = self.text_of(path).replace(['[', ']'], "");
                let words = words.split_whitespace();
                if !words.clone().any(|word| word == text.trim()) {
                    return Err(invalid());
                }
                let shown = words.map(|word| if word == text.trim() { format!("[{word}]") } else { word.to_owned() });
                Some(format!("{}\n", shown.collect::<Vec<_>>().join(" ")))
            }
            "cgroup.subtree_control" => {
                let mut words: Vec<String> = self.text_of(path).split_whitespace().map(str::to_owned).collect();
                let (sign, name) = text.trim().split_at(1);
                words.retain(|word| word != name);
                if sign == "+" {
                    words.push(name.to_owned());
                    words.sort();
                }
                Some(format!("{}\n", words.join(" ")))
            }
            "cgroup.procs" => Some(format!("{}{}\n", self.text_of(path), text.trim())),
            _ => Some(format!("{}\n", text.trim())),
        })
    }
}

impl Machine for Fake {
    fn root(&self) -> &Path {
        &self.root
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        if let Some(error) = self.faults.get(path) {
            return Err(io::Error::from_raw_os_error(*error));
        }
        let printed = self.printed(path, text)?;
        write(&self.root, path, printed.as_deref().unwrap_or(text))?;
        if path.ends_with("cpuset.cpus.partition") {
            self.give_everybody(&self.left())?;
        }
        let number =
            path.to_str().and_then(|path| path.strip_prefix("/sys/devices/system/cpu/cpu")?.strip_suffix("/online"));
        if let Some(number) = number {
            let online = Path::new("/sys/devices/system/cpu/online");
            let cpu: CpuList = number.parse().unwrap();
            let now: CpuList = self.text_of(online).parse().unwrap();
            let now: CpuList = match text.trim() {
                "0" => now.without(&cpu),
                _ => now.iter().chain(cpu.iter()).collect(),
            };
            write(&self.root, online, &format!("{now}\n"))?;
        }
        Ok(())
    }

    fn make_group(&self, path: &Path) -> io::Result<()> {
        if let Some(error) = self.faults.get(path) {
            return Err(io::Error::from_raw_os_error(*error));
        }
        let folder = path_below(&self.root, path);
        fs::create_dir(&folder)?;
        for (name, text) in [
            ("cgroup.procs", ""),
            ("cpuset.cpus", "\n"),
            ("cpuset.mems", "\n"),
            ("cpuset.cpus.partition", "member\n"),
            ("cpuset.sched_load_balance", "1\n"),
        ] {
            fs::write(folder.join(name), text)?;
        }
        Ok(())
    }

    fn remove_group(&self, path: &Path) -> io::Result<()> {
        let before = self.left();
        fs::remove_dir_all(path_below(&self.root, path))?;
        if self.left() == before { Ok(()) } else { self.give_everybody(&self.left()) }
    }

    fn set_affinity(&self, tid: i32, cpus: &CpuList) -> io::Result<()> {
        let online: CpuList = self.text_of(Path::new("/sys/devices/system/cpu/online")).parse().unwrap();
        if cpus.intersection(&online).is_empty() {
            return Err(io::Error::from_raw_os_error(EINVAL));
        }
        for placed in PlacedTasks::read(&self.root).map_err(io::Error::other)?.tasks {
            if placed.task.pid == tid {
                if let Some(child) =
                    self.forks.get(&tid).filter(|child| !self.root.join(format!("proc/{child}")).exists())
                {
                    let tree = Tree { root: self.root.clone() };
                    tree.child(*child, "child", 1_000, &placed.cpus.to_string(), tid);
                }
                let (tgid, text) = (placed.task.tgid, format!("Cpus_allowed_list:\t{cpus}\n"));
                fs::write(self.root.join(format!("proc/{tgid}/task/{tid}/status")), &text)?;
                fs::write(self.root.join(format!("proc/{tid}/status")), text)?;
                return Ok(());
            }
        }
        Err(io::Error::from_raw_os_error(3))
    }

    /// Properties and states of units are files.
    fn systemctl(&self, arguments: &[&str]) -> io::Result<String> {
        let unit = |unit: &str, name: &str| PathBuf::from(format!("/units/{unit}.{name}"));
        match arguments {
            ["show", "--property", name, "--value", unit_name] => Ok(self.text_of(&unit(unit_name, name))),
            ["set-property", "--runtime", unit_name, property] => {
                let (name, value) = property.split_once('=').unwrap();
                self.set(unit(unit_name, name).to_str().unwrap(), &format!("{}\n", value.replace(',', " ")));
                let cpus: CpuList = value.parse().unwrap();
                let cpus = if cpus.is_empty() { self.left() } else { cpus };
                if *unit_name == "becalm.slice" {
                    self.set("/sys/fs/cgroup/becalm.slice/cpuset.cpus", &format!("{value}\n"));
                } else {
                    self.give_everybody(&cpus)?;
                }
                Ok(String::new())
            }
            [verb @ ("start" | "stop"), unit_name] => {
                let folder = Path::new("/sys/fs/cgroup").join(unit_name);
                let (state, made) = match *verb {
                    "start" => ("active", self.make_group(&folder)),
                    _ => ("inactive", self.remove_group(&folder)),
                };
                made?;
                self.set(unit(unit_name, "ActiveState").to_str().unwrap(), &format!("{state}\n"));
                Ok(String::new())
            }
            _ => Err(io::Error::other(format!("systemctl {} is not known", arguments.join(" ")))),
        }
    }
}

/// Which control groups a machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Groups {
    None,
    One,
    Two,
    Systemd,
}

/// A tree to be filled.
pub struct Tree {
    pub root: PathBuf,
}

impl Tree {
    pub fn file(&self, path: &str, text: &str) -> &Self {
        let path = path_below(&self.root, path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A thread, whose parent is the kernel's second.
    pub fn thread(&self, tid: i32, comm: &str, flags: u64, start: u64, cpus: &str) -> &Self {
        self.thread_of(tid, comm, flags, start, cpus, 2)
    }

    /// A program's thread that another one started.
    pub fn child(&self, tid: i32, comm: &str, start: u64, cpus: &str, parent: i32) -> &Self {
        self.thread_of(tid, comm, 0, start, cpus, parent)
    }

    fn thread_of(&self, tid: i32, comm: &str, flags: u64, start: u64, cpus: &str, parent: i32) -> &Self {
        let stat = format!("{tid} ({comm}) S {parent} 0 0 0 -1 {flags} 0 0 0 0 3 0 0 0 20 0 1 0 {start} 0 0\n");
        let status = format!("Cpus_allowed_list:\t{cpus}\n");
        for folder in [format!("/proc/{tid}"), format!("/proc/{tid}/task/{tid}")] {
            self.file(&format!("{folder}/stat"), &stat).file(&format!("{folder}/status"), &status);
        }
        self
    }
}

/// Kernel threads, and those that nobody may move.
pub const KTHREAD: u64 = 0x0020_0000;
pub const BOUND: u64 = 0x0420_0000;

/// A machine with so many CPUs, all of whose hardware threads `n` and `n + cpus / 2` share a core if it has siblings.
pub fn machine(root: &Path, cpus: u32, siblings: bool, groups: Groups) -> Tree {
    let tree = Tree { root: root.to_owned() };
    let all: CpuList = (0..cpus).map(CpuId::new).collect();
    let mask = format!("{}\n", all.to_mask().trim_start_matches(['0', ',']));
    let base = "/sys/devices/system/cpu";
    tree.file("/proc/sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000001\n")
        .file("/proc/cmdline", "quiet\n")
        .file(&format!("{base}/online"), &format!("{all}\n"))
        .file("/proc/interrupts", "CPU0\n 5: 1 PCI-MSIX-0 1-edge nvme0q1\n 6: 1 PCI-MSIX-0 1-edge eth0\n")
        .file("/proc/irq/default_smp_affinity", &mask)
        .file("/proc/irq/5/smp_affinity_list", &format!("{all}\n"))
        .file("/proc/irq/6/smp_affinity_list", "1\n")
        .file("/proc/irq/7/smp_affinity_list", "0\n")
        .file("/sys/devices/virtual/workqueue/cpumask", &mask)
        .file("/sys/devices/virtual/workqueue/writeback/cpumask", &mask)
        .file("/sys/class/net/eth0/queues/rx-0/rps_cpus", &mask)
        .file("/sys/class/net/eth0/queues/tx-0/xps_cpus", &mask)
        .file("/proc/sys/kernel/watchdog_cpumask", &format!("{all}\n"))
        .file("/proc/sys/kernel/nmi_watchdog", "1\n")
        .file("/proc/sys/vm/stat_interval", "1\n")
        .file("/proc/sys/kernel/timer_migration", "1\n")
        .file("/proc/sys/kernel/numa_balancing", "1\n")
        .file("/proc/sys/kernel/sched_rt_runtime_us", "950000\n")
        .file("/sys/kernel/mm/ksm/run", "1\n")
        .file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        .file("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", "1\n");
    for cpu in 0..cpus {
        let folder = format!("{base}/cpu{cpu}");
        tree.file(&format!("{folder}/cpufreq/scaling_available_governors"), "performance powersave\n")
            .file(&format!("{folder}/cpufreq/scaling_governor"), "powersave\n")
            .file(&format!("{folder}/cpufreq/related_cpus"), &format!("{cpu}\n"));
        for (number, latency) in [(0, 0), (1, 133)] {
            let state = format!("{folder}/cpuidle/state{number}");
            tree.file(&format!("{state}/name"), "C6\n")
                .file(&format!("{state}/latency"), &format!("{latency}\n"))
                .file(&format!("{state}/disable"), "0\n");
        }
        if siblings {
            let (low, high) = (cpu % (cpus / 2), cpu % (cpus / 2) + cpus / 2);
            tree.file(&format!("{folder}/topology/thread_siblings_list"), &format!("{low},{high}\n"));
        }
        if cpu > 0 {
            tree.file(&format!("{folder}/online"), "1\n");
        }
    }
    tree.thread(1, "init", 0, 1, &all.to_string())
        .thread(2, "kthreadd", KTHREAD, 1, &all.to_string())
        .thread(14, "ksoftirqd/1", BOUND, 2, "1")
        .thread(99, "pinned here", 0, 50, "1")
        .thread(100, "sshd", 0, 60, &all.to_string())
        .thread(101, "elsewhere", 0, 60, "0")
        .thread(102, "narrow", 0, 60, "0-1");
    let top = "/sys/fs/cgroup";
    match groups {
        Groups::None => {
            tree.file("/proc/self/mountinfo", "");
        }
        Groups::One => {
            tree.file("/proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup/cpuset rw - cgroup none rw,cpuset\n")
                .file(&format!("{top}/cpuset/cpuset.cpus"), &format!("{all}\n"))
                .file(&format!("{top}/cpuset/cpuset.mems"), "0\n")
                .file(&format!("{top}/cpuset/cgroup.procs"), "")
                .file(&format!("{top}/cpuset/cpuset.sched_load_balance"), "1\n");
        }
        Groups::Two | Groups::Systemd => {
            tree.file("/proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n")
                .file(&format!("{top}/cgroup.controllers"), "cpuset cpu io memory\n")
                .file(&format!("{top}/cgroup.procs"), "")
                .file(&format!("{top}/cgroup.subtree_control"), "cpu memory\n");
        }
    }
    if groups == Groups::Systemd {
        fs::create_dir_all(root.join("run/systemd/system")).unwrap();
        for unit in ["init.scope", "system.slice", "user.slice", "becalm.slice"] {
            tree.file(&format!("/units/{unit}.AllowedCPUs"), "\n");
        }
        tree.file("/units/becalm.slice.ActiveState", "inactive\n");
    }
    tree
}

/// Every file of a folder with what is in it.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files.insert(path.clone(), Vec::new());
                folders.push(path);
            } else {
                files.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    files
}
