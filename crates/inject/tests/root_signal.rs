//! Programs under noise by signals lose the requested time at the requested instants. Needs no root, but a mostly idle machine.

// A test says what it has measured.
#![allow(clippy::print_stderr)]

mod programs;

use std::path::Path;
use std::process::{Command, Stdio};

use becalm_inject::Together;
use becalm_inject::{SignalNoise, SignalPlan};
use becalm_linux::sched::allowed_cpus;
use becalm_testing::{Need, attempts, machine_has};
use programs::{compiled, plan, run_under_noise, text};
use tempfile::TempDir;

/// The time that a program lost under noise by signals, by its own clock.
struct Lost {
    /// The number of detours that it saw, per delivered one.
    seen: f64,
    /// Their median.
    median_ns: f64,
    said: String,
}

/// Runs a program for 2 s under detours of a length every 5 ms; it looks for steps longer than another.
///
/// # Errors
/// If it did not run for 2 s, because it was kept from its CPU.
fn lost(program: &Path, detour: &str, over_us: &str) -> Result<Lost, String> {
    let mut command = Command::new(program);
    let (output, delivered) =
        run_under_noise(&plan(&format!("periodic:interval=5ms,detour={detour}")), command.args(["2", over_us]));
    let delivered = delivered.unwrap();
    let thread = &delivered.threads[0];
    let seen: Vec<f64> =
        text(&output).lines().take(2).flat_map(|line| line.split(' ')).map(|word| word.parse().unwrap()).collect();
    let (count, median_ns) = (seen[0] + seen[2], seen[1].midpoint(seen[3]));
    let said = format!(
        "{count} steps over {over_us} us of {median_ns:.0} ns at the median; {} due, {} delivered of {:?} ns, {} missed",
        thread.requested.count, thread.delivered.count, thread.delivered.length_ns, thread.missed
    );
    let counts = delivered.counts;
    assert_eq!((counts.processes, counts.unattended, counts.given_up), (1, 0, 0));
    assert_eq!(thread.requested.count, thread.delivered.count + thread.missed);
    if !(390..=410).contains(&thread.requested.count) {
        return Err(said);
    }
    // While others have the CPU, detours are missed or become one.
    let seen = if thread.delivered.count > 300 { count / thread.delivered.count as f64 } else { 0.0 };
    Ok(Lost { seen, median_ns, said })
}

/// The program loses the requested time, plus entering and leaving a detour. Those are up to the kernel and the hypervisor, take 5 to 50 us, and do
/// not depend on the length of the detour.
#[test]
fn a_program_loses_what_was_asked_for() {
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "spin");
    attempts(3, || {
        let (long, short) = (lost(&program, "500us", "300")?, lost(&program, "200us", "150")?);
        let said = format!("{}; {}", long.said, short.said);
        eprintln!("{said}");
        let seen = [&long, &short].iter().all(|lost| (0.95..=1.1).contains(&lost.seen));
        let longer_ns = long.median_ns - short.median_ns;
        let way_ns = long.median_ns - 500e3;
        if seen && (285e3..=315e3).contains(&longer_ns) && (-10e3..=100e3).contains(&way_ns) {
            Ok(())
        } else {
            Err(said)
        }
    });
}

/// Synchronized, programs on two CPUs lose the same instants; otherwise each its own.
#[test]
fn synchronized_programs_lose_the_same_instants() {
    if !machine_has(&[Need::TwoCpus]) {
        return;
    }
    let cpus: Vec<String> = allowed_cpus().unwrap().iter().take(2).map(|cpu| cpu.to_string()).collect();
    let folder = TempDir::new().unwrap();
    let program = compiled(folder.path(), "spin");
    // The median distance of detours that started within half an interval of each other, as the programs saw it. Steps that are much longer than a
    // detour are time that others had.
    let apart_ns = |together: Together| -> Option<u64> {
        let plan = SignalPlan { together, ..plan("periodic:interval=4ms,detour=200us") };
        let noise = SignalNoise::prepare(&plan).unwrap();
        let started: Vec<_> = cpus
            .iter()
            .map(|cpu| {
                let mut command = Command::new(&program);
                command.args(["1", "180", cpu]).envs(noise.environment()).stdout(Stdio::piped()).spawn().unwrap()
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
        assert_eq!(noise.delivered().unwrap().counts.processes, 2);
        let nearest = |at: &u64| starts[1].iter().map(|other| other.abs_diff(*at)).min();
        let mut apart: Vec<u64> = starts[0].iter().filter_map(nearest).filter(|apart| *apart <= 2_000_000).collect();
        apart.sort_unstable();
        (apart.len() > 20).then(|| apart[apart.len() / 2])
    };
    // Others who have a CPU meanwhile hold up its program, and places that are drawn may be close to each other, so the best
    // of the attempts until now counts.
    let (mut together, mut apart) = ([u64::MAX; 2], 0);
    attempts(3, || {
        // Those of a node alone are together in the same way as all.
        for (least, who) in together.iter_mut().zip([Together::All, Together::Node]) {
            *least = (*least).min(apart_ns(who).unwrap_or(u64::MAX));
        }
        apart = apart.max(apart_ns(Together::Apart).unwrap_or(0));
        let said = format!("detours start {together:?} ns apart at the median, {apart} ns if they need not be");
        eprintln!("{said}");
        if together.iter().all(|together| *together < 20_000) && apart > 100_000 { Ok(()) } else { Err(said) }
    });
}
