//! `becalm observe` against the kernel's own accounts, and against planted noise with its own log.

mod again;
mod both;
mod causes;
mod live;
mod lives;
mod neighbors;
mod planted;
mod scale;
mod work;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use becalm_linux::clock::thread_time;
use becalm_linux::sched::{self, Policy};
use becalm_testing::cgroup::ControlGroup;
use becalm_testing::program::{Running, becalm, document, instances_of, path, public_program, run};
use becalm_testing::skip;
use becalm_units::CpuId;
use serde_json::Value;

use crate::robust::alone;

pub fn number(value: &Value, name: &str) -> i64 {
    value[name].as_i64().unwrap_or_else(|| panic!("{name} is a number in {value:#}"))
}

/// The observed threads, after checking what holds for every thread of every observation.
pub fn threads(doc: &Value) -> &Vec<Value> {
    let threads = doc["threads"].as_array().expect("there are threads");
    for thread in threads {
        let of = |name: &str| number(thread, name);
        assert_eq!(of("ran_ns") + of("waited_ns") + of("asleep_ns") + of("unknown_ns"), of("wall_ns"), "{thread:#}");
        assert_eq!(of("queued_ns") + of("on_the_way_ns") + of("quota_ns"), of("waited_ns"), "{thread:#}");
        assert_eq!(of("imbalance_ns"), 0, "{thread:#}");
        let sum = |name: &str| thread[name].as_array().unwrap().iter().map(|part| number(part, "ns")).sum::<i64>();
        assert_eq!((sum("ran"), sum("asleep")), (of("ran_ns"), of("asleep_ns")), "{thread:#}");
        if doc["tracing"].is_object() {
            assert_eq!(sum("takers"), of("queued_ns") + of("quota_ns"), "{thread:#}");
        }
    }
    threads
}

/// The sum of the takers with this name.
fn taken(doc: &Value, source: &str) -> (i64, i64) {
    let takers = doc["takers"].as_array().unwrap().iter().filter(|taker| taker["source"] == source);
    takers.fold((0, 0), |(ns, count), taker| (ns + number(taker, "ns"), count + number(taker, "count")))
}

pub fn spin(length: Duration) {
    let since = Instant::now();
    while since.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// Starts a thread with this name that repeats something until told to stop.
fn start_thread<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    stop: &'scope AtomicBool,
    act: impl Fn() + Send + 'scope,
) {
    let thread = thread::Builder::new().name(name.to_owned());
    let repeat = move || {
        while !stop.load(Ordering::Relaxed) {
            act();
        }
    };
    thread.spawn_scoped(scope, repeat).expect("a thread can be started");
}

/// Ends the threads of a test, also if it fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The kernel's trace of it lacks no switches, unlike that of a CPU that was offline.
fn first_cpu() -> CpuId {
    sched::allowed_cpus().unwrap().iter().next().expect("there is a CPU")
}

fn last_cpu() -> CpuId {
    sched::allowed_cpus().unwrap().iter().last().expect("there is a CPU")
}

/// Waits until `becalm observe` records.
fn wait_for_trace(running: &mut Running) {
    let pid = running.pid();
    running.wait_until("both traces are there", || instances_of(pid).len() == 2);
    thread::sleep(Duration::from_millis(700));
}

#[test]
fn switches_and_times_are_those_of_the_kernel() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("accounts.becalm");
    let stop = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        // Busy CPUs: on the way out of idle, the kernel reads its clock long before the trace shows the switch.
        for cpu in sched::allowed_cpus().unwrap().iter() {
            start_thread(scope, "ob-busy", &stop, move || {
                sched::pin_current_thread(cpu).unwrap();
                spin(Duration::from_millis(10));
            });
        }
        for _ in 0..5 {
            start_thread(scope, "ob-worker", &stop, || {
                spin(Duration::from_micros(300));
                thread::sleep(Duration::from_millis(5));
            });
        }
        let ended = run(becalm(&["observe", "--comm", "ob-worker", "-d", "3s", "--all", "-o", path(&bundle)]));
        stop.store(true, Ordering::Relaxed);
        ended
    });
    ended.expect(0, &[]);
    let doc = document(&bundle);
    assert_eq!((threads(&doc).len(), number(&doc, "lost_events")), (5, 0), "{doc:#}");
    let checked = &doc["checked"];
    let of = |name: &str| number(checked, name);
    eprintln!("{checked}");
    assert!(of("threads") > 0, "{checked:#}");
    let switches = of("kernel_switches");
    // Where the trace lacks switches, some of them are the threads' own.
    let lacking = number(&doc, "repaired_switches") + number(&doc, "unknown_switches");
    assert!((of("switches") - switches).abs() <= lacking, "{checked:#}, and {lacking} are not in the trace");
    let near =
        |ours: i64, kernels: i64, percent: i64| (ours - kernels).abs() <= 5_000 * switches + kernels * percent / 100;
    assert!(near(of("ran_ns"), of("kernel_ran_ns"), 2), "{checked:#}");
    assert!(near(of("queued_ns"), of("kernel_queued_ns"), 1), "{checked:#}");
}

