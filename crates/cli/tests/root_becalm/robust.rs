//! What can go wrong around a recording with the kernel's trace, and what takes root to bring about: each time a clear
//! message, the right exit code, what was recorded readable, and neither a process nor a trace instance left.
//!
//! As the tests change what the whole machine shares (CPUs taken offline, tracing settings, mounts), they run one at a
//! time, and undo it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use becalm_testing::cgroup::ControlGroup;
use becalm_testing::machine::{Mounted, Offline};
use becalm_testing::program::{
    INSTANCES, Running, becalm, document, instances_of, path, public_program, report, run, run_becalm, segments,
    warning_codes,
};
use becalm_testing::{Need, machine_has, skip};
use serde_json::Value;
use tempfile::TempDir;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The right to run alone, where the machine has what every test here needs.
pub fn alone() -> Option<MutexGuard<'static, ()>> {
    machine_has(&[Need::Root, Need::Tracefs]).then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A recording with the kernel's trace, and `more`.
fn recording(bundle: &Path, more: &[&str]) -> Command {
    becalm(&[&["record", "--quiet", "-o", path(bundle)], more].concat())
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn ended(report: &Value) -> &Value {
    &report["nodes"][0]["ended"]
}

/// The CPUs of a report, and for how long each was observed.
fn observed(report: &Value) -> Vec<(i64, i64)> {
    let cpus = report["cpus"].as_array().into_iter().flatten();
    cpus.filter_map(|cpu| Some((cpu["cpu"].as_i64()?, cpu["duration_ns"].as_i64()?))).collect()
}

#[test]
fn root_signals_leave_no_instance() {
    let Some(_alone) = alone() else { return };
    let folder = folder();
    for signal in ["INT", "TERM"] {
        let bundle = folder.path().join(signal);
        let mut running = Running::start(recording(&bundle, &["--until-stopped"]));
        running.wait_for_start(&bundle);
        assert_eq!(instances_of(running.pid()).len(), 1);
        running.signal(signal);
        // The end checks that neither instance nor process remains.
        running.end().expect(0, &[]);
        let report = report(&bundle);
        assert_eq!(ended(&report), "signal");
        assert_eq!(report["rung"], "tracepoints");
    }
}

#[test]
fn root_a_killed_recording_keeps_its_segments_and_its_janitor_cleans_up() {
    let Some(_alone) = alone() else { return };
    let folder = folder();
    let bundle = folder.path().join("run");
    let mut running = Running::start(recording(&bundle, &["--until-stopped", "--segment", "500ms"]));
    running.wait_until("two segments are stored", || segments(&bundle) >= 2);
    let stored = segments(&bundle);
    running.signal("KILL");
    assert_eq!(running.end().code, 128 + 9);
    assert!(segments(&bundle) >= stored);
    let report = report(&bundle);
    assert_eq!(ended(&report), &Value::Null);
    assert!(warning_codes(&report).contains(&"not_ended"));
    assert_eq!(report["books"], "closed");
    // Each of them holds half a second at least; the last may end with a moment without a detour.
    let least = stored as i64 * 400_000_000;
    for (cpu, observed) in observed(&report) {
        assert!(observed >= least, "CPU {cpu}: {observed}, {stored} segments");
    }
}

#[test]
fn root_a_recording_with_causes_leaves_no_instance_and_says_what_it_lacks() {
    let Some(_alone) = alone() else { return };
    let folder = folder();
    let start = |name: &str| {
        let bundle = folder.path().join(name);
        let mut running = Running::start(recording(&bundle, &["--causes", "--cpus", "0", "--duration", "4s"]));
        running.wait_for_start(&bundle);
        let pid = running.pid();
        running.wait_until("both traces are there", || instances_of(pid).len() == 2);
        (bundle, running)
    };
    let refused = |bundle: &Path, words: &[&str]| {
        run_becalm(&["why", path(bundle)]).expect(2, words);
        report(bundle);
    };
    // Killed: the end checks that neither instance nor process remains.
    let (bundle, running) = start("killed");
    running.signal("KILL");
    running.end();
    refused(&bundle, &["did not end", "--causes"]);
    // Another program takes the events of requests away.
    let (bundle, running) = start("changed");
    let switches = instances_of(running.pid())
        .into_iter()
        .map(|name| Path::new(INSTANCES).join(name).join("events/irq/softirq_raise/enable"));
    let is_on = |switch: &PathBuf| fs::read_to_string(switch).is_ok_and(|text| text.trim() == "1");
    let switch = switches.into_iter().find(is_on).expect("one of the traces records requests");
    fs::write(&switch, "0").unwrap();
    running.end().expect(0, &[]);
    assert!(warning_codes(&document(&bundle)).contains(&"no_causes"), "{:#}", document(&bundle));
    refused(&bundle, &["--causes"]);
}

#[test]
fn root_leftovers_of_the_dead_are_removed_and_those_of_others_are_not() {
    let Some(_alone) = alone() else { return };
    let folder = folder();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    let namespace = namespace.to_str().unwrap().trim_start_matches("pid:[").trim_end_matches(']').to_owned();
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let leftover = Path::new(INSTANCES).join(format!("becalm-{}-1-{namespace}-0", dead.id()));
    let foreign = Path::new(INSTANCES).join(format!("somebody-{}", dead.id()));
    for instance in [&leftover, &foreign] {
        fs::create_dir(instance).unwrap();
    }
    let ended = run(recording(&folder.path().join("run"), &["--cpus", "0", "--duration", "100ms"]));
    let (left, kept) = (leftover.exists(), foreign.exists());
    for instance in [&leftover, &foreign] {
        let _ = fs::remove_dir(instance);
    }
    ended.expect(0, &[]);
    assert!(!left && kept, "leftover {left}, foreign {kept}");
}

#[test]
fn root_a_full_disk_ends_the_recording_and_keeps_what_is_stored() {
    let Some(_alone) = alone() else { return };
    let disk = Mounted::tmpfs("size=320k");
    let bundle = disk.path().join("run");
    let ended_full = run(recording(&bundle, &["--cpus", "0", "--duration", "20s", "--segment", "100ms"]));
    ended_full.expect(1, &["No space left on device", path(&bundle), "what was stored until then is in"]);
    assert!(segments(&bundle) >= 1);
    let report = report(&bundle);
    assert_eq!(ended(&report), "failed");
    assert!(report["cpus"][0]["detours"].as_u64().unwrap() > 0 && observed(&report)[0].1 > 0);
    let why = document(&bundle)["warnings"].to_string();
    assert!(why.contains("the recording failed") && why.contains("No space left"), "{why}");
}

#[test]
fn root_places_that_cannot_be_written_are_refused_at_once() {
    let Some(_alone) = alone() else { return };
    let folder = folder();
    let read_only = Mounted::tmpfs("ro");
    let bundle = read_only.path().join("run");
    run(recording(&bundle, &["--duration", "1h"])).expect(1, &["nothing was recorded", path(&bundle), "Read-only"]);
    let full = Mounted::tmpfs("size=4k");
    let bundle = full.path().join("run");
    run(recording(&bundle, &["--duration", "1h"])).expect(1, &["nothing was recorded", path(&bundle), "No space left"]);
    let file = folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    run(recording(&file, &["--duration", "1h"])).expect(1, &[path(&file), "is not a directory"]);
}

#[test]
fn root_an_offline_cpu_is_named() {
    let Some(_alone) = alone() else { return };
    let Some(offline) = Offline::take(1) else { return skip("CPU 1 cannot be taken offline") };
    let folder = folder();
    let bundle = folder.path().join("run");
    run(recording(&bundle, &["--cpus", "1"])).expect(1, &["CPU 1 is offline", "online"]);
    assert!(!bundle.exists());
    run(recording(&bundle, &["--duration", "200ms"])).expect(0, &[]);
    assert_eq!(observed(&report(&bundle)).iter().map(|cpu| cpu.0).collect::<Vec<_>>(), online());
    drop(offline);
}

fn online() -> Vec<i64> {
    let folders = fs::read_dir("/sys/devices/system/cpu").unwrap().flatten();
    let number = |name: String| name.strip_prefix("cpu")?.parse::<i64>().ok();
    let mut cpus: Vec<i64> = folders.filter_map(|folder| number(folder.file_name().into_string().ok()?)).collect();
    cpus.retain(|cpu| {
        // CPU 0 often has no switch: it is always on.
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/online")).map_or(true, |text| text.trim() == "1")
    });
    cpus.sort_unstable();
    cpus
}

#[test]
fn root_a_cpu_that_goes_offline_meanwhile_cuts_its_own_recording_short() {
    let Some(_alone) = alone() else { return };
    if Offline::take(1).is_none() {
        return skip("CPU 1 cannot be taken offline");
    }
    let folder = folder();
    let going = |name: &str, cpus: &str, duration: &str| {
        let bundle = folder.path().join(name);
        let mut running = Running::start(recording(&bundle, &["--cpus", cpus, "--duration", duration]));
        running.wait_for_start(&bundle);
        thread::sleep(Duration::from_millis(500));
        let offline = Offline::take(1);
        let ended = running.end();
        drop(offline);
        let report = report(&bundle);
        assert!(warning_codes(&report).contains(&"cut_short"), "{report:#}");
        (ended, report)
    };
    let (ended_both, both) = going("both", "0-1", "3s");
    ended_both.expect(0, &[]);
    assert_eq!(ended(&both), "duration");
    let [(0, first), (1, second)] = observed(&both)[..] else { panic!("{both:#}") };
    assert!(first >= 2_900_000_000 && second < 2_500_000_000, "{first} {second}");
    // Nothing left to measure: no reason to wait for an hour.
    let (ended_one, one) = going("one", "1", "1h");
    ended_one.expect(1, &["ended early", "every measured CPU went offline"]);
    assert_eq!(ended(&one), "cpus_gone");
}

#[test]
fn root_cpus_outside_of_the_cgroup_are_refused_or_left_out() {
    let Some(_alone) = alone() else { return };
    if online() != [0, 1] {
        return skip("it is written for a machine with CPUs 0 and 1");
    }
    let Some(group) = ControlGroup::with_cpus("0") else { return skip("no cpuset can be made") };
    let folder = folder();
    let bundle = folder.path().join("run");
    let refused = run(group.inside(&recording(&bundle, &["--cpus", "1", "--duration", "1h"])));
    refused.expect(1, &["this process may not use CPU 1", "cgroup's cpuset"]);
    assert!(!bundle.exists());
    run(group.inside(&recording(&bundle, &["--duration", "300ms"]))).expect(0, &[]);
    let report = report(&bundle);
    assert!(matches!(observed(&report)[..], [(0, _)]), "{report:#}");
    assert!(warning_codes(&report).contains(&"cpus_left_out"), "{report:#}");
}

/// What the top-level instance of tracing is set to.
fn tracing_settings() -> Vec<String> {
    let files = ["tracing_on", "current_tracer", "trace_clock", "set_event", "buffer_size_kb", "trace_options"];
    files.iter().map(|file| fs::read_to_string(format!("/sys/kernel/tracing/{file}")).unwrap()).collect()
}

#[test]
fn root_two_recordings_disturb_neither_each_other_nor_other_users_of_tracing() {
    let Some(_alone) = alone() else { return };
    let theirs = Path::new(INSTANCES).join(format!("somebody-{}", std::process::id()));
    fs::create_dir(&theirs).unwrap();
    let set = |file: &str, value: &str| fs::write(theirs.join(file), value).unwrap();
    set("events/sched/sched_switch/enable", "1");
    let of_theirs = || {
        let files = ["tracing_on", "trace_clock", "events/sched/sched_switch/enable", "buffer_size_kb"];
        files.map(|file| fs::read_to_string(theirs.join(file)).unwrap())
    };
    let before = (tracing_settings(), of_theirs());
    let folder = folder();
    let bundles = [folder.path().join("one"), folder.path().join("two")];
    let mut running: Vec<Running> =
        bundles.iter().map(|bundle| Running::start(recording(bundle, &["--cpus", "0", "--duration", "3s"]))).collect();
    for (running, bundle) in running.iter_mut().zip(&bundles) {
        running.wait_for_start(bundle);
    }
    let during = (tracing_settings(), of_theirs());
    for running in running {
        running.end().expect(0, &[]);
    }
    let after = (tracing_settings(), of_theirs());
    let recorded = fs::read_to_string(theirs.join("trace")).unwrap();
    fs::remove_dir(&theirs).unwrap();
    assert_eq!(before, during);
    assert_eq!(before, after);
    assert!(recorded.contains("sched_switch:"), "their own recording stopped");
    for bundle in &bundles {
        let report = report(bundle);
        assert_eq!(
            (ended(&report), &report["rung"], &report["books"]),
            (&"duration".into(), &"tracepoints".into(), &"closed".into())
        );
        assert_eq!(report["lost_events"], 0);
        // Each sees that the other takes turns with it on their CPU.
        let sources = report["sources"].as_array().unwrap();
        assert!(sources.iter().any(|source| source["kind"] == "task"), "{sources:#?}");
    }
}

#[test]
fn root_without_privileges_the_loops_and_proc_remain() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("setpriv")]) {
        return;
    }
    let folder = folder();
    let bundle = folder.path().join("run");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(public_program(folder.path()));
    command.args(["record", "--quiet", "--duration", "300ms", "-o", path(&bundle)]);
    run(command).expect(0, &[]);
    let report = report(&bundle);
    assert_eq!((ended(&report), &report["rung"]), (&"duration".into(), &"proc".into()));
    assert!(warning_codes(&report).contains(&"no_tracing"), "{report:#}");
    assert!(report["cpus"][0]["detours"].as_u64().unwrap() > 0);

    let refused = folder.path().join("real-time");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(folder.path().join("becalm"));
    command.args(["record", "--quiet", "--sched", "fifo:80", "-o", path(&refused)]);
    run(command).expect(1, &["nothing was recorded", "fifo:80", "Operation not permitted"]);
    assert!(!refused.exists());
}

