//! A loop in a control group that used up its quota, while another thread works. The kernel's `cpu.stat` is the reference.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use becalm_bundle::Bundle;
use becalm_linux::procfs::stat::Stat;
use becalm_linux::sched;
use becalm_model::Kind;
use becalm_testing::cgroup::ControlGroup;
use becalm_testing::program::{Running, becalm, document, path};
use becalm_testing::skip;
use becalm_units::{CpuId, Nanos};

use crate::robust::alone;

/// The thread of a process that has this name.
fn thread_named(pid: u32, name: &str) -> Option<i32> {
    fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().find_map(|task| {
        let found = fs::read_to_string(task.path().join("comm")).ok()?;
        (found.trim() == name).then(|| task.file_name().to_str()?.parse().ok())?
    })
}

/// Works for a millisecond and sleeps for as long on a CPU, until told to stop.
fn work_by_turns(cpu: CpuId, stop: &AtomicBool) {
    sched::pin_current_thread(cpu).unwrap();
    while !stop.load(Ordering::Relaxed) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// How long a CPU has idled since the machine started, by the kernel's count.
fn idled(cpu: CpuId) -> Nanos {
    Stat::read(Path::new("/")).unwrap().cpu(cpu).unwrap().idle
}

#[test]
fn a_throttled_loop_is_away_once_per_period_although_another_thread_works() {
    let Some(_alone) = alone() else { return };
    let Some(cpu) = sched::allowed_cpus().unwrap().iter().last() else { return };
    let Some(group) = ControlGroup::with_time(30_000, 100_000) else { return skip("there is no group with a quota") };
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("quota.becalm");
    let (stop, number) = (AtomicBool::new(false), cpu.to_string());
    let (kernel, idle) = thread::scope(|scope| {
        scope.spawn(|| work_by_turns(cpu, &stop));
        let words = ["record", "--quiet", "--cpus", &number, "--duration", "8s", "-o", path(&bundle)];
        let mut running = Running::start(becalm(&words));
        running.wait_for_start(&bundle);
        let idle = idled(cpu);
        // The loop alone: what collects and stores would be throttled as well, and counted.
        let measuring = thread_named(running.pid(), &format!("becalm/{cpu}"));
        let taken = measuring.and_then(|thread| group.take_thread(thread));
        let ended = running.end();
        stop.store(true, Ordering::Relaxed);
        ended.expect(0, &[]);
        (taken.map(|()| group.throttled()), idled(cpu) - idle)
    });
    let Some((times, time)) = kernel else { return skip("no thread can be moved into a group alone") };
    let doc = document(&bundle);
    assert_eq!(doc["rung"], "tracepoints", "{doc:#}");
    let bundle = Bundle::open(&bundle).unwrap();
    let mut seen = Vec::new();
    for batch in bundle.activities(&bundle.nodes()[0].node).unwrap() {
        let batch = batch.unwrap();
        let rows = (0..batch.len()).filter(|row| batch.kind(*row) == Kind::Throttling);
        seen.extend(rows.map(|row| batch.self_times()[row]));
    }
    let total: i64 = seen.iter().sum();
    eprintln!("kernel: {times} x, {time:?}; becalm: {} x, {total} ns; CPU {cpu} idled {idle}", seen.len());
    assert!(times > 40, "the quota took hold {times} times");
    // Never more than the kernel counts. Where a program uses all that the quota leaves, the CPU does not idle, and the trace does not show it.
    let ratio = total as f64 / time.as_nanos() as f64;
    assert!(seen.len() as u64 <= times + 2 && ratio < 1.05, "{} absences of {total} ns: {ratio:.3}", seen.len());
    // The other thread leaves half of the CPU idle; a busy machine uses that up.
    if idle.as_secs_f64() > 0.4 * time.as_secs_f64() {
        assert!(seen.len() as u64 + 2 >= times, "{} absences, and the kernel counts {times}", seen.len());
        assert!(ratio > 0.95, "{total} ns, and the kernel counts {time:?}: {ratio:.3}");
    } else {
        eprintln!("other programs kept CPU {cpu} busy");
    }
}
