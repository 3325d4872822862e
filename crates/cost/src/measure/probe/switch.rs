//! Switches between threads: by a pipe, by a futex, on one CPU and to another, and the interrupt that goes there.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Instant;

use becalm_linux::clock::Counter;
use becalm_linux::placed::{Thread, Waiting};
use becalm_linux::probe::{Echo, Loopback, ProbeError, futex, membarrier};
use becalm_linux::sched::{Policy, SchedError, ThreadUsage};
use becalm_units::{CpuId, Nanos, counted};

use crate::documents::{Probe, ProbeSamples, ROUNDS, SeriesDoc, into_rounds};
use crate::measure::bench::{Bench, no_thread, text};

/// Rounds through a pipe in a round of samples.
const TRIPS: usize = 200;
/// A turn of the second thread of the futex.
const MINE: u32 = 0;
const YOURS: u32 = 1;
const OVER: u32 = 2;
/// The time for the sleeper on another CPU to fall asleep.
const ASLEEP: Nanos = Nanos::from_micros(50);
/// The time limit of all wake-ups of another CPU.
const WAKES_TIME: Nanos = Nanos::from_secs(1);
/// The number of wake-ups per process.
const WAKES: usize = 250;
/// The time limit of all waits for a thread on another CPU.
const PATIENCE: Nanos = Nanos::from_secs(4);
/// The reason without a second CPU.
pub(super) const ONE_CPU: &str = "there is only one CPU that this process may use";

/// Hand-overs through a pipe on one CPU: to oneself, to a thread, to a process.
pub(super) fn pipe_probes<C: Counter>(bench: &Bench<C>) -> Vec<Probe> {
    let alone = || {
        let pipe = Loopback::open().map_err(text)?;
        trips(bench, 1, || pipe.round())
    };
    let to = |echo: Result<Echo, ProbeError>| {
        let echo = echo.map_err(text)?;
        let before = ThreadUsage::for_current_thread();
        let series = trips(bench, 2, || echo.round())?;
        let used = ThreadUsage::for_current_thread().since(before);
        let (switches, trips) = (used.voluntary_switches + used.involuntary_switches, series.series.samples);
        if switches >= trips {
            Ok(series)
        } else {
            Err(format!("the threads were switched only {switches} times in {trips} round trips"))
        }
    };
    let place = bench.site;
    vec![
        Probe::new(
            "pipe",
            "pipe: write and read a byte, no switch",
            "one byte through a pipe to oneself: the system calls that are part of the two rows below",
            alone(),
        ),
        Probe::new(
            "switch_thread",
            "context switch to a thread, by pipe",
            "half a round trip of a byte through two pipes between two threads on this CPU: write, read, switch",
            to(Echo::thread(place.cpu, place.policy)),
        ),
        Probe::new(
            "switch_process",
            "context switch to a process, by pipe",
            "the same between two processes, which also changes the address space",
            to(Echo::process()),
        ),
    ]
}

fn trips<C: Counter>(bench: &Bench<C>, batch: u32, trip: impl Fn() -> bool) -> Result<ProbeSamples, String> {
    bench.series(batch, TRIPS, |samples| {
        let mut arrived = true;
        Bench::<C>::time_each(samples, |_| arrived &= trip());
        arrived.then_some(()).ok_or_else(|| "a byte did not come back".to_owned())
    })
}

/// A second thread that runs on its CPU and sleeps there until it is started.
pub(super) type Elsewhere<'scope, T> = Waiting<ScopedJoinHandle<'scope, Option<T>>, (), SchedError, ()>;

/// Starts a second thread on another CPU, in the default class, which it does not inherit, and sleeps until it is there.
///
/// Sleeping is required: the new thread starts on the same CPU and, in a real-time class, runs only then. Fails if the thread cannot be
/// created or placed, or does not run.
pub(super) fn elsewhere<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    cpu: CpuId,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<Elsewhere<'scope, T>, String> {
    let thread = Thread { name: name.to_owned(), cpu, policy: Some(Policy::Other) };
    let thread = thread.prepare_scoped(scope, || Ok(((), ())), |(), ()| run()).map_err(no_thread)?;
    match thread.ready_within(PATIENCE.to_std()) {
        Some(Ok(())) => Ok(thread),
        Some(Err(_)) => Err(format!("no thread can be placed on CPU {cpu}")),
        None => Err(format!("no thread came to run on CPU {cpu} in {PATIENCE}")),
    }
}