#[test]
fn root_without_tracefs_the_reason_is_said() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::Program("setpriv"), Need::Program("unshare")]) {
        return;
    }
    let folder = folder();
    let bundle = folder.path().join("run");
    // In a mount namespace of its own, without tracefs and without the right to mount it, as in a container.
    let script = r#"while umount /sys/kernel/tracing 2>/dev/null; do :; done; umount /sys/kernel/debug 2>/dev/null
        exec setpriv --bounding-set=-sys_admin -- "$@""#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_becalm")]);
    command.args(["record", "--quiet", "--duration", "300ms", "-o", path(&bundle)]);
    run(command).expect(0, &[]);
    let report = report(&bundle);
    assert_eq!(report["rung"], "proc");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("no_tracing") && warnings.contains("cannot mount tracefs"), "{warnings}");
}

/// Real-time loops on every CPU: the highest priority is refused, and below it a signal ends the recording at once.
#[test]
fn real_time_loops_on_every_cpu_can_be_ended() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run.becalm");
    let words = ["record", "--no-sources", "--quiet", "--until-stopped", "-o", path(&output), "--sched"];
    for class in ["fifo:99", "rr:99"] {
        run_becalm(&[&words[..], &[class]].concat()).expect(2, &["98 is the highest"]);
        assert!(!output.exists());
    }
    for signal in ["INT", "TERM"] {
        let mut running = Running::start(becalm(&[&words[..], &["fifo:98"]].concat()));
        running.wait_until("it records", || output.join("runs").is_dir());
        thread::sleep(Duration::from_millis(500));
        running.signal(signal);
        running.end().expect(0, &[]);
        fs::remove_dir_all(&output).unwrap();
    }
}
