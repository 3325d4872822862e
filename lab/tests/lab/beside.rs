//! Other programs beside becalm: the same CPU of one guest under the same planted noise, and under another one.

use std::ffi::OsStr;
use std::process::Command;

use becalm_lab::Outcome;
use becalm_testing::attempts;
use serde_json::Value;

use crate::guests::{Lab, tell};

/// More than half of what is planted: an emulated CPU has many shorter ones of its own, which come and go.
const FROM: &str = "300us";

/// How large a difference of what is the same may be left possible: the lengths of some hundred detours, on a CPU that is emulated.
const BOUND: f64 = 0.4;

/// Becalm's answer: what it printed, and the first line of its errors.
fn becalm(lab: &Lab, arguments: &[&OsStr]) -> (bool, Vec<u8>, String) {
    let output = Command::new(lab.becalm()).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("cannot start {}: {error}", lab.becalm().display()));
    (output.status.success(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Imports a file that the guest left.
fn import(lab: &Lab, outcome: &Outcome, name: &str, format: &str) -> std::path::PathBuf {
    let target = outcome.path(&format!("{name}.becalm"));
    let source = outcome.path(name);
    let arguments: [&OsStr; 6] =
        ["import".as_ref(), "--from".as_ref(), format.as_ref(), source.as_ref(), "-o".as_ref(), target.as_ref()];
    let (done, _, errors) = becalm(lab, &arguments);
    assert!(done, "{name}: {errors}");
    target
}

/// What `compare` says of the typical length: its verdict, and the bound of 'none beyond'.
fn median(document: &Value) -> (String, Option<f64>) {
    let rows = document["pairs"][0]["tested"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["figure"] == "median_ns");
    let row = row.unwrap_or_else(|| panic!("the median was not tested: {document}"));
    (row["verdict"].as_str().unwrap_or_default().to_owned(), row["bound_ratio"].as_f64())
}

/// Where definitions agree no difference is found that matters, and another noise is found to be one.
fn check(lab: &Lab, outcome: &Outcome) -> Result<(), String> {
    for (name, format) in [("osnoise-hist", "rtla"), ("oslat.json", "oslat")] {
        let imported = import(lab, outcome, name, format);
        let against = |recording: &str| {
            let recording = outcome.path(recording);
            let compared: [&OsStr; 5] =
                ["compare".as_ref(), imported.as_ref(), recording.as_ref(), "--min-length".as_ref(), FROM.as_ref()];
            lab.ask(&compared)
        };
        let same = median(&against("same.becalm"));
        let other = median(&against("other.becalm"));
        tell(&format!("beside: {format}: the median under the same noise: {same:?}, under another one: {other:?}"));
        if same.0 != "none beyond" || same.1.is_none_or(|bound| bound > BOUND) {
            return Err(format!("{format} differs under the same noise: {same:?}"));
        }
        if other.0 != "higher" {
            return Err(format!("{format} does not differ from longer detours: {other:?}"));
        }
    }
    Ok(())
}

#[test]
fn rtla_and_oslat_find_what_becalm_finds_and_latencies_are_not_held_against_it() {
    let Some(lab) = Lab::open() else { return };
    let outcome = attempts(2, || {
        let outcome = lab.run("beside");
        check(&lab, &outcome).map(|()| outcome)
    });
    for (name, format) in [("timerlat-hist", "rtla"), ("cyclictest.json", "cyclictest")] {
        let imported = import(&lab, &outcome, name, format);
        let recording = outcome.path("same.becalm");
        let (done, _, errors) = becalm(&lab, &["compare".as_ref(), imported.as_ref(), recording.as_ref()]);
        assert!(!done && errors.contains("wake-up latencies") && errors.contains("not compared"), "{name}: {errors}");
    }
}
