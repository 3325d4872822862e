//! The fields of the documents that `becalm cost` prints; their figures are this machine's.

use becalm_testing::program::{becalm, path, run};
use serde_json::Value;

/// The document of a subcommand, and the fields of its rows. What is stored must give the same document.
fn fields(subcommand: &str) -> (Value, Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bundle = folder.path().join("cost.becalm");
    let ended = run(becalm(&["cost", subcommand, "--json", "-o", path(&bundle)]));
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
const COST: [&str; 21] = [
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
