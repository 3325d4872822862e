//! The trace that stays between the windows: it names sources, rests where too much happens, and keeps what led to an alert.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use becalm_testing::machine::{ChangedSetting, Offline};
use becalm_testing::program::{INSTANCES, instances_of, path, report, warning_codes};
use becalm_testing::skip;
use becalm_testing::watched::{WatchProcess, get};

use super::kept;
use crate::robust::alone;

/// Threads that wake each other all the time, while something is done: some hundred thousand events a second.
fn beside_a_storm(act: impl FnOnce()) {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (to, from) = sync_channel::<()>(0);
            let ended = &ended;
            scope.spawn(move || while to.send(()).is_ok() && !ended.load(Ordering::Relaxed) {});
            scope.spawn(move || while from.recv().is_ok() {});
        }
        act();
        ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn sources_are_named_between_the_windows_and_a_storm_of_events_is_not_followed() {
    let Some(_alone) = alone() else { return };
    // Windows come seldom, and what is saved until the trace is set up is little.
    let mut watched =
        WatchProcess::with_options(&["--interval", "100ms", "--busy", "100%", "--window", "10ms", "--budget", "5%"]);
    let read = r#"becalm_trace_events_total{result="read"}"#;
    let traced =
        |watched: &WatchProcess, cpu: u32| watched.value(&format!(r#"becalm_traced_seconds_total{{cpu="{cpu}"}}"#));
    watched.until("both CPUs are traced", |watched| traced(watched, 0) > 0.1 && traced(watched, 1) > 0.1);
    let text = get(watched.address(), "/metrics").unwrap();
    let timer = r#"becalm_traced_source_seconds_total{kind="irq",source="tick"}"#;
    assert!(watched.value(read) > 0.0 && text.contains(timer), "{text}");
    let before = watched.value("becalm_trace_rests_total");
    beside_a_storm(|| {
        watched.until("tracing rests", |watched| {
            watched.value("becalm_trace_rests_total") > before && watched.value("becalm_trace_state") == 0.0
        });
    });
    // A few times what the buffers hold, however long the storm went on.
    assert!(watched.value(read) < 1e6, "{}", watched.value(read));
    watched.until("tracing comes back", |watched| watched.value("becalm_trace_state") == 1.0);
    watched.end();
}

#[test]
fn a_cpu_that_comes_later_is_traced_too() {
    let Some(_alone) = alone() else { return };
    let Some(offline) = Offline::take(1) else { return skip("CPU 1 cannot be taken offline") };
    let mut watched = WatchProcess::with_options(&["--interval", "100ms", "--budget", "10%"]);
    let traced =
        |watched: &WatchProcess, cpu: u32| watched.value(&format!(r#"becalm_traced_seconds_total{{cpu="{cpu}"}}"#));
    watched.until("what is there is traced", |watched| traced(watched, 0) > 0.0);
    assert_eq!(traced(&watched, 1), 0.0);
    drop(offline);
    watched.until("what has come is traced", |watched| traced(watched, 1) > 0.0);
    watched.end();
}

#[test]
fn a_trace_that_others_change_is_set_up_again_each_time() {
    let Some(_alone) = alone() else { return };
    let write = |pid: u32, file: &str, texts: &[&str]| {
        for instance in instances_of(pid) {
            // It may be that of a window, which ends by itself.
            texts.iter().for_each(|text| _ = fs::write(Path::new(INSTANCES).join(&instance).join(file), text));
        }
    };
    let ways: [&dyn Fn(u32); 6] = [
        &|_| _ = Command::new("trace-cmd").args(["reset", "-a"]).output().expect("trace-cmd is installed"),
        &|pid| write(pid, "tracing_on", &["0"]),
        &|pid| write(pid, "tracing_on", &["0", "1"]),
        &|pid| write(pid, "tracing_cpumask", &["0"]),
        &|pid| write(pid, "events/sched/sched_switch/filter", &["prev_pid == 1"]),
        &|pid| write(pid, "trace", &[""]),
    ];
    let mut watched = WatchProcess::with_options(&["--interval", "200ms", "--budget", "50%"]);
    let seconds = |watched: &WatchProcess| watched.value(r#"becalm_traced_seconds_total{cpu="0"}"#);
    for (at, change) in ways.iter().enumerate() {
        let (before, disturbed) = (seconds(&watched), watched.value("becalm_trace_disturbed_total"));
        watched.until("it is traced", |watched| seconds(watched) > before);
        assert_eq!(watched.value("becalm_trace_disturbed_total"), disturbed, "before change {at}");
        change(watched.pid());
        watched.until("the change is noticed", |watched| watched.value("becalm_trace_disturbed_total") > disturbed);
    }
    let before = seconds(&watched);
    watched.until("it is traced after all changes", |watched| seconds(watched) > before);
    let ended = watched.end();
    assert_eq!(ended.stderr.matches("another program changed becalm's trace").count(), 1, "{}", ended.stderr);
}

#[test]
fn a_trace_that_is_off_for_a_moment_is_noticed_without_the_kernels_notices() {
    let Some(_alone) = alone() else { return };
    // As where other programs have taken all that a user may have.
    let Some(_none) = ChangedSetting::new("/proc/sys/fs/inotify/max_user_instances", "0") else {
        return skip("the number of inotify instances cannot be set");
    };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    let mut watched = WatchProcess::with_options(&["--interval", "2s", "--budget", "50%", "--window", "10ms"]);
    let seconds = |watched: &WatchProcess| watched.value(r#"becalm_traced_seconds_total{cpu="0"}"#);
    let disturbed = |watched: &WatchProcess| watched.value("becalm_trace_disturbed_total");
    for round in 0..2 {
        let before = seconds(&watched);
        let switch = |watched: &WatchProcess| match &instances_of(watched.pid())[..] {
            [instance] => Some(Path::new(INSTANCES).join(instance).join("tracing_on")),
            _ => None,
        };
        let is_on = |watched: &WatchProcess| {
            switch(watched).is_some_and(|file| fs::read_to_string(file).is_ok_and(|text| text.trim() == "1"))
        };
        // Longer than an interval: a trace that is disturbed right after it was set up again is given up.
        watched.until("it is traced", |watched| seconds(watched) > before + 2.5 && is_on(watched));
        // After a look and its window, long before the next look, which finds the switch restored.
        thread::sleep(Duration::from_millis(100));
        assert_eq!(disturbed(&watched), f64::from(round));
        let switch = switch(&watched).expect("no window is measured");
        let turn = |text: &str| fs::write(&switch, text).unwrap();
        turn("0");
        // One softirq each, in so short a time that no look falls into it.
        (0..500).for_each(|_| _ = socket.send(&[0]).unwrap());
        turn("1");
        watched.until("that is noticed", |watched| disturbed(watched) > f64::from(round));
    }
    let ended = watched.end();
    let is_said = |line: &&str| line.contains("softirqs on CPU") && line.contains("that time counts as not traced");
    assert_eq!(ended.stderr.lines().filter(is_said).count(), 1, "{}", ended.stderr);
}

#[test]
fn without_the_trace_nothing_is_traced_between_the_windows() {
    let Some(_alone) = alone() else { return };
    let mut watched = WatchProcess::start(&["--no-trace"]);
    watched.goes_on(1);
    assert_eq!(watched.value("becalm_trace_state"), -1.0);
    watched.end();
    let mut watched = WatchProcess::with_options(&["--interval", "100ms", "--budget", "20%"]);
    watched.until("it is traced", |watched| watched.value("becalm_trace_state") == 1.0);
    // A window has one of its own, for as long as it takes.
    watched.until("the trace is the only instance", |watched| instances_of(watched.pid()).len() == 1);
    watched.end();
}

#[test]
fn what_led_to_an_alert_is_kept() {
    let Some(_alone) = alone() else { return };
    let ring = tempfile::tempdir().unwrap();
    // Whatever the kernel does for longer than a moment raises it; windows leave time for the trace.
    let mut watched = WatchProcess::with_options(&[
        "--interval",
        "300ms",
        "--busy",
        "100%",
        "--window",
        "20ms",
        "--budget",
        "30%",
        "--trigger",
        "detour>20us",
        "--alert",
        "20ms",
        "-o",
        path(ring.path()),
    ]);
    watched.until("an interruption raised an alert", |watched| watched.value("becalm_trace_alerts_total") > 0.0);
    watched.until("the moment before a window's alert is kept", |_| {
        !kept(ring.path(), "-before.becalm").is_empty() && !kept(ring.path(), "-alert.becalm").is_empty()
    });
    watched.end();
    let before = report(&kept(ring.path(), "-before.becalm")[0]);
    assert_eq!((&before["rung"], &before["books"]), (&"tracepoints".into(), &"closed".into()));
    assert!(warning_codes(&before).contains(&"no_loop"), "{before:#}");
    assert!(before["cpus"].as_array().unwrap().iter().any(|cpu| cpu["detours"].as_u64() > Some(0)), "{before:#}");
}
