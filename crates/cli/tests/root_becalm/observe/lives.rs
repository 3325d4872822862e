//! Threads that come, go, move, and change their names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::clock::thread_time;
use becalm_linux::sched::{self, Policy};
use becalm_testing::machine::ChangedSetting;
use becalm_testing::program::{becalm, document, path, run};
use becalm_testing::{Need, attempts, machine_has, skip, wait_until};
use becalm_units::{CpuId, Nanos};
use serde_json::Value;

use super::planted::{self, Act, Recording, lacking};
use super::{StopOnDrop, first_cpu, last_cpu, number, spin, start_thread, threads};
use crate::robust::alone;

/// Uses this much CPU time.
fn burn(time: Duration) {
    let since = thread_time();
    while thread_time() - since < Nanos::new(time.as_nanos() as i64) {
        std::hint::spin_loop();
    }
}

#[test]
fn each_of_a_thousand_children_is_observed() {
    const CHILDREN: usize = 1_000;
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (bundle, log) = (folder.path().join("children.becalm"), folder.path().join("log"));
    // The shell logs the number of each child that it made.
    let script = r#"i=0; while [ $i -lt "$0" ]; do /bin/true & echo $!; wait; i=$((i+1)); done > "$1""#;
    let words = ["observe", "-q", "-o", path(&bundle), "--", "sh", "-c", script, &CHILDREN.to_string(), path(&log)];
    run(becalm(&words)).expect(0, &[]);
    let doc = document(&bundle);
    let found = threads(&doc);
    let logged: BTreeSet<i64> = fs::read_to_string(log).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    let shell = |thread: &&Value| !logged.contains(&number(thread, "tid"));
    let observed: BTreeSet<i64> = found.iter().map(|thread| number(thread, "tid")).collect();
    assert_eq!((logged.len(), found.len(), observed.len()), (CHILDREN, CHILDREN + 1, CHILDREN + 1));
    assert_eq!(found.iter().filter(shell).count(), 1, "all others are the shell's children");
    // An event that the trace lacks may be the new name of one, or its only switch.
    let allowed = lacking(&doc) as usize + 2;
    let without = |what: &dyn Fn(&Value) -> bool| found.iter().filter(|thread| !what(thread)).count();
    assert!(without(&|thread| thread["name"] == "true") <= allowed + 1, "{} have other names", found.len());
    assert!(without(&|thread| number(thread, "switches") > 0 && number(thread, "ran_ns") > 0) <= allowed);
    assert_eq!((&doc["ended"], number(&doc, "lost_events")), (&Value::from("command"), 0));
}

#[test]
fn a_thread_that_moves_between_cpus_keeps_its_books() {
    const HOPS: u32 = 1_000;
    if !machine_has(&[Need::TwoCpus]) {
        return;
    }
    let Some(_alone) = alone() else { return };
    let cpus = [first_cpu(), last_cpu()];
    attempts(3, || {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let stopping = StopOnDrop(&stop);
            // No CPU idles: on the way out of idle, the kernel reads its clock long before the trace shows the switch.
            for cpu in cpus {
                start_thread(scope, "ob-busy", &stop, move || {
                    sched::pin_current_thread(cpu).unwrap();
                    spin(Duration::from_millis(10));
                });
            }
            let hopper: Act<'_> = Box::new(|| {
                for hop in 0..HOPS {
                    sched::pin_current_thread(cpus[hop as usize % 2]).unwrap();
                    spin(Duration::from_micros(50));
                    if hop % 10 == 0 {
                        thread::sleep(Duration::from_micros(500));
                    }
                }
            });
            let observed = planted::observe(&["-q", "--comm", "ob-hopper"], vec![("ob-hopper", hopper)], |_| ());
            drop(stopping);
            let (thread, account) = (observed.thread(0), observed.accounts[0].1);
            let of = |name: &str| number(thread, name);
            let (switches, runs) = (of("switches"), account.runs as i64);
            let (ready, coming) = (of("ran_ns") + of("queued_ns"), of("on_the_way_ns"));
            eprintln!("{switches} switches, {ready} ns, and {coming} on the way; {account:?}");
            assert!(runs >= i64::from(HOPS) && of("quota_ns") == 0, "{thread:#}");
            // If the wake-up comes from another CPU, the account starts with the interrupt, some microseconds before the events of wake-up and switch.
            let (kernels, off) =
                ((account.ran + account.waited).get(), 5_000 * runs + (account.ran + account.waited).get() / 50);
            let is_near = kernels > ready - off && kernels < ready + coming + off;
            let is_right = (switches - runs).abs() <= lacking(&observed.doc) && is_near;
            if is_right { Ok(()) } else { Err(format!("{switches} switches, {ready} + {coming} ns; {account:?}")) }
        })
    });
}

