//! Campaigns of `becalm paper`: they go on where they were stopped, and leave alone what is not theirs.

use std::fs;
use std::path::Path;

use becalm_testing::program::{Running, becalm, run};
use serde_json::Value;

/// A campaign without steps that measure, in a folder.
fn campaign(folder: &Path, more: &[&str]) -> std::process::Command {
    let mut command = becalm(&["paper", "tsafrir2007", "--figure", "9", "--table", "2", "--quick"]);
    command.args(more).arg("-o").arg(folder);
    command
}

/// How many steps were run, by what becalm said.
fn steps_run(messages: &str) -> usize {
    messages.lines().filter(|line| line.starts_with("becalm: step ")).count()
}

#[test]
fn a_campaign_is_whole_and_goes_on_where_it_was_stopped() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("campaign");
    let output = campaign(&folder, &["--json"]).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{messages}");
    let first: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(first["schema"], "becalm.paper/1");
    let counts = &first["counts"];
    // Arithmetic and simulation hold on every machine.
    assert_eq!((counts["figures"].as_u64(), counts["hold"].as_u64()), (Some(31), Some(31)), "{counts}");
    let documents = fs::read_dir(folder.join("steps")).unwrap().count();
    assert_eq!(steps_run(&messages), documents, "each step leaves its document and nothing else");
    let page = fs::read(folder.join("index.html")).unwrap();

    // Nothing is run twice; what is lacking is, and the figures are the same.
    let again = campaign(&folder, &["--json"]).output().unwrap();
    assert_eq!(steps_run(&String::from_utf8_lossy(&again.stderr)), 0);
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), first);
    fs::remove_file(folder.join("steps/table2.json")).unwrap();
    let path = folder.join("steps/figure9.json");
    let other = fs::read_to_string(&path).unwrap().replace("--delay 1ms", "--delay 2ms");
    fs::write(&path, other).unwrap();
    let repaired = campaign(&folder, &["--json"]).output().unwrap();
    assert_eq!(
        steps_run(&String::from_utf8_lossy(&repaired.stderr)),
        2,
        "the one without a document, and the one of another command"
    );
    assert_eq!(serde_json::from_slice::<Value>(&repaired.stdout).unwrap(), first);
    assert_eq!(fs::read(folder.join("index.html")).unwrap(), page);
}

#[test]
fn a_campaign_that_is_stopped_ends_what_runs_and_keeps_what_is_done() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("campaign");
    let mut command = becalm(&["paper", "de2009", "--figure", "4", "-o"]);
    command.arg(&folder);
    let mut running = Running::start(command);
    let (printed, stored) = (folder.join("steps/figure4-priority.out"), folder.join("steps/figure4-baseline.json"));
    running.wait_until("the second step began", || printed.exists());
    assert!(stored.exists());
    running.signal("TERM");
    running.end().expect(143, &["stopped; begun again with", "it goes on from here"]);
    assert!(!folder.join("index.html").exists() && !folder.join("steps/figure4-priority.json").exists());
    // Nothing of it runs any more: the child would work on in this folder.
    let works_there = |entry: fs::DirEntry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder);
    assert!(!fs::read_dir("/proc").unwrap().flatten().any(works_there));
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("machine.becalm")).unwrap();
    run(campaign(place.path(), &[])).expect(2, &["holds something else than a campaign of becalm paper"]);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}
