//! Other programs that change becalm's own tracing instance while it records.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use becalm_testing::attack::{Tries, attack};
use becalm_testing::machine::{Bench, Offline};
use becalm_testing::program::{
    INSTANCES, Running, becalm, document, instances_of, path, report, run, run_becalm, take_events, warning_codes,
};
use becalm_testing::{Need, machine_has};
use serde_json::Value;

/// What is done to the instance in a directory, and the file that becalm must name.
pub type Way = (&'static str, fn(&Path));

fn write(instance: &Path, file: &str, text: &str) {
    fs::write(instance.join(file), text).unwrap_or_else(|error| panic!("{file}: {error}"));
}

/// All of them.
pub const WAYS: [Way; 14] = [
    ("events/enable", |_| reset_all()),
    ("tracing_on", |instance| write(instance, "tracing_on", "0")),
    ("tracing_on", |instance| {
        write(instance, "tracing_on", "0");
        thread::sleep(Duration::from_millis(20));
        // Unless becalm has noticed by then, and removed the instance.
        _ = fs::write(instance.join("tracing_on"), "1");
    }),
    ("tracing_cpumask", |instance| write(instance, "tracing_cpumask", "0")),
    ("trace_clock", |instance| write(instance, "trace_clock", "local")),
    ("events/enable", |instance| write(instance, "events/enable", "0")),
    ("events/sched/sched_switch/enable", |instance| write(instance, "events/sched/sched_switch/enable", "0")),
    ("events/sched/sched_switch/filter", |instance| {
        write(instance, "events/sched/sched_switch/filter", "prev_pid == 1");
    }),
    ("events/sched/filter", |instance| write(instance, "events/sched/filter", "0")),
    ("set_event_pid", |instance| write(instance, "set_event_pid", "1")),
    ("buffer_size_kb", |instance| write(instance, "buffer_size_kb", "64")),
    ("trace_options", |instance| write(instance, "trace_options", "nooverwrite")),
    ("trace", |instance| {
        OpenOptions::new().write(true).truncate(true).open(instance.join("trace")).unwrap();
    }),
    ("per_cpu/cpu0/trace_pipe_raw", |instance| take_events(instance, 0)),
];

/// Some kernels refuse it a file of the top level. By then it has reset the instances.
fn reset_all() {
    Command::new("trace-cmd").args(["reset", "-a"]).output().expect("trace-cmd is installed");
}

/// Nanoseconds of the wall clock.
fn now() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i128
}

/// The machine, if it has a trace.
pub fn bench() -> Option<Bench> {
    machine_has(&[Need::Tracefs]).then(Bench::new).flatten()
}

/// The instance of a program, once it records.
fn instance(running: &mut Running) -> PathBuf {
    let pid = running.pid();
    let recording = || -> Option<PathBuf> {
        let instance = Path::new(INSTANCES).join(instances_of(pid).first()?);
        (fs::read_to_string(instance.join("tracing_on")).ok()? == "1\n").then_some(instance)
    };
    running.wait_until("its instance records", || recording().is_some());
    recording().expect("it still records")
}

fn nanoseconds(value: &Value) -> i128 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is a number")).into()
}

