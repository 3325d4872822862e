//! `becalm compare --record`.

use std::fs;
use std::path::Path;
use std::process::Output;

use becalm_testing::program::becalm;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_side_is_recorded_and_compared_with_the_runs_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| becalm(arguments).current_dir(folder.path()).output().unwrap();
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let before = run(&["compare", "--no-config", "--record", "2", "--duration", "150ms", "--output", "before"]);
    assert!(before.status.success() && before.stdout.is_empty(), "{}", said(&before));
    assert!(said(&before).contains("becalm compare --record 2 before-1.becalm before-2.becalm"), "{}", said(&before));
    let after = run(&["compare", "--no-config", "--json", "--record", "2", "before-1.becalm", "before-2.becalm"]);
    assert!(after.status.success(), "{}", said(&after));
    let document: serde_json::Value = serde_json::from_slice(&after.stdout).unwrap();
    assert_eq!(document["basis"], "between runs");
    let runs = document["b"]["runs"].as_array().unwrap();
    let paths: Vec<&str> = runs.iter().map(|run| run["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["before-after-1.becalm", "before-after-2.becalm"]);
    // As long as those before.
    assert!(runs.iter().all(|run| run["duration_ns"].as_i64().unwrap() < 1_000_000_000), "{runs:?}");
    let made = names(folder.path());
    assert_eq!(made.len(), 4, "{made:?}");

    // Nothing is overwritten, and nothing recorded for a call that cannot be meant.
    let refused: [(&[&str], i32, &str); 4] = [
        (&["compare", "--record", "2", "before-1.becalm"], 2, "before-after-1.becalm exists already"),
        (&["compare", "--record", "2", "--output", "x", "missing.becalm"], 1, "missing.becalm"),
        (&["compare", "--record", "2", "before-1.becalm", "--", "before-2.becalm"], 2, "--record"),
        (&["compare", "--output", "x", "before-1.becalm", "before-2.becalm"], 2, "--record"),
    ];
    for (arguments, code, why) in refused {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{arguments:?}: {}", said(&output));
    }
    assert_eq!(names(folder.path()), made);
}

#[test]
fn a_run_of_another_machine_cannot_be_repeated_here() {
    let folder = tempfile::tempdir().unwrap();
    becalm_fixtures::write_study(&folder.path().join("node1.study"));
    let output = becalm(&["compare", "--record", "2", "node1.study/isolated-1.becalm"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("record on the same machine"), "{said}");
}
