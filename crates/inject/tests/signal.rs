//! Programs under noise by signals: they find the noise and nothing else. No root needed.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use becalm_inject::program::{self, ProgramError};
use becalm_inject::{DeliveredSignals, InjectError, SignalNoise, SignalPlan};
use becalm_linux::sched::allowed_cpus;
use becalm_scale::NoiseTrace;
use becalm_scale::spec::NoiseSpec;
use tempfile::TempDir;

/// Builds a program with the compiler that links Rust's.
fn compiled(folder: &Path, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let program = folder.join(name);
    let built =
        Command::new("cc").args(["-O1", "-Wall", "-Werror", "-pthread", "-o"]).arg(&program).arg(&source).status();
    assert!(built.expect("there is a C compiler").success());
    program
}

/// Programs that are timed run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn trace(spec: &str) -> NoiseTrace {
    spec.parse::<NoiseSpec>().unwrap().trace(1).unwrap()
}

fn plan(spec: &str) -> SignalPlan {
    SignalPlan {
        traces: vec![trace(spec)],
        synchronized: false,
        seed: 1,
        node: 0,
        exact: true,
        main_thread_only: false,
    }
}

fn under(plan: &SignalPlan, command: &mut Command) -> (Output, Result<DeliveredSignals, InjectError>) {
    let noise = SignalNoise::prepare(plan).unwrap();
    let output = command.envs(noise.environment()).output().unwrap();
    (output, noise.delivered())
}

fn text(output: &Output) -> String {
    format!("{}{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr), output.status)
}

/// The program uses every real-time signal, one after the other and in every way, SIGALRM, timers, waits, threads, children.
#[test]
fn a_program_that_uses_every_signal_notices_nothing() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "signals");
    let alone = text(&Command::new(&program).output().unwrap());
    assert!(alone.contains("0 waits ended early, of many") && alone.contains("all are used; wrong 0"), "{alone}");
    let (output, delivered) = under(&plan("periodic:interval=1ms,detour=100us"), &mut Command::new(&program));
    assert_eq!(text(&output), alone);
    let delivered = delivered.unwrap();
    let detours: u64 = delivered.threads.iter().map(|thread| thread.tally.delivered.count()).sum();
    eprintln!(
        "{detours} detours in {} processes and {} places of threads; {} signals were given up",
        delivered.processes,
        delivered.threads.len(),
        delivered.given_up
    );
    // From the top each one had been ours when the program began to use it; then none was left.
    assert_eq!((delivered.given_up, delivered.without_signal), (31, 1));
    assert!(detours > 100, "{detours}");
}

/// Whoever sends a signal that nobody handles ends the program, the one that the noise has taken as well.
#[test]
fn a_signal_that_nobody_handles_ends_the_program() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "signals");
    for signal in ["64", "63", "40", "34", "10"] {
        let mut command = Command::new(&program);
        let alone = text(&command.arg(signal).output().unwrap());
        assert!(alone.contains(&format!("signal: {signal}")), "{alone}");
        assert_eq!(text(&under(&plan("periodic:interval=1ms,detour=50us"), &mut command).0), alone);
    }
}

/// What the program loses is what was asked for.
#[test]
fn a_program_loses_what_was_asked_for() {
    let _alone = alone();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "spin");
    let mut last = String::new();
    for _ in 0..4 {
        let mut command = Command::new(&program);
        let (output, delivered) = under(&plan("periodic:interval=5ms,detour=500us"), command.args(["2", "300"]));
        let delivered = delivered.unwrap();
        let tally = &delivered.threads[0].tally;
        let seen: Vec<f64> =
            text(&output).lines().take(2).flat_map(|line| line.split(' ')).map(|word| word.parse().unwrap()).collect();
        let (count, median_ns) = (seen[0] + seen[2], seen[1].midpoint(seen[3]));
        last = format!(
            "{count} steps over 300 us of {median_ns:.0} ns at the median; {} due, {} delivered of {:?} ns, {} missed",
            tally.due.count(),
            tally.delivered.count(),
            tally.delivered.mean(),
            tally.missed
        );
        eprintln!("{last}");
        assert_eq!((delivered.processes, delivered.unattended, delivered.given_up), (1, 0, 0));
        assert_eq!(tally.due.count(), tally.delivered.count() + tally.missed);
        assert!((390..=410).contains(&tally.due.count()), "{last}");
        // While others have the CPU, detours are missed or become one.
        let expected = tally.delivered.count() as f64;
        if expected > 300.0 && (0.95..=1.1).contains(&(count / expected)) && (490e3..=525e3).contains(&median_ns) {
            return;
        }
    }
    panic!("{last}");
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
    let before: u64 = noise.delivered().unwrap().threads.iter().map(|thread| thread.tally.delivered.count()).sum();
    child.wait_with_output().unwrap();
    let after: u64 = noise.delivered().unwrap().threads.iter().map(|thread| thread.tally.delivered.count()).sum();
    assert!(before > 50 && after <= before + 1, "{before} then {after}");
}

