//! Campaigns of `becalm paper`: they go on where they were stopped, and leave alone what is not theirs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use becalm_testing::program::{Running, becalm, executable, forget_looks, run};
use serde_json::Value;

/// A campaign without steps that measure, in a folder.
fn campaign(folder: &Path, more: &[&str]) -> Command {
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
    // Arithmetic and simulation give the same on every machine. By the paper's own estimator P-90's indirect cost does not come out, nor do its
    // two sums; the six trimmed means are stated.
    let count = |name: &str| counts[name].as_u64().unwrap();
    assert_eq!(["figures", "hold", "not", "stated"].map(count), [49, 40, 3, 6], "{counts}");
    let documents = fs::read_dir(folder.join("steps")).unwrap().count();
    assert_eq!(steps_run(&messages), documents, "each step leaves its document and nothing else");
    assert!(messages.contains(&format!("{documents} steps to run")), "{messages}");
    assert!(messages.contains(&format!("step {documents} of {documents}: ")), "{messages}");
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

/// A launcher of one process, and a job that takes the bundle of that name instead of computing.
fn fake_mpi(folder: &Path) {
    let script = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("launch", "[ \"$1\" = --here ] && [ \"$2\" = -n ] || exit 9\nshift 3\nexec \"$@\"");
    script(
        "becalm-mpi",
        "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && run=$2; shift; done\ncp -r \"../jobs/$run\" \"$run\" && exec ../becalm report \"$run\" --json",
    );
}

#[test]
fn jobs_run_under_the_launcher_and_are_held_against_each_other() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("becalm");
    fs::copy(executable(), &program).unwrap();
    let jobs = place.path().join("jobs");
    fs::create_dir(&jobs).unwrap();
    becalm_fixtures::phases::write_phases(&jobs);
    fs::rename(jobs.join("job.becalm"), jobs.join("baseline.becalm")).unwrap();
    fs::rename(jobs.join("rr80.becalm"), jobs.join("priority.becalm")).unwrap();
    let launcher = format!("{}/launch --here", place.path().display());
    let campaign = || {
        let mut command = Command::new(&program);
        command.args(["paper", "de2009", "--figure", "6", "--figure", "8", "--quick", "--json", "-o", "campaign"]);
        command.args(["--mpirun", &launcher]).env("PATH", "/usr/bin:/bin").current_dir(place.path());
        forget_looks(&mut command);
        let output = command.output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{messages}");
        (serde_json::from_slice::<Value>(&output.stdout).unwrap(), messages)
    };
    let row = |document: &Value, item: usize, figure: usize| {
        let row = &document["items"][item]["figures"][figure];
        [&row["what"], &row["here"], &row["verdict"]].map(|text| text.as_str().unwrap_or("").to_owned())
    };

    // Without the program, what is lacking is said, and nothing else fails.
    let job_of_path = ["/usr/bin/becalm-mpi", "/bin/becalm-mpi"].iter().any(|path| Path::new(path).exists());
    if !job_of_path {
        let (none, _) = campaign();
        let [_, here, verdict] = row(&none, 0, 0);
        assert!(here.is_empty() && verdict.contains("becalm-mpi is neither beside becalm"), "{verdict}");
        assert!(
            row(&none, 1, 0)[2].contains("baseline.becalm or the recordings to compare it with are missing"),
            "{none:#}"
        );
    }

    fake_mpi(place.path());
    let (found, messages) = campaign();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(
        messages.contains(&format!("launch --here -n {cpus} becalm-mpi --phases 500 -o baseline.becalm")),
        "{messages}"
    );
    assert!(messages.contains("becalm compare baseline.becalm priority.becalm"), "{messages}");
    assert_eq!(row(&found, 0, 0)[2], "another machine", "{found:#}");
    // In a quick campaign nothing is isolated; and this launcher has no such job with a core left idle.
    assert!(row(&found, 0, 2)[2].ends_with("a quick campaign leaves it out"), "{found:#}");
    assert_eq!(found["counts"]["broken"], 0);
    let [what, here, _] = row(&found, 1, 8);
    assert_eq!(what, "change of the worst 1 %, real-time priority against baseline");
    assert!(here.ends_with(" %") && !here.starts_with('-'), "late by twice as much: {here}");

    // The page of the comparison is behind the figure, and drawn anew when it is gone.
    let page = place.path().join("campaign/figure8.html");
    let files = found["items"][1]["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file == "figure8.html") && page.is_file(), "{files:?}");
    fs::remove_file(&page).unwrap();

    // What is done is not run again. A job that is, takes the comparison with it.
    assert!(steps_run(&campaign().1) <= 1, "only the job that failed");
    assert!(page.is_file());
    fs::remove_file(place.path().join("campaign/steps/job-priority.json")).unwrap();
    assert!((2..=3).contains(&steps_run(&campaign().1)));
}
