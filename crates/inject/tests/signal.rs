//! Programs under noise by signals: they notice nothing of it. No root needed; what is measured is tested in `root_signal`.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod programs;

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use becalm_inject::program::{self, ProgramError};
use becalm_inject::{InjectError, SignalNoise};
use programs::{compiled, plan, text, under};
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
    let (output, delivered) = under(&plan("periodic:interval=1ms,detour=100us"), &mut Command::new(&program));
    assert_eq!(text(&output), alone);
    let delivered = delivered.unwrap();
    let detours: u64 = delivered.threads.iter().map(|thread| thread.delivered.count).sum();
    eprintln!(
        "{detours} detours in {} processes and {} places of threads; {} signals were given up",
        delivered.counts.processes,
        delivered.threads.len(),
        delivered.counts.given_up
    );
    // From the top each one had been ours when the program began to use it; then none was left.
    assert_eq!((delivered.counts.given_up, delivered.counts.without_signal), (31, 1));
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
