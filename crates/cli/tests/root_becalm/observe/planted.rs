//! Threads that act only while `becalm observe` records: the kernel's accounts of them grow within the recording alone.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use becalm_linux::procfs::task::{Schedstat, TaskStat};
use becalm_linux::sched;
use becalm_testing::program::{Running, becalm, document, path};
use becalm_testing::wait_until;
use serde_json::Value;
use tempfile::TempDir;

use super::{number, threads};

/// A recording that lasts until [`Recording::end`]. Its command starts after the books, and ends them.
pub struct Recording {
    _folder: TempDir,
    bundle: PathBuf,
    running: Running,
    /// Open for reading as well, so opening it does not wait for the command.
    end: File,
}

impl Recording {
    /// Starts it, and waits until the books are open.
    pub fn start(words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("planted.becalm");
        let (ready, fifo) = (folder.path().join("ready"), folder.path().join("fifo"));
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let end = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let script = r#"echo > "$0"; read line < "$1""#;
        let command = ["-o", path(&bundle), "--", "sh", "-c", script, path(&ready), path(&fifo)];
        let mut running = Running::start(becalm(&[&["observe"], words, &command].concat()));
        running.wait_until("the books are open", || ready.exists());
        Self { _folder: folder, bundle, running, end }
    }

    /// The number of becalm's process.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Ends the books. becalm goes on.
    pub fn stop(&mut self) {
        use std::io::Write;
        self.end.write_all(b"\n").unwrap();
    }

    /// Ends it. The document, and what becalm printed.
    pub fn end(mut self) -> (Value, String) {
        self.stop();
        let ended = self.running.end();
        ended.expect(0, &[]);
        let doc = document(&self.bundle);
        threads(&doc);
        (doc, ended.stdout)
    }
}

/// A difference of a thread with few switches, in nanoseconds: a busy host takes the CPU between the kernel's clock and the event.
const LEAST: i64 = 100_000;

/// What a planted thread does.
pub type Act<'a> = Box<dyn FnOnce() + Send + 'a>;

/// A planted thread.
struct Planted {
    tid: i32,
    go: mpsc::Sender<()>,
    told: mpsc::Receiver<i32>,
}

/// A recording of planted threads.
pub struct Observed {
    /// The document.
    pub doc: Value,
    /// What becalm printed.
    pub stdout: String,
    /// The numbers of the planted threads, and by how much the kernel's accounts of them grew.
    pub accounts: Vec<(i32, Schedstat)>,
}

/// Observes threads with these names. They sleep until the books are open, act, and sleep again until they are closed. `prepare` gets their numbers
/// before that.
pub fn observe<'a>(words: &[&str], actors: Vec<(&'a str, Act<'a>)>, prepare: impl FnOnce(&[i32])) -> Observed {
    thread::scope(|scope| {
        let planted: Vec<Planted> = actors
            .into_iter()
            .map(|(name, act)| {
                let (go, wait) = mpsc::channel();
                let (tell, told) = mpsc::channel();
                let body = move || {
                    let tid = sched::current_tid();
                    tell.send(tid).unwrap();
                    // A failure of the test closes the channel.
                    if wait.recv().is_ok() {
                        act();
                        tell.send(tid).unwrap();
                        let _ = wait.recv();
                    }
                };
                let thread = thread::Builder::new().name(name.to_owned()).stack_size(128 << 10);
                thread.spawn_scoped(scope, body).expect("a thread can be started");
                Planted { tid: told.recv().unwrap(), go, told }
            })
            .collect();
        let tids: Vec<i32> = planted.iter().map(|planted| planted.tid).collect();
        prepare(&tids);
        let before = accounts(&tids);
        let recording = Recording::start(words);
        for planted in &planted {
            planted.go.send(()).unwrap();
        }
        for planted in &planted {
            planted.told.recv().expect("the planted thread does not fail");
        }
        let after = accounts(&tids);
        let (doc, stdout) = recording.end();
        let grown = before.iter().zip(after).map(|(before, after)| Schedstat {
            ran: after.ran - before.ran,
            waited: after.waited - before.waited,
            runs: after.runs - before.runs,
        });
        Observed { doc, stdout, accounts: tids.iter().copied().zip(grown).collect() }
    })
}

/// The kernel's accounts of these threads, which sleep or will soon.
fn accounts(tids: &[i32]) -> Vec<Schedstat> {
    let root = Path::new("/");
    let is_asleep = |tid: &i32| TaskStat::read(root, *tid).unwrap().is_some_and(|stat| stat.state == 'S');
    wait_until("the planted threads sleep", || tids.iter().all(is_asleep));
    tids.iter().map(|tid| Schedstat::read(root, *tid).expect("the kernel accounts for threads")).collect()
}

impl Observed {
    /// The books of a planted thread, by its place.
    pub fn thread(&self, place: usize) -> &Value {
        let tid = i64::from(self.accounts[place].0);
        let all = self.doc["threads"].as_array().unwrap();
        all.iter().find(|thread| number(thread, "tid") == tid).unwrap_or_else(|| panic!("{tid} is not in {all:#?}"))
    }

    /// Compares the books of a planted thread with the kernel's account of it.
    pub fn compare(&self, place: usize) -> Result<(), String> {
        let (thread, account) = (self.thread(place), self.accounts[place].1);
        let host: i64 = parts(thread, "ran", "host").map(|part| number(part, "ns")).sum();
        let (ran, queued) = (number(thread, "ran_ns") - host, number(thread, "queued_ns") + number(thread, "quota_ns"));
        let switches = number(thread, "switches");
        let figures = format!("{} ran {ran}, queued {queued}, {switches} switches; {account:?}", thread["name"]);
        eprintln!("{figures}; {} switches are not in the trace", lacking(&self.doc));
        let runs = account.runs as i64;
        let near = |ours: i64, kernels: i64, percent: i64| {
            (ours - kernels).abs() <= LEAST + 5_000 * runs + kernels * percent / 100
        };
        let is_near = near(ran, account.ran.get(), 2) && near(queued, account.waited.get(), 1);
        ((switches - runs).abs() <= lacking(&self.doc) && is_near).then_some(()).ok_or(figures)
    }
}

/// The number of switches that the trace lacks: some of them may be those of any thread.
pub fn lacking(doc: &Value) -> i64 {
    number(doc, "repaired_switches") + number(doc, "unknown_switches")
}

/// The parts of a thread's time of one kind, such as `own` in `ran`.
pub fn parts<'a>(thread: &'a Value, list: &str, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    thread[list].as_array().unwrap().iter().filter(move |part| part["kind"] == kind)
}

/// Time and count of the parts with this source.
pub fn of_source(thread: &Value, list: &str, source: &str) -> (i64, i64) {
    let parts = thread[list].as_array().unwrap().iter().filter(|part| part["source"] == source);
    parts.fold((0, 0), |(ns, count), part| (ns + number(part, "ns"), count + number(part, "count")))
}
