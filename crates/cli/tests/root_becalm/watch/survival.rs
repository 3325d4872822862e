//! What a machine goes through while it is watched: its clock is set, a CPU goes and comes back, the disk fills up, others trace, and
//! the watch itself is killed.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use becalm_testing::machine::{Mounted, Offline, SteppedClock};
use becalm_testing::program::{INSTANCES, document_path, path, report};
use becalm_testing::watched::WatchProcess;
use becalm_testing::{Need, machine_has, skip};

use super::kept;
use crate::robust::alone;

/// Every bundle of a ring opens.
#[track_caller]
fn all_open(ring: &Path) {
    let bundles = kept(ring, ".becalm");
    assert!(!bundles.is_empty());
    for bundle in bundles {
        assert!(
            report(&bundle)["cpus"][0]["duration_ns"].as_i64().is_some_and(|watched| watched > 0),
            "{}",
            bundle.display()
        );
    }
}

#[test]
fn steps_of_the_clock_change_nothing_but_the_time_that_is_told() {
    let Some(_alone) = alone() else { return };
    let ring = tempfile::tempdir().unwrap();
    let mut watched = WatchProcess::start(&["-o", path(ring.path())]);
    watched.goes_on(1);
    let begin = (watched.value("becalm_up_seconds"), std::time::Instant::now());
    for seconds in [30, -30] {
        let Some(stepped) = SteppedClock::new(seconds) else { return skip("the clock cannot be set") };
        watched.goes_on(2);
        drop(stepped);
        watched.goes_on(2);
    }
    let (passed, really) = (watched.value("becalm_up_seconds") - begin.0, begin.1.elapsed().as_secs_f64());
    assert!((passed - really).abs() < 2.0, "{passed} s were told, {really} s passed");
    for cpu in ["0", "1"] {
        let ratio = watched.value(&format!(r#"becalm_noise_ratio{{cpu="{cpu}"}}"#));
        assert!((0.0..=1.0).contains(&ratio), "{ratio}");
    }
    watched.end();
    all_open(ring.path());
    let names: Vec<_> = kept(ring.path(), ".becalm");
    assert!(names[0].to_string_lossy().contains("00000001-") && names.len() >= 9, "{names:?}");
}

#[test]
fn a_cpu_that_goes_is_left_out_and_measured_again_when_it_is_back() {
    let Some(_alone) = alone() else { return };
    let mut watched = WatchProcess::start(&["--cpus", "1"]);
    watched.goes_on(2);
    let Some(offline) = Offline::take(1) else { return skip("CPU 1 cannot be taken offline") };
    let missed = |watched: &WatchProcess| watched.windows("busy") + watched.windows("failed");
    let before = missed(&watched);
    watched.until("windows are missed", |watched| missed(watched) > before + 1.0);
    drop(offline);
    watched.goes_on(2);
    watched.end();
}

#[test]
fn a_full_disk_costs_the_oldest_windows_and_never_the_watch() {
    let Some(_alone) = alone() else { return };
    let disk = Mounted::tmpfs("size=256k");
    let ring = disk.path().join("ring");
    // The bound is above what the disk holds.
    let mut watched = WatchProcess::start(&["-o", path(&ring), "--keep", "1GiB"]);
    watched.until("the disk was full", |watched| watched.value("becalm_store_failures_total") > 0.0);
    let first = kept(&ring, ".becalm")[0].clone();
    watched.until("the oldest made room", |_| kept(&ring, ".becalm").first().is_some_and(|now| *now != first));
    let newest = kept(&ring, ".becalm").last().cloned();
    watched.until("newer ones are kept", |_| kept(&ring, ".becalm").last() > newest.as_ref());
    // What others fill up is not made room for by giving up the last bundle, and comes back.
    let filler = disk.path().join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    watched.goes_on(3);
    fs::remove_file(&filler).unwrap();
    let newest = kept(&ring, ".becalm").last().cloned();
    watched.until("bundles are kept again", |_| kept(&ring, ".becalm").last() > newest.as_ref());
    watched.end();
    all_open(&ring);
}

/// What others use of the kernel's trace: a buffer of their own, and the one that all share, with an event on.
struct OtherTracers {
    theirs: std::path::PathBuf,
    shared: &'static str,
    was_on: String,
}

impl OtherTracers {
    const SHARED: &'static str = "/sys/kernel/tracing/events/sched/sched_switch/enable";

    fn start() -> Self {
        let theirs = Path::new(INSTANCES).join(format!("somebody-{}", std::process::id()));
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("events/irq/enable"), "1").unwrap();
        let was_on = fs::read_to_string(Self::SHARED).unwrap();
        fs::write(Self::SHARED, "1").unwrap();
        Self { theirs, shared: Self::SHARED, was_on }
    }

    /// What is set in both, and how many events each holds or has lost.
    fn settings(&self) -> Vec<String> {
        let files = [
            "tracing_on",
            "current_tracer",
            "trace_clock",
            "set_event",
            "buffer_size_kb",
            "trace_options",
            "tracing_cpumask",
        ];
        let of = |folder: &Path| files.map(|file| fs::read_to_string(folder.join(file)).unwrap());
        [of(Path::new("/sys/kernel/tracing")), of(&self.theirs)].concat()
    }
}

impl Drop for OtherTracers {
    fn drop(&mut self) {
        let _ = fs::write(self.shared, self.was_on.trim());
        let _ = fs::remove_dir(&self.theirs);
    }
}

#[test]
fn other_tracers_are_not_disturbed_and_do_not_disturb() {
    let Some(_alone) = alone() else { return };
    let others = OtherTracers::start();
    let before = others.settings();
    let mut watched = WatchProcess::start(&[]);
    watched.goes_on(3);
    assert_eq!(others.settings(), before);
    assert_eq!(watched.value("becalm_rung"), 2.0);
    watched.end();
    assert_eq!(others.settings(), before);
    let recorded = fs::read_to_string(others.theirs.join("trace")).unwrap();
    assert!(recorded.contains("softirq_entry:"), "their own recording stopped");
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_but_bundles_and_goes_on_behind_them() {
    let Some(_alone) = alone() else { return };
    if !machine_has(&[Need::TwoCpus]) {
        return;
    }
    let ring = tempfile::tempdir().unwrap();
    for wait in [0, 40, 80, 120] {
        let mut watched = WatchProcess::start(&["-o", path(ring.path())]);
        watched.goes_on(1);
        thread::sleep(Duration::from_millis(wait));
        watched.running.signal("KILL");
        // This checks that neither processes nor trace instances remain.
        assert_eq!(watched.running.end().code, 128 + 9);
    }
    let mut watched = WatchProcess::start(&["-o", path(ring.path())]);
    watched.goes_on(1);
    watched.end();
    let entries: Vec<_> = fs::read_dir(ring.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let bundles = kept(ring.path(), ".becalm");
    assert_eq!(entries.len(), bundles.len(), "{entries:?}");
    // What was killed in the middle of a window was removed by the next start.
    for bundle in &bundles {
        assert!(document_path(bundle).is_some(), "{}", bundle.display());
    }
    all_open(ring.path());
    assert!(bundles.len() >= 5, "{bundles:?}");
}
