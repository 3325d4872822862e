//! `gremlin`: a real-time thread that burns a fixed time at a fixed interval.

use std::sync::atomic::Ordering;
use std::time::Duration;

use becalm_linux::sched::{Policy, set_policy};
use becalm_units::{CpuId, Nanos, TickRate, Ticks};

use super::{Maker, burn_until, now};

/// One burst: the counter before and after.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    pub start: Ticks,
    pub end: Ticks,
}

/// How long a burst burns.
pub const BURST: Nanos = Nanos::from_millis(2);
/// The time from the start of one burst to the start of the next.
pub const INTERVAL: Duration = Duration::from_millis(137);

/// Starts the thread, SCHED_FIFO 50. Bursts follow each other by [`INTERVAL`] from start to start; what it does around
/// a burst (waking, logging, sleeping) takes a few microseconds that belong to it too, but are not in the log.
pub fn start(cpu: CpuId, rate: TickRate) -> Maker<Vec<Burst>> {
    let burst = rate.ticks_in(BURST).get();
    let interval = rate.ticks_in(Nanos::new(INTERVAL.as_nanos() as i64)).get();
    Maker::start("gremlin", cpu, move |stop| {
        set_policy(Policy::Fifo(50)).expect("root can take a real-time priority");
        let mut log = Vec::with_capacity(1 << 12);
        let mut next = now().get();
        while !stop.load(Ordering::Relaxed) {
            let start = now();
            let end = burn_until(start.get() + burst);
            log.push(Burst { start, end });
            next += interval;
            let ahead = next.saturating_sub(now().get());
            std::thread::sleep(Duration::from_secs_f64(ahead as f64 / rate.hz()));
        }
        log
    })
}
