//! The janitor as a process: it cleans up after a parent that was killed, keeps nothing of its parent's open, sleeps without being woken, and ends
//! when its parent does. Directories replace trace instances, so no root is needed.
//!
//! Only a process with one thread can have a janitor, which a test is not: each test forks one that reports through a pipe.

use std::fs;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use becalm_linux::janitor::Janitor;
use becalm_testing::wait_until;

/// A forked process of one thread. It is killed and reaped on drop.
struct Forked {
    process: libc::pid_t,
    output: fs::File,
}

impl Forked {
    /// Runs `life` in the child with a file to speak through, until it returns or is killed.
    fn run(life: impl FnOnce(&mut fs::File)) -> Self {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for the two descriptors; nothing else owns them.
        let (read, mut write) = unsafe {
            assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
            (fs::File::from(OwnedFd::from_raw_fd(ends[0])), fs::File::from(OwnedFd::from_raw_fd(ends[1])))
        };
        // SAFETY: the child runs `life` and ends without returning into the harness; the C library keeps its allocator
        // usable over a fork.
        match unsafe { libc::fork() } {
            -1 => panic!("cannot fork"),
            0 => {
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| life(&mut write)));
                // SAFETY: ends the process.
                unsafe { libc::_exit(i32::from(ended.is_err())) }
            }
            process => Self { process, output: read },
        }
    }

    /// The child's output up to the first end of line.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.output.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the process is our child and not yet reaped.
        unsafe { libc::kill(self.process, signal) };
    }

    fn wait(&self) -> i32 {
        let mut status = 0;
        // SAFETY: `status` is writable; the process is our child.
        unsafe { libc::waitpid(self.process, &raw mut status, 0) };
        status
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        self.wait();
    }
}

fn say(output: &mut fs::File, what: impl std::fmt::Display) {
    use std::io::Write;
    writeln!(output, "{what}").unwrap();
}

fn sleep_for_ever() -> ! {
    loop {
        thread::sleep(Duration::from_secs(1000));
    }
}

fn is_gone(pid: &str) -> bool {
    // Reaped or, if no process adopts orphans, dead but not yet reaped.
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// A parent with a janitor that guards all directories but the last, and the janitor's pid.
fn parent_of_janitor(folders: &[PathBuf]) -> (Forked, String) {
    let mut parent = Forked::run(|output| {
        let janitor = Janitor::spawn(Path::new("/proc")).unwrap();
        for folder in folders {
            janitor.guard(folder).unwrap();
        }
        janitor.release(folders.last().unwrap()).unwrap();
        say(output, janitor.pid());
        sleep_for_ever()
    });
    let pid = parent.line();
    (parent, pid)
}

fn folders(root: &Path) -> [PathBuf; 3] {
    ["a", "b", "released"].map(|name| {
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        folder
    })
}

#[test]
fn a_killed_parents_instances_are_removed() {
    for signal in [libc::SIGKILL, libc::SIGTERM] {
        let root = tempfile::tempdir().unwrap();
        let [a, b, released] = folders(root.path());
        let (parent, pid) = parent_of_janitor(&[a.clone(), b.clone(), released.clone()]);
        assert!(a.exists() && b.exists());
        parent.signal(signal);
        wait_until("the guarded folders go", || !a.exists() && !b.exists());
        assert!(released.exists(), "what was released stays");
        wait_until("the janitor goes", || is_gone(&pid));
    }
}

#[test]
fn it_survives_the_signals_that_its_parent_dies_of() {
    let root = tempfile::tempdir().unwrap();
    let [a, b, released] = folders(root.path());
    let (parent, pid) = parent_of_janitor(&[a.clone(), b, released]);
    wait_until("the janitor has its name", || {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "becalm-janitor\n")
    });
    // The name comes last, except for the scheduling class and the files; neither takes long.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the janitor lives as long as its parent, which is our child.
        unsafe { libc::kill(pid.parse().unwrap(), signal) };
    }
    thread::sleep(Duration::from_millis(50));
    assert!(!is_gone(&pid));
    parent.signal(libc::SIGKILL);
    wait_until("the guarded folder goes", || !a.exists());
}

#[test]
fn it_holds_nothing_open_and_sleeps_unwoken() {
    let root = tempfile::tempdir().unwrap();
    let (mut parent, pid) = parent_of_janitor(&folders(root.path()));
    let open = || fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    wait_until("only its socket is open", || open() == 1);
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let lines: Vec<&str> = status.lines().filter(|line| line.contains("ctxt_switches")).collect();
        lines.join(" ")
    };
    thread::sleep(Duration::from_millis(50));
    let before = switches();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(switches(), before, "it was woken");
    // The pipe ends with the parent, although the janitor may still be about.
    parent.signal(libc::SIGKILL);
    assert_eq!(parent.line(), "");
}

#[test]
fn an_orderly_end_leaves_neither_janitor_nor_zombie() {
    let root = tempfile::tempdir().unwrap();
    let [a, _, _] = folders(root.path());
    let mut parent = Forked::run(|output| {
        let janitor = Janitor::spawn(Path::new("/proc")).unwrap();
        janitor.guard(&a).unwrap();
        assert!(janitor.guard(Path::new("relative")).is_err());
        let pid = janitor.pid();
        drop(janitor);
        say(output, format!("{} {}", Path::new(&format!("/proc/{pid}")).exists(), a.exists()));
    });
    assert_eq!(parent.line(), "false false");
    assert_eq!(parent.wait(), 0);
}

#[test]
fn a_program_that_the_parent_started_does_not_keep_it() {
    let root = tempfile::tempdir().unwrap();
    let [a, _, _] = folders(root.path());
    let mut parent = Forked::run(|output| {
        let janitor = Janitor::spawn(Path::new("/proc")).unwrap();
        janitor.guard(&a).unwrap();
        let mut command = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        say(output, command.id());
        command.wait().unwrap();
    });
    let command: i32 = parent.line().parse().unwrap();
    parent.signal(libc::SIGKILL);
    wait_until("the guarded folder goes", || !a.exists());
    // SAFETY: a process that this test started.
    unsafe { libc::kill(command, libc::SIGKILL) };
}

#[test]
fn a_killed_janitor_is_an_error_and_no_signal() {
    let mut parent = Forked::run(|output| {
        // SAFETY: restores the default, under which a write to a closed pipe would end the process.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let janitor = Janitor::spawn(Path::new("/proc")).unwrap();
        // SAFETY: the janitor is this process's child.
        unsafe { libc::kill(janitor.pid(), libc::SIGKILL) };
        wait_until("the janitor dies", || is_gone(&janitor.pid().to_string()));
        say(output, janitor.guard(Path::new("/a")).is_err());
    });
    assert_eq!(parent.line(), "true");
}

/// By the end of a recording the parent has not the right to any more, and may be another's by then.
#[test]
fn a_sealed_janitor_removes_what_it_guards_and_takes_nothing_more() {
    let root = tempfile::tempdir().unwrap();
    let [guarded, other, _] = folders(root.path());
    let mut parent = Forked::run(|output| {
        let janitor = Janitor::spawn(Path::new("/proc")).unwrap();
        janitor.guard(&guarded).unwrap();
        janitor.seal().unwrap();
        let refused = janitor.guard(&other).is_err() && janitor.guard_mount(&other).is_err();
        let unknown = janitor.take_away(&other).is_err() && janitor.unmount(&other).is_err();
        let taken = janitor.take_away(&guarded).is_ok() && !guarded.exists();
        say(output, format!("{refused} {unknown} {taken}"));
    });
    assert_eq!(parent.line(), "true true true");
    parent.wait();
    assert!(other.exists());
}