/// Spins until `holds` is true; returns whether that was before the end.
fn wait_for(end: Instant, holds: impl Fn() -> bool) -> bool {
    let mut spins = 0_u32;
    while !holds() {
        spins = spins.wrapping_add(1);
        // Rarely, to see the condition at once.
        if spins.is_multiple_of(1 << 16) && Instant::now() > end {
            return false;
        }
    }
    true
}

/// Sleeps until it is a thread's turn; `false` if the game is over.
fn sleep_until(turn: &AtomicU32, mine: u32) -> bool {
    loop {
        match turn.load(Ordering::Acquire) {
            OVER => return false,
            seen if seen == mine => return true,
            seen => futex::wait(turn, seen),
        }
    }
}

/// Returns each turn as `answer`, in the second thread, until the game is over.
fn give_back(turn: &AtomicU32, answer: u32) {
    while sleep_until(turn, YOURS) {
        turn.store(answer, Ordering::Release);
        futex::wake(turn);
    }
}

/// A hand-over by futex on one CPU: wake the other thread, sleep, and the switch.
pub(super) fn futex_probe<C: Counter>(bench: &Bench<C>) -> Probe {
    let turn = AtomicU32::new(MINE);
    let (cpu, policy) = (bench.site.cpu, bench.site.policy);
    // If the other thread cannot be placed there, the game ends immediately.
    let other = |settled: Result<(), SchedError>| give_back(&turn, if settled.is_ok() { MINE } else { OVER });
    let trip = || {
        turn.store(YOURS, Ordering::Release);
        futex::wake(&turn);
        sleep_until(&turn, MINE)
    };
    let outcome = thread::scope(|scope| {
        let thread = Thread { name: "becalm/futex".to_owned(), cpu, policy: policy.unless_other() };
        thread.spawn_scoped(scope, other).map_err(no_thread)?;
        let series = trips(bench, 2, trip);
        turn.store(OVER, Ordering::Release);
        futex::wake(&turn);
        series
    });
    Probe::new(
        "futex_switch",
        "futex wake, this CPU: wake, sleep, switch",
        "half a round trip between two threads on this CPU; each wakes the other and sleeps",
        outcome,
    )
}

/// Waking a thread that sleeps on another CPU: the cost of the call, and the time until the thread runs.
pub(super) fn wake_elsewhere<C: Counter>(bench: &Bench<C>) -> Vec<Probe> {
    let (call, runs) = match bench.site.other().ok_or_else(|| ONE_CPU.to_owned()).and_then(|cpu| wakes(bench, cpu)) {
        Ok((call, runs)) => (Ok(call), Ok(runs)),
        Err(why) => (Err(why.clone()), Err(why)),
    };
    let other = bench.site.other().map_or_else(String::new, |cpu| format!(" (CPU {cpu})"));
    vec![
        Probe::new(
            "futex_wake",
            "futex wake, other CPU: the call",
            format!("FUTEX_WAKE of a thread that sleeps on another CPU{other}, until the call returns"),
            call,
        ),
        Probe::new(
            "futex_wake_runs",
            "futex wake, other CPU: until it runs",
            format!(
                "from the same call until a store of the woken thread is seen here{other}; where that CPU idles, it has to \
                 wake first"
            ),
            runs,
        ),
    ]
}

