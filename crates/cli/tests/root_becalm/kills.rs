//! Killed with SIGKILL at random moments, again and again: nothing that becalm changed, started or made stays behind, and what
//! it stored can be read.
//!
//! Three times each in every run of the tests; `make test-attack` does it a hundred times, as `BECALM_KILLS` says.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use becalm_testing::program::{Running, becalm, document_path, instances, path, run, run_becalm};

use crate::tune::Bench;

fn kills() -> u32 {
    std::env::var("BECALM_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3)
}

/// Random delays, which a failure prints.
struct Delays(u64);

impl Delays {
    fn new() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64) | 1)
    }

    fn up_to(&mut self, longest: Duration) -> Duration {
        // Xorshift, by G. Marsaglia (2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        longest.mul_f64((self.0 >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// Starts a command, kills it within `longest`, lets `after` do what a user would, and looks whether all is as it was.
fn killed(
    what: &str,
    longest: Duration,
    before: impl Fn(&Bench),
    command: impl Fn(&Bench) -> Command,
    after: impl Fn(&Bench),
) {
    let Some(bench) = Bench::new() else { return };
    let before_instances = instances();
    let mut delays = Delays::new();
    for round in 0..kills() {
        before(&bench);
        let delay = delays.up_to(longest);
        let running = Running::start(command(&bench));
        thread::sleep(delay);
        running.signal("KILL");
        let when = format!("{what}, round {round}, killed after {delay:?}");
        // No process of it remains, and no trace instance.
        running.end();
        after(&bench);
        bench.is_as_before(&when);
        assert_eq!(instances(), before_instances, "{when}");
    }
}

fn nothing(_: &Bench) {}

fn output(bench: &Bench) -> std::path::PathBuf {
    bench.place().join("run.becalm")
}

/// What was stored before the kill is a report; what was not stored is no folder that is in the way.
fn readable(bench: &Bench) {
    let output = output(bench);
    if document_path(&output).is_some() {
        let ended = run_becalm(&["report", "--json", path(&output)]);
        // Of work nothing can be said before its first segment.
        let (code, words): (i32, &[&str]) = if ended.code == 0 { (0, &[]) } else { (1, &["holds no sample"]) };
        ended.expect(code, words);
    }
    remove(&output);
}

fn remove(folder: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("it is the test's own");
    }
}

fn restored(bench: &Bench) {
    run(bench.tune(&["restore"])).expect(0, &[]);
}

#[test]
fn record() {
    let command = |bench: &Bench| {
        becalm(&["record", "--quiet", "--duration", "1s", "--segment", "200ms", "-o", path(&output(bench))])
    };
    killed("record", Duration::from_millis(1500), nothing, command, readable);
}

#[test]
fn work() {
    let words = ["work", "--quiet", "--grain", "100us", "--duration", "1s", "-o"];
    let command = |bench: &Bench| becalm(&[&words[..], &[path(&output(bench))]].concat());
    killed("work", Duration::from_millis(1500), nothing, command, readable);
}

#[test]
fn inject() {
    let words = ["inject", "--quiet", "--interval", "2ms", "--detour", "200us", "--duration", "1s", "--cpus"];
    let command = |bench: &Bench| becalm(&[&words[..], &[bench.cpu()]].concat());
    killed("inject", Duration::from_millis(1500), nothing, command, nothing);
}

#[test]
fn tune_run() {
    let command = |bench: &Bench| bench.tune(&["run", "--quiet", "--cpus", bench.cpu(), "--", "sleep", "0.3"]);
    killed("tune run", Duration::from_millis(900), nothing, command, nothing);
}

#[test]
fn tune_apply() {
    let command = |bench: &Bench| bench.tune(&["apply", "--cpus", bench.cpu(), "--profile", "rt"]);
    killed("tune apply", Duration::from_millis(300), nothing, command, restored);
}

#[test]
fn tune_restore() {
    let apply = |bench: &Bench| {
        run(bench.tune(&["apply", "--cpus", bench.cpu(), "--profile", "rt"])).expect(0, &[]);
    };
    killed("tune restore", Duration::from_millis(300), apply, |bench| bench.tune(&["restore"]), restored);
}

#[test]
fn tune_study() {
    let words = ["tune", "study", "--only", "baseline,isolated", "--duration", "500ms", "--no-sources", "-o"];
    let folder = |bench: &Bench| bench.place().join("node.study");
    let command = |bench: &Bench| becalm(&[&words[..], &[path(&folder(bench))]].concat());
    killed("tune study", Duration::from_millis(2500), nothing, command, |bench| remove(&folder(bench)));
}
