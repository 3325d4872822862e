//! The fields of the documents that `becalm cost` prints; their figures are this machine's.

use becalm_testing::program::{self, Running, becalm, path, run};
use serde_json::Value;

/// The document of a subcommand, and the fields of its rows. What is stored must give the same document.
fn fields(subcommand: &str) -> (Value, Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bundle = folder.path().join("cost.becalm");
    let ended = run(becalm(&["cost", subcommand, "--json", "--over", "1s", "-o", path(&bundle)]));
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("stored in"), "{ended:?}");
    let again = run(becalm(&["report", "--json", path(&bundle)]));
    assert_eq!((again.code, &again.stdout), (0, &ended.stdout), "{again:?}");
    let document: Value = serde_json::from_str(&ended.stdout).expect("standard output is one document");
    let rows = document["rows"].as_array().expect("there are rows");
    let keys: Vec<Vec<&String>> = rows.iter().map(|row| row.as_object().expect("a row").keys().collect()).collect();
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "rows differ in their fields");
    let keys = keys[0].iter().map(|key| (*key).clone()).collect();
    (document, keys)
}

fn names(document: &Value) -> Vec<&str> {
    document["rows"].as_array().expect("rows").iter().filter_map(|row| row["name"].as_str()).collect()
}

/// Each row has figures in order, or the reason why it has none.
fn check_rows(document: &Value) {
    for row in document["rows"].as_array().expect("rows") {
        let ps = |name: &str| row[name].as_i64();
        if row["not_measured"].is_string() {
            assert_eq!(ps("median_ps"), None, "{row}");
            continue;
        }
        let figures: Vec<i64> = ["min_ps", "p5_ps", "p95_ps", "max_ps"].map(|name| ps(name).expect(name)).to_vec();
        assert!(figures.is_sorted(), "{row}");
        let median = ps("median_ps").expect("a median");
        assert!(figures[0] <= median && median <= figures[3], "{row}");
        if let (Some(low), Some(high)) = (ps("median_low_ps"), ps("median_high_ps")) {
            assert!(low <= median && median <= high, "{row}");
        }
        assert!(
            row["samples"].as_u64() > Some(0) && row["method"].as_str().is_some_and(|text| !text.is_empty()),
            "{row}"
        );
    }
}

/// The fields of a row of traps and detours; scripts rely on them.
const COST: [&str; 22] = [
    "batch",
    "interrupted",
    "interrupted_excess_ps",
    "interrupts",
    "max_ps",
    "mean_ps",
    "median_high_ps",
    "median_low_ps",
    "median_ps",
    "method",
    "min_ps",
    "name",
    "not_measured",
    "p5_ps",
    "p95_ps",
    "preempted",
    "processes",
    "published_ns",
    "samples",
    "slow",
    "stddev_ps",
    "what",
];

#[test]
fn traps_as_a_document() {
    let (document, mut keys) = fields("trap");
    keys.sort_unstable();
    assert_eq!(document["schema"], "becalm.cost-trap/1");
    assert_eq!(keys, COST);
    let expected = [
        "syscall",
        "vdso",
        "signal",
        "fault_minor",
        "fault_zero",
        "fault_zero_cow",
        "fault_cow",
        "fault_huge",
        "pipe",
        "switch_thread",
        "switch_process",
        "futex_switch",
        "futex_wake",
        "futex_wake_runs",
        "membarrier",
        "ipi",
    ];
    assert_eq!(names(&document), expected);
    check_rows(&document);
}

/// Fewer processes have no interval, and samples keep which process took them.
#[test]
fn as_many_processes_measure_as_are_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (processes, has_interval) in [(1, false), (6, true)] {
        let bundle = folder.path().join(format!("{processes}.becalm"));
        let count = processes.to_string();
        let arguments = ["cost", "clock", "--json", "--processes", &count, "--over", "1s", "-o", path(&bundle)];
        let ended = run(becalm(&arguments));
        assert_eq!(ended.code, 0, "{ended:?}");
        let document: Value = serde_json::from_str(&ended.stdout).expect("standard output is one document");
        assert_eq!((&document["processes"], &document["processes_planned"]), (&processes.into(), &processes.into()));
        assert!(document["processes_ns"].as_i64() > Some(0) && document["incomplete"].is_null(), "{document}");
        for row in document["rows"].as_array().expect("rows") {
            assert_eq!(row["processes"], processes, "{row}");
            assert_eq!(row["median_low_ps"].is_i64(), has_interval, "{row}");
        }
    }
    let stored = program::document(&folder.path().join("6.becalm"));
    let processes = stored["spread"]["processes"].as_array().expect("processes");
    let time = |at: usize, name: &str| processes[at][name].as_i64().expect(name);
    assert!((1..6).all(|at| time(at - 1, "ended_ns") <= time(at, "begun_ns")), "{processes:?}");
    // The last of six starts after five sixths of a second.
    assert!(time(5, "begun_ns") >= 833_000_000, "{processes:?}");
}

