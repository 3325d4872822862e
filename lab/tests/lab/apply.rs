//! Tuning on real kernels: everything is brought back whatever happens, and the noise is gone meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use becalm_lab::Outcome;
use serde_json::Value;

use crate::guests::{Lab, json, number, tell, text};
use crate::recording::each;

/// Every setting that a guest's shell found at some moment, by its path; folders have none.
fn settings(outcome: &Outcome, moment: &str) -> BTreeMap<String, String> {
    let all = text(outcome, moment);
    let all = all.lines().map(|line| line.split_once(':').unwrap_or((line, "")));
    let all: BTreeMap<String, String> = all.map(|(path, value)| (path.to_owned(), value.trim().to_owned())).collect();
    assert!(all.len() > 200, "hardly a setting: {all:?}");
    all
}

/// The thread whose file this is.
fn thread(path: &str) -> Option<&str> {
    path.strip_prefix("/proc/")?.split('/').nth(2).filter(|tid| tid.parse::<u32>().is_ok())
}

/// The paths whose settings differ between two moments; threads that were there at one of them only are left out.
fn changed(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> BTreeSet<String> {
    let paths: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differ = paths.into_iter().filter(|&path| match (a.get(path), b.get(path)) {
        (Some(a), Some(b)) => a != b,
        _ => thread(path).is_none(),
    });
    differ.cloned().collect()
}

/// Every setting is as before, and so is where threads may run that could run anywhere.
fn assert_restored(outcome: &Outcome, before: &str, after: &str) {
    assert_unchanged(outcome, before, after, |path, value| thread(path).is_none() || value.ends_with(ANYWHERE));
}

/// Threads that could not run anywhere, by somebody's will or the boot parameters', may run where they could.
fn assert_bound_threads_restored(outcome: &Outcome, before: &str, after: &str) {
    assert_unchanged(outcome, before, after, |path, value| thread(path).is_some() && !value.ends_with(ANYWHERE));
}

/// How the mask of both CPUs ends.
const ANYWHERE: &str = "\t3";

fn assert_unchanged(outcome: &Outcome, before: &str, after: &str, wanted: fn(&str, &str) -> bool) {
    let (a, b) = (settings(outcome, before), settings(outcome, after));
    let changed: Vec<String> = changed(&a, &b)
        .into_iter()
        .filter(|path| wanted(path, a.get(path).map_or("", String::as_str)))
        .map(|path| format!("{path}: {:?}, now {:?}", a.get(&path), b.get(&path)))
        .collect();
    assert!(changed.is_empty(), "{after} is not as {before}: {changed:#?}");
}

fn state(outcome: &Outcome, name: &str) -> String {
    json(&outcome.path(name))["state"].as_str().expect("a state is a word").to_owned()
}

/// How often something of these kinds came on one side of a comparison, a second.
fn rates(comparison: &Value, side: &str, kinds: &[&str]) -> f64 {
    each(comparison, "rows")
        .filter(|row| row["what"] == "rate_hz" && row["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)))
        .map(|row| row[side].as_f64().expect("a rate is a number"))
        .sum()
}

#[test]
fn tuning_is_undone_whatever_happens_and_quiet_meanwhile() {
    let Some(lab) = Lab::open() else { return };
    let outcome = lab.run("tune");
    assert_only_the_plan_was_changed(&outcome);

    assert_eq!(state(&outcome, "status.json"), "tuned");
    assert_eq!(number(&outcome, "second_apply_status"), 1);
    assert!(text(&outcome, "second_apply").contains("becalm tune restore"), "{}", text(&outcome, "second_apply"));
    assert_eq!(state(&outcome, "restore.json"), "restored");
    assert_restored(&outcome, "before", "restored");

    let mut killed = (0, 0);
    for part in 1..=5 {
        assert_restored(&outcome, "before", &format!("restored_{part}"));
        let after_apply = json(&outcome.path(&format!("killed_{part}.json")));
        let after_restore = json(&outcome.path(&format!("killed_again_{part}.json")));
        let knobs = |status: &Value| each(status, "knobs").count();
        println!(
            "killed during apply with {} knobs changed, during restore with {}",
            knobs(&after_apply),
            knobs(&after_restore)
        );
        killed.0 += usize::from(after_apply["state"] == "unfinished" && knobs(&after_apply) > 0);
        killed.1 += usize::from(knobs(&after_restore) > 0);
    }
    // The shell cannot know when exactly becalm is where, but it hits it more often than not.
    assert!(killed.0 >= 3 && killed.1 >= 1, "killed {} times during apply and {} during restore", killed.0, killed.1);
    assert_eq!(state(&outcome, "status_after.json"), "untuned");

    // The same load on a kernel that was told to free the CPU, which becalm keeps quiet for as long as a command runs.
    let quiet = lab.run("quiet");
    assert_eq!(number(&quiet, "status_of_command"), 42);
    assert_eq!(text(&quiet, "allowed"), "Cpus_allowed_list:\t1");
    assert_eq!(text(&quiet, "partition"), "isolated");
    assert_eq!(state(&quiet, "status.json"), "untuned");
    assert_restored(&quiet, "before", "after");
    assert_eq!(state(&quiet, "status_running.json"), "running");
    assert_restored(&quiet, "before", "after_kill");

    let (untuned_run, tuned_run) = (lab.recorded(&outcome, "untuned.becalm"), lab.recorded(&quiet, "tuned.becalm"));
    untuned_run.assert_whole();
    tuned_run.assert_whole();
    let (a, b) = (outcome.path("untuned.becalm"), quiet.path("tuned.becalm"));
    let comparison = lab.ask(&["compare".as_ref(), a.as_ref(), b.as_ref()]);
    // Into a detour in which the kernel was seen there is one way; into what the emulator does alone there is none.
    let detours = [untuned_run, tuned_run].map(|run| run.count("edge", "entry") as f64 / run.seconds());
    let kinds = ["irq", "softirq", "kthread", "workqueue", "task"];
    let activities = ["a", "b"].map(|side| rates(&comparison, side, &kinds));
    for (what, [untuned, tuned]) in [("detours", detours), ("activities", activities)] {
        tell(&format!("tune: {what} of the kernel a second on CPU 1: {untuned:.1} untuned, {tuned:.1} tuned"));
        // What is left comes with the tick of each second and with grace periods of RCU, each of which asks the CPU twice.
        assert!(untuned >= 10.0 * tuned, "{what}: {untuned} untuned, {tuned} tuned: {}", comparison["rows"]);
    }

    // Making and removing a partition, the kernel (until 6.2) gives all CPUs of the group to every thread of it.
    for after in ["restored", "restored_1", "restored_2", "restored_3", "restored_4", "restored_5"] {
        assert_bound_threads_restored(&outcome, "before", after);
    }
    assert_bound_threads_restored(&quiet, "before", "after");
    assert_bound_threads_restored(&quiet, "before", "after_kill");
}

/// What differs since `becalm tune apply` is what it says that it changed.
fn assert_only_the_plan_was_changed(outcome: &Outcome) {
    let applied = json(&outcome.path("apply.json"));
    let knobs = |outcome: &'static str| each(&applied, "knobs").filter(move |knob| knob["outcome"] == outcome);
    let names: Vec<&str> = knobs("changed").map(|knob| knob["knob"].as_str().expect("a knob has a name")).collect();
    let (before, tuned) = (settings(outcome, "before"), settings(outcome, "tuned"));
    let differ = changed(&before, &tuned);
    println!("apply changed {} settings by {} knobs: {names:?}", differ.len(), names.len());
    assert!(differ.len() >= 10, "{differ:?}");
    for path in differ {
        let named = |knob: &&str| match thread(&path) {
            // CPUs of sshd (123); and a partition takes its CPU from every thread that may not be moved otherwise.
            Some(thread) => {
                knob.ends_with(&format!("({thread})")) || (knob.ends_with("partition") && tuned[&path].ends_with("\t1"))
            }
            // The affinity of an interrupt is there as a list and as a mask; a group brings its files.
            None => path.starts_with(knob.trim_end_matches("_list").trim_end_matches(": cpuset").trim_end_matches('/')),
        };
        assert!(names.iter().any(named), "{path} was changed, and no knob is so called: {names:?}");
    }
    // One interrupt of the disk a CPU is the kernel's own, and it says so.
    for knob in knobs("refused") {
        assert_eq!(knob["family"], "irq", "{knob}");
    }
}
