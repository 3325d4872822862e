//! One guest: its parts, its life, and its results.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::program::libraries;
use crate::{Initramfs, Kernel, LabError, Scenario};

/// The guest's first process; it describes the protocol with this module.
const INIT: &[u8] = include_bytes!("../guest/init");

/// The path of Debian's package busybox-static and others.
const BUSYBOX: &str = "/bin/busybox";
const PROGRAMS: &str = "/usr/bin";

/// The message of the first process before it starts the scenario.
const UP: &str = "the guest is up";

const DISK: &str = "disk";
const OUT: &str = "out";
/// The space for a guest's results; the file is sparse.
const DISK_BYTES: u64 = 256 << 20;
const MEMORY: &str = "1024M";

/// The destination of a guest's console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Console {
    /// Only [`Outcome::console`]: the kernel is quiet and the scenario's output goes to a file, because printing on an emulated serial port
    /// causes noise.
    Kept,
    /// Standard output, continuously.
    Shown,
}

/// A guest to boot.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// The scenario and its machine. The script runs as root in the empty directory `/out`; files that it leaves there are returned.
    pub scenario: &'a Scenario,
    /// Its kernel, of the scenario's flavor.
    pub kernel: &'a Kernel,
    /// The program in the scenario's `PATH`, under its file name.
    pub becalm: &'a Path,
    /// The destination of its console.
    pub console: Console,
    /// The time limit from power-on to power-off.
    pub limit: Duration,
    /// The time limit from power-on to the start of its scenario.
    pub boot_limit: Duration,
}

/// The results of a guest.
#[derive(Debug)]
pub struct Outcome {
    folder: TempDir,
    console: String,
    status: i32,
    wall: Duration,
}

impl Outcome {
    /// The path of a file that the scenario left in `/out`. Its output is in `log`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(OUT).join(name)
    }

    /// The contents of a text file that the scenario left, trimmed. Fails if there is no such file.
    pub fn text(&self, name: &str) -> Result<String, LabError> {
        let path = self.path(name);
        let bytes = fs::read(&path).map_err(LabError::file("read", &path))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The exit status of the scenario.
    pub const fn status(&self) -> i32 {
        self.status
    }

    /// Moves all of the scenario's files to a permanent directory, replacing its contents. Fails if the directory cannot be replaced.
    pub fn keep(&self, folder: &Path) -> Result<(), LabError> {
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(LabError::file("remove", folder))?;
        }
        fs::create_dir_all(folder).map_err(LabError::file("create", folder))?;
        unpack(&self.folder.path().join(DISK), folder).map_err(|why| LabError::no_result(why, ""))
    }

    /// The text on the guest's console.
    pub fn console(&self) -> &str {
        &self.console
    }

    /// The time from power-on to power-off.
    pub const fn wall(&self) -> Duration {
        self.wall
    }
}

