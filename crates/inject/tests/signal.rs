//! Programs under noise by signals: they notice nothing of it. No root needed; what is measured is tested in `root_signal`.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod programs;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use becalm_inject::program::{self, ProgramError};
use becalm_inject::{DeliveredSignals, Fit, InjectError, SignalNoise, SignalPlan};
use becalm_linux::signals::effective_ids;
use becalm_scale::NoiseTrace;
use becalm_testing::{Need, machine_has, wait_until};
use becalm_units::Nanos;
use programs::{compiled, plan, run_under_noise, text};
use tempfile::TempDir;

/// Programs that are timed run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program uses every real-time signal, one after the other and in every way, SIGALRM, timers, waits, threads, children.
#[test]
fn a_program_that_uses_every_signal_notices_nothing() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "signals");
    let alone = text(&Command::new(&program).output().unwrap());
    assert!(alone.contains("0 waits ended early, of many") && alone.contains("all are used; wrong 0"), "{alone}");
    assert!(alone.contains("0 calls on sockets ended early, of many"), "{alone}");
    let (output, delivered) = run_under_noise(&plan("periodic:interval=1ms,detour=100us"), &mut Command::new(&program));
    assert_eq!(text(&output), alone);
    let delivered = delivered.unwrap();
    let detours: u64 = delivered.threads.iter().map(|thread| thread.delivered.count).sum();
    eprintln!(
        "{detours} detours in {} processes and {} places of threads; {} signals were given up",
        delivered.counts.processes,
        delivered.threads.len(),
        delivered.counts.given_up
    );
    // From the top, each one had been ours when the program started to use it; then none was left.
    assert_eq!((delivered.counts.given_up, delivered.counts.without_signal), (31, 1));
    assert!(detours > 100, "{detours}");
}

/// A signal without a handler ends the program, even the one that the noise has taken.
#[test]
fn a_signal_that_nobody_handles_ends_the_program() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "signals");
    for signal in ["64", "63", "40", "34", "10"] {
        let mut command = Command::new(&program);
        let alone = text(&command.arg(signal).output().unwrap());
        assert!(alone.contains(&format!("signal: {signal}")), "{alone}");
        assert_eq!(text(&run_under_noise(&plan("periodic:interval=1ms,detour=50us"), &mut command).0), alone);
    }
}

/// No signal and its handler take less than 1 us. The error contains the request and what was left out.
#[test]
fn noise_of_which_too_little_can_be_made_is_refused() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "spin");
    // In 10 ms a detour of 500 us and so many of 900 ns.
    let run_with = |short: i64, fit| {
        let at = |at: i64, length| (Nanos::from_micros(at), Nanos::new(length));
        let detours = std::iter::once(at(100, 500_000)).chain((0..short).map(|number| at(1_000 + 20 * number, 900)));
        let traces = vec![NoiseTrace::new(Nanos::from_millis(10), detours).unwrap()];
        let plan = SignalPlan { traces, fit, ..plan("periodic:interval=1ms,detour=100us") };
        run_under_noise(&plan, Command::new(&program).args(["1", "300"])).1
    };
    let refused = run_with(70, Fit::Most).unwrap_err().to_string();
    assert!(refused.starts_with("11.2% of the requested time is in detours shorter than "), "{refused}");
    for (short, fit) in [(50, Fit::Most), (70, Fit::Part)] {
        let delivered = run_with(short, fit).unwrap();
        let thread = &delivered.threads[0];
        assert!(thread.delivered.count > 0 && thread.left_out.count > thread.delivered.count, "{thread:?}");
        let lap = short as f64 + 1.0;
        let laps = thread.observed.as_secs_f64() / 0.01;
        let asked = thread.requested;
        assert!((asked.count as f64 - lap * laps).abs() <= 0.5, "{thread:?}");
        let ratio = (500_000.0 + short as f64 * 900.0) / 10e6;
        assert!((asked.ratio.unwrap() - ratio).abs() < 1e-9, "{thread:?}");
    }
}