#[test]
fn a_wait_that_moves_to_another_cpu_belongs_to_both() {
    const BURST: Duration = Duration::from_millis(200);
    if !machine_has(&[Need::TwoCpus]) {
        return;
    }
    let Some(_alone) = alone() else { return };
    let cpus = [first_cpu(), last_cpu()];
    let is_real_time = AtomicBool::new(true);
    attempts(3, || {
        let (victim_tid, here, stop) = (AtomicI32::new(0), AtomicU32::new(0), AtomicBool::new(false));
        let wait_for = |holds: &dyn Fn() -> bool| {
            while !holds() {
                thread::sleep(Duration::from_millis(1));
            }
        };
        // The bursts would keep the mover from its CPU before it is a real-time thread.
        let is_ready = AtomicBool::new(false);
        let log = Mutex::new(Vec::new());
        let victim: Act<'_> = Box::new(|| {
            sched::pin_current_thread(cpus[0]).unwrap();
            victim_tid.store(sched::current_tid(), Ordering::Relaxed);
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let real_time = |cpu: CpuId, ends: bool| -> Act<'_> {
            let (victim_tid, here, stop, log) = (&victim_tid, &here, &stop, &log);
            let (is_ready, is_real_time) = (&is_ready, &is_real_time);
            Box::new(move || {
                sched::pin_current_thread(cpu).unwrap();
                wait_for(&|| victim_tid.load(Ordering::Relaxed) != 0 && is_ready.load(Ordering::Relaxed));
                is_real_time.fetch_and(sched::set_policy(Policy::Fifo(10)).is_ok(), Ordering::Relaxed);
                here.fetch_add(1, Ordering::Relaxed);
                let since = Instant::now();
                spin(BURST);
                log.lock().unwrap().push((since, Instant::now()));
                stop.fetch_or(ends, Ordering::Relaxed);
            })
        };
        let mover: Act<'_> = Box::new(|| {
            let _ = sched::set_policy(Policy::Fifo(20));
            is_ready.store(true, Ordering::Relaxed);
            wait_for(&|| here.load(Ordering::Relaxed) == 2);
            thread::sleep(BURST / 2);
            sched::set_affinity_of(victim_tid.load(Ordering::Relaxed), &[cpus[1]].into_iter().collect()).unwrap();
            log.lock().unwrap().push((Instant::now(), Instant::now()));
        });
        let names = ["ob-victim", "ob-one", "ob-other", "ob-mover"];
        let acts = [victim, real_time(cpus[0], false), real_time(cpus[1], true), mover];
        let observed = planted::observe(&["-q", "--comm", "ob-victim"], names.into_iter().zip(acts).collect(), |_| ());
        if !is_real_time.load(Ordering::Relaxed) {
            return Ok(());
        }
        let log = log.into_inner().unwrap();
        let [(moved, _), one, other] = log[..] else { return Err(format!("not in order: {log:?}")) };
        let thread = observed.thread(0);
        let took = |name: &str| -> i64 {
            let takers = thread["takers"].as_array().unwrap().iter().filter(|taker| taker["source"] == name);
            takers.map(|taker| number(taker, "ns")).sum()
        };
        let figures = format!("{} and {} ns of the two", took("ob-one"), took("ob-other"));
        eprintln!("{figures}; moved {:?} and {:?} after the starts", moved - one.0, moved - other.0);
        let near = |ns: i64, logged: Duration| (ns - logged.as_nanos() as i64).abs() < 15_000_000;
        // The two bursts end in any order.
        let halves = [(one, other), (other, one)]
            .iter()
            .any(|(first, second)| near(took("ob-one"), moved - first.0) && near(took("ob-other"), second.1 - moved));
        if halves { Ok(()) } else { Err(figures) }
    });
    if !is_real_time.load(Ordering::Relaxed) {
        skip("no real-time thread may be started");
    }
}

