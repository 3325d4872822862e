//! What an injected detour costs beyond its own loop, on one CPU.
//!
//! A thread that is interrupted loses the CPU from the timer's interrupt on, some microseconds before the injecting thread
//! has read its first time, and gets it back some microseconds after that thread has read its last. Both are measured with
//! trial detours of no length on the CPU itself: a second thread there reads the counter as fast as it can, as the victim.
//! It does so for a tenth of a second, in which nobody below it gets the CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use becalm_linux::alarm::{Alarm, monotonic_ns, set_timer_slack};
use becalm_linux::clock::Counter;
use becalm_linux::memory::LockedWords;
use becalm_linux::sched::{Policy, pin_current_thread, set_policy};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use crate::InjectError;

/// Trial detours, and how far apart they are.
const ROUNDS: usize = 200;
const APART_NS: u64 = 500_000;
/// Of which so many have to be seen.
const ENOUGH: usize = ROUNDS / 2;

/// The cost of one detour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Toll {
    /// From when the thread is to be woken to when whoever runs there loses the CPU.
    pub lag: Nanos,
    /// From then to the first reading of the injecting thread.
    pub entry: Nanos,
    /// From its last reading to when the other has the CPU again.
    pub exit: Nanos,
}

impl Toll {
    /// The shortest detour.
    #[must_use]
    pub fn shortest(&self) -> Nanos {
        self.entry + self.exit
    }
}

/// Measures it by trial detours, within a tenth of a second.
///
/// # Errors
/// If the CPU cannot be had or the class is refused, or the trial detours are not seen.
pub fn measure<C: Counter>(cpu: CpuId, policy: Policy, rate: TickRate) -> Result<Toll, InjectError> {
    let sched = |source| InjectError::Sched { cpu, source };
    let axis = TicksToNanos::new(Ticks::new(0), rate);
    // Before and after each step of the victim that took longer than any of its own.
    let seen =
        Arc::new(LockedWords::new(4 * ROUNDS * 8).map_err(|source| InjectError::Log {
            entries: ROUNDS,
            source: std::io::Error::other(source.to_string()),
        })?);
    let stop = AtomicBool::new(false);
    let long_step = rate.ticks_in(Nanos::from_micros(1)).get();
    let mut trials = Vec::with_capacity(ROUNDS);
    let steps = thread::scope(|scope| {
        let victim = scope.spawn(|| -> Result<usize, InjectError> {
            pin_current_thread(cpu).and_then(|()| set_policy(below(policy))).map_err(sched)?;
            let (mut kept, mut last) = (0, C::read());
            while !stop.load(Ordering::Relaxed) {
                let now = C::read();
                if now.wrapping_sub(last) > long_step && kept + 2 <= seen.len() {
                    seen[kept].store(last, Ordering::Relaxed);
                    seen[kept + 1].store(now, Ordering::Relaxed);
                    kept += 2;
                    last = C::read();
                } else {
                    last = now;
                }
            }
            Ok(kept)
        });
        let injector = scope.spawn(|| -> Result<(), InjectError> {
            // From here: whoever waits for this thread may do so on that very CPU, and not get it before the victim ends.
            let _end = Ends(&stop);
            pin_current_thread(cpu).map_err(sched)?;
            set_policy(policy).map_err(sched)?;
            set_timer_slack(1);
            let alarm = Alarm::new();
            let mut at = monotonic_ns() + 2 * APART_NS;
            for _ in 0..ROUNDS {
                alarm.sleep_until(at);
                let first = C::read();
                let woken = monotonic_ns();
                let last = C::read();
                trials.push((first, last, woken.saturating_sub(at)));
                at = (at + APART_NS).max(woken + APART_NS / 2);
            }
            Ok(())
        });
        let injected = injector.join();
        let steps = victim.join();
        flatten(injected)?;
        flatten(steps)
    })?;

    let steps: Vec<(u64, u64)> = seen[..steps]
        .chunks_exact(2)
        .map(|step| (step[0].load(Ordering::Relaxed), step[1].load(Ordering::Relaxed)))
        .collect();
    let (mut lags, mut entries, mut exits) = (Vec::new(), Vec::new(), Vec::new());
    for (first, last, late) in trials {
        let index = steps.partition_point(|(_, after)| *after < last);
        if let Some((before, after)) = steps.get(index).filter(|(before, _)| *before <= first) {
            let entry = axis.duration(Ticks::new(first - before));
            lags.push(Nanos::new(late as i64) - entry);
            entries.push(entry);
            exits.push(axis.duration(Ticks::new(after - last)));
        }
    }
    if entries.len() < ENOUGH {
        return Err(InjectError::Toll { cpu, seen: entries.len(), rounds: ROUNDS });
    }
    // A lag below zero would be a timer ahead of its time, which is the error of the readings.
    Ok(Toll { lag: early(lags).max(Nanos::ZERO), entry: early(entries), exit: early(exits) })
}

/// Says that it is over when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the victim runs as: below the injector, and where there is room for that above everybody else, as one that shares
/// the CPU with others often is not the one who runs when a trial comes.
fn below(policy: Policy) -> Policy {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) if priority > 1 => Policy::Fifo(priority - 1),
        _ => Policy::Other,
    }
}

fn flatten<T>(joined: thread::Result<Result<T, InjectError>>) -> Result<T, InjectError> {
    joined.unwrap_or_else(|_| Err(InjectError::Thread(std::io::Error::other("it failed"))))
}

/// The lowest fifth's end. Other interrupts, and others who run where the victim could not be put above them, are in some
/// of its steps; where there are none, this is near the median.
fn early(mut values: Vec<Nanos>) -> Nanos {
    let fifth = values.len() / 5;
    *values.select_nth_unstable(fifth).1
}
