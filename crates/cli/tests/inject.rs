//! `becalm inject --signal`, from the outside: results, exit codes, and what is left of the noise when becalm is killed. No
//! root needed.

mod program;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use program::{Running, becalm, path};
use serde_json::Value;
use tempfile::TempDir;

/// A program that says what it lost in the first half and in the second half of its time.
fn spin(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inject/tests/programs/spin.c");
    let program = folder.join("spin");
    assert!(Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(source).status().unwrap().success());
    program
}

#[test]
fn the_document_says_what_was_delivered_and_the_command_keeps_its_exit_code() {
    let folder = TempDir::new().unwrap();
    let program = spin(folder.path());
    let noise = ["inject", "--signal", "--interval", "10ms", "--detour", "1ms", "--json", "--"];
    let ended = Running::start(becalm(&[&noise[..], &[path(&program), "1", "300"]].concat())).end();
    ended.expect(0, &[]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&document["schema"], &document["way"]), (&"becalm.inject/1".into(), &"signal".into()));
    assert_eq!((&document["processes"], &document["unattended_threads"]), (&1.into(), &0.into()));
    let due = document["requested"]["count"].as_u64().unwrap();
    assert!((95..=101).contains(&due), "{document}");
    assert_eq!(document["threads"][0]["requested"]["count"], due);
    // What the program printed is on standard error, so that standard output is one document.
    assert_eq!(ended.stderr.lines().count(), 2, "{ended:?}");
    // It has a program's own failure, too, and that of the noise.
    let failed = Running::start(becalm(&[&noise[..], &[path(&program)]].concat())).end();
    failed.expect(1, &["the command", "ended with exit status: 2"]);
    let short = ["inject", "--signal", "--interval", "1ms", "--detour", "1ns", "--", path(&program), "1", "300"];
    Running::start(becalm(&short)).end().expect(2, &["a detour of 1ns is too short: a signal and its handler take"]);
}

/// Killed, becalm leaves a program that goes on without noise.
#[test]
fn the_noise_ends_when_becalm_is_killed() {
    let folder = TempDir::new().unwrap();
    let program = spin(folder.path());
    let mut last = String::new();
    for _ in 0..4 {
        let noise =
            ["inject", "--signal", "--interval", "40ms", "--detour", "20ms", "--", path(&program), "3", "15000"];
        let running = Running::start(becalm(&noise));
        thread::sleep(Duration::from_millis(1_200));
        running.signal("KILL");
        let ended = running.end();
        assert_eq!(ended.code, 128 + 9);
        let seen: Vec<f64> = ended.stdout.split_ascii_whitespace().map(|word| word.parse().unwrap()).collect();
        let [before, median_ns, after, _] = seen[..] else { panic!("{ended:?}") };
        last = format!("{before} detours of {median_ns} ns before, {after} after");
        // Others who take the CPU meanwhile seldom keep it for so long.
        if before > 20.0 && after < before / 4.0 {
            return;
        }
    }
    panic!("{last}");
}
