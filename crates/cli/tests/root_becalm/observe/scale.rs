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
        let process = format!("/proc/{}", recording.pid());
        let read = |file: &str| fs::read_to_string(format!("{process}/{file}")).ok();
        let began = read("stat").as_deref().and_then(cpu_time_of).expect("it runs");
        let (mut peak, mut cpu_time) = (0, began);
        // The figures of a process that has ended are gone.
        while let Some(kib) = read("status").as_deref().and_then(peak_of) {
            peak = kib;
            cpu_time = read("stat").as_deref().and_then(cpu_time_of).unwrap_or(cpu_time);
            thread::sleep(Duration::from_millis(20));
        }
        eprintln!("it took {:?}", since.elapsed());
        (recording.end().0, cpu_time - began, peak)
    });
    let found: Vec<_> = threads(&doc).iter().filter(|thread| thread["name"] == "ob-many").collect();
    assert_eq!((found.len(), number(&doc, "lost_events")), (THREADS, 0));
    let switches: i64 = found.iter().map(|thread| number(thread, "switches")).sum();
    let per_second = switches as f64 / RECORDED.as_secs_f64();
    let events = number(&doc, "events");
    eprintln!(
        "{per_second:.0} wake-ups per second, {events} events worked out in {worked:?} of processor time, {peak} KiB of memory"
    );
    // A busy machine wakes them late.
    assert!(per_second > 10_000.0, "{per_second} wake-ups per second");
    // By processor time: other programs have the CPUs as well.
    assert!(worked < 4 * RECORDED, "it took {worked:?} to work out {RECORDED:?}");
    assert!(peak < 400 << 10, "{peak} KiB of memory");
}

/// The peak memory in the text of a process's `status`, in KiB.
fn peak_of(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The processor time in the text of a process's `stat`, in ticks of 10 ms.
fn cpu_time_of(stat: &str) -> Option<Duration> {
    // Fields after the name, which may contain blanks.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}
