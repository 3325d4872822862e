//! What an injected detour costs beyond its own loop, on one CPU; the module `kinds` has that of many.
//!
//! A thread that is interrupted loses the CPU from the timer's interrupt on, some microseconds before the injecting thread
//! has read its first time, and gets it back some microseconds after that thread has read its last. Both are measured with
//! trial detours of no length on the CPU itself: a second thread there reads the counter as fast as it can, as the victim.
//! It does so for three tenths of a second, in which nobody below it gets the CPU; and again where too few of the trials were
//! seen, as somebody above it, or another guest of the same host, had the CPU: for as long as some are seen, within limits.
//!
//! The trials come as often as the detours will, within limits: whether the kernel has to set the CPU's timer again when the
//! injecting thread goes to sleep depends on whether its next turn comes before the next tick, and on a virtual machine
//! that takes some microseconds. Where both happen, the mean of the cost is nearest to each.

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

/// Room for the victim's long steps: on a virtual machine the hypervisor makes thousands a second.
const STEPS_WORDS: usize = 1 << 16;
/// The victim's steps are long from this on; where reading the counter itself takes that long, as it does in an emulator, from three
/// of its own steps on. A trial is longer than that: it holds three readings and two switches to another thread.
const LONG: Nanos = Nanos::from_micros(1);
const LONG_STEPS: u64 = 3;
/// How long trials are made, and how often this is tried: seldom where none is seen, as whoever has the CPU then keeps it.
const TRIALS_NS: u64 = 300_000_000;
const ATTEMPTS: usize = 10;
const ATTEMPTS_IN_VAIN: usize = 2;
/// How far apart trials are, at least and at most.
const APART_NS: RangeInclusive<u64> = 500_000..=5_000_000;
/// Fewer trials than this say too little about the highest twentieth of them.
const ENOUGH: usize = 30;
/// The victim had the CPU until a trial was due if it lost it no earlier than this. A timer may interrupt it some microseconds
/// before the kernel's clock says so: the clock is adjusted, the timer is not.
const EARLY: Nanos = Nanos::from_micros(10);

/// What one detour costs on a CPU, beyond its own loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Toll {
    /// From the instant at which the injecting thread is due to wake to when whoever runs there loses the CPU.
    pub lag: Nanos,
    /// From then to the first reading of the injecting thread.
    pub entry: Nanos,
    /// From its last reading to when the other has the CPU again.
    pub exit: Nanos,
    /// The shortest detour that can be made as a rule: nineteen of twenty ways in and out take no longer than this together.
    pub shortest: Nanos,
    /// The limits between which nine of ten ways in are.
    pub entries: EntryTimes,
}

/// Limits of the time that a way in takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntryTimes {
    /// The lower limit.
    pub shortest: Nanos,
    /// The upper limit.
    pub longest: Nanos,
}

/// What a detour of no length cost: the time that the victim lost before it and after it, and how late it was.
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
            // One below zero is a timer ahead of the clock.
            lag: usual(&lags).max(Nanos::ZERO),
            entry: usual(&entries),
            exit: usual(&exits),
            shortest: quantile(&sorted(|trial| trial.entry + trial.exit), 95),
            entries: EntryTimes { shortest: quantile(&entries, 5), longest: quantile(&entries, 95) },
        }
    }
}

/// The lowest value that this many percent of all values do not exceed; zero if there are no values.
fn quantile(sorted: &[Nanos], percent: usize) -> Nanos {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(Nanos::ZERO)
}

/// The mean without the highest fifth: other interrupts, and others who run where the victim could not be put above them,
/// are in some of its steps.
fn usual(sorted: &[Nanos]) -> Nanos {
    let kept = &sorted[..sorted.len() - sorted.len() / 5];
    let sum: i64 = kept.iter().map(|value| value.get()).sum();
    Nanos::new(sum / kept.len().max(1) as i64)
}

/// How far apart trial detours are for noise of this mean interval, in nanoseconds.
pub(crate) fn trials_apart(interval: Nanos) -> u64 {
    u64::try_from(interval.get()).unwrap_or(0).clamp(*APART_NS.start(), *APART_NS.end())
}

/// Measures what a detour costs by trial detours for detours whose mean interval is `interval`: within about three tenths of a
/// second as a rule, and three seconds at most. Fails if the CPU cannot be had or the class is refused, or too few of the trial detours are
/// seen.
pub fn measure<C: Counter>(cpu: CpuId, policy: Policy, rate: TickRate, interval: Nanos) -> Result<Toll, InjectError> {
    let apart = trials_apart(interval);
    let steps = LockedWords::new(STEPS_WORDS).map_err(|cause| InjectError::Log { entries: STEPS_WORDS / 2, cause })?;
    let rounds = (TRIALS_NS / apart) as usize;
    let (trials, attempts) = seen_enough(|| attempted::<C>(cpu, policy, rate, apart, &steps))?;
    if trials.len() >= ENOUGH {
        Ok(Toll::from_trials(&trials))
    } else {
        Err(InjectError::Toll { cpu, seen: trials.len(), rounds: attempts * rounds, needed: ENOUGH })
    }
}

/// What attempts have seen until that is enough, and how many there were; fewer than enough where that would take too long.
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

/// Makes trial detours for three tenths of a second, and adds those that the victim has seen.
fn attempted<C: Counter>(
    cpu: CpuId,
    policy: Policy,
    rate: TickRate,
    apart: u64,
    steps: &LockedWords,
) -> Result<Vec<Trial>, InjectError> {
    let rounds = (TRIALS_NS / apart) as usize;
    let sched = |cause| InjectError::Sched { cpu, cause };
    let axis = TicksToNanos::new(Ticks::new(0), rate);
    let stop = AtomicBool::new(false);
    let long = rate.ticks_in(LONG).get();
    let mut readings = Vec::with_capacity(rounds);
    let kept = thread::scope(|scope| {
        // Keeps what is before and after each step that took longer than any of its own.
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
            // Whoever waits for this thread may do so on that very CPU, and not get it before the victim ends.
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
        // Else somebody else had the CPU, and the way in is not from the victim.
        (lag >= -EARLY).then(|| Trial { lag, entry, exit: axis.duration(Ticks::new(after - last)) })
    });
    Ok(seen.collect())
}

/// Reads the counter as fast as it can until it shall stop, and keeps what is before and after each step longer than `long`; returns how
/// many words it stored. What storing costs is part of the next step, which begins at the reading that ended the stored one: an interrupt
/// right behind another, as a trial often is in an emulator, would not be seen if the counter were read once more between the two.
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

/// How many ticks there are between two readings of the counter at least.
fn shortest_step<C: Counter>() -> u64 {
    let step = |_| {
        let before = C::read();
        C::read().wrapping_sub(before)
    };
    (0..100).map(step).min().unwrap_or(0)
}

/// Stops the victim when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The class of the victim: below the injector, and where there is room for that above everybody else, as one that shares
/// the CPU with others often is not the one who runs when a trial comes.
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

    /// What [`seen_enough`] makes of attempts of which each sees as many as is said, the last ones as many as the last one said.
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

    /// A counter whose readings are known, and the flag that it sets with the last one.
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
        // Ways in of 1 to 100 us, and of these the longest tenth with a longer way out.
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
