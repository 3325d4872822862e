//! Searches for clocks that run backwards from one CPU to another.
//!
//! Two pinned threads pass a turn back and forth. Each reads the clock during its turn and passes the reading on. A reading smaller than
//! the one it received is later but shows an earlier time. [`becalm_linux::clock::compare_cpus`] bounds the offset of two counters; this
//! test instead shows what a program sees that orders its readings by memory alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use becalm_linux::placed::Thread;
use becalm_linux::sched::SchedError;
use becalm_units::CpuId;

/// The result of comparing the clocks of two CPUs in turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turns {
    /// Readings compared with one from the other CPU.
    pub compared: u64,
    /// Readings that were smaller.
    pub backwards: u64,
    /// The largest difference, in the clock's unit.
    pub largest: u64,
}

impl Turns {
    /// Merges the results of two pairs of CPUs.
    pub fn and(self, other: Self) -> Self {
        Self {
            compared: self.compared + other.compared,
            backwards: self.backwards + other.backwards,
            largest: self.largest.max(other.largest),
        }
    }
}

/// Takes `rounds` turns on each of two CPUs, for at most `limit`. A CPU that cannot be used compares nothing.
pub fn turns(
    first: CpuId,
    second: CpuId,
    rounds: u64,
    limit: Duration,
    read: impl Fn() -> u64 + Copy + Send + Sync,
) -> Turns {
    let turn = AtomicU64::new(0);
    let stamp = AtomicU64::new(0);
    let give_up = Instant::now() + limit;
    let play = |settled: Result<(), SchedError>, mine: u64| -> Turns {
        let mut seen = Turns::default();
        if settled.is_err() {
            // The other one times out.
            return seen;
        }
        for round in 0..rounds {
            let wanted = 2 * round + mine;
            let mut spins = 0_u32;
            while turn.load(Ordering::Acquire) != wanted {
                spins = spins.wrapping_add(1);
                if spins.is_multiple_of(4096) {
                    if Instant::now() > give_up {
                        return seen;
                    }
                    std::thread::yield_now();
                }
            }
            let now = read();
            if wanted > 0 {
                let sent = stamp.load(Ordering::Relaxed);
                seen.compared += 1;
                if now < sent {
                    seen.backwards += 1;
                    seen.largest = seen.largest.max(sent - now);
                }
            }
            stamp.store(now, Ordering::Relaxed);
            turn.store(wanted + 1, Ordering::Release);
        }
        seen
    };
    std::thread::scope(|scope| {
        let player = |cpu| Thread { name: "becalm/turns".to_owned(), cpu, policy: None };
        let a = player(first).spawn_scoped(scope, |settled| play(settled, 0));
        let b = player(second).spawn_scoped(scope, |settled| play(settled, 1));
        // Neither thread can panic; one that did, or did not start, has compared nothing.
        let [a, b] = [a, b].map(|started| started.ok().and_then(|thread| thread.join().ok()).unwrap_or_default());
        a.and(b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::sched;

    fn pair() -> Option<(CpuId, CpuId)> {
        let cpus = sched::allowed_cpus().unwrap();
        let mut cpus = cpus.iter();
        cpus.next().zip(cpus.next())
    }

    #[test]
    fn one_count_for_all_never_runs_backwards_and_a_shifted_one_does() {
        let Some((first, second)) = pair() else { return };
        let count = AtomicU64::new(0);
        let next = || count.fetch_add(1, Ordering::Relaxed) + 1_000;
        let seen = turns(first, second, 100, Duration::from_secs(5), next);
        assert_eq!((seen.backwards, seen.compared), (0, 199));
        let shifted = || next() - if sched::current_cpu() == Some(second) { 50 } else { 0 };
        let seen = turns(first, second, 100, Duration::from_secs(5), shifted);
        // Each reading on the second CPU is the next number less fifty.
        assert_eq!((seen.backwards, seen.largest), (100, 49));
    }

    #[test]
    fn a_cpu_that_is_not_there_compares_nothing() {
        let Some((first, _)) = pair() else { return };
        let seen = turns(first, CpuId::new(900_000), 10, Duration::from_millis(50), || 1);
        assert_eq!(seen, Turns::default());
    }
}
