//! The catalogue of detours as root, with the tick and the interrupts of devices in it: not its figures, which differ from
//! machine to machine, but what must take longer than what.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod program;

use std::collections::BTreeMap;
use std::fs;

use program::{path, run_becalm, skip};
use serde_json::Value;

/// What takes longer, by which factor at least, and what takes less. Half and less of what is seen on machines that do
/// nothing else.
const ORDER: [(&str, f64, &str); 10] = [
    ("cache_l2", 1.2, "cache_l1"),
    ("memory", 2.0, "cache_l2"),
    ("tlb_miss", 0.5, "cache_l1"),
    ("memory", 1.0, "tlb_miss"),
    ("pte_miss", 1.0, "memory"),
    ("fault_minor", 1.0, "pte_miss"),
    ("fault_cow", 1.0, "pte_miss"),
    ("interrupt", 1.0, "memory"),
    ("tick", 0.9, "tick_handler"),
    ("preemption", 20.0, "interrupt"),
];

#[test]
fn the_catalogue_is_in_order_and_says_what_it_lacks() {
    let test = "the_catalogue_is_in_order_and_says_what_it_lacks";
    if !fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        skip(test, "it needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The hypervisor takes CPUs away at times, so of several attempts one must be in order.
    let mut wrong = Vec::new();
    for attempt in 0..4 {
        let bundle = folder.path().join(format!("{attempt}.becalm"));
        let ended = run_becalm(&["cost", "detours", "--json", "-o", path(&bundle)]);
        ended.expect(0, &["stored in"]);
        let document: Value = serde_json::from_str(&ended.stdout).expect("standard output is one document");
        let mut medians = BTreeMap::new();
        for row in document["rows"].as_array().expect("rows") {
            let name = row["name"].as_str().expect("a name");
            // Measured with its method, or said to be impossible with the reason.
            match row["not_measured"].as_str() {
                Some(why) => assert!(!why.is_empty() && row["median_ps"].is_null(), "{row:#}"),
                None => {
                    assert!(row["method"].as_str().is_some_and(|how| !how.is_empty()), "{row:#}");
                    medians.insert(name.to_owned(), row["median_ps"].as_f64().expect("a median"));
                }
            }
        }
        for always in ["cache_l1", "memory", "tlb_miss", "pte_miss", "fault_minor", "fault_cow", "preemption"] {
            assert!(medians.contains_key(always), "{always} was not measured: {document:#}");
        }
        eprintln!("{medians:?}");
        let off = ORDER.iter().filter(|(more, times, less)| match (medians.get(*more), medians.get(*less)) {
            (Some(more), Some(less)) => *more <= less * times,
            _ => false,
        });
        wrong = off.collect();
        if wrong.is_empty() {
            return;
        }
    }
    panic!("not in order in four attempts: {wrong:?}");
}
