//! `becalm bench`: noise that was planted into known repetitions is named there, and everything is as it was, also after kill -9.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use becalm_testing::machine::Bench;
use becalm_testing::program::{Running, becalm, path, run};
use becalm_testing::{Need, machine_has, wait_until};
use serde_json::Value;

/// The repetitions that are disturbed, counted from 1 and without the one before.
const PLANTED: [usize; 2] = [2, 5];

/// The runs begin with so many lines in the file that each one appends to.
fn wait_for_run(lines: &std::path::Path, count: usize) {
    wait_until("the run starts", || fs::read_to_string(lines).unwrap_or_default().lines().count() >= count);
}

#[test]
fn noise_in_known_repetitions_is_named() {
    if !machine_has(&[Need::Program("chrt"), Need::Program("taskset")]) {
        return;
    }
    let Some(bench) = Bench::new() else { return };
    // A shell of another name, whose busy loop has the CPU of the benchmark to itself.
    let gremlin = bench.place().join("gremlin");
    fs::copy(fs::canonicalize("/bin/sh").unwrap(), &gremlin).unwrap();
    fs::set_permissions(&gremlin, fs::Permissions::from_mode(0o755)).unwrap();
    let lines = bench.place().join("runs");
    // A run that is to be disturbed goes on until it was, however late that comes on a busy machine.
    let script = format!(
        "echo >> {runs}; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done
         case $(wc -l <{runs}) in {}|{}) while [ ! -e {runs}-$(wc -l <{runs}) ]; do :; done;; esac",
        PLANTED[0] + 1,
        PLANTED[1] + 1,
        runs = path(&lines)
    );
    let export = bench.place().join("times.json");
    let mut command =
        becalm(&["bench", "--no-tune", "--cpus", bench.cpu(), "--runs", "6", "--json", "--export-json", path(&export)]);
    command.args(["--", "sh", "-c", &script]);
    // It waits for a line in a pipe, disturbs one run, and waits for the next line.
    let pipes = PLANTED.map(|run| bench.place().join(format!("go-{}", run + 1)));
    pipes.iter().for_each(|pipe| assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success()));
    let mut noise = Command::new("chrt");
    noise.args(["-f", "40", "taskset", "-c", bench.cpu(), path(&gremlin), "-c"]);
    let disturb = "for n in $2 $3; do
            read -r _ <$1/go-$n; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; : >$1/runs-$n
        done";
    noise.args([disturb, "sh", path(bench.place())]).args(PLANTED.map(|run| (run + 1).to_string()));
    let mut noise = noise.spawn().unwrap();
    let running = Running::start(command);
    for (run, pipe) in PLANTED.iter().zip(&pipes) {
        wait_for_run(&lines, run + 1);
        fs::write(pipe, "now\n").unwrap();
    }
    let ended = running.end();
    assert!(noise.wait().unwrap().success());
    ended.expect(0, &[]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&document["schema"], &document["seen_by"]), (&"becalm.bench/1".into(), &"trace".into()));
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 6);
    for (number, run) in (1..).zip(runs) {
        let of = |name: &str| run["sources"].as_array().unwrap().iter().find(|source| source["source"] == name);
        let lost = of("gremlin").map_or(0, |source| source["total_ns"].as_i64().unwrap());
        if PLANTED.contains(&number) {
            assert!(lost > 10_000_000 && of("gremlin").unwrap()["kind"] == "task", "run {number}: {run:#}");
            assert!(run["lost_ns"].as_i64().unwrap() >= lost, "run {number}: {run:#}");
        } else {
            assert!(lost < 1_000_000, "run {number}: {run:#}");
        }
        // The command does not interrupt itself.
        assert!(
            of("sh").is_none_or(|source| source["total_ns"].as_i64().unwrap() < 5_000_000),
            "run {number}: {run:#}"
        );
    }
    let times: Value = serde_json::from_str(&fs::read_to_string(&export).unwrap()).unwrap();
    assert_eq!(times["results"][0]["times"].as_array().unwrap().len(), 6);
    // What hyperfine's files have, and its scripts read.
    let result = &times["results"][0];
    for key in ["mean", "stddev", "median", "user", "system", "min", "max"] {
        assert!(result[key].as_f64().is_some_and(|seconds| (0.0..60.0).contains(&seconds)), "{key}: {result:#}");
    }
    assert!(result["command"].as_str().unwrap().starts_with("sh -c"), "{result:#}");
    assert_eq!(result["exit_codes"], serde_json::json!([0, 0, 0, 0, 0, 0]));
    let first = runs[0]["time_ns"].as_f64().unwrap() / 1e9;
    assert!((times["results"][0]["times"][0].as_f64().unwrap() - first).abs() < 1e-9);
}

#[test]
fn a_benchmark_on_quiet_cpus_leaves_everything_as_it_was() {
    let Some(bench) = Bench::new() else { return };
    let quiet = |runs: &str, script: &str| {
        let mut command = becalm(&["bench", "--journal", bench.folder(), "--cpus", bench.cpu(), "--runs", runs]);
        command.args(["--warmup", "0", "--", "sh", "-c", script]);
        command
    };
    let lines = bench.place().join("runs");
    let place = format!("grep Cpus_allowed_list /proc/self/status >> {}", path(&lines));
    let ended = run(quiet("2", &place));
    ended.expect(0, &[]);
    assert!(ended.stdout.contains("isolated for the runs") && ended.stdout.contains("Repetitions"), "{ended:#?}");
    assert_eq!(fs::read_to_string(&lines).unwrap(), format!("Cpus_allowed_list:\t{}\n", bench.cpu()).repeat(2));
    bench.is_as_before("after two runs");
    // The first run that fails is the last one.
    run(quiet("5", &format!("echo >> {}; exit 7", path(&lines)))).expect(7, &["run 1 ended with exit code 7"]);
    assert_eq!(fs::read_to_string(&lines).unwrap().lines().count(), 3);
    bench.is_as_before("after exit code 7");
    let ready = bench.place().join("ready");
    let mut running = Running::start(quiet("3", &format!("echo >> {}; sleep 2", path(&ready))));
    running.wait_until("the command runs", || ready.exists());
    running.signal("KILL");
    running.end().expect(128 + 9, &["the settings are as they were"]);
    bench.is_as_before("after SIGKILL");
}
