//! Killed with SIGKILL at random moments: nothing that becalm changed, started or made stays behind, and what it stored can be
//! read.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_testing::attack::{Tries, attack};
use becalm_testing::machine::Bench;
use becalm_testing::program::{Running, becalm, document_path, path, run, run_becalm};

const TRIES: Tries = Tries { all: 100, few: 2 };

/// Starts a command, kills it within `longest`, lets `after` do what a user would, and looks whether all is as it was.
fn killed(
    row: &str,
    longest: Duration,
    before: impl Fn(&Bench),
    command: impl Fn(&Bench, u32) -> Command,
    after: impl Fn(&Bench),
) {
    let Some(mut bench) = Bench::new() else { return };
    attack(row, TRIES, |number, random| {
        bench.see_threads();
        before(&bench);
        let delay = random.time(longest);
        let running = Running::start(command(&bench, number));
        thread::sleep(delay);
        running.signal("KILL");
        // No process of it remains, and no trace instance.
        running.end();
        after(&bench);
        bench.is_untouched(&format!("killed after {delay:?}"), &[]);
    });
}

fn nothing(_: &Bench) {}

fn output(bench: &Bench) -> PathBuf {
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

fn applied(bench: &Bench) {
    run(bench.tune(&["apply", "--cpus", bench.cpu(), "--profile", "rt"])).expect(0, &[]);
}

#[test]
fn record() {
    let command = |bench: &Bench, _| {
        becalm(&["record", "--quiet", "--duration", "1s", "--segment", "200ms", "-o", path(&output(bench))])
    };
    killed("kill -9 of record", Duration::from_millis(1500), nothing, command, readable);
}

#[test]
fn work() {
    let words = ["work", "--quiet", "--grain", "100us", "--duration", "1s", "-o"];
    let command = |bench: &Bench, _| becalm(&[&words[..], &[path(&output(bench))]].concat());
    killed("kill -9 of work", Duration::from_millis(1500), nothing, command, readable);
}

/// On CPUs and inside of a program, by turns. Of the latter it leaves a folder of its own, which the next one removes.
#[test]
fn inject() {
    const NOISE: [&str; 8] = ["inject", "--quiet", "--interval", "2ms", "--detour", "500us", "--duration", "1s"];
    let command = |bench: &Bench, number: u32| match number % 2 {
        0 => becalm(&[&NOISE[..], &["--cpus", bench.cpu()]].concat()),
        _ => becalm(&[&NOISE[..], &["--signal", "--", "sleep", "0.5"]].concat()),
    };
    let next = |_: &Bench| {
        run(becalm(&[&NOISE[..], &["--signal", "--", "true"]].concat())).expect(0, &[]);
    };
    killed("kill -9 of inject", Duration::from_millis(1200), nothing, command, next);
}

/// The watcher restores. The command lives on, and is short.
#[test]
fn tune_run() {
    let command = |bench: &Bench, _| bench.tune(&["run", "--quiet", "--cpus", bench.cpu(), "--", "sleep", "0.3"]);
    killed("kill -9 of tune run", Duration::from_millis(900), nothing, command, nothing);
}

#[test]
fn tune_apply() {
    let command = |bench: &Bench, _| bench.tune(&["apply", "--cpus", bench.cpu(), "--profile", "rt"]);
    killed("kill -9 of tune apply", Duration::from_millis(300), nothing, command, restored);
}

#[test]
fn tune_restore() {
    killed(
        "kill -9 of tune restore",
        Duration::from_millis(300),
        applied,
        |bench, _| bench.tune(&["restore"]),
        restored,
    );
}

/// One after the other, each at a random moment, and then a restore that is left alone.
#[test]
fn tune_apply_and_restore() {
    let Some(mut bench) = Bench::new() else { return };
    attack(
        "kill -9 of tune apply, and of the restore after every second one",
        Tries { all: 40, few: 2 },
        |number, random| {
            bench.see_threads();
            let commands: [&[&str]; 2] = [&["apply", "--cpus", bench.cpu()], &["restore"]];
            let mut delays = Vec::new();
            for words in &commands[..1 + number as usize % 2] {
                delays.push(random.time(Duration::from_millis(250)));
                let running = Running::start(bench.tune(words));
                thread::sleep(delays[delays.len() - 1]);
                running.signal("KILL");
                running.end();
            }
            restored(&bench);
            bench.is_untouched(&format!("killed after {delays:?}"), &[]);
        },
    );
}

#[test]
fn study() {
    let words = ["study", "--only", "baseline,isolated", "--turns", "2", "--duration", "600ms", "--no-sources", "-o"];
    let folder = |bench: &Bench| bench.place().join("node.study");
    let command = |bench: &Bench, _| becalm(&[&words[..], &[path(&folder(bench))]].concat());
    killed("kill -9 of study", Duration::from_millis(2500), nothing, command, |bench| remove(&folder(bench)));
}
