//! `becalm compare --record` of observed threads.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use becalm_testing::program::becalm;

use crate::robust::alone;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A program that computes until the test ends.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn threads_are_observed_again_and_compared() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| becalm(arguments).current_dir(folder.path()).output().unwrap();
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let child = Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
    let busy = Busy(child);
    let pid = busy.0.id().to_string();
    for name in ["before-1", "before-2"] {
        let observe = ["observe", "--no-config", "--quiet", "--pid", &pid, "--duration", "150ms", "--output", name];
        let observed = run(&observe);
        assert!(observed.status.success(), "{}", said(&observed));
    }
    let compare = ["compare", "--no-config", "--json", "--record", "2", "before-1", "before-2"];
    let after = run(&compare);
    assert!(after.status.success(), "{}", said(&after));
    let document: serde_json::Value = serde_json::from_slice(&after.stdout).unwrap();
    assert_eq!(
        (&document["schema"], &document["basis"]),
        (&"becalm.compare-observed/1".into(), &"between runs".into())
    );
    let runs = document["b"].as_array().unwrap();
    let paths: Vec<&str> = runs.iter().map(|run| run["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["before-after-1.becalm", "before-after-2.becalm"]);
    assert_eq!((&document["total"]["b"]["threads"], &document["threads"][0]["name"]), (&2.into(), &"sh".into()));
    // As long as those before, and by the same choice.
    assert!(runs.iter().all(|run| (1..5_000_000_000).contains(&run["duration_ns"].as_i64().unwrap())), "{runs:?}");
    let report = run(&["report", "before-after-2", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["choice"]["processes"], serde_json::json!([busy.0.id()]));

    // Nothing is observed for a call that cannot be answered.
    let command = run(&["observe", "--no-config", "--quiet", "--output", "command", "--", "true"]);
    let made = names(folder.path());
    let is_stored = command.status.success();
    becalm_fixtures::observed::write_compared(folder.path());
    drop(busy);
    let refused: [(&[&str], i32, &str); 4] = [
        (&["compare", "--record", "2", "before-1", "--cpus", "1"], 2, "--cpus is for recordings of becalm record"),
        (&["compare", "--record", "2", "before-1", "--output", "x"], 2, "has ended; observe both sides by name"),
        (&["compare", "--record", "2", "solver-before"], 2, "it is of node node1, and this is"),
        (&["compare", "--record", "2", "command"], 2, "becalm does not start its command again; observe both sides"),
    ];
    // A command that is over at once may have no thread to store.
    for (arguments, code, why) in refused.into_iter().take(if is_stored { 4 } else { 3 }) {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{arguments:?}: {}", said(&output));
    }
    let fixtures = ["printer.becalm", "solver-after.becalm", "solver-before.becalm"];
    let left: Vec<String> =
        names(folder.path()).into_iter().filter(|name| !fixtures.contains(&name.as_str())).collect();
    assert_eq!(left, made);
}
