//! What a recording says of itself where it is killed, flooded, or made in a namespace.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use becalm_bundle::Bundle;
use becalm_linux::perf::CpuClock;
use becalm_linux::sched;
use becalm_model::Kind;
use becalm_testing::program::{Running, becalm, document, executable, path, report, run, warning_codes};
use becalm_testing::{find_program, skip};
use serde_json::Value;

use crate::robust::alone;

fn number(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_else(|| panic!("{name} is a number in {value:#}"))
}

#[test]
fn a_killed_recording_without_detours_knows_how_long_it_watched() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("quiet.becalm");
    let words = ["--quiet", "--cpus", "1", "--threshold", "9s", "--segment", "500ms", "--until-stopped"];
    let mut running = Running::start(becalm(&[&["record", "-o", path(&bundle)][..], &words].concat()));
    running.wait_for_start(&bundle);
    thread::sleep(Duration::from_secs(4));
    running.signal("KILL");
    running.end();
    let report = report(&bundle);
    let cpu = &report["cpus"][0];
    assert_eq!((number(cpu, "detours"), number(cpu, "cpu")), (0, 1), "{cpu:#}");
    // All but the segment that was being recorded, and what starting took.
    let watched = number(cpu, "duration_ns");
    assert!((2_500_000_000..4_500_000_000).contains(&watched), "{cpu:#}");
    assert_eq!(cpu["noise_ratio"].as_f64(), Some(0.0), "{cpu:#}");
}

/// Records steps of that length and more: hardly longer than the shortest, which makes millions of detours a second.
fn storm(bundle: &Path, threshold: i64) -> Value {
    let threshold = format!("{threshold}ns");
    let words = ["--quiet", "--cpus", "1", "--duration", "2s", "--buffer", "64", "--threshold", &threshold];
    run(becalm(&[&["record", "-o", path(bundle)][..], &words].concat())).expect(0, &[]);
    document(bundle)
}

#[test]
fn a_storm_of_short_detours_ends_no_recording() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let quiet = folder.path().join("quiet.becalm");
    let t_min = number(&storm(&quiet, 1_000_000)["cpus"][0], "t_min_ns");
    let bundle = folder.path().join("storm.becalm");
    let doc = storm(&bundle, t_min + 1);
    assert_eq!(doc["ended"], "duration");
    assert!(warning_codes(&doc).contains(&"unstored"), "{doc:#}");
    let cpu = &doc["cpus"][0];
    let of = |name: &str| number(cpu, name);
    // How many steps are longer than the shortest is for the processor to say.
    assert!(of("unstored") > 10_000, "{cpu:#}");
    // The books are closed: what was stored, counted and left out is the whole time. Each stored step may be rounded by a
    // nanosecond.
    let t_min = of("t_min_ns");
    let detours = of("total_ns") + of("unstored_ns") + (of("detours") + of("unstored")) * t_min;
    let off = of("duration_ns") - of("below_threshold_ns") - detours;
    assert!(off.abs() <= of("detours") + 2, "{off} ns vanished: {cpu:#}");
    // By length as in all, and none of 1 us and more.
    let lengths = cpu["unstored_lengths"].as_array().unwrap();
    let sum = |name: &str| lengths.iter().map(|length| number(length, name)).sum::<i64>();
    assert_eq!((sum("detours"), sum("total_ns")), (of("unstored"), of("unstored_ns")));
    assert!(lengths.iter().all(|length| number(length, "below_ns") < 1_000), "{lengths:#?}");
    // The noise is that of all of them.
    let report = report(&bundle);
    let ratio = report["cpus"][0]["noise_ratio"].as_f64().unwrap();
    let noise = (of("total_ns") + of("unstored_ns")) as f64 / of("duration_ns") as f64;
    assert!((ratio - noise).abs() < 1e-9, "{ratio} instead of {noise}");
}

/// How long becalm stayed on measured CPUs each time, in rising order, in nanoseconds.
fn own_stays(bundle: &Path) -> Vec<i64> {
    let bundle = Bundle::open(bundle).unwrap();
    let mut stays = Vec::new();
    for batch in bundle.activities(&bundle.nodes()[0].node).unwrap() {
        let batch = batch.unwrap();
        let own = (0..batch.len()).filter(|row| batch.kind(*row) == Kind::Becalm);
        stays.extend(own.map(|row| batch.self_times()[row]));
    }
    stays.sort_unstable();
    stays
}