#[test]
fn what_cannot_be_made_is_refused_before_the_program_begins() {
    for (spec, why) in [
        ("periodic:interval=1ms,detour=1ns", "a detour of 1ns is too short: a signal and its handler take"),
        ("periodic:interval=1ms,detour=999999ns", "detours 1ns apart are too close"),
    ] {
        let (output, delivered) = under(&plan(spec), Command::new("echo").arg("begun"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{spec}");
        let error = delivered.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// Without a dynamic linker there is nobody to load the library.
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

/// Synchronized, programs on two CPUs lose the same instants; otherwise each its own.
#[test]
fn synchronized_programs_lose_the_same_instants() {
    let _alone = alone();
    let cpus: Vec<String> = allowed_cpus().unwrap().iter().take(2).map(|cpu| cpu.to_string()).collect();
    if cpus.len() < 2 {
        eprintln!("synchronized_programs_lose_the_same_instants needs two CPUs");
        return;
    }
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "spin");
    // How far apart the detours are that began within half an interval of each other, at the median, as the programs saw it.
    // Steps that are much longer than a detour are time that others had.
    let apart_ns = |synchronized: bool| -> Option<u64> {
        let plan = SignalPlan { synchronized, ..plan("periodic:interval=4ms,detour=200us") };
        let noise = SignalNoise::prepare(&plan).unwrap();
        let started: Vec<_> = cpus
            .iter()
            .map(|cpu| {
                let mut command = Command::new(&program);
                command.args(["2", "180", cpu]).envs(noise.environment()).stdout(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let starts: Vec<Vec<u64>> = started
            .into_iter()
            .map(|child| {
                let output = child.wait_with_output().unwrap();
                assert!(output.status.success(), "{output:?}");
                let text = String::from_utf8(output.stdout).unwrap();
                let steps = text.lines().map(|line| {
                    let (start, length) = line.split_once(' ').unwrap();
                    (start.parse::<u64>().unwrap(), length.parse::<u64>().unwrap())
                });
                steps.filter(|(_, length)| *length < 250_000).map(|(start, _)| start).collect()
            })
            .collect();
        assert_eq!(noise.delivered().unwrap().processes, 2);
        let nearest = |at: &u64| starts[1].iter().map(|other| other.abs_diff(*at)).min();
        let mut apart: Vec<u64> = starts[0].iter().filter_map(nearest).filter(|apart| *apart <= 2_000_000).collect();
        apart.sort_unstable();
        (apart.len() > 20).then(|| apart[apart.len() / 2])
    };
    // Others who have a CPU meanwhile hold up its program, and places that are drawn may be close to each other, so the best
    // of some attempts counts.
    let (mut together, mut apart) = (u64::MAX, 0);
    for _ in 0..4 {
        together = together.min(apart_ns(true).unwrap_or(u64::MAX));
        apart = apart.max(apart_ns(false).unwrap_or(0));
        eprintln!("detours start {together} ns apart at the median, {apart} ns if they need not be");
        if together < 20_000 && apart > 100_000 {
            return;
        }
    }
    panic!("{together} ns apart, and {apart} ns if they need not be");
}
