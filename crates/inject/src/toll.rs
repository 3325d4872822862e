//! The cost of an injected detour beyond its own loop, on one CPU; the module `kinds` handles many.
//!
//! An interrupted thread loses the CPU from the timer interrupt on, some microseconds before the injecting thread takes its first reading, and gets
//! it back some microseconds after that thread's last reading. Trial detours of no length measure both on the CPU itself: a second thread, the
//! victim, reads the counter there as fast as it can. It runs for three tenths of a second, during which no thread below it gets the CPU. If too few
//! trials are seen, because a thread above it or another guest of the same host had the CPU, the trials are repeated, as long as some are seen and up
//! to a limit.
//!
//! Trials are as frequent as the detours will be, within limits. When the injecting thread goes to sleep, the kernel must reprogram the CPU's timer
//! only if its next turn is before the next tick; on a virtual machine that takes some microseconds. If both cases occur, the mean cost is closest to
//! each.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use becalm_linux::alarm::{Alarm, monotonic_ns, set_timer_slack};
use becalm_linux::clock::Counter;
use becalm_linux::memory::LockedWords;
use becalm_linux::placed::Thread;
use becalm_linux::sched::Policy;
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use crate::InjectError;

/// Room for the victim's long steps: on a virtual machine, the hypervisor causes thousands per second.
const STEPS_WORDS: usize = 1 << 16;
/// A victim's step is long from this on; if reading the counter itself takes that long, as in an emulator, from three of its own steps on. A trial is
/// longer: it contains three readings and two thread switches.
const LONG: Nanos = Nanos::from_micros(1);
const LONG_STEPS: u64 = 3;
/// How long to make trials, and the maximum number of attempts: fewer if none is seen, because the CPU's holder then keeps it.
const TRIALS_NS: u64 = 300_000_000;
const ATTEMPTS: usize = 10;
const ATTEMPTS_IN_VAIN: usize = 2;
/// The minimum and maximum time between trials.
const APART_NS: RangeInclusive<u64> = 500_000..=5_000_000;
/// Fewer trials tell too little about the highest twentieth of them.
const ENOUGH: usize = 30;
/// The victim had the CPU until a trial was due if it lost it at most this much earlier. A timer may fire some microseconds before the kernel's clock
/// says so: the kernel adjusts the clock, but not the timer.
const EARLY: Nanos = Nanos::from_micros(10);

/// The cost of one detour on a CPU, beyond its own loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Toll {
    /// The time from when the injecting thread is due to wake until the running thread loses the CPU.
    pub lag: Nanos,
    /// The time from then to the first reading of the injecting thread.
    pub entry: Nanos,
    /// The time from its last reading until the other thread has the CPU again.
    pub exit: Nanos,
    /// The shortest detour that can usually be made: the 95th percentile of entry and exit together.
    pub shortest: Nanos,
    /// The limits that contain nine of ten entries.
    pub entries: EntryTimes,
}

/// Limits of the time that an entry takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntryTimes {
    /// The lower limit.
    pub shortest: Nanos,
    /// The upper limit.
    pub longest: Nanos,
}

/// The cost of a detour of no length: the time that the victim lost before and after it, and how late it was.
#[derive(Clone, Copy, Debug)]
struct Trial {
    lag: Nanos,
    entry: Nanos,
    exit: Nanos,
}

impl Toll {
    fn from_trials(trials: &[Trial]) -> Self {
        let sorted = |value: fn(&Trial) -> Nanos| {
            let mut values: Vec<Nanos> = trials.iter().map(value).collect();
            values.sort_unstable();
            values
        };
        let (lags, entries, exits) =
            (sorted(|trial| trial.lag), sorted(|trial| trial.entry), sorted(|trial| trial.exit));
        Self {
            // Below zero if the timer is ahead of the clock.
            lag: usual(&lags).max(Nanos::ZERO),
            entry: usual(&entries),
            exit: usual(&exits),
            shortest: quantile(&sorted(|trial| trial.entry + trial.exit), 95),
            entries: EntryTimes { shortest: quantile(&entries, 5), longest: quantile(&entries, 95) },
        }
    }
}

/// The lowest value that this percentage of all values does not exceed; zero without values.
fn quantile(sorted: &[Nanos], percent: usize) -> Nanos {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(Nanos::ZERO)
}

/// The mean without the highest fifth, because some steps include other interrupts, and other threads if the victim could not be put above them.
fn usual(sorted: &[Nanos]) -> Nanos {
    let kept = &sorted[..sorted.len() - sorted.len() / 5];
    let sum: i64 = kept.iter().map(|value| value.get()).sum();
    Nanos::new(sum / kept.len().max(1) as i64)
}

