//! The cost of a machine's threads for `becalm tune run`, which moves each of them away from the CPUs, and back.

use std::fs;
use std::path::PathBuf;
use std::process::{self, Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;

use becalm_linux::sched;
use becalm_testing::wait_until;
use becalm_units::CpuId;

use crate::claims::{Claims, Figure};
use crate::effort::Effort;
use crate::figures::Repetitions;
use crate::programs;

/// Threads that sleep meanwhile.
const THREADS: u64 = 10_000;
/// The number of runs per side.
const TURNS: u64 = 7;
const WHAT: &str = "tune run with sleeping threads";

pub fn run() -> ExitCode {
    let effort = Effort::from_arguments();
    let mut claims = Claims::begin("threads: what each thread costs becalm tune run", effort);
    let cpus = sched::allowed_cpus().unwrap_or_default();
    match cpus.iter().last() {
        Some(cpu) if cpus.len() > 1 => {
            if let Err(why) = compare(&mut claims, effort, cpu) {
                claims.fail_as_root(WHAT, &why);
            }
        }
        _ => claims.skip(WHAT, "there is one CPU"),
    }
    claims.end()
}

fn compare(claims: &mut Claims, effort: Effort, cpu: CpuId) -> Result<(), String> {
    let count = effort.share(THREADS);
    let mut sides = [Vec::new(), Vec::new()];
    let mut elsewhere = 0;
    for turn in 0..effort.share(TURNS) {
        for side in [turn % 2, 1 - turn % 2] {
            let sleeping = if side == 0 { count } else { 0 };
            let wall = with_sleepers(sleeping, || {
                let before = cpus_of_threads()?;
                if turn == 0 && side == 0 {
                    is_moved(cpu, &before)?;
                }
                let wall = tuned(cpu)?;
                elsewhere += before.iter().zip(cpus_of_threads()?).filter(|(before, after)| *before != after).count();
                Ok(wall)
            })?;
            sides[side as usize].push(wall);
        }
    }
    let each = sides[0].iter().zip(&sides[1]).map(|(asleep, none)| (asleep - none) / count as f64 * 1e6);
    let each = Repetitions::new(each.collect());
    let [asleep, none] = sides.map(Repetitions::new);
    let what = format!("tune run -- true with {count} sleeping threads, and without");
    claims.state_beside(&what, Figure::seconds(asleep.median()), Figure::seconds(none.median()), "wall time");
    claims.remark(&format!("with {}, without {}", asleep.range("s"), none.range("s")));
    let (low, high) = each.median_interval();
    let remark = format!("95 % interval {low:.0} to {high:.0}us, {} pairs", effort.share(TURNS));
    claims.state("  each thread adds", Figure { value: each.median(), unit: "us" }, &remark);
    claims.none("  threads on other CPUs than before", elsewhere as u64);
    Ok(())
}

/// Measures something while this many threads of this process sleep.
fn with_sleepers<T>(count: u64, measure: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..count {
            let sleeper = thread::Builder::new().stack_size(16 << 10);
            let started = sleeper.spawn_scoped(scope, || drop(gate.lock()));
            started.map_err(|error| format!("cannot start {count} threads: {error}"))?;
        }
        // Threads of the previous turn may still be exiting.
        let all = || fs::read_dir("/proc/self/task").map_or(0, Iterator::count) as u64;
        wait_until("exactly these threads run", || all() == count + 1);
        let measured = measure();
        drop(closed);
        measured
    })
}

/// The CPUs of each thread of this process, in order of their ids.
fn cpus_of_threads() -> Result<Vec<(PathBuf, String)>, String> {
    let failed = |error| format!("cannot read the threads of this process: {error}");
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc/self/task").map_err(failed)? {
        let status = PathBuf::from(format!("/proc/{}/task", process::id())).join(entry.map_err(failed)?.file_name());
        let status = status.join("status");
        let text = fs::read_to_string(&status).map_err(failed)?;
        let cpus = text.lines().find(|line| line.starts_with("Cpus_allowed_list"));
        all.push((status, cpus.unwrap_or_default().to_owned()));
    }
    all.sort_unstable();
    Ok(all)
}

fn tune_run(cpu: CpuId) -> Command {
    let mut command = Command::new(programs::becalm());
    command.args(["tune", "run", "--quiet", "--cpus", &cpu.to_string(), "--"]);
    command
}

/// Checks that a thread is on other CPUs while the command runs: otherwise the measurement would be meaningless.
fn is_moved(cpu: CpuId, threads: &[(PathBuf, String)]) -> Result<(), String> {
    let Some((status, cpus)) = threads.last() else { return Err("this process has no threads".to_owned()) };
    let said = tune_run(cpu).arg("grep").arg("Cpus_allowed_list").arg(status).output();
    let said = said.map_err(|error| format!("cannot run becalm: {error}"))?;
    let now = String::from_utf8_lossy(&said.stdout);
    match said.status.success() {
        true if now.trim() != cpus.trim() => Ok(()),
        true => Err(format!("a sleeping thread stayed where it was: {}", now.trim())),
        false => Err(format!("tune run failed: {}", String::from_utf8_lossy(&said.stderr).trim())),
    }
}

/// The time to isolate the CPU, and to restore, in seconds.
fn tuned(cpu: CpuId) -> Result<f64, String> {
    let cost =
        programs::cost(tune_run(cpu).arg("true"), None).map_err(|error| format!("cannot run becalm: {error}"))?;
    if cost.success { Ok(cost.wall.as_secs_f64()) } else { Err("tune run failed".to_owned()) }
}
