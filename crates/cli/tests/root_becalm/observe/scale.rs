//! Many threads.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::planted::Recording;
use super::{number, threads};
use crate::robust::alone;

#[test]
fn a_thousand_threads_with_25_000_wake_ups_per_second_are_observed_whole() {
    const THREADS: usize = 1_000;
    const RECORDED: Duration = Duration::from_secs(5);
    /// The time between two wake-ups of a thread.
    const NAP: Duration = Duration::from_millis(39);
    let Some(_alone) = alone() else { return };
    let stop = AtomicBool::new(false);
    let (doc, worked, peak) = thread::scope(|scope| {
        for number in 0..THREADS {
            let thread = thread::Builder::new().name("ob-many".to_owned()).stack_size(64 << 10);
            let stop = &stop;
            let nap = move || {
                // Spread over the first nap.
                thread::sleep(NAP * number as u32 / THREADS as u32);
                while !stop.load(Ordering::Relaxed) {
                    thread::sleep(NAP);
                }
            };
            thread.spawn_scoped(scope, nap).expect("a thread can be started");
        }
        let mut recording = Recording::start(&["-q", "--comm", "ob-many"]);
        thread::sleep(RECORDED);
        recording.stop();
        let since = Instant::now();
        stop.store(true, Ordering::Relaxed);
        let status = format!("/proc/{}/status", recording.pid());
        let mut peak = 0;
        // The peak of a process that has ended is gone.
        while let Some(kib) = fs::read_to_string(&status).ok().as_deref().and_then(peak_of) {
            peak = kib;
            thread::sleep(Duration::from_millis(20));
        }
        let worked = since.elapsed();
        (recording.end().0, worked, peak)
    });
    let found: Vec<_> = threads(&doc).iter().filter(|thread| thread["name"] == "ob-many").collect();
    assert_eq!((found.len(), number(&doc, "lost_events")), (THREADS, 0));
    let switches: i64 = found.iter().map(|thread| number(thread, "switches")).sum();
    let per_second = switches as f64 / RECORDED.as_secs_f64();
    let events = number(&doc, "events");
    eprintln!("{per_second:.0} wake-ups per second, {events} events worked out in {worked:?}, {peak} KiB of memory");
    // A busy machine wakes them late.
    assert!(per_second > 10_000.0, "{per_second} wake-ups per second");
    assert!(worked < 4 * RECORDED, "it took {worked:?} to work out {RECORDED:?}");
    assert!(peak < 400 << 10, "{peak} KiB of memory");
}

/// The peak memory in the text of a process's `status`, in KiB.
fn peak_of(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}
