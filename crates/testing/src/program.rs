//! Runs the program `becalm` under test: starts, watches and signals it, and checks that no process or trace instance of it remains.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit};
use serde_json::Value;

use crate::wait_until;

/// The kernel's directory of trace instances.
pub const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// Marks the processes of one start in their environment.
const MARK: &str = "BECALM_TEST_MARK";

/// The path of the program, built by Cargo for the integration tests of its package.
pub fn executable() -> PathBuf {
    env::var_os("CARGO_BIN_EXE_becalm").map(PathBuf::from).expect("Cargo tells integration tests where the program is")
}

/// A command that runs the program with these arguments, without the developer's defaults.
pub fn becalm(arguments: &[&str]) -> Command {
    let mut command = Command::new(executable());
    command.args(arguments).env("BECALM_CONFIG", "");
    forget_looks(&mut command);
    command
}

/// Removes variables that affect the appearance of texts: the developer's, or a CI service's. Such a service sets `CI`, which enables
/// colors even on a dumb terminal.
pub fn forget_looks(command: &mut Command) {
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "COLUMNS", "LINES", "PAGER", "LESS"] {
        command.env_remove(name);
    }
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; after a signal 128 plus its number, as in shells.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ended {
    /// Checks the exit code, and that the messages contain these words.
    #[track_caller]
    pub fn expect(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "no '{word}' in {self:#?}");
        }
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }
}

/// A running process with captured output.
pub struct Running {
    child: Child,
    mark: String,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts a command with captured output and no input.
    pub fn start(command: Command) -> Self {
        Self::start_into(command, Stdio::piped())
    }

    /// The same with standard output redirected.
    pub fn start_into(mut command: Command, output: impl Into<Stdio>) -> Self {
        command.stdout(output).stderr(Stdio::piped());
        Self::spawn(command)
    }

    /// The same with both outputs redirected to the caller's pipe.
    pub fn start_on(mut command: Command, pipe: &PipeWriter) -> Self {
        let end = || pipe.try_clone().expect("the pipe is open");
        command.stdout(end()).stderr(end());
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        command.env(MARK, &mark).stdin(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let stdout = child.stdout.take().map(reader);
        let stderr = child.stderr.take().map(reader);
        Self { child, mark, stdout, stderr }
    }

    /// The id of the program's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs").success());
    }

    /// Waits until the recording in a bundle has started: its document is written just before the loops start.
    pub fn wait_for_start(&mut self, bundle: &Path) {
        self.wait_until("the recording starts", || document_path(bundle).is_some());
    }