/// The change that a recording reports must be this one, made before this instant of the wall clock, and no later time may have a source.
#[track_caller]
fn knows(bundle: &Path, file: &str, at: i128) {
    let change = &document(bundle)["tracing"]["changed"];
    let files = change["files"].as_array().unwrap_or_else(|| panic!("the change of {file} is known"));
    assert!(files.iter().any(|known| known == file), "{file} is not among {files:?}");
    let until = nanoseconds(&change["traced_until_ns"]);
    let origin: jiff::Timestamp = document(bundle)["origin"].as_str().unwrap().parse().unwrap();
    // Both clocks are read to the microsecond.
    assert!(until <= at - origin.as_nanosecond() + 1_000_000, "{file}: known until {until}, changed at {at}");
    let found = run_becalm(&["detours", path(bundle), "--longest", "200", "--json"]);
    found.expect(0, &[]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    let detours = found["detours"].as_array().unwrap();
    assert!(!detours.is_empty(), "{found:#}");
    for detour in detours {
        let end = nanoseconds(&detour["start_ns"]) + nanoseconds(&detour["duration_ns"]);
        for row in detour["activities"].as_array().unwrap() {
            let is_unknown = row["source"] == "trace_changed";
            assert_eq!(is_unknown, row["kind"] == "not_traced" && is_unknown, "{row}");
            // A step is longer than its detour by less than the shortest step.
            assert!(is_unknown == (end > until) || (end - until).abs() < 1_000, "until {until}: {detour:#}");
        }
    }
    let codes = report(bundle);
    let codes = warning_codes(&codes);
    assert!(codes.first() == Some(&"trace_changed") && !codes.contains(&"untraced_interrupts"), "{codes:?}");
    for arguments in [&["report", path(bundle)][..], &["report", "--sources", path(bundle)]] {
        let text = run_becalm(arguments).stdout;
        assert!(text.starts_with("  ! another program changed becalm's trace"), "{arguments:?}: {text}");
    }
}

#[test]
fn recordings_whose_trace_others_change() {
    let Some(bench) = bench() else { return };
    let few = WAYS.len() as u32;
    attack(
        "trace of a recording changed by others: known since when",
        Tries { all: 3 * few, few },
        |number, random| {
            let (file, change) = WAYS[number as usize % WAYS.len()];
            let folder = tempfile::tempdir().unwrap();
            let bundle = folder.path().join("run");
            let commands = [&["record"][..], &["record", "--cpus", "0"], &["record", "--sched", "fifo:1"]];
            let command = *random.one(&commands);
            let mut running =
                Running::start(becalm(&[command, &["--quiet", "--until-stopped", "-o", path(&bundle)]].concat()));
            running.wait_for_start(&bundle);
            let instance = instance(&mut running);
            thread::sleep(Duration::from_millis(200) + random.time(Duration::from_millis(300)));
            change(&instance);
            // Not before it: on a busy machine the change itself may wait for the CPU.
            let at = now();
            thread::sleep(Duration::from_millis(300));
            running.signal("TERM");
            running.end().expect(0, &[]);
            knows(&bundle, file, at);
            bench.is_untouched("after its end", &[]);
        },
    );
}

#[test]
fn recordings_that_others_only_look_at() {
    let Some(bench) = bench() else { return };
    attack(
        "trace of a recording only read by others, or not at all: never changed",
        Tries { all: 12, few: 4 },
        |number, _| {
            let folder = tempfile::tempdir().unwrap();
            let bundle = folder.path().join("run");
            let is_unchanged = |when: &str| {
                let document = document(&bundle);
                assert!(document["tracing"].is_object(), "{when}: {document:#}");
                assert_eq!(document["tracing"]["changed"], Value::Null, "{when}");
            };
            match number % 4 {
                0 => {
                    let mut running =
                        Running::start(becalm(&["record", "--quiet", "--until-stopped", "-o", path(&bundle)]));
                    running.wait_for_start(&bundle);
                    let instance = instance(&mut running);
                    for file in ["tracing_on", "trace_clock", "set_event", "trace", "buffer_size_kb", "events/enable"] {
                        fs::read(instance.join(file)).unwrap();
                    }
                    // Refused, as markers are off.
                    let _ = fs::write(instance.join("trace_marker"), "hello");
                    // Of everything but this instance.
                    Command::new("trace-cmd").arg("stat").output().expect("trace-cmd is installed");
                    running.signal("TERM");
                    running.end().expect(0, &[]);
                    is_unchanged("looked at");
                }
                1 => {
                    // Hardly anything happens in so short a time.
                    run(becalm(&["record", "--quiet", "--duration", "1ms", "-o", path(&bundle)])).expect(0, &[]);
                    is_unchanged("of 1 ms");
                }
                2 => {
                    let load = "for n in 1 2 3 4; do (while :; do /bin/true; done) & done; sleep 1; kill $(jobs -p)";
                    let command = ["record", "--quiet", "-o", path(&bundle), "--", "bash", "-c", load];
                    run(becalm(&command)).expect(0, &[]);
                    is_unchanged("under load");
                }
                _ => {
                    let Some(offline) = Offline::take(1) else { return };
                    let command = ["record", "--quiet", "--cpus", "0", "--until-stopped", "-o", path(&bundle)];
                    let mut running = Running::start(becalm(&command));
                    running.wait_for_start(&bundle);
                    instance(&mut running);
                    drop(offline);
                    let offline = Offline::take(1);
                    running.signal("TERM");
                    running.end().expect(0, &[]);
                    drop(offline);
                    is_unchanged("when a CPU comes and goes");
                    // The kernel moves threads of its own then.
                    return;
                }
            }
            bench.is_untouched("after its end", &[]);
        },
    );
}

#[test]
fn measurements_whose_trace_others_change() {
    let Some(bench) = bench() else { return };
    attack(
        "trace of work, bench and cost scheduler reset by trace-cmd: they report it",
        Tries { all: 6, few: 3 },
        |number, _| {
            let folder = tempfile::tempdir().unwrap();
            let bundle = folder.path().join("run");
            let options: &[&str] = match number % 3 {
                0 => &["work", "--quiet", "--body", "sort", "--duration", "3s", "-o", path(&bundle)],
                1 => &["bench", "--no-tune", "--runs", "2", "--cpus", "0", "--json", "--", "sleep", "1"],
                _ => &["cost", "scheduler", "--cpu", "0", "--json"],
            };
            let mut running = Running::start(becalm(options));
            instance(&mut running);
            thread::sleep(Duration::from_millis(200));
            reset_all();
            let ended = running.end();
            match number % 3 {
                0 => assert!(warning_codes(&document(&bundle)).contains(&"trace_changed"), "{ended:#?}"),
                1 => assert!(ended.stdout.contains("another program changed becalm's trace"), "{ended:#?}"),
                _ => _ = ended.expect(1, &["another program changed becalm's trace"]),
            }
            bench.is_untouched("after its end", &[]);
        },
    );
}