/// The time between trial detours for noise of this mean interval, in nanoseconds.
pub(crate) fn trials_apart(interval: Nanos) -> u64 {
    u64::try_from(interval.get()).unwrap_or(0).clamp(*APART_NS.start(), *APART_NS.end())
}

/// Measures the cost of a detour with trials, for detours with the mean interval `interval`. Takes about three tenths of a second, at most three
/// seconds. Fails if the CPU cannot be used, the class is refused, or too few trials are seen.
pub fn measure<C: Counter>(cpu: CpuId, policy: Policy, rate: TickRate, interval: Nanos) -> Result<Toll, InjectError> {
    let apart = trials_apart(interval);
    let steps = LockedWords::new(STEPS_WORDS).map_err(|cause| InjectError::Log(STEPS_WORDS / 2, cause))?;
    let rounds = (TRIALS_NS / apart) as usize;
    let (trials, attempts) = seen_enough(|| attempted::<C>(cpu, policy, rate, apart, &steps))?;
    if trials.len() >= ENOUGH {
        Ok(Toll::from_trials(&trials))
    } else {
        Err(InjectError::Toll { cpu, seen: trials.len(), rounds: attempts * rounds, needed: ENOUGH })
    }
}

/// Repeats attempts until enough trials are seen, or it would take too long. Returns the trials and the number of attempts.
fn seen_enough<T, E>(mut attempt: impl FnMut() -> Result<Vec<T>, E>) -> Result<(Vec<T>, usize), E> {
    let (mut seen, mut attempts, mut in_vain) = (Vec::new(), 0, 0);
    while seen.len() < ENOUGH && attempts < ATTEMPTS && in_vain < ATTEMPTS_IN_VAIN {
        let more = attempt()?;
        in_vain = if more.is_empty() { in_vain + 1 } else { 0 };
        attempts += 1;
        seen.extend(more);
    }
    Ok((seen, attempts))
}

/// Makes trial detours for three tenths of a second, and returns those that the victim saw.
fn attempted<C: Counter>(
    cpu: CpuId,
    policy: Policy,
    rate: TickRate,
    apart: u64,
    steps: &LockedWords,
) -> Result<Vec<Trial>, InjectError> {
    let rounds = (TRIALS_NS / apart) as usize;
    let sched = |cause| InjectError::Sched(cpu, cause);
    let axis = TicksToNanos::new(Ticks::new(0), rate);
    let stop = AtomicBool::new(false);
    let long = rate.ticks_in(LONG).get();
    let mut readings = Vec::with_capacity(rounds);
    let kept = thread::scope(|scope| {
        // Records the readings before and after each step that took longer than any of the victim's own.
        let victim = Thread { name: "becalm-victim".to_owned(), cpu, policy: Some(victim_policy(policy)) };
        let victim = victim.spawn_scoped(scope, |settled| -> Result<usize, InjectError> {
            settled.map_err(sched)?;
            let long_step = long.max(LONG_STEPS * shortest_step::<C>());
            Ok(keep_long::<C>(long_step, steps, &stop))
        });
        let victim = victim.map_err(InjectError::Thread)?;
        let end = Ends(&stop);
        let injector = Thread { name: "becalm-inject".to_owned(), cpu, policy: Some(policy) };
        let injector = injector.spawn_scoped(scope, |settled| -> Result<(), InjectError> {
            // A thread that waits for this one on the same CPU gets it only after the victim ends.
            let _end = end;
            settled.map_err(sched)?;
            set_timer_slack(1);
            let alarm = Alarm::new();
            let mut at = monotonic_ns() + 2 * apart;
            for _ in 0..rounds {
                alarm.sleep_until(at);
                let first = C::read();
                let woken = monotonic_ns();
                let last = C::read();
                readings.push((first, last, woken.saturating_sub(at)));
                at = (at + apart).max(woken + apart / 2);
            }
            Ok(())
        });
        let injected = injector.map_err(InjectError::Thread)?.join();
        let kept = victim.join();
        flatten(injected)?;
        flatten(kept)
    })?;

    let steps: Vec<(u64, u64)> = steps[..kept]
        .chunks_exact(2)
        .map(|step| (step[0].load(Ordering::Relaxed), step[1].load(Ordering::Relaxed)))
        .collect();
    let seen = readings.into_iter().filter_map(|(first, last, late)| {
        let index = steps.partition_point(|(_, after)| *after < last);
        let (before, after) = steps.get(index).filter(|(before, _)| *before <= first)?;
        let entry = axis.duration(Ticks::new(first - before));
        let lag = Nanos::new(late as i64) - entry;
        // Otherwise another thread had the CPU, and the entry is not from the victim.
        (lag >= -EARLY).then(|| Trial { lag, entry, exit: axis.duration(Ticks::new(after - last)) })
    });
    Ok(seen.collect())
}

