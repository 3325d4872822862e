//! Whether the counters of two CPUs agree.
//!
//! Two pinned threads pass a token back and forth and read the counter at each hand-over. On a common time axis, a reading taken before the token
//! left one CPU cannot be later than one taken after it arrived on the other. So each round bounds the offset between the counters from both sides,
//! and the best rounds give the narrowest bounds (the inequality of NTP, RFC 5905, without the assumption that both directions take the same time).

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use becalm_units::{CpuId, CpuList, Nanos, TickRate};

use super::counter::Counter;
use crate::sched;

/// The result of comparing the counters of several CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CrossCpu {
    /// The largest offset between a CPU and the first one that cannot be excluded, at least half a hand-over.
    pub offset: Nanos,
    /// The largest proven offset: zero if the bounds of every pair include zero.
    pub proven: Nanos,
    /// The number of CPUs compared with the first one.
    pub compared: usize,
}

/// Bounds on `other's counter - first's counter`, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bounds {
    low: i64,
    high: i64,
}

/// Compares each CPU's counter with the first one's.
///
/// A CPU that cannot be used (offline, not allowed) or does not answer within half a second is left out.
pub fn compare_cpus<C: Counter>(cpus: &CpuList, rate: TickRate) -> CrossCpu {
    let mut result = CrossCpu::default();
    let mut all = cpus.iter();
    let Some(first) = all.next() else { return result };
    let to_ns = |ticks: i64| Nanos::new((ticks as f64 * rate.tick_ns()).ceil() as i64);
    for other in all {
        if let Some(bounds) = compare_pair::<C>(first, other, 400) {
            result.compared += 1;
            result.offset = result.offset.max(to_ns(bounds.low.abs().max(bounds.high.abs())));
            let proven = bounds.low.max(-bounds.high).max(0);
            result.proven = result.proven.max(to_ns(proven));
        }
    }
    result
}

/// The turn is even for the first CPU and odd for the other; it also counts the rounds.
fn compare_pair<C: Counter>(first: CpuId, other: CpuId, rounds: u64) -> Option<Bounds> {
    let turn = AtomicU64::new(0);
    let stamp = AtomicU64::new(0);
    let ready = AtomicU64::new(0);
    let give_up = Instant::now() + Duration::from_millis(500);
    // Checks the clock only now and then; yields, because both threads may share their CPUs with others.
    let wait = |value: &AtomicU64, wanted: u64| -> bool {
        let mut spins = 0_u32;
        while value.load(Ordering::Acquire) < wanted {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(4096) {
                if Instant::now() > give_up {
                    return false;
                }
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    };
    // Each side keeps the largest (sent - received) it saw: the other's reading before sending minus the own after.
    let play = |cpu: CpuId, mine: u64| -> Option<i64> {
        sched::pin_current_thread(cpu).ok()?;
        ready.fetch_add(1, Ordering::AcqRel);
        if !wait(&ready, 2) {
            return None;
        }
        let mut bound = i64::MIN;
        for round in 0..rounds {
            let turn_of_mine = 2 * round + mine;
            if !wait(&turn, turn_of_mine) {
                return None;
            }
            if turn_of_mine > 0 {
                let received = C::read_ordered();
                let sent = stamp.load(Ordering::Acquire);
                bound = bound.max(sent.wrapping_sub(received) as i64);
            }
            stamp.store(C::read_ordered(), Ordering::Release);
            turn.store(turn_of_mine + 1, Ordering::Release);
        }
        Some(bound)
    };
    let (at_first, at_other) = std::thread::scope(|scope| {
        // Without a partner, each gives up after a while.
        let a = Builder::new().spawn_scoped(scope, || play(first, 0)).ok()?;
        let b = Builder::new().spawn_scoped(scope, || play(other, 1)).ok()?;
        Some((a.join().ok()??, b.join().ok()??))
    })?;
    // At the first: other(sent) - first(received) <= offset. At the other: first(sent) - other(received) <= -offset.
    Some(Bounds { low: at_first, high: -at_other })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonotonicRaw;

    #[test]
    fn the_kernels_clock_agrees_with_itself_on_all_cpus() {
        let cpus = sched::allowed_cpus().unwrap();
        let result = compare_cpus::<MonotonicRaw>(&cpus, TickRate::from_hz(1e9));
        assert_eq!(result.proven, Nanos::ZERO);
    }

    #[test]
    fn a_shifted_counter_is_found_out() {
        // The second CPU's counter is a second ahead.
        struct Shifted;
        impl Counter for Shifted {
            const NAME: &'static str = "shifted";
            fn read() -> u64 {
                let ahead = if sched::current_cpu() == Some(CpuId::new(0)) { 0 } else { 1_000_000_000 };
                MonotonicRaw::read() + ahead
            }
        }
        let cpus = sched::allowed_cpus().unwrap();
        let compare = || compare_cpus::<Shifted>(&cpus, TickRate::from_hz(1e9));
        if cpus.len() < 2 || !cpus.contains(CpuId::new(0)) {
            // Only CPU 0's counter differs, so among others nothing may be proven.
            assert_eq!(compare().proven, Nanos::ZERO);
            return;
        }
        // A comparison gives up after half a second; a busy machine may not have run both sides by then.
        let result = (0..20).map(|_| compare()).find(|result| result.compared >= 1);
        let result = result.expect("two CPUs run at the same time once in ten seconds");
        assert!(result.proven > Nanos::from_millis(999), "{result:?}");
        assert!(result.offset < Nanos::from_millis(1100), "{result:?}");
    }
}