#[test]
fn two_threads_with_one_number_have_separate_books() {
    const LAST: &str = "/proc/sys/kernel/ns_last_pid";
    let Some(_alone) = alone() else { return };
    let Some(_last) = fs::read_to_string(LAST).ok().and_then(|last| ChangedSetting::new(LAST, last.trim())) else {
        return skip("the number of the next thread cannot be set");
    };
    thread::scope(|scope| {
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let first = thread::Builder::new().name("ob-first".to_owned());
        let first = first.spawn_scoped(scope, move || {
            // Its account must not be taken for a part of that of the second one.
            burn(Duration::from_millis(200));
            tell.send(sched::current_tid()).unwrap();
            let _ = wait.recv();
            let before = thread_time();
            burn(Duration::from_millis(50));
            thread_time() - before
        });
        let (first, tid) = (first.unwrap(), told.recv().unwrap());
        let task = format!("/proc/self/task/{tid}");
        wait_until("the first thread sleeps", || {
            fs::read_to_string(format!("{task}/wchan")).is_ok_and(|at| at.contains("futex"))
        });
        let recording = Recording::start(&["-q", "--comm", "ob-first", "--comm", "ob-second"]);
        go.send(()).unwrap();
        let first = first.join().unwrap();
        wait_until("its number is free", || !Path::new(&task).exists());

        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        wait_until("a thread gets the same number", || {
            fs::write(LAST, (tid - 1).to_string()).unwrap();
            let (tell, wait) = (tell.clone(), wait.clone());
            let second = thread::Builder::new().name("ob-second".to_owned());
            let second = second.spawn_scoped(scope, move || {
                if sched::current_tid() != tid {
                    return;
                }
                burn(Duration::from_millis(100));
                tell.send(thread_time()).unwrap();
                let _ = wait.lock().unwrap().recv();
            });
            let second = second.unwrap();
            wait_until("it has ended or has told its time", || second.is_finished() || Path::new(&task).exists());
            !second.is_finished()
        });
        let second = told.recv().unwrap();
        wait_until("the second thread sleeps", || {
            fs::read_to_string(format!("{task}/wchan")).is_ok_and(|at| at.contains("futex"))
        });
        let (doc, _) = recording.end();
        drop(go);

        let named = |name: &str| {
            let all: Vec<&Value> =
                threads(&doc).iter().filter(|thread| thread["name"] == name && thread["tid"] == tid).collect();
            assert_eq!(all.len(), 1, "{name} is not once in {doc:#}");
            all[0]
        };
        let [one, other] = ["ob-first", "ob-second"].map(named);
        let of = |thread, name| number(thread, name);
        assert!(of(one, "start_ns") + of(one, "wall_ns") <= of(other, "start_ns"), "{one:#} {other:#}");
        for (thread, logged) in [(one, first), (other, second)] {
            let host: i64 = planted::parts(thread, "ran", "host").map(|part| number(part, "ns")).sum();
            let off = (of(thread, "ran_ns") - host - logged.get()).abs();
            assert!(off * 20 < logged.get(), "{thread:#} ran for {logged} by its own clock");
        }
        // No account of the first thread is compared with one of the second.
        assert_eq!(number(&doc["checked"], "threads"), 0, "{:#}", doc["checked"]);
    });
}

#[test]
fn a_thread_is_observed_once_it_has_the_chosen_name() {
    let Some(_alone) = alone() else { return };
    let cpu = first_cpu();
    attempts(3, || renamed_in_a_wait(cpu));
}

/// A chosen name that a thread gets in the middle of a wait.
fn renamed_in_a_wait(cpu: CpuId) -> Result<(), String> {
    const BURST: Duration = Duration::from_millis(300);
    let (stop, is_there) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let stopping = StopOnDrop(&stop);
        let (tell, told) = mpsc::channel();
        let victim = thread::Builder::new().name("ob-before".to_owned());
        let stop = &stop;
        let victim = victim.spawn_scoped(scope, move || {
            sched::pin_current_thread(cpu).unwrap();
            tell.send(sched::current_tid()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let (victim, tid) = (victim.unwrap(), told.recv().unwrap());
        let recording = Recording::start(&["-q", "--comm", "ob-after"]);
        // A real-time thread keeps it from its CPU while it gets the name: its books start in the middle of a wait.
        let gremlin = thread::Builder::new().name("ob-gremlin".to_owned()).spawn_scoped(scope, || {
            sched::pin_current_thread(cpu).unwrap();
            sched::set_policy(Policy::Fifo(10)).ok()?;
            is_there.store(true, Ordering::Relaxed);
            let since = Instant::now();
            spin(BURST);
            Some(since)
        });
        let gremlin = gremlin.unwrap();
        wait_until("the real-time thread has the CPU", || is_there.load(Ordering::Relaxed) || gremlin.is_finished());
        thread::sleep(Duration::from_millis(20));
        fs::write(format!("/proc/self/task/{tid}/comm"), "ob-after").unwrap();
        let renamed = Instant::now();
        let came = gremlin.join().unwrap();
        thread::sleep(Duration::from_millis(200));
        let observed = renamed.elapsed();
        let (doc, _) = recording.end();
        let until = renamed.elapsed();
        drop(stopping);
        victim.join().unwrap();
        let Some(came) = came else {
            skip("no real-time thread may be started");
            return Ok(());
        };

        let thread = threads(&doc).iter().find(|thread| thread["tid"] == tid).expect("it is observed");
        assert_eq!(thread["name"], "ob-after");
        let wall = Duration::from_nanos(number(thread, "wall_ns") as u64);
        assert!(wall > observed && wall < until, "{wall:?} is not from {observed:?} to {until:?}");
        // The rest of the burst.
        let rest = BURST.saturating_sub(renamed - came).as_nanos() as i64;
        let taker = thread["takers"].as_array().unwrap().iter().find(|taker| taker["source"] == "ob-gremlin");
        let taken = taker.map_or(0, |taker| number(taker, "ns"));
        eprintln!("{taken} ns were taken of {rest} ns");
        // The real-time thread reads its clock a moment after it came; interrupts on top of it are not its own.
        let is_near = rest > 50_000_000 && (taken - rest).abs() < 15_000_000;
        if is_near { Ok(()) } else { Err(format!("{taken} ns were taken of {rest} ns")) }
    })
}
