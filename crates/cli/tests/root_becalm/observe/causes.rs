//! `becalm why`: planted requests are counted by who made them.

use std::fs::File;
use std::io::{Read, Write, pipe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use becalm_linux::probe::membarrier;
use becalm_linux::sched;
use becalm_testing::program::{Running, becalm, instances_of, path, run};
use becalm_testing::{attempts, skip};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde_json::Value;

use super::{first_cpu, last_cpu, number, start_thread};
use crate::robust::alone;

/// How many of each kind are planted.
const PLANTED: usize = 500;
/// The time between two of them.
const APART: Duration = Duration::from_millis(2);

/// Count and sum of the causes with this function and this requester.
fn caused(doc: &Value, function: &str, by: &str) -> i64 {
    let causes = doc["causes"].as_array().unwrap().iter();
    causes.filter(|cause| cause["function"] == function && cause["by"] == by).map(|cause| number(cause, "count")).sum()
}

fn why(bundle: &Path) -> Value {
    let ended = run(becalm(&["why", path(bundle), "--json"]));
    ended.expect(0, &[]);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Memory that is large enough to be unmapped when it is freed; one page of it is used.
fn map_and_unmap() {
    let mut memory = vec![0_u8; 64 << 20];
    memory[0] = 1;
    std::hint::black_box(&memory);
}

/// Waits for a timer of the CPU of this thread, again and again.
fn wait_for_timers() {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty()).unwrap();
    let apart = Timespec { tv_sec: 0, tv_nsec: APART.as_nanos() as i64 };
    let every = Itimerspec { it_interval: apart, it_value: apart };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &every).unwrap();
    let mut timer = File::from(timer);
    let mut count = [0; 8];
    (0..PLANTED).for_each(|_| timer.read_exact(&mut count).unwrap());
}

#[test]
fn planted_requests_are_those_of_the_thread_that_makes_them() {
    let Some(_alone) = alone() else { return };
    if first_cpu() == last_cpu() {
        return skip("one CPU has no other one to send requests to");
    }
    membarrier::register().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut number_of_run = 0;
    attempts(3, || {
        number_of_run += 1;
        let bundle = folder.path().join(format!("observed-{number_of_run}.becalm"));
        let words = ["observe", "-q", "--causes", "--comm", "wy-spin", "--duration", "8s", "-o", path(&bundle)];
        let mut running = Running::start(becalm(&words));
        let pid = running.pid();
        running.wait_until("all traces are there", || instances_of(pid).len() == 3);
        thread::sleep(Duration::from_millis(700));
        let stop = AtomicBool::new(false);
        let (mut read, mut write) = pipe().unwrap();
        thread::scope(|scope| {
            let spinner = thread::Builder::new().name("wy-spin".to_owned());
            let spin = || {
                sched::pin_current_thread(last_cpu()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            spinner.spawn_scoped(scope, spin).unwrap();
            let timer = thread::Builder::new().name("wy-timer".to_owned());
            let wait = || {
                sched::pin_current_thread(last_cpu()).unwrap();
                wait_for_timers();
            };
            timer.spawn_scoped(scope, wait).unwrap();
            let sleeper = thread::Builder::new().name("wy-sleep".to_owned());
            let sleep = || {
                sched::pin_current_thread(last_cpu()).unwrap();
                let mut byte = [0];
                while read.read_exact(&mut byte).is_ok() {}
            };
            sleeper.spawn_scoped(scope, sleep).unwrap();
            let planter = thread::Builder::new().name("wy-plant".to_owned());
            let plant = move || {
                sched::pin_current_thread(first_cpu()).unwrap();
                // The others are there by then.
                thread::sleep(Duration::from_millis(500));
                for act in 0..3 {
                    for _ in 0..PLANTED {
                        thread::sleep(APART);
                        match act {
                            0 => assert!(membarrier::private()),
                            1 => map_and_unmap(),
                            _ => write.write_all(b"x").unwrap(),
                        }
                    }
                }
            };
            planter.spawn_scoped(scope, plant).unwrap().join().unwrap();
            stop.store(true, Ordering::Relaxed);
        });
        running.end().expect(0, &[]);
        let doc = why(&bundle);
        let [barriers, flushes, wakes, timers] = [
            caused(&doc, "ipi_mb", "wy-plant"),
            caused(&doc, "flush_tlb_func", "wy-plant"),
            caused(&doc, "wy-sleep", "wy-plant"),
            caused(&doc, "wy-timer", "timerfd_tmrproc"),
        ];
        let coverage = &doc["coverage"];
        let figures = format!(
            "{barriers} barriers, {flushes} flushes, {wakes} wake-ups, {timers} timers of {PLANTED} each; {coverage}"
        );
        eprintln!("{figures}");
        let most = PLANTED as i64;
        // The kernel leaves out a CPU that runs another program just then.
        let is_near = |found: i64| (most * 9 / 10..=most).contains(&found);
        // Counted are visits in waits of the spinning thread, and it has its CPU but for what others take.
        let is_exact = |found: i64| (found - most).abs() <= most / 50;
        let is_known = number(coverage, "known") * 100 >= number(coverage, "activities") * 95;
        let good = is_near(barriers) && is_near(flushes) && is_exact(wakes) && is_exact(timers) && is_known;
        good.then_some(()).ok_or(figures)
    });
}

#[test]
fn what_wakes_threads_on_a_measured_cpu_is_known() {
    let Some(_alone) = alone() else { return };
    if first_cpu() == last_cpu() {
        return skip("one CPU has no other one to wake threads from");
    }
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("loop.becalm");
    let stop = AtomicBool::new(false);
    let (mut read, write) = pipe().unwrap();
    let ended = thread::scope(|scope| {
        let sleep = move || {
            sched::pin_current_thread(last_cpu()).unwrap();
            let mut byte = [0];
            while read.read_exact(&mut byte).is_ok() {}
        };
        thread::Builder::new().name("wy-sleep".to_owned()).spawn_scoped(scope, sleep).unwrap();
        let (cpu, duration) = (last_cpu().to_string(), "3s");
        let words = ["record", "--causes", "--cpus", &cpu, "--duration", duration, "-q", "-o", path(&bundle)];
        let running = Running::start(becalm(&words));
        let writer = write.try_clone().unwrap();
        start_thread(scope, "wy-plant", &stop, move || {
            thread::sleep(APART);
            (&writer).write_all(b"x").unwrap();
        });
        let ended = running.end();
        stop.store(true, Ordering::Relaxed);
        drop(write);
        ended
    });
    ended.expect(0, &[]);
    let doc = why(&bundle);
    let woken = caused(&doc, "wy-sleep", "wy-plant");
    let coverage = &doc["coverage"];
    eprintln!("{woken} wake-ups by the planter; {coverage}");
    let of_sleeper = doc["causes"].as_array().unwrap().iter().filter(|cause| cause["function"] == "wy-sleep");
    let all: i64 = of_sleeper.clone().map(|cause| number(cause, "count")).sum();
    assert!(woken > 500 && woken * 100 >= all * 99, "{woken} of {all}: {doc:#}");
    assert!(of_sleeper.clone().any(|cause| cause["delay_median_ns"].as_i64().is_some_and(|delay| delay > 0)));
    assert!(number(coverage, "known") * 100 >= number(coverage, "activities") * 95, "{coverage}");
    let text = run(becalm(&["why", path(&bundle), "wy-*", "--senders"]));
    text.expect(0, &[]);
    assert!(text.stdout.contains("wy-plant"), "{}", text.stdout);
}