/// The processes that another one has started and that are there.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may hold anything; the state and the parent follow it.
        let mut words = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        words.next().is_some_and(|state| state != "Z") && words.next() == Some(&parent.to_string())
    };
    pids.filter(is_child).collect()
}

/// A process that ends before it has handed anything over is named; those before it are stored. Killed with the one that started it,
/// nothing remains of it.
#[test]
fn a_process_that_fails_is_named_and_none_outlives_the_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bundle = folder.path().join("cost.becalm");
    let start =
        |bundle: &std::path::Path| Running::start(becalm(&["cost", "trap", "--over", "1m", "-o", path(bundle)]));
    let mut running = start(&bundle);
    let pid = running.pid();
    running.wait_until("the first process is stored", || bundle.join("costs").exists());
    running.wait_until("the second process measures", || !children(pid).is_empty());
    children(pid).iter().for_each(|child| kill("KILL", *child));
    let ended = running.end();
    assert!(ended.stderr.contains("process 2 of 8 that measure failed (those before it are stored in"), "{ended:?}");
    assert!(ended.code == 1 && ended.stderr.contains("signal: 9"), "{ended:?}");
    let report = run(becalm(&["report", "--json", path(&bundle)]));
    let report: Value = serde_json::from_str(&report.stdout).expect("standard output is one document");
    assert_eq!(
        report["incomplete"],
        "it did not end by itself: 1 of 8 processes measured; probes that it did not reach are missing"
    );

    // Interrupted, it keeps what was measured; the process that measures ends as well.
    let bundle = folder.path().join("interrupted.becalm");
    let mut running = start(&bundle);
    let pid = running.pid();
    running.wait_until("the first process is stored", || bundle.join("costs").exists());
    running.signal("INT");
    let ended = running.end();
    assert!(ended.code == 1 && ended.stdout.contains("! a signal ended it: 1 of 8 processes measured"), "{ended:?}");
    assert!(children(pid).is_empty());

    let bundle = folder.path().join("killed.becalm");
    let mut running = start(&bundle);
    let pid = running.pid();
    running.wait_until("the first process measures", || !children(pid).is_empty());
    let measuring = children(pid);
    running.signal("KILL");
    running.end();
    let is_there = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
    };
    becalm_testing::wait_until("nothing measures", || !measuring.iter().any(is_there));
}

fn kill(signal: &str, pid: u32) {
    let status = std::process::Command::new("kill").args(["-s", signal, &pid.to_string()]).status();
    assert!(status.expect("kill").success());
}

#[test]
fn detours_as_a_document() {
    let (document, mut keys) = fields("detours");
    keys.sort_unstable();
    assert_eq!(document["schema"], "becalm.cost-detours/1");
    assert_eq!(keys, COST);
    let names = names(&document);
    let always = [
        "memory",
        "tlb_miss",
        "pte_miss",
        "fault_minor",
        "fault_cow",
        "swap_in",
        "interrupt",
        "preemption",
        "tick",
        "tick_handler",
        "device_interrupt",
    ];
    let found: Vec<&str> = names.iter().copied().filter(|name| !name.starts_with("cache_")).collect();
    assert_eq!(found, always);
    assert!(names[0].starts_with("cache_"), "{names:?}");
    check_rows(&document);
}

#[test]
fn clocks_as_a_document() {
    let (document, keys) = fields("clock");
    assert_eq!(document["schema"], "becalm.cost-clock/1");
    for key in [
        "name",
        "path",
        "median_ps",
        "median_low_ps",
        "median_high_ps",
        "min_ps",
        "p5_ps",
        "p95_ps",
        "mean_ps",
        "samples",
        "syscall_median_ps",
        "stated_resolution_ns",
        "smallest_step_ps",
        "median_step_ps",
        "readings",
        "backwards",
        "cross_compared",
        "cross_backwards",
        "cross_largest_ps",
        "interrupted",
        "interrupts",
    ] {
        assert!(keys.iter().any(|found| found == key), "no {key} in {keys:?}");
    }
    let names = names(&document);
    for name in ["CLOCK_REALTIME", "CLOCK_MONOTONIC", "CLOCK_MONOTONIC_COARSE", "CLOCK_TAI", "gettimeofday", "time"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(document["path_found_by"] == "tracepoint" || document["not_counted"].is_string(), "{document}");
    for row in document["rows"].as_array().expect("rows") {
        assert!(["instruction", "vdso", "syscall"].contains(&row["path"].as_str().expect("a path")), "{row}");
        assert!(row["median_ps"].as_i64() > Some(0), "{row}");
    }
}