/// Noise that ends leaves the program alone.
#[test]
fn noise_that_is_stopped_ends() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "spin");
    let noise = SignalNoise::prepare(&plan("periodic:interval=2ms,detour=1ms")).unwrap();
    let mut command = Command::new(&program);
    let child = command.args(["2", "300"]).envs(noise.environment()).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    noise.stop();
    let before: u64 = noise.delivered().unwrap().threads.iter().map(|thread| thread.delivered.count).sum();
    child.wait_with_output().unwrap();
    let after: u64 = noise.delivered().unwrap().threads.iter().map(|thread| thread.delivered.count).sum();
    assert!(before > 50 && after <= before + 1, "{before} then {after}");
}

/// Waits until the noise has come to something.
fn until(noise: &SignalNoise, what: &str, happened: impl Fn(&DeliveredSignals) -> bool) {
    wait_until(what, || noise.delivered().is_ok_and(|delivered| happened(&delivered)));
}

/// A detour holds its thread with all signals blocked, however long it is; but no longer than the noise lasts.
#[test]
fn a_long_detour_ends_with_the_noise() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "spin");
    let noise = SignalNoise::prepare(&plan("periodic:interval=2s,detour=1900ms")).unwrap();
    let mut command = Command::new(&program);
    let child = command.args(["2.1", "300"]).envs(noise.environment()).stdout(Stdio::piped()).spawn().unwrap();
    until(&noise, "a detour is due", |delivered| !delivered.threads.is_empty());
    std::thread::sleep(Duration::from_millis(100));
    noise.stop();
    child.wait_with_output().unwrap();
    let delivered = noise.delivered().unwrap();
    let detours = delivered.threads[0].delivered;
    assert!(detours.count == 1 && detours.length_ns.unwrap() < 1e9, "{detours:?}");
}

/// A process that is killed in the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The paths that a process was given to load and to open, according to the kernel.
fn kept_paths(pid: u32) -> Vec<PathBuf> {
    let environment = String::from_utf8(fs::read(format!("/proc/{pid}/environ")).unwrap()).unwrap();
    let paths = environment.split('\0').filter_map(|variable| match variable.split_once('=')? {
        ("LD_PRELOAD", libraries) => libraries.split(':').next(),
        ("BECALM_INJECT", words) => Some(words),
        _ => None,
    });
    paths.map(PathBuf::from).collect()
}

/// A program that outlives becalm keeps its environment. The files named there no longer exist, and no other user may ever create them.
#[test]
fn what_a_program_keeps_leads_to_where_others_put_nothing() {
    let noise = SignalNoise::prepare(&plan("periodic:interval=10ms,detour=100us")).unwrap();
    let child = Command::new("sleep").arg("1000").envs(noise.environment()).spawn().unwrap();
    let daemon = Killed(child);
    until(&noise, "the program runs", |delivered| delivered.counts.processes == 1);
    let paths = kept_paths(daemon.0.id());
    assert!(paths.len() == 2 && paths.iter().all(|path| path.is_file()), "{paths:?}");
    drop(noise);
    let (own, _) = effective_ids();
    for path in &paths {
        assert!(!path.exists(), "{}", path.display());
        let folder = path.parent().unwrap();
        let found = fs::symlink_metadata(folder).unwrap();
        assert!(found.is_dir() && found.uid() == own && found.mode() & 0o7777 == 0o700, "{}", folder.display());
        for parent in folder.ancestors().skip(1) {
            let found = fs::symlink_metadata(parent).unwrap();
            let by_others = found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0;
            assert!(found.is_dir() && !by_others, "{}: {:o}", parent.display(), found.mode());
            assert!([0, own].contains(&found.uid()), "{} belongs to {}", parent.display(), found.uid());
        }
    }
}

