//! The machine as changes see it: files, control groups, threads, systemd. Tests replace it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use becalm_linux::procfs::placement::{PlacedTasks, placement};
use becalm_linux::sysfs::cpu;
use becalm_linux::{file, sched};
use becalm_units::CpuList;

/// The readable and changeable parts of a machine. Paths are absolute, as on the machine itself.
pub trait Machine {
    /// The directory that contains the machine's files.
    fn root(&self) -> &Path;

    /// The complete text of a file.
    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(file::path_below(self.root(), path))
    }

    /// Writes a text to an existing file, in one call.
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        file::write(self.root(), path, text)
    }

    /// Whether a directory exists.
    fn has_folder(&self, path: &Path) -> bool {
        file::path_below(self.root(), path).is_dir()
    }

    /// Creates a control group.
    fn make_group(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(file::path_below(self.root(), path))
    }

    /// Removes a control group without threads.
    fn remove_group(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(file::path_below(self.root(), path))
    }

    /// Every thread with its CPUs. Fails if /proc cannot be listed.
    fn tasks(&self) -> io::Result<PlacedTasks> {
        PlacedTasks::read(self.root()).map_err(io::Error::other)
    }

    /// The start of a thread, in clock ticks since boot, and its CPUs; `None` if it has ended. Fails if its files cannot be read.
    fn affinity(&self, tid: i32) -> io::Result<Option<(u64, CpuList)>> {
        placement(self.root(), tid).map_err(io::Error::other)
    }

    /// Restricts a thread to these CPUs.
    fn set_affinity(&self, tid: i32, cpus: &CpuList) -> io::Result<()>;

    /// Runs systemctl and returns its output. Fails if it cannot be run, or if it fails, with its error message.
    fn systemctl(&self, arguments: &[&str]) -> io::Result<String>;
}

/// The machine that this process runs on.
#[derive(Debug)]
pub struct LiveMachine {
    root: PathBuf,
}

impl LiveMachine {
    /// The machine that this process runs on.
    pub fn new() -> Self {
        Self::for_root(Path::new("/"))
    }

    /// A tree of files instead of the machine's: plans can be made from it, and its files changed; it has no threads or units.
    pub fn for_root(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn is_fake(&self) -> bool {
        self.root != Path::new("/")
    }
}

impl Default for LiveMachine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine for LiveMachine {
    fn root(&self) -> &Path {
        &self.root
    }

    fn set_affinity(&self, tid: i32, cpus: &CpuList) -> io::Result<()> {
        if self.is_fake() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the threads of a tree of files cannot be moved"));
        }
        sched::set_affinity_of(tid, cpus).map_err(|error| match error {
            sched::SchedError::Affinity { source, .. } => source,
            other => io::Error::other(other),
        })
    }

    fn systemctl(&self, arguments: &[&str]) -> io::Result<String> {
        if self.is_fake() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "a tree of files has no systemd"));
        }
        let output = Command::new("systemctl").args(arguments).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!("systemctl {} failed: {}", arguments.join(" "), said.trim())))
    }
}

/// The online CPUs.
pub(crate) fn online(machine: &dyn Machine) -> CpuList {
    cpu::online(machine.root()).unwrap_or_default()
}