fn wakes<C: Counter>(bench: &Bench<C>, cpu: CpuId) -> Result<(ProbeSamples, ProbeSamples), String> {
    // Counts the wake-ups; the largest number ends the sleeper.
    let (word, seen) = (AtomicU32::new(0), AtomicU32::new(0));
    let sleeper = || {
        let mut known = 0;
        while known != u32::MAX {
            let now = word.load(Ordering::Acquire);
            if now == known {
                futex::wait(&word, known);
            } else {
                known = now;
                seen.store(now, Ordering::Release);
            }
        }
    };
    let (mut calls, mut runs) = (Vec::with_capacity(WAKES), Vec::with_capacity(WAKES));
    let measured = thread::scope(|scope| {
        elsewhere(scope, "becalm/sleeper", cpu, sleeper)?.start(());
        let pause = bench.rate.ticks_in(ASLEEP).get();
        let watch = bench.watch();
        let end = Instant::now() + WAKES_TIME.to_std();
        let mut n = 0;
        while calls.len() < WAKES {
            let start = C::read();
            while C::read().saturating_sub(start) < pause {}
            if Instant::now() > end {
                break;
            }
            n += 1;
            let before = C::read_ordered();
            word.store(n, Ordering::Release);
            let woken = futex::wake(&word);
            let returned = C::read_ordered();
            let answered = wait_for(end, || seen.load(Ordering::Acquire) == n);
            let ran = C::read_ordered();
            // A thread that was not asleep yet gives no sample; it reads the word by itself.
            if woken && answered {
                calls.push(returned.saturating_sub(before));
                runs.push(ran.saturating_sub(before));
            }
        }
        word.store(u32::MAX, Ordering::Release);
        futex::wake(&word);
        Ok::<_, String>(watch)
    });
    let watch = measured?;
    if calls.len() < ROUNDS {
        return Err(format!(
            "a sleeping thread on CPU {cpu} woke only {} in {WAKES_TIME}",
            counted(calls.len() as u64, "time", "times")
        ));
    }
    let call = bench.finish(bench.watch(), 1, &into_rounds(&calls));
    let runs = bench.finish(watch, 1, &into_rounds(&runs));
    let series = SeriesDoc { interrupts: runs.series.interrupts, preempted: runs.series.preempted, ..call.series };
    Ok((ProbeSamples { series, rounds: call.rounds }, runs))
}

/// Interrupting another CPU and waiting for its answer, and the same call without a CPU to interrupt.
pub(super) fn interrupt_elsewhere<C: Counter>(bench: &Bench<C>) -> Vec<Probe> {
    let barriers = |runs: &dyn Fn() -> bool| {
        bench.series(1, 200, |samples| {
            let (mut done, mut ran) = (true, true);
            Bench::<C>::time_each_after(samples, || ran &= runs(), || done &= membarrier::private());
            match (done, ran) {
                (true, true) => Ok(()),
                (false, _) => Err("the kernel refused a memory barrier".to_owned()),
                (true, false) => Err("the other CPU is so busy that our thread hardly runs there".to_owned()),
            }
        })
    };
    let registered = membarrier::register().map_err(text);
    let alone = registered.clone().and_then(|()| barriers(&|| true));
    let answered = registered.and_then(|()| {
        let cpu = bench.site.other().ok_or_else(|| ONE_CPU.to_owned())?;
        run_with_spinner(cpu, barriers)
    });
    let other = bench.site.other().map_or_else(String::new, |cpu| format!(" (CPU {cpu})"));
    vec![
        Probe::new(
            "membarrier",
            "membarrier, no thread to interrupt",
            "membarrier(PRIVATE_EXPEDITED) while no other thread of becalm runs: the call without the interrupt",
            alone,
        ),
        Probe::new(
            "ipi",
            "interrupt of another CPU, round trip",
            format!(
                "the same call while a thread of becalm spins on another CPU{other}, seen to run just before; it is \
                 interrupted and answers. Less the row above, the interrupt's way there and back"
            ),
            answered,
        ),
    ]
}

/// Runs `body` while a thread of this process spins on a CPU. `body` gets a function that waits until that thread runs: on a busy CPU it
/// may wait for its turn, and would not be interrupted.
fn run_with_spinner<T>(cpu: CpuId, body: impl FnOnce(&dyn Fn() -> bool) -> Result<T, String>) -> Result<T, String> {
    let (stop, spins) = (AtomicBool::new(false), AtomicU64::new(0));
    let spinner = || {
        while !stop.load(Ordering::Relaxed) {
            spins.fetch_add(1, Ordering::Relaxed);
        }
    };
    let end = Instant::now() + PATIENCE.to_std();
    let wait_until_it_runs = || {
        let seen = spins.load(Ordering::Relaxed);
        wait_for(end, || spins.load(Ordering::Relaxed) != seen)
    };
    thread::scope(|scope| {
        elsewhere(scope, "becalm/spinner", cpu, spinner)?.start(());
        let result = body(&wait_until_it_runs);
        stop.store(true, Ordering::Relaxed);
        result
    })
}