    /// Waits for a condition while the process runs.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, happened: impl Fn() -> bool) {
        wait_until(what, || {
            let has_ended = self.has_ended();
            let happened = happened();
            assert!(happened || !has_ended, "it ended before {what}: {:#?}", self.take_end());
            happened
        });
    }

    /// Waits for its end and checks that nothing remains of it.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        wait_until("it ends", || self.has_ended());
        let pid = self.pid();
        // The janitor of a killed process needs a moment to clean up.
        wait_until("its processes and trace instances are gone", || {
            processes(&self.mark).is_empty() && instances_of(pid).is_empty()
        });
        self.take_end()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the process is ours").is_some()
    }

    /// Its result.
    pub(crate) fn take_end(&mut self) -> Ended {
        let status = self.child.wait().expect("the process is ours");
        let text = |reader: &mut Option<JoinHandle<String>>| {
            reader.take().map_or_else(String::new, |reader| reader.join().expect("the reader ends"))
        };
        Ended { code: code(status), stdout: text(&mut self.stdout), stderr: text(&mut self.stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A failed test must not leave a recording behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs a command to completion.
#[track_caller]
pub fn run(command: Command) -> Ended {
    Running::start(command).end()
}

/// Runs becalm to completion.
#[track_caller]
pub fn run_becalm(arguments: &[&str]) -> Ended {
    run(becalm(arguments))
}

/// A copy of the program in a directory, which becomes accessible to all users, unlike the build directory.
pub fn public_program(folder: &Path) -> PathBuf {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("the directory is ours");
    let program = folder.join("becalm");
    if !program.exists() {
        fs::copy(executable(), &program).expect("the program can be copied");
    }
    program
}

/// Runs a command that leaves nothing behind, and kills it after `longest`: `None` in that case.
///
/// For thousands of short runs: unlike [`run`] it starts no threads, and does not check for leftovers.
pub fn run_within(mut command: Command, longest: Duration) -> Option<Ended> {
    let output = || File::from(memfd_create("output", MemfdFlags::CLOEXEC).expect("there is memory for an output"));
    let (mut stdout, mut stderr) = (output(), output());
    let copy = |file: &File| Stdio::from(file.try_clone().expect("the file is open"));
    let child = command.stdin(Stdio::null()).stdout(copy(&stdout)).stderr(copy(&stderr)).spawn();
    let mut child = child.expect("the program starts");
    let pid = Pid::from_child(&child);
    let end = pidfd_open(pid, PidfdFlags::empty()).expect("the process is ours");
    let longest = Timespec::try_from(longest).expect("seconds fit");
    let ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&longest)).expect("a process can be waited for");
    if ended == 0 {
        let _ = child.kill();
    }
    let status = child.wait().expect("the process is ours");
    let read = |file: &mut File| {
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("the output can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    (ended > 0).then(|| Ended { code: code(status), stdout: read(&mut stdout), stderr: read(&mut stderr) })
}

/// Runs `act` with a memory limit, in bytes, on this process and its children.
pub fn within_memory(bytes: u64, act: impl FnOnce()) {
    let before = getrlimit(Resource::As);
    let limit = before.maximum.map_or(bytes, |maximum| maximum.min(bytes));
    setrlimit(Resource::As, Rlimit { current: Some(limit), ..before }).expect("a limit can be lowered");
    let done = catch_unwind(AssertUnwindSafe(act));
    setrlimit(Resource::As, before).expect("a limit can be put back");
    if let Err(panic) = done {
        resume_unwind(panic);
    }
}

/// Raises the limit of open files to `wanted` if allowed; returns the limit.
pub fn allow_descriptors(wanted: u64) -> u64 {
    let before = getrlimit(Resource::Nofile);
    let maximum = before.maximum.map_or(wanted, |maximum| maximum.max(wanted));
    for limit in
        [Rlimit { current: Some(wanted), maximum: Some(maximum) }, Rlimit { current: before.maximum, ..before }]
    {
        if before.current.is_some_and(|current| current < wanted) && setrlimit(Resource::Nofile, limit).is_ok() {
            break;
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The exit code, or 128 plus the number of the signal.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The names of living processes with the mark in their environment.
fn processes(mark: &str) -> Vec<String> {
    let entry = format!("{MARK}={mark}");
    let living = fs::read_dir("/proc").expect("proc can be listed").flatten().filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    });
    living.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok()).collect()
}

/// The trace instances of a process.
pub fn instances_of(pid: u32) -> Vec<String> {
    let prefix = format!("becalm-{pid}-");
    instances().into_iter().filter(|name| name.starts_with(&prefix)).collect()
}

/// All trace instances; empty if they are inaccessible.
pub fn instances() -> Vec<String> {
    let entries = fs::read_dir(INSTANCES).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The document of a bundle's only node, once it exists.
pub fn document_path(bundle: &Path) -> Option<PathBuf> {
    let documents = fs::read_dir(bundle.join("runs")).ok()?.flatten().map(|entry| entry.path());
    documents.into_iter().find(|path| path.extension() == Some(OsStr::new("json")))
}

/// The document of the only node of a bundle.
#[track_caller]
pub fn document(bundle: &Path) -> Value {
    let path = document_path(bundle).expect("the bundle holds a document");
    serde_json::from_str(&fs::read_to_string(path).expect("the document can be read")).expect("the document is JSON")
}

/// The codes of the warnings of a document or report.
pub fn warning_codes(document: &Value) -> Vec<&str> {
    document["warnings"].as_array().into_iter().flatten().filter_map(|warning| warning["code"].as_str()).collect()
}

/// The recording's report as JSON; fails unless it opens and its accounts, if any, are exact.
#[track_caller]
pub fn report(bundle: &Path) -> Value {
    let ended = run_becalm(&["report", "--json", path(bundle)]);
    ended.expect(0, &[]);
    let report: Value = serde_json::from_str(&ended.stdout).expect("the report is one JSON document");
    assert_eq!(report["schema"], "becalm.report/1");
    assert!(!warning_codes(&report).contains(&"books_open"), "{report:#}");
    report
}

/// The number of segments of a table in a bundle.
pub fn segments(bundle: &Path) -> usize {
    let nodes = fs::read_dir(bundle.join("detours")).into_iter().flatten().flatten();
    let files = nodes.flat_map(|node| fs::read_dir(node.path()).into_iter().flatten().flatten());
    files.filter(|file| file.path().extension() == Some(OsStr::new("parquet"))).count()
}

/// A pipe that is full until read.
pub fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = io::pipe().expect("there is room for a pipe");
    fcntl_setfl(&writer, OFlags::NONBLOCK).expect("the pipe is open");
    while writer.write(&[b'x'; 4_096]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).expect("the pipe is open");
    (reader, writer)
}

/// Reads a CPU's buffered events of an instance. There may never be more if becalm has switched it off.
pub fn take_events(instance: &Path, cpu: u32) {
    let mut reader =
        File::open(instance.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"))).expect("an instance of tracefs");
    fcntl_setfl(&reader, OFlags::NONBLOCK).expect("the file is open");
    let _ = reader.read(&mut [0; 4_096]);
}

/// A path as an argument.
pub fn path(path: &Path) -> &str {
    path.to_str().expect("the test's own paths are text")
}
