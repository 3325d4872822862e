//! `becalm explain` of spans on a CPU that was recorded a moment ago.

use std::fmt::Write;
use std::fs;

use becalm_linux::clock::wall_clocks;
use becalm_testing::program::{becalm, path, run};
use serde_json::Value;

/// A recording has the clocks that programs use for their spans.
#[test]
fn spans_of_any_clock_are_found_in_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("short.becalm");
    let words = ["record", "--duration", "4s", "--no-sources", "--quiet", "-o", path(&bundle)];
    run(becalm(&words)).expect(0, &[]);
    let clocks = wall_clocks();
    let document = fs::read_dir(bundle.join("runs")).unwrap().next().unwrap().unwrap().path();
    let document: Value = serde_json::from_str(&fs::read_to_string(document).unwrap()).unwrap();
    // One reading per second, and the last one.
    let pairs = document["clock"]["pairs"].as_array().unwrap();
    assert!((3..=6).contains(&pairs.len()), "{pairs:?}");
    let cpu = document["cpus"][0]["cpu"].to_string();
    for (clock, now) in ["monotonic", "realtime", "boottime"].into_iter().zip(clocks) {
        let mut spans = "start,duration_ms\n".to_owned();
        // In the middle of the recording, which ended a moment ago.
        (0..100).for_each(|number| writeln!(spans, "{},10", now - 2_500_000_000 + number * 10_000_000).unwrap());
        let file = folder.path().join("spans.csv");
        fs::write(&file, spans).unwrap();
        let explained = |clock: &[&str]| {
            let words = [&["explain", path(&bundle), "--spans", path(&file), "--cpu", &cpu, "--json"], clock].concat();
            let ended = run(becalm(&words));
            ended.expect(0, &[]);
            serde_json::from_str::<Value>(&ended.stdout).unwrap()
        };
        let doc = explained(&["--clock", clock]);
        assert_eq!((doc["spans"].as_u64(), doc["outside"].as_u64()), (Some(100), Some(0)), "{doc:#}");
        assert!(doc["clock_error_ns"].as_i64() < Some(1_000_000), "{doc:#}");
        for span in doc["worst"].as_array().unwrap() {
            let parts = span["causes"].as_array().unwrap().iter().map(|part| part["ns"].as_i64().unwrap());
            assert_eq!(parts.sum::<i64>(), span["ns"].as_i64().unwrap(), "{span:#}");
        }
        // CLOCK_BOOTTIME is CLOCK_MONOTONIC unless the machine was suspended.
        let found = explained(&[]);
        assert!(found["clock"] == clock || clock == "boottime", "{found:#}");
    }
}
