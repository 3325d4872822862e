//! becalm beside the kernel's own noise meter, osnoise, on the same guest: the same sources, as often.

use std::collections::BTreeMap;

use becalm_lab::{Outcome, is_timer};

use crate::guests::{tell, text};
use crate::recording::Run;

/// By which factor the rates that becalm and osnoise find one after the other may differ on a machine that has time for the
/// guest. They were 1.02 apart there.
const RATES_AGREE: f64 = 1.5;

/// How often Debian's kernels tick.
const TICK_HZ: f64 = 250.0;

/// What the kernel's noise meter found on CPU 1 of the same guest, right after becalm and under the same load.
pub struct Osnoise {
    /// How long it looked.
    seconds: f64,
    /// How often interrupts and threads came, a second.
    irq_hz: f64,
    thread_hz: f64,
    /// How often the kernel counted a timer interrupt meanwhile.
    tick_hz: f64,
    /// How often each of them came in all, by name.
    irqs: BTreeMap<String, u64>,
    threads: BTreeMap<String, u64>,
}

impl Osnoise {
    /// Reads the table of `rtla osnoise top` and the events that were recorded meanwhile.
    pub fn from_outcome(outcome: &Outcome) -> Self {
        let table = text(outcome, "rtla");
        println!("rtla osnoise top:\n{table}");
        // CPU, number of periods, runtime, noise, available, longest period, longest, and the counts of hardware, NMI, IRQ,
        // softirq and thread noise; times in microseconds.
        let row: Vec<&str> = table.lines().last().unwrap_or_default().split_whitespace().collect();
        assert!(row.len() == 12 && row[0] == "1", "not as rtla of Linux 6.1 prints it: {table}");
        let cell = |column: usize| row[column].parse::<f64>().unwrap_or_else(|_| panic!("no number: {}", row[column]));
        let seconds = cell(2) / 1e6;
        let (mut irqs, mut threads) = (BTreeMap::new(), BTreeMap::new());
        for line in text(outcome, "osnoise").lines() {
            // `irq_noise: local_timer:236 start ...` and `thread_noise: rcuc/1:27 start ...`
            for (mark, counts) in [(" irq_noise: ", &mut irqs), (" thread_noise: ", &mut threads)] {
                if let Some((_, what)) = line.split_once(mark)
                    && let Some((name, _)) = what.split_once(" start ").and_then(|(what, _)| what.rsplit_once(':'))
                {
                    *counts.entry(name.trim().to_owned()).or_insert(0) += 1;
                }
            }
        }
        // Seconds since boot before and after, and the timer interrupts between.
        let ticks = text(outcome, "ticks");
        let ticks: Vec<f64> = ticks.split(' ').map(|number| number.parse().expect("a number")).collect();
        let tick_hz = ticks[2] / (ticks[1] - ticks[0]);
        Self { seconds, irq_hz: cell(9) / seconds, thread_hz: cell(11) / seconds, tick_hz, irqs, threads }
    }

    /// What came often to one of the two, in about as much time, was seen by the other, too, under the same name.
    pub fn assert_same_sources(&self, becalm: &Run) {
        // What comes 4 times a second is missed for 5 seconds only if it is not seen.
        const OFTEN: u64 = 20;
        let merged = |kinds: &[&str]| {
            let mut counts = BTreeMap::new();
            for (source, count) in kinds.iter().flat_map(|kind| becalm.counts(kind)) {
                // osnoise names the interrupt, not its purpose.
                let name = if is_timer(source) { "local_timer" } else { source };
                *counts.entry(name.to_owned()).or_insert(0) += count;
            }
            counts
        };
        // Threads of the kernel that are bound to a CPU are one source on all CPUs to becalm: `rcuc` for `rcuc/1`.
        let mut threads = BTreeMap::new();
        for (name, count) in &self.threads {
            *threads.entry(name.split('/').next().unwrap_or_default().to_owned()).or_insert(0) += count;
        }
        for (what, osnoise, becalm) in
            [("irq", &self.irqs, merged(&["irq"])), ("thread", &threads, merged(&["kthread", "task", "workqueue"]))]
        {
            println!("{what}: osnoise {osnoise:?}, becalm {becalm:?}");
            for (one, other) in [(osnoise, &becalm), (&becalm, osnoise)] {
                let often = one.iter().filter(|&(_, &count)| count >= OFTEN);
                for (name, count) in often {
                    assert!(other.contains_key(name), "{what} {name} came {count} times to one and never to the other");
                }
            }
            assert!(osnoise.values().any(|&count| count >= OFTEN), "osnoise saw no {what}");
        }
        // Files that becalm opens and closes meanwhile, and memory that it gives back, would be freed by RCU.
        let rcu = merged(&["kthread"]).get("rcu_preempt").copied().unwrap_or(0) as f64 / becalm.seconds();
        let usual = threads.get("rcu_preempt").copied().unwrap_or(0) as f64 / self.seconds;
        assert!(
            rcu < 2.0 * usual + 5.0,
            "RCU's thread came {rcu:.1} times a second to becalm and {usual:.1} to osnoise"
        );
    }

    /// Interrupts and switches to other threads come as often to both, within [`RATES_AGREE`]. Where the emulated CPU got so
    /// little time that ticks were lost, of which the kernel tells, the rates may differ by as much more.
    pub fn assert_same_rates(&self, becalm: &Run) {
        let count =
            |kinds: &[&str]| kinds.iter().flat_map(|kind| becalm.counts(kind).into_values()).sum::<u64>() as f64;
        let seconds = becalm.seconds();
        let ticks = self.tick_hz.min(becalm.growth("interrupts/LOC") as f64 / seconds).clamp(1.0, TICK_HZ);
        let allowed = RATES_AGREE * TICK_HZ / ticks;
        for (what, osnoise, becalm) in [
            ("interrupts", self.irq_hz, count(&["irq"]) / seconds),
            ("threads", self.thread_hz, count(&["kthread", "task"]) / seconds),
        ] {
            tell(&format!(
                "realtime: {what} a second: becalm {becalm:.1}, osnoise {osnoise:.1}; a factor of {allowed:.2} may be between"
            ));
            assert!((becalm / osnoise).ln().abs() < allowed.ln(), "{what}: becalm {becalm}, osnoise {osnoise}");
        }
    }
}
