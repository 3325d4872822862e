//! `becalm inject --signal`, from the outside: results and exit codes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use becalm_testing::program::{Running, becalm, path};
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
    let begun = Instant::now();
    let ended = Running::start(becalm(&[&noise[..], &[path(&program), "1", "300"]].concat())).end();
    let intervals = begun.elapsed().as_millis() as u64 / 10;
    ended.expect(0, &[]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&document["schema"], &document["way"]), (&"becalm.inject/1".into(), &"signal".into()));
    assert_eq!((&document["processes"], &document["unattended_threads"]), (&1.into(), &0.into()));
    let due = document["requested"]["count"].as_u64().unwrap();
    // The program runs for a second, and not longer than it was waited for.
    assert!((95..=intervals + 1).contains(&due), "{intervals} intervals: {document}");
    assert_eq!(document["threads"][0]["requested"]["count"], due);
    // What the program printed is on standard error, so that standard output is one document.
    assert_eq!(ended.stderr.lines().count(), 2, "{ended:?}");
    // It has a program's own failure, too, and that of the noise.
    let failed = Running::start(becalm(&[&noise[..], &[path(&program)]].concat())).end();
    failed.expect(1, &["the command", "ended with exit status: 2"]);
    let short = ["inject", "--signal", "--interval", "1ms", "--detour", "1ns", "--", path(&program), "1", "300"];
    Running::start(becalm(&short)).end().expect(2, &["a detour of 1ns is too short: a signal and its handler take"]);
}