impl Guest<'_> {
    /// Boots the guest, waits for its end and unpacks its results. Fails if the guest cannot be started, exceeds its limits, or ends
    /// without a result. A failed scenario is no error here: see [`Outcome::status`].
    pub fn run(&self) -> Result<Outcome, LabError> {
        let folder = tempfile::tempdir().map_err(LabError::file("create a directory in", Path::new("/tmp")))?;
        let initramfs = folder.path().join("initramfs.cpio");
        let disk = folder.path().join(DISK);
        let console = folder.path().join("console");
        fs::write(&initramfs, self.initramfs()?).map_err(LabError::file("write", &initramfs))?;
        File::create(&disk).and_then(|file| file.set_len(DISK_BYTES)).map_err(LabError::file("create", &disk))?;

        let start = Instant::now();
        let status = self.boot(&initramfs, &disk, &console)?;
        let wall = start.elapsed();

        let console = fs::read(&console).map_err(LabError::file("read", &console))?;
        let console = String::from_utf8_lossy(&console).replace('\r', "");
        let out = folder.path().join(OUT);
        fs::create_dir(&out).map_err(LabError::file("create", &out))?;
        unpack(&disk, &out).map_err(|why| LabError::no_result(format!("{why}; {status}"), &end_of(&console)))?;
        let mut outcome = Outcome { folder, console, status: 0, wall };
        outcome.status = outcome
            .text("status")?
            .parse()
            .map_err(|_| LabError::no_result("its status is no number", &end_of(&outcome.console)))?;
        Ok(outcome)
    }

    fn initramfs(&self) -> Result<Vec<u8>, LabError> {
        let mut archive = Initramfs::new();
        for folder in ["bin", "dev", "etc", "home", "modules", "out", "proc", "sys", "tmp"] {
            archive.folder(folder);
        }
        archive.file("init", INIT);
        archive.file("etc/passwd", b"root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/home:/bin/sh\n");
        archive.copy("bin/busybox", Path::new(BUSYBOX))?;
        let others = self.scenario.programs.iter().map(|program| Path::new(PROGRAMS).join(program));
        for program in [self.becalm.to_owned()].into_iter().chain(others) {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            archive.copy(&format!("bin/{name}"), &program)?;
            for library in libraries(&program)? {
                archive.copy_in_place(&library)?;
            }
        }
        for (position, module) in self.kernel.disk_modules()?.iter().enumerate() {
            // The shell lists files by name, so the numbers keep the order.
            archive.copy(&format!("modules/{position}.ko"), module)?;
        }
        archive.copy("scenario", &self.scenario.path)?;
        Ok(archive.finish())
    }

    fn boot(&self, initramfs: &Path, disk: &Path, console: &Path) -> Result<ExitStatus, LabError> {
        let drive = format!("file={},format=raw,if=virtio,cache=unsafe", disk.display());
        let serial = format!("file:{}", console.display());
        // Parameters unknown to the kernel become variables of the first process.
        let verbosity = match self.console {
            Console::Kept => "quiet",
            Console::Shown => "LIVE=1",
        };
        // Booting kernels test their ciphers, which takes a tenth of the boot on an emulated CPU.
        let append = format!("console=ttyS0 panic=-1 cryptomgr.notests {verbosity} {}", self.scenario.parameters);
        // Request software emulation explicitly: /dev/kvm exists on machines where it does not work, and using it only where it works would
        // make the lab behave differently between machines.
        let mut child = Command::new("qemu-system-x86_64")
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", MEMORY, "-smp"])
            .arg(self.scenario.cpus.to_string())
            .args(["-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-serial", &serial])
            // A device with interrupts that a scenario can cause and move: writes to /dev/ttyS1 are discarded.
            .args(["-serial", "null"])
            .args(["-drive", &drive, "-append", &append, "-kernel"])
            .arg(self.kernel.image()?)
            .arg("-initrd")
            .arg(initramfs)
            .stdin(Stdio::null())
            .spawn()
            .map_err(LabError::start("qemu-system-x86_64", "qemu-system-x86"))?;
        self.wait(&mut child, console)
    }

    /// Waits for the emulator, and kills it after the time limit. Copies a shown console to standard output as it grows.
    fn wait(&self, child: &mut Child, console: &Path) -> Result<ExitStatus, LabError> {
        let failed = || LabError::file("wait for", Path::new("qemu-system-x86_64"));
        let written =
            || fs::read(console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let start = Instant::now();
        let mut shown = None;
        let mut up = false;
        loop {
            let ended = child.try_wait().map_err(failed())?;
            if self.console == Console::Shown {
                show(console, &mut shown).map_err(LabError::file("show", console))?;
            }
            if let Some(status) = ended {
                return Ok(status);
            }
            let taken = start.elapsed();
            // Read the console only once, when the message must be there.
            up = up || (taken >= self.boot_limit && written().contains(UP));
            if taken >= self.limit || (taken >= self.boot_limit && !up) {
                child.kill().map_err(failed())?;
                child.wait().map_err(failed())?;
                let console = end_of(&written());
                return Err(if taken >= self.limit {
                    LabError::Hang(self.limit, console)
                } else {
                    LabError::NoBoot(self.boot_limit, console)
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Copies new text of a console to standard output. The emulator creates the console a moment after its start.
fn show(console: &Path, shown: &mut Option<File>) -> io::Result<()> {
    if shown.is_none() && console.exists() {
        *shown = Some(File::open(console)?);
    }
    if let Some(file) = shown {
        let mut new = Vec::new();
        file.read_to_end(&mut new)?;
        let mut output = io::stdout().lock();
        output.write_all(&new)?;
        output.flush()?;
    }
    Ok(())
}

/// Unpacks the archive at the start of the guest's disk.
fn unpack(disk: &Path, folder: &Path) -> Result<(), String> {
    let file = File::open(disk).map_err(|error| error.to_string())?;
    // tar stops at the end of its archive, so the rest of the disk is not read. Files lose their owner, so the user who runs the tests can
    // remove them.
    let output = Command::new("tar")
        .args(["--extract", "--strip-components=1", "--no-same-owner", "--no-same-permissions", "--directory"])
        .arg(folder)
        .stdin(file)
        .output()
        .map_err(|error| format!("cannot start tar: {error}"))?;
    if output.status.success() && folder.join("status").exists() {
        Ok(())
    } else {
        Err(format!("its disk holds no archive: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

fn end_of(console: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = console.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
