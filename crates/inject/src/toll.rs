//! What an injected detour costs beyond its own loop, on one CPU.
//!
//! A thread that is interrupted loses the CPU from the timer's interrupt on, some microseconds before the injecting thread
//! has read its first time, and gets it back some microseconds after that thread has read its last. Both are measured with
//! trial detours of no length on the CPU itself: a second thread there reads the counter as fast as it can, as the victim.
//! It does so for three tenths of a second, in which nobody below it gets the CPU.
//!
//! The trials come as often as the detours will, within limits: whether the kernel has to set the CPU's timer anew when the
//! injecting thread goes to sleep depends on whether its next turn comes before the next tick, and on a virtual machine
//! that takes some microseconds. Where both happen, the mean of the cost is nearest to each.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use becalm_linux::alarm::{Alarm, monotonic_ns, set_timer_slack};
use becalm_linux::clock::Counter;
use becalm_linux::memory::LockedWords;
use becalm_linux::sched::{Policy, pin_current_thread, set_policy};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use crate::InjectError;

/// Room for the victim's long steps: on a virtual machine the hypervisor makes thousands a second.
const STEPS_WORDS: usize = 1 << 16;
/// How long trials are made.
const TRIALS_NS: u64 = 300_000_000;
/// How far apart they are, at least and at most.
const APART_NS: RangeInclusive<u64> = 500_000..=5_000_000;

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

/// Measures it by trial detours, within about three tenths of a second, for detours whose mean interval is `interval`.
///
/// # Errors
/// If the CPU cannot be had or the class is refused, or the trial detours are not seen.
pub fn measure<C: Counter>(cpu: CpuId, policy: Policy, rate: TickRate, interval: Nanos) -> Result<Toll, InjectError> {
    let apart = u64::try_from(interval.get()).unwrap_or(0).clamp(*APART_NS.start(), *APART_NS.end());
    let rounds = (TRIALS_NS / apart) as usize;
    let sched = |source| InjectError::Sched { cpu, source };
    let axis = TicksToNanos::new(Ticks::new(0), rate);
    // Before and after each step of the victim that took longer than any of its own.
    let seen = Arc::new(LockedWords::new(STEPS_WORDS).map_err(|source| InjectError::Log {
        entries: STEPS_WORDS / 2,
        source: std::io::Error::other(source.to_string()),
    })?);
    let stop = AtomicBool::new(false);
    let long_step = rate.ticks_in(Nanos::from_micros(1)).get();
    let mut trials = Vec::with_capacity(rounds);
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
            let mut at = monotonic_ns() + 2 * apart;
            for _ in 0..rounds {
                alarm.sleep_until(at);
                let first = C::read();
                let woken = monotonic_ns();
                let last = C::read();
                trials.push((first, last, woken.saturating_sub(at)));
                at = (at + apart).max(woken + apart / 2);
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
    if 2 * entries.len() < rounds {
        return Err(InjectError::Toll { cpu, seen: entries.len(), rounds });
    }
    // A lag below zero would be a timer ahead of its time, which is the error of the readings.
    Ok(Toll { lag: usual(lags).max(Nanos::ZERO), entry: usual(entries), exit: usual(exits) })
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

/// The mean without the highest fifth: other interrupts, and others who run where the victim could not be put above them,
/// are in some of its steps.
fn usual(mut values: Vec<Nanos>) -> Nanos {
    let kept = values.len() - values.len() / 5;
    if kept < values.len() {
        values.select_nth_unstable(kept);
    }
    let sum: i64 = values[..kept].iter().map(|value| value.get()).sum();
    Nanos::new(sum / kept.max(1) as i64)
}