/// A path to memory of another user, or that another user could write, is not followed.
#[test]
fn memory_that_others_could_write_is_not_used() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let noise = SignalNoise::prepare(&plan("periodic:interval=1ms,detour=100us")).unwrap();
    let [(_, library), (name, words)] = noise.environment();
    let copy = folder.path().join("words");
    fs::copy(&words, &copy).unwrap();
    let held = fs::File::open(&copy).unwrap();
    held.lock().unwrap();
    let processes = |mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        assert!(Command::new("true").env("LD_PRELOAD", &library).env(name, &copy).status().unwrap().success());
        word(&copy, becalm_preload::layout::PROCESSES)
    };
    let owner = |user| std::os::unix::fs::chown(&copy, Some(user), None).unwrap();
    assert_eq!([processes(0o622), processes(0o602)], [0, 0]);
    // Root may open what others own, and does not use it.
    if machine_has(&[Need::Root]) {
        owner(65_534);
        assert_eq!(processes(0o600), 0);
        owner(0);
    }
    assert_eq!(processes(0o600), 1);
}

/// A word of a file of words.
fn word(path: &Path, number: usize) -> u64 {
    let bytes = fs::read(path).unwrap();
    u64::from_ne_bytes(bytes[8 * number..8 * number + 8].try_into().unwrap())
}

/// Processes of one command share memory, also those that gave up their rights: what a thread is to run is none of that.
#[test]
fn what_a_thread_runs_is_not_in_shared_memory() {
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "thread");
    let noise = SignalNoise::prepare(&plan("periodic:interval=10ms,detour=100us")).unwrap();
    let output = Command::new(&program).envs(noise.environment()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let addresses: Vec<[u8; 8]> =
        text.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap().to_ne_bytes()).collect();
    assert_eq!(addresses.len(), 2);
    let [_, (_, words)] = noise.environment();
    let words = fs::read(words).unwrap();
    assert!(words.chunks_exact(8).any(|word| word != [0; 8]));
    assert!(!words.chunks_exact(8).any(|word| addresses.iter().any(|address| word == address)));
}

/// The dynamic linker takes locks and memory when it looks for a function, which a handler of the program's own must not.
#[test]
fn all_functions_are_found_before_the_program_begins() {
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "thread");
    let mut command = Command::new(&program);
    let (output, _) = run_under_noise(
        &plan("periodic:interval=10ms,detour=100us"),
        command.env("LD_DEBUG", "libs,symbols").env("LD_BIND_NOW", "1"),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    let (before, after) = said.rsplit_once("transferring control").unwrap();
    for name in ["sigprocmask", "poll", "nanosleep", "pthread_create"] {
        let lookup = format!("symbol={name};");
        assert!(before.contains(&lookup) && !after.contains(&lookup), "{name}");
    }
}

#[test]
fn what_cannot_be_made_is_refused_before_the_program_begins() {
    for (spec, why) in [
        ("periodic:interval=1ms,detour=1ns", "a detour of 1ns is too short: a signal and its handler take"),
        ("periodic:interval=1ms,detour=999999ns", "detours 1ns apart are too close"),
    ] {
        let (output, delivered) = run_under_noise(&plan(spec), Command::new("echo").arg("begun"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{spec}");
        let error = delivered.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// Without a dynamic linker, nothing loads the library.
#[test]
fn a_program_without_a_dynamic_linker_is_refused() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let dynamic = compiled(folder.path(), "spin");
    assert_eq!(program::check(dynamic.to_str().unwrap()).unwrap(), dynamic);
    // PT_INTERP, the third kind of program header, becomes PT_NULL.
    let mut bytes = std::fs::read(&dynamic).unwrap();
    let headers = u64::from_le_bytes(bytes[32..40].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes([bytes[56], bytes[57]]));
    let interpreter =
        (0..count).map(|number| headers + 56 * number).find(|at| bytes[*at..at + 4] == [3, 0, 0, 0]).unwrap();
    bytes[interpreter] = 0;
    let without = folder.path().join("static");
    std::fs::write(&without, &bytes).unwrap();
    let error = program::check(without.to_str().unwrap()).unwrap_err();
    assert!(matches!(error, ProgramError::Static { .. }) && error.to_string().contains("linked statically"), "{error}");
    // Should one get by that look, its noise is missed at the end.
    let noise = SignalNoise::prepare(&plan("periodic:interval=1ms,detour=100us")).unwrap();
    assert!(matches!(noise.delivered(), Err(InjectError::NotLoaded)));
}