#[test]
fn bursts_of_a_real_time_thread_are_its_own() {
    const BURSTS: usize = 60;
    let Some(_alone) = alone() else { return };
    let cpu = last_cpu();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bursts.becalm");
    let stop = AtomicBool::new(false);
    let burned = thread::scope(|scope| {
        start_thread(scope, "ob-victim", &stop, || {
            sched::pin_current_thread(cpu).unwrap();
            spin(Duration::from_millis(10));
        });
        let words = ["observe", "--comm", "ob-victim", "-d", "6s", "-q", "-o", path(&bundle)];
        let mut running = Running::start(becalm(&words));
        wait_for_trace(&mut running);
        let gremlin = thread::Builder::new().name("ob-gremlin".to_owned()).spawn_scoped(scope, || {
            sched::pin_current_thread(cpu).unwrap();
            sched::set_policy(Policy::Fifo(10)).ok()?;
            let before = thread_time();
            for _ in 0..BURSTS {
                spin(Duration::from_millis(1));
                thread::sleep(Duration::from_millis(20));
            }
            Some(thread_time() - before)
        });
        let burned = gremlin.unwrap().join().unwrap();
        let ended = running.end();
        stop.store(true, Ordering::Relaxed);
        ended.expect(0, &[]);
        burned
    });
    let Some(burned) = burned else { return skip("no real-time thread may be started") };
    let doc = document(&bundle);
    assert_eq!(threads(&doc).len(), 1, "{doc:#}");
    let (ns, visits) = taken(&doc, "ob-gremlin");
    eprintln!("{visits} visits of {ns} ns, and the thread used {burned}");
    // Its start on that CPU, and the way to its first burst, are visits as well.
    // A switch that the trace lacks hides one or makes another.
    let lacking = number(&doc, "repaired_switches") + number(&doc, "unknown_switches");
    let expected = BURSTS as i64 - lacking..=BURSTS as i64 + 4 + lacking;
    assert!(
        expected.contains(&visits),
        "{visits} visits for {BURSTS} bursts, and {lacking} switches are not in the trace"
    );
    assert!((ns - burned.get()).abs() * 20 <= burned.get(), "{ns} ns, and the thread used {burned}");
}

#[test]
fn a_quota_is_what_the_kernel_counts() {
    let Some(_alone) = alone() else { return };
    let cpu = last_cpu();
    let Some(group) = ControlGroup::with_time(20_000, 100_000) else { return skip("there is no group with a quota") };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("quota.becalm");
    // A busy loop.
    let mut program = Command::new("sh");
    program.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
    let mut program = group.inside(&program).spawn().unwrap();
    let pid = program.id().to_string();
    sched::set_affinity_of(i32::try_from(program.id()).unwrap(), &[cpu].into_iter().collect()).unwrap();
    thread::sleep(Duration::from_millis(300));
    let ended = run(becalm(&["observe", "--pid", &pid, "-d", "3s", "--json", "-o", path(&bundle)]));
    let _ = program.kill();
    let _ = program.wait();
    ended.expect(0, &[]);
    let doc = document(&bundle);
    let thread = &threads(&doc)[0];
    let quota = &doc["quotas"][0];
    eprintln!("{quota} {}", number(thread, "quota_ns"));
    let (kernel, ours) = (number(quota, "throttled_ns"), number(thread, "quota_ns"));
    assert!(number(quota, "throttled") > 20, "{doc:#}");
    assert!((kernel - ours).abs() * 10 <= kernel, "{ours} ns of quota, and the kernel counts {kernel}");
}

#[test]
fn a_stopped_program_is_stopped() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("stopped.becalm");
    let mut program = Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
    let pid = program.id().to_string();
    let mut running = Running::start(becalm(&["observe", "--pid", &pid, "-d", "4s", "-q", "-o", path(&bundle)]));
    wait_for_trace(&mut running);
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-STOP");
    let since = Instant::now();
    thread::sleep(Duration::from_millis(500));
    let stopped = since.elapsed();
    signal("-CONT");
    let ended = running.end();
    let _ = program.kill();
    let _ = program.wait();
    ended.expect(0, &[]);
    let doc = document(&bundle);
    let ns = number(&threads(&doc)[0], "stopped_ns");
    let off = (ns - stopped.as_nanos() as i64).abs();
    // The signals take their time on a busy machine.
    assert!(off < 200_000_000 && ns > 300_000_000, "stopped for {ns} ns, and the signals are {stopped:?} apart");
}

#[test]
fn without_root_the_kernels_accounts_are_reported() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = public_program(folder.path());
    let bundle = folder.path().join("accounts.becalm");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
    command.args([
        "observe",
        "-o",
        path(&bundle),
        "--",
        "sh",
        "-c",
        "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done",
    ]);
    let ended = run(command);
    ended.expect(0, &[]);
    let words = ["sh (1 thread)", "/proc/PID/schedstat"];
    assert!(words.iter().all(|word| ended.stdout.contains(word)), "{ended:?}");
    let doc = document(&bundle);
    assert!(doc["tracing"].is_null(), "{doc:#}");
    let thread = threads(&doc).iter().find(|thread| thread["name"] == "sh").expect("the command is there");
    assert!(number(thread, "ran_ns") > 10_000_000, "{thread:#}");
}

#[test]
fn killed_it_leaves_nothing_in_the_kernel() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("killed.becalm");
    let mut running = Running::start(becalm(&["observe", "--comm", "sh", "-q", "-o", path(&bundle)]));
    wait_for_trace(&mut running);
    let pid = running.pid();
    running.signal("KILL");
    running.end();
    becalm_testing::wait_until("the janitor removes the traces", || instances_of(pid).is_empty());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(Path::new("/sys/kernel/tracing").exists());
}