/// Reads the counter as fast as it can until `stop`, and records the readings before and after each step longer than `long`. Returns the number of
/// words stored. Storing counts for the next step, which starts at the reading that ended the stored one. Another reading in between would hide an
/// interrupt right after another, as trials often are in an emulator.
fn keep_long<C: Counter>(long: u64, steps: &[AtomicU64], stop: &AtomicBool) -> usize {
    let (mut kept, mut last) = (0, C::read());
    while !stop.load(Ordering::Relaxed) {
        let now = C::read();
        if now.wrapping_sub(last) > long && kept + 2 <= steps.len() {
            steps[kept].store(last, Ordering::Relaxed);
            steps[kept + 1].store(now, Ordering::Relaxed);
            kept += 2;
        }
        last = now;
    }
    kept
}

/// The minimum number of ticks between two readings of the counter.
fn shortest_step<C: Counter>() -> u64 {
    let step = |_| {
        let before = C::read();
        C::read().wrapping_sub(before)
    };
    (0..100).map(step).min().unwrap_or(0)
}

/// Stops the victim on drop.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The class of the victim: right below the injector and, if possible, above all other threads, because a victim that shares the CPU is often not
/// running when a trial comes.
fn victim_policy(policy: Policy) -> Policy {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) if priority > 1 => Policy::Fifo(priority - 1),
        _ => Policy::Other,
    }
}

fn flatten<T>(joined: thread::Result<Result<T, InjectError>>) -> Result<T, InjectError> {
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// The result of [`seen_enough`] if attempts see these numbers of trials; the last number repeats.
    fn attempts_after(seen: &[usize]) -> (usize, usize) {
        let mut left = seen.iter();
        let mut now = 0;
        let (seen, attempts) = seen_enough(|| -> Result<Vec<()>, ()> {
            now = left.next().copied().unwrap_or(now);
            Ok(vec![(); now])
        })
        .unwrap();
        (seen.len(), attempts)
    }

    /// A counter with known readings, and the flag that it sets with the last one.
    struct KnownCounter;

    static ENDED: AtomicBool = AtomicBool::new(false);

    impl Counter for KnownCounter {
        const NAME: &'static str = "known";

        fn read() -> u64 {
            const READINGS: [u64; 7] = [100, 101, 150, 190, 191, 192, 240];
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let next = NEXT.fetch_add(1, Ordering::Relaxed);
            ENDED.store(next + 1 >= READINGS.len(), Ordering::Relaxed);
            READINGS[next]
        }
    }

    #[test]
    fn one_interrupt_right_behind_another_is_seen() {
        let steps: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
        let kept = keep_long::<KnownCounter>(10, &steps, &ENDED);
        let steps: Vec<u64> = steps.into_iter().map(AtomicU64::into_inner).collect();
        assert_eq!(steps[..kept], [101, 150, 150, 190, 192, 240]);
    }

    #[test]
    fn attempts_go_on_while_something_is_seen() {
        assert_eq!(attempts_after(&[60]), (60, 1));
        // An emulator whose host has no time for it: two attempts were too few for 30, and four are enough.
        assert_eq!(attempts_after(&[9, 10]), (39, 4));
        assert_eq!(attempts_after(&[5, 0, 6, 0, 30]), (41, 5), "moments in which nothing is seen pass");
        assert_eq!(attempts_after(&[0]), (0, ATTEMPTS_IN_VAIN), "a thread that keeps the CPU is not waited for");
        assert_eq!(attempts_after(&[7, 0, 0, 30]), (7, 3));
        assert_eq!(attempts_after(&[2]), (2 * ATTEMPTS, ATTEMPTS), "this takes too long");
        assert_eq!(seen_enough(|| Err::<Vec<()>, _>("refused")), Err("refused"));
    }

    #[test]
    fn the_shortest_detour_has_room_for_nineteen_of_twenty() {
        // Entries of 1 to 100 us; the longest tenth also has a longer exit.
        let trials: Vec<Trial> = (1..=100)
            .rev()
            .map(|us| Trial {
                lag: Nanos::new(200 - us),
                entry: Nanos::from_micros(us),
                exit: Nanos::from_micros(if us > 90 { 50 } else { 2 }),
            })
            .collect();
        let toll = Toll::from_trials(&trials);
        assert_eq!(toll.shortest, Nanos::from_micros(95 + 50));
        assert_eq!(toll.entries, EntryTimes { shortest: Nanos::from_micros(5), longest: Nanos::from_micros(95) });
        assert_eq!((toll.entry, toll.exit), (Nanos::new(40_500), Nanos::from_micros(2)));
        assert_eq!(toll.lag, Nanos::new((100 + 179) / 2));
        assert_eq!(Toll::from_trials(&[]), Toll::default());
    }
}