#[test]
fn where_every_cpu_is_measured_becalm_never_stays_for_long() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("all.becalm");
    // So many events that a segment takes tens of milliseconds to attribute and to store.
    let cpus = sched::allowed_cpus().unwrap();
    let clocks: Vec<_> = cpus.iter().map(|cpu| CpuClock::start(cpu, 5_000).unwrap()).collect();
    let words = ["record", "--quiet", "--duration", "10s", "--segment", "2s", "-o", path(&bundle)];
    run(becalm(&words)).expect(0, &[]);
    drop(clocks);
    let doc = document(&bundle);
    assert_eq!((&doc["ended"], &doc["rung"]), (&Value::from("duration"), &Value::from("tracepoints")), "{doc:#}");
    for cpu in doc["cpus"].as_array().unwrap() {
        assert_eq!(number(cpu, "lost_events"), 0, "{cpu:#}");
    }
    let stays = own_stays(&bundle);
    let total: i64 = stays.iter().sum();
    assert!(
        stays.len() > 100 && total > 40_000_000,
        "{} stays of {total} ns: too little work to show anything",
        stays.len()
    );
    // The host of a guest and cold memory lengthen single ones, and a host whose CPUs are wanted by others lengthens all; a stay
    // that nothing but the scheduler ends takes four milliseconds here, and in one go this work would make every third stay
    // such a one.
    let p99 = stays[stays.len() * 99 / 100];
    let shares = [50, 90, 95, 99].map(|percent| stays[stays.len() * percent / 100]);
    eprintln!("{} stays of {total} ns together; 50, 90, 95, 99 % are below {shares:?} ns", stays.len());
    assert!(p99 < 1_500_000, "99 % of {} stays are below {p99} ns, the longest takes {:?}", stays.len(), stays.last());
}

#[test]
fn in_a_pid_namespace_becalm_knows_its_own_threads() {
    let Some(_alone) = alone() else { return };
    let Some(unshare) = find_program("unshare") else { return skip("there is no unshare") };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("inside.becalm");
    let mut command = Command::new(unshare);
    command.args(["--pid", "--fork", "--mount-proc"]).arg(executable());
    // Becalm's loop and its collector share the CPUs, so that both stand in the trace.
    command.args(["record", "--quiet", "--duration", "3s", "-o", path(&bundle)]);
    run(command).expect(0, &[]);
    let doc = document(&bundle);
    assert_eq!(doc["rung"], "tracepoints", "{doc:#}");
    let report = report(&bundle);
    let sources: Vec<(&str, &str)> = report["sources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|source| Some((source["kind"].as_str()?, source["source"].as_str()?)))
        .collect();
    assert!(number(&report["total"], "self_ns") > 0, "{:#}", report["total"]);
    // Another becalm may run beside this one; only this one has loops.
    let strangers: Vec<_> =
        sources.iter().filter(|(kind, name)| *kind == "task" && name.starts_with("becalm/")).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
    // Each switch to the loop is one that attribution expects.
    let unmatched: i64 = doc["cpus"].as_array().unwrap().iter().map(|cpu| number(cpu, "unmatched_events")).sum();
    let events: i64 = doc["cpus"].as_array().unwrap().iter().map(|cpu| number(cpu, "events")).sum();
    assert!(unmatched <= events / 200 + 4, "{unmatched} of {events}");
}

/// The documents of a recording's longest detours.
fn longest(bundle: &Path) -> Value {
    let ended = run(becalm(&["sources", path(bundle), "--longest", "400", "--json"]));
    serde_json::from_str(ended.expect(0, &[]).stdout.as_str()).unwrap()
}

#[test]
fn the_trace_holds_what_the_kernel_counted_and_names_functions() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("functions.becalm");
    let words = ["--quiet", "--cpus", "1", "--duration", "3s", "--functions"];
    run(becalm(&[&["record", "-o", path(&bundle)][..], &words].concat())).expect(0, &[]);
    let report = report(&bundle);
    let timers = &report["checked"]["timer_interrupts"];
    let (counted, traced) = (number(timers, "counted"), number(timers, "traced"));
    // On whichever machine, the loop keeps the tick of its CPU going.
    assert!(counted > 0 && counted - traced <= 2, "{timers:#}");
    let softirqs = &report["checked"]["softirqs"];
    assert!(number(softirqs, "counted") - number(softirqs, "traced") <= 2, "{softirqs:#}");
    assert!(!warning_codes(&document(&bundle)).contains(&"untraced_interrupts"), "{:#}", report["checked"]);
    // An event takes more than its bytes do to be written, and less than a system call with a switch.
    let cost = report["measuring"]["event_cost_ns"].as_f64().unwrap();
    assert!((20.0..3_000.0).contains(&cost), "{:#}", report["measuring"]);
    // Its function has another name from kernel to kernel, but tells what it is.
    let detours = longest(&bundle);
    let rows =
        detours["detours"].as_array().unwrap().iter().flat_map(|detour| detour["activities"].as_array().unwrap());
    let ticks = rows.filter(|row| row["kind"] == "irq" && row["source"] == "local_timer");
    let details: Vec<&str> = ticks.filter_map(|row| row["detail"].as_str()).collect();
    let named =
        details.iter().filter(|detail| detail.split_once(" \u{2192} ").is_some_and(|(_, ran)| ran.contains("tick")));
    assert!(named.count() * 2 > details.len() && !details.is_empty(), "{details:?}");
}
