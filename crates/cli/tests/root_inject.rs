//! `becalm inject` on CPUs, from the outside: nothing of it is left, however it ends. Needs root.

mod program;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use program::{Running, becalm, skip};

fn possible(test: &str) -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !root {
        skip(test, "it needs root");
    }
    root
}

const NOISE: [&str; 7] = ["inject", "--interval", "20ms", "--detour", "200us", "--cpus", "0"];

/// The real-time threads of a process that inject.
fn injecting(pid: u32) -> usize {
    let names = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "becalm-inject").count()
}

fn started(command: Command) -> Running {
    let mut running = Running::start(command);
    let pid = running.pid();
    running.wait_until("it injects", || injecting(pid) == 1);
    running
}

#[test]
fn nothing_is_left_of_an_injector_that_is_killed() {
    if !possible("nothing_is_left_of_an_injector_that_is_killed") {
        return;
    }
    let running = started(becalm(&NOISE));
    let pid = running.pid();
    running.signal("KILL");
    assert_eq!(running.end().code, 128 + 9);
    assert_eq!(injecting(pid), 0);
}

/// Asked to end, it says what was delivered, and takes its command with it.
#[test]
fn an_injector_that_is_asked_to_end_ends_its_command() {
    if !possible("an_injector_that_is_asked_to_end_ends_its_command") {
        return;
    }
    let running = started(becalm(&[&NOISE[..], &["--", "sleep", "1000"]].concat()));
    running.signal("TERM");
    let ended = running.end();
    ended.expect(0, &[]);
    assert!(ended.stdout.contains("delivered"), "{ended:?}");
}

/// The parent cannot tell it to, being killed itself.
#[test]
fn an_injector_ends_with_its_parent() {
    if !possible("an_injector_ends_with_its_parent") {
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\" & wait", env!("CARGO_BIN_EXE_becalm")]).args(NOISE);
    let mut running = Running::start(shell);
    let parent = running.pid();
    let child = move || {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        children.split_ascii_whitespace().next().and_then(|pid| pid.parse::<u32>().ok())
    };
    running.wait_until("it injects", || child().is_some_and(|pid| injecting(pid) == 1));
    running.signal("KILL");
    // Looks for processes of the same start, and finds none soon.
    assert_eq!(running.end().code, 128 + 9);
}
