//! What can go wrong around a recording, as far as no privileges are needed to bring it about: each time a clear
//! message, the right exit code, what was recorded readable, and no process left. The root tests have the rest.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use becalm_testing::attempts;
use becalm_testing::program::{
    self, Running, becalm, document, path, report, run, run_becalm, segments, warning_codes,
};
use serde_json::Value;

/// A recording of all CPUs, without the kernel's trace, and `more`.
fn recording(bundle: &Path, more: &[&str]) -> Command {
    becalm(&[&["record", "--no-sources", "--quiet", "-o", path(bundle)], more].concat())
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn ended(report: &Value) -> &Value {
    &report["nodes"][0]["ended"]
}

#[test]
fn nonsense_is_refused_before_anything_is_done() {
    let list = "write numbers and ranges like 0-3,8";
    let time = "write a number with one of the units ns, us, ms, s, m, h, like 1.5ms";
    let class = "write other, batch, fifo:PRIORITY or rr:PRIORITY with a priority from 1 to 99";
    let share = "write a percentage from 0% to 100%, like 0.1%";
    let cases: &[(&[&str], &str, &str)] = &[
        (&["--cpus", "3-1"], "--cpus", list),
        (&["--cpus", "1,,2"], "--cpus", list),
        (&["--cpus", "all"], "--cpus", list),
        (&["--cpus", "-1"], "--cpus", list),
        (&["--cpus", "4294967296"], "--cpus", "4294967296"),
        (&["--cpus", ""], "--cpus", "the list of CPUs is empty"),
        (&["--cpus", "65000"], "this machine does not have CPU 65000", "it has CPU"),
        (&["--duration", "5"], "--duration", time),
        (&["--duration", "5 parsecs"], "--duration", time),
        (&["--duration", "-1s"], "--duration", time),
        (&["--duration", "99999999999h"], "--duration", "it is longer than 292 years"),
        (&["--duration", "0s"], "--duration", "below 1ms"),
        (&["--segment", "1ms"], "--segment", "below 100ms"),
        (&["--threshold", "fast"], "--threshold", time),
        (&["--threshold", "-1us"], "--threshold", time),
        (&["--max-detour", "-5us"], "--max-detour", time),
        (&["--max-noise", "101%"], "--max-noise", share),
        (&["--max-noise", "-1%"], "--max-noise", share),
        (&["--max-noise", "little"], "--max-noise", share),
        (&["--sched", "fifo"], "--sched", class),
        (&["--sched", "fifo:0"], "--sched", class),
        (&["--sched", "rr:100"], "--sched", class),
        (&["--sched", "nice"], "--sched", class),
        (&["--buffer", "0"], "--buffer", "4..=4194304"),
        (&["--trace-buffer", "1"], "--trace-buffer", "64..=4194304"),
        (&["--until-stopped", "--duration", "1s"], "--until-stopped", "cannot be used with"),
        (&["--until-stopped", "--detours", "5"], "--until-stopped", "cannot be used with"),
        (&["--detours", "0"], "--detours", "is not a number of interruptions"),
        (&["--detours", "many"], "--detours", "is not a number of interruptions"),
        (&["--node", "n/17"], "--node", "is not a name of a node: it may hold only letters, digits"),
        (&["--node", ""], "--node", "is not a name of a node: it is empty"),
        (&["--output", ""], "--output", "a value is required"),
        (&["--frobnicate"], "--frobnicate", "unexpected argument"),
    ];
    let folder = folder();
    for (arguments, parameter, form) in cases {
        let mut command = becalm(&[&["record", "--no-sources", "--quiet"], *arguments].concat());
        command.current_dir(folder.path());
        run(command).expect(2, &[parameter, form]);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was stored");
}

#[test]
fn a_threshold_within_the_loops_own_steps_is_refused() {
    let folder = folder();
    let bundle = folder.path().join("run");
    run(recording(&bundle, &["--threshold", "1ns"])).expect(2, &["threshold of 1ns", "shortest step", "give at least"]);
    assert!(!bundle.exists());
}

#[test]
fn signals_end_a_recording_in_good_order() {
    let folder = folder();
    // Under nohup, where SIGHUP is ignored, a recording is to outlive its terminal.
    let status = std::fs::read_to_string("/proc/self/status").expect("a process has a status");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("the mask is there");
    let under_nohup = u64::from_str_radix(ignored.trim(), 16).expect("the mask is hexadecimal") & 1 == 1;
    for signal in ["INT", "TERM", "HUP"] {
        if signal == "HUP" && under_nohup {
            continue;
        }
        let bundle = folder.path().join(signal);
        let mut running = Running::start(recording(&bundle, &["--until-stopped"]));
        running.wait_for_start(&bundle);
        running.signal(signal);
        running.end().expect(0, &[]);
        assert_eq!(ended(&report(&bundle)), "signal");
    }
}

#[test]
fn a_killed_recording_keeps_its_segments() {
    let folder = folder();
    let bundle = folder.path().join("run");
    let mut running = Running::start(recording(&bundle, &["--until-stopped", "--segment", "200ms"]));
    running.wait_until("two segments are stored", || segments(&bundle) >= 2);
    running.signal("KILL");
    assert_eq!(running.end().code, 128 + 9);
    let report = report(&bundle);
    assert_eq!(ended(&report), &Value::Null);
    assert!(warning_codes(&report).contains(&"not_ended"));
    assert!(report["cpus"][0]["detours"].as_u64().unwrap() > 0);
    assert!(run_becalm(&["report", path(&bundle), "--full"]).stdout.contains("NOT ENDED: still running, or killed"));
    // The place is taken: what is there is not written over.
    run(recording(&bundle, &["--duration", "100ms"])).expect(1, &["nothing was recorded", "is there already"]);
}

#[test]
fn nodes_that_share_a_host_are_told_apart_by_their_names() {
    let folder = folder();
    let bundle = folder.path().join("site.becalm");
    let record = |more: &[&str]| {
        let mut command = becalm(&[&["record", "--no-sources", "--quiet", "--duration", "50ms"], more].concat());
        command.current_dir(folder.path());
        run(command)
    };
    for node in ["n16", "n17"] {
        record(&["--node", node, "-o", path(&bundle)]).expect(0, &[]);
    }
    record(&["--node", "n17", "-o", path(&bundle)]).expect(1, &["nothing was recorded", "is there already"]);
    let nodes = report(&bundle)["nodes"].clone();
    let names: Vec<&str> = nodes.as_array().into_iter().flatten().filter_map(|node| node["node"].as_str()).collect();
    assert_eq!(names, ["n16", "n17"]);
    // A recording without a name of its own has that of the node.
    record(&["--node", "n18"]).expect(0, &[]);
    let mut stored =
        fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    assert!(stored.any(|name| name.starts_with("n18-") && name.ends_with(".becalm")));
}

#[test]
fn limits_decide_the_exit_code() {
    let folder = folder();
    let exceed = |name: &str, limits: &[&str]| {
        let bundle = folder.path().join(name);
        let ended = run(recording(&bundle, &[&["--duration", "1s"], limits].concat()));
        report(&bundle);
        ended
    };
    exceed("detour", &["--max-detour", "1ns"]).expect(3, &["in one detour, more than --max-detour 1ns"]);
    exceed("noise", &["--max-noise", "0%"]).expect(3, &["% of its time, more than --max-noise 0%"]);
    let within = exceed("within", &["--max-detour", "1h", "--max-noise", "100%"]);
    assert_eq!(within.expect(0, &[]).stderr, "");
}

#[test]
fn a_recording_lasts_as_long_as_its_command() {
    // Where other tests want the CPUs, a loop gets its own later than the command begins, now and then by some tenths of a second.
    attempts(3, || {
        let folder = folder();
        let bundle = folder.path().join("run");
        let start = Instant::now();
        let ended_command = run(recording(&bundle, &["--", "sh", "-c", "echo to its output; sleep 1"]));
        assert_eq!(ended_command.expect(0, &[]).stdout, "to its output\n");
        assert!(start.elapsed() >= Duration::from_secs(1));
        let report = report(&bundle);
        assert_eq!(ended(&report), "command");
        assert_eq!(report["nodes"][0]["settings"]["command"][0], "sh");
        let observed = report["cpus"][0]["duration_ns"].as_i64().unwrap();
        if observed >= 900_000_000 { Ok(()) } else { Err(format!("{observed} ns of a command that takes a second")) }
    });
}

/// The number of detours that each CPU's document says to have.
fn detours(doc: &Value) -> Vec<u64> {
    doc["cpus"].as_array().unwrap().iter().map(|cpu| cpu["detours"].as_u64().unwrap()).collect()
}

#[test]
fn a_recording_ends_with_the_detours_asked_for() {
    let folder = folder();
    let bundle = folder.path().join("run");
    run(recording(&bundle, &["--detours", "25"])).expect(0, &[]);
    let doc = document(&bundle);
    assert_eq!((&doc["ended"], &doc["settings"]["detours"]), (&"detours".into(), &25.into()), "{doc:#}");
    assert_eq!(doc["settings"]["duration_ns"], Value::Null, "{doc:#}");
    assert!(detours(&doc).iter().all(|detours| *detours == 25), "{doc:#}");
    for cpu in doc["cpus"].as_array().unwrap() {
        let of = |name: &str| cpu[name].as_i64().unwrap();
        // The loop's time ends with the last of them, and none of it is missing but what a step is rounded by.
        let off = of("duration_ns") - of("below_threshold_ns") - of("total_ns") - 25 * of("t_min_ns");
        assert!(off.abs() <= 27, "{off} ns vanished: {cpu:#}");
        assert_eq!(cpu["cut_short"], false, "{cpu:#}");
    }
    assert_eq!(warning_codes(&doc).iter().filter(|code| **code == "cut_short").count(), 0, "{doc:#}");
    let shown = run_becalm(&["report", path(&bundle), "--full"]);
    let said = "at most 25 detours per CPU, completed";
    assert!(shown.expect(0, &[]).stdout.contains(said), "{}", shown.stdout);
}

#[test]
fn a_recording_that_waits_for_detours_ends_by_time_as_well() {
    let folder = folder();
    let bundle = folder.path().join("run");
    run(recording(&bundle, &["--detours", "2", "--threshold", "9s", "--duration", "300ms"])).expect(0, &[]);
    let doc = document(&bundle);
    assert_eq!((&doc["ended"], &doc["settings"]["detours"]), (&"duration".into(), &2.into()), "{doc:#}");
    assert!(detours(&doc).iter().all(|detours| *detours == 0), "{doc:#}");
    let bundle = folder.path().join("beside");
    let words = ["--detours", "2", "--threshold", "9s", "--", "sleep", "0.3"];
    run(recording(&bundle, &words)).expect(0, &[]);
    assert_eq!(document(&bundle)["ended"], "command");
}

#[test]
fn with_json_the_output_is_one_document() {
    let folder = folder();
    let bundle = folder.path().join("run");
    let ended = run(recording(&bundle, &["--json", "--", "echo", "to its output"]));
    ended.expect(0, &["to its output"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["schema"], "becalm.report/1");
}

#[test]
fn a_command_that_fails_makes_the_recording_fail_but_complete() {
    let folder = folder();
    let record = |name: &str, script: &str| {
        let bundle = folder.path().join(name);
        let ended_command = run(recording(&bundle, &["--", "sh", "-c", script]));
        assert_eq!(ended(&report(&bundle)), "command");
        ended_command
    };
    record("exit", "exit 7").expect(1, &["the command 'sh -c exit 7'", "exit code 7", "the recording is complete"]);
    record("signal", "kill -s KILL $$").expect(1, &["signal 9", "the recording is complete"]);
}

#[test]
fn a_command_may_outlive_its_recording() {
    let folder = folder();
    let bundle = folder.path().join("run");
    let ended_command = run(recording(&bundle, &["--duration", "200ms", "--", "sh", "-c", "sleep 2; echo done"]));
    assert_eq!(ended_command.expect(0, &[]).stdout, "done\n");
    let report = report(&bundle);
    assert_eq!(ended(&report), "duration");
    assert!(report["cpus"][0]["duration_ns"].as_i64().unwrap() < 1_000_000_000);
}

#[test]
fn an_interruption_ends_the_command_too() {
    let folder = folder();
    let bundle = folder.path().join("run");
    let mut running = Running::start(recording(&bundle, &["--", "sleep", "100"]));
    running.wait_for_start(&bundle);
    running.signal("TERM");
    // The end checks that no process remains.
    running.end().expect(0, &[]);
    assert_eq!(ended(&report(&bundle)), "signal");
}

#[test]
fn a_command_gets_its_signals() {
    let folder = folder();
    let bundle = folder.path().join("run");
    let blocked = run(recording(&bundle, &["--", "grep", "SigBlk", "/proc/self/status"])).stdout;
    assert_eq!(blocked, fs::read_to_string("/proc/self/status").map(|own| line(&own, "SigBlk")).unwrap());
}

/// The line of a text that begins so.
fn line(text: &str, beginning: &str) -> String {
    text.lines().find(|line| line.starts_with(beginning)).map_or_else(String::new, |line| format!("{line}\n"))
}

#[test]
fn a_missing_command_is_refused_before_anything_is_stored() {
    let folder = folder();
    let bundle = folder.path().join("run");
    let text = folder.path().join("text");
    fs::write(&text, "not a program").unwrap();
    for (program, why) in [
        ("/nonexistent/program", "there is no such program"),
        (path(&text), "there is no such program"),
        ("becalm-has-no-such-friend", "no directory of PATH has such a program"),
    ] {
        run(recording(&bundle, &["--", program])).expect(1, &["cannot start the command", program, why]);
        assert!(!bundle.exists());
    }
}

#[test]
fn a_place_that_is_taken_is_refused_at_once() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("precious"), "precious").unwrap();
    let bundle = folder.path().join("run");
    run(recording(&bundle, &["--duration", "200ms"])).expect(0, &[]);
    let before = document(&bundle);
    let orphan = folder.path().join("no/such/folder");
    for (place, why) in [
        (&file, "is not a directory"),
        (&other, "is not a run bundle"),
        (&bundle, "is there already"),
        (&orphan, "does not exist"),
    ] {
        // Were it to measure first, this would not end.
        run(recording(place, &["--duration", "1h"])).expect(1, &[path(place), why]);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    assert_eq!(document(&bundle), before);
}

#[test]
fn a_bundle_of_another_node_is_joined() {
    let folder = folder();
    let bundle = folder.path().join("run");
    run(recording(&bundle, &["--duration", "200ms"])).expect(0, &[]);
    // As if another node had made it.
    let own = program::document_path(&bundle).unwrap();
    let mut doc = document(&bundle);
    let node = doc["node"].as_str().unwrap().to_owned();
    doc["node"] = "elsewhere".into();
    fs::write(own.with_file_name("node=elsewhere.json"), doc.to_string()).unwrap();
    fs::remove_file(&own).unwrap();
    for table in ["detours", "activities"] {
        let folder = bundle.join(table);
        fs::rename(folder.join(format!("node={node}")), folder.join("node=elsewhere")).unwrap();
    }
    run(recording(&bundle, &["--duration", "200ms"])).expect(0, &[]);
    let report = report(&bundle);
    let nodes: Vec<&str> =
        report["nodes"].as_array().unwrap().iter().filter_map(|node| node["node"].as_str()).collect();
    assert!(nodes.len() == 2 && nodes.contains(&"elsewhere") && nodes.contains(&node.as_str()), "{nodes:?}");
}

#[test]
fn a_full_ring_ends_the_recording_and_says_so() {
    let folder = folder();
    let bundle = folder.path().join("run");
    // 4 KiB hold 256 steps; just above the loop's own, so many come before the collector looks that they do not fit.
    let probe = folder.path().join("probe");
    run(recording(&probe, &["--duration", "100ms"])).expect(0, &[]);
    let least = document(&probe)["cpus"][0]["median_step_ns"].as_i64().unwrap() + 3;
    let least = format!("{least}ns");
    let ended_full = run(recording(&bundle, &["--until-stopped", "--buffer", "4", "--threshold", &least]));
    ended_full.expect(1, &["a buffer was full", "--buffer more than 4 KiB", path(&bundle)]);
    let report = report(&bundle);
    assert_eq!(ended(&report), "buffer_full");
    assert!(warning_codes(&report).contains(&"cut_short"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = folder();
    let bundle = folder.path().join("run");
    run(recording(&bundle, &["--duration", "200ms"])).expect(0, &[]);
    for arguments in [&["report", path(&bundle)][..], &["report", "--sources", path(&bundle)]] {
        let mut child = becalm(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    }
}

#[test]
fn an_output_that_is_full_is_an_error() {
    let folder = folder();
    let bundle = folder.path().join("run");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let to_full = |mut command: Command| {
        let ended = command.stdout(full()).stderr(Stdio::piped()).output().unwrap();
        let message = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{message}");
        assert!(message.contains("No space left on device"), "{message}");
    };
    to_full(becalm(&["record", "--no-sources", "--duration", "200ms", "-o", path(&bundle)]));
    // The recording itself is whole.
    assert_eq!(ended(&report(&bundle)), "duration");
    to_full(becalm(&["report", path(&bundle)]));
    to_full(becalm(&["report", path(&bundle), "--json"]));
    // Where no message can be said, the exit code still tells.
    let silent = |arguments: &[&str]| becalm(arguments).stderr(full()).stdout(Stdio::null()).status().unwrap().code();
    assert_eq!(silent(&["report", "nothing here"]), Some(1));
    let again = folder.path().join("again");
    assert_eq!(silent(&["record", "--no-sources", "--duration", "200ms", "-o", path(&again)]), Some(0));
}

#[test]
fn a_recording_with_a_damaged_segment_names_the_file() {
    let folder = folder();
    let bundle = folder.path().join("run");
    run(recording(&bundle, &["--duration", "1s", "--segment", "200ms"])).expect(0, &[]);
    let node = document(&bundle)["node"].as_str().unwrap().to_owned();
    let last = bundle.join(format!("detours/node={node}/{:04}.parquet", segments(&bundle) - 1));
    let bytes = fs::read(&last).unwrap();
    // Every kind of cut: in the footer, in its length, in the data, nothing left.
    for length in [bytes.len() - 1, bytes.len() - 9, bytes.len() / 2, 3, 0] {
        fs::write(&last, &bytes[..length]).unwrap();
        for command in ["report", "detours"] {
            run_becalm(&[command, path(&bundle)]).expect(1, &[path(&last)]);
        }
    }
    fs::write(&last, &bytes).unwrap();
    report(&bundle);
}

/// Numbers that never end make the Parquet decoder panic, which becalm catches: nobody need read of it but in the error.
#[test]
fn a_panic_of_the_decoder_is_said_as_the_error_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run.becalm");
    becalm_fixtures::write_named(&bundle, "a source");
    let tables = fs::read_dir(bundle.join("detours/node=node1")).unwrap();
    let table = tables.flatten().map(|entry| entry.path()).next().unwrap();
    let whole = fs::read(&table).unwrap();
    let said = (4..whole.len() - 12).find_map(|at| {
        let mut damaged = whole.clone();
        damaged[at..at + 12].iter_mut().for_each(|byte| *byte |= 0x80);
        fs::write(&table, damaged).unwrap();
        let ended = run_becalm(&["report", "--sources", path(&bundle)]);
        ended.stderr.contains("the decoder gave up").then_some(ended)
    });
    let said = said.expect("a number that never ends is among them");
    assert!(
        said.code == 1 && said.stderr.starts_with("becalm: cannot read ") && said.stderr.lines().count() == 1,
        "{said:#?}"
    );
}
