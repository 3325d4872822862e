//! Preemption: how long a thread loses its CPU to a competitor in its own class.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use becalm_linux::clock::Counter;
use becalm_linux::placed::Thread;
use becalm_linux::sched::{Policy, SchedError};
use becalm_units::Nanos;

use crate::documents::{Probe, ProbeSamples, into_rounds};
use crate::measure::bench::{Bench, no_thread};

/// The number of preemptions per process.
const WANTED: usize = 50;
/// The longest wait for them.
const LIMIT: Nanos = Nanos::from_secs(1);
/// Shorter steps are ignored: no thread is switched out and back in less time.
const SHORTEST: Nanos = Nanos::from_micros(1);

/// The detours of a loop that shares its CPU with a competitor that never sleeps.
pub(super) fn competitor_probe<C: Counter>(bench: &Bench<C>) -> Probe {
    let class = bench.site.policy;
    let outcome = match class {
        Policy::Fifo(_) => {
            Err("in the class fifo a thread runs until it sleeps or yields, and no equal preempts it".to_owned())
        }
        _ => measure(bench),
    };
    Probe::new(
        "preemption",
        "preemption by a competitor",
        format!(
            "a second thread of class {class} that never sleeps on the same CPU: steps of the loop in which the competitor \
             made progress"
        ),
        outcome,
    )
}

fn measure<C: Counter>(bench: &Bench<C>) -> Result<ProbeSamples, String> {
    let (progress, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (cpu, policy) = (bench.site.cpu, bench.site.policy);
    let competitor = |settled: Result<(), SchedError>| {
        while settled.is_ok() && !stop.load(Ordering::Relaxed) {
            progress.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut away = vec![1_u64; WANTED];
    let watch = bench.watch();
    let found = thread::scope(|scope| {
        let rival = Thread { name: "becalm/rival".to_owned(), cpu, policy: policy.unless_other() };
        rival.spawn_scoped(scope, competitor).map_err(no_thread)?;
        let found =
            lost::<C>(&mut away, bench.rate.ticks_in(SHORTEST).get(), bench.rate.ticks_in(LIMIT).get(), &progress);
        stop.store(true, Ordering::Relaxed);
        Ok::<_, String>(found)
    })?;
    if found == 0 {
        return Err(format!("the competitor did not run within {LIMIT}"));
    }
    Ok(bench.finish(watch, 1, &into_rounds(&away[..found])))
}

/// Keeps the steps during which the other thread made progress, until the buffer is full or time is up.
#[inline(never)]
fn lost<C: Counter>(away: &mut [u64], shortest: u64, limit: u64, progress: &AtomicU64) -> usize {
    let start = C::read();
    let (mut previous, mut found) = (start, 0);
    let mut known = progress.load(Ordering::Relaxed);
    while found < away.len() {
        let now = C::read();
        let step = now.saturating_sub(previous);
        if step >= shortest {
            let seen = progress.load(Ordering::Relaxed);
            if seen != known {
                away[found] = step;
                found += 1;
                known = seen;
            }
            if now.saturating_sub(start) > limit {
                break;
            }
        } else if now.saturating_sub(start) > limit {
            break;
        }
        previous = now;
    }
    found
}
