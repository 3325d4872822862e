//! Noise by pre-emption: on each CPU a real-time thread that sleeps until a detour is due, takes the CPU from whoever runs
//! there, and burns the time.
//!
//! What the one who runs there loses begins with the timer's interrupt and ends when it is switched back in. The loop burns
//! so much less: the cost of both is measured on the CPU beforehand ([`crate::toll`]).

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use becalm_linux::alarm::{Alarm, monotonic_ns, set_timer_slack, wall_ns};
use becalm_linux::clock::{Counter, MonotonicRaw, Native, Source, calibrate};
use becalm_linux::memory::LockedWords;
use becalm_linux::placed::Thread;
use becalm_linux::procfs::kernel::RtThrottling;
use becalm_linux::rights::{RightsError, give_up_of_this_thread};
use becalm_linux::sched::Policy;
use becalm_model::inject::{InjectedPlace, NoisePlace};
use becalm_scale::NoiseTrace;
use becalm_scale::random::{Purpose, Stream};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use crate::InjectError;
use crate::schedule::{Due, Schedule};
use crate::tally::DeliveryTally;
use crate::toll::{self, Toll};

/// How long the counter is compared with the kernel's clock before anything else.
const CALIBRATION: Nanos = Nanos::from_millis(50);
/// How long each thread has to get ready.
const HEAD_START_NS: u64 = 5_000_000;

/// What is to be injected, and where.
#[derive(Clone, Debug)]
pub struct PreemptPlan {
    /// The CPUs, each with the noise that it gets.
    pub cpus: Vec<(CpuId, NoiseTrace)>,
    /// Where on its circle each CPU starts: at the place that the wall clock gives, which is one for all CPUs and nodes, or
    /// at a random one.
    pub synchronized: bool,
    /// The seed from which random places are drawn.
    pub seed: u64,
    /// The number of this node, so that nodes with one seed start at different places.
    pub node: u64,
    /// The class of the injecting threads, a real-time one.
    pub policy: Policy,
    /// Whether noise that cannot be made exactly is refused. Otherwise detours that are too short are left out, and of the
    /// rest those too close to each other made one; noise of which nothing would be left is refused all the same.
    pub exact: bool,
    /// The number of detours of each CPU that are kept in a log, from the first one on.
    pub log: usize,
}

/// A detour as it was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveredDetour {
    /// The first and the last reading of the counter by the injecting thread.
    pub burned: (Ticks, Ticks),
    /// The length that was asked for.
    pub asked: Nanos,
}

/// What was delivered on one CPU.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The CPU on which they were made.
    pub cpu: CpuId,
    /// The time in which detours were due.
    pub observed: Nanos,
    /// What a detour costs on this CPU beyond its own loop.
    pub toll: Toll,
    /// The number of detours in a lap of the circle that were too short to be made, and the time that they take.
    pub left_out: (usize, Nanos),
    /// The number of detours in a lap that became one with the detour before.
    pub merged: usize,
    /// What was due and what was delivered.
    pub tally: DeliveryTally,
    /// The first detours that were delivered; empty if no log was asked for.
    pub log: Vec<DeliveredDetour>,
}

impl Delivered {
    /// What the detours come to.
    #[must_use]
    pub fn place(&self) -> InjectedPlace {
        let left_out = (self.left_out.0 as u64, self.left_out.1);
        let place = self.tally.of_place(NoisePlace::Cpu(self.cpu), self.observed, self.toll.shortest);
        InjectedPlace { left_out, merged: self.merged, ..place }
    }
}

/// When all threads begin, by `CLOCK_MONOTONIC` and by the wall clock, in nanoseconds.
#[derive(Clone, Copy)]
struct Begin {
    start_ns: u64,
    wall_ns: u64,
}

/// Threads that inject. Dropping it ends them.
#[derive(Debug)]
pub struct Injection {
    alarm: Arc<Alarm>,
    threads: Vec<JoinHandle<Result<Delivered, InjectError>>>,
    /// The rate of the counter whose readings [`DeliveredDetour::burned`] holds.
    pub rate: TickRate,
}

impl Injection {
    /// Measures the CPUs and starts to inject.
    ///
    /// # Errors
    /// If a CPU or a priority is refused; if the noise cannot be made exactly and is to be; if the kernel's limit on
    /// real-time threads, `throttling`, is in its way.
    pub fn start(plan: &PreemptPlan, counter: Source, throttling: Option<RtThrottling>) -> Result<Self, InjectError> {
        Self::start_after(plan, counter, throttling, || Ok(()))
    }

    /// The same, and calls `placed` when every thread has its CPU and its class, before the first detour is due: to give up the rights
    /// that this took. The threads give up their own then.
    ///
    /// # Errors
    /// As of [`Self::start`], and what `placed` answers.
    pub fn start_after(
        plan: &PreemptPlan,
        counter: Source,
        throttling: Option<RtThrottling>,
        placed: impl FnOnce() -> Result<(), RightsError>,
    ) -> Result<Self, InjectError> {
        match counter {
            Source::Native => Self::with::<Native>(plan, throttling, placed),
            Source::MonotonicRaw => Self::with::<MonotonicRaw>(plan, throttling, placed),
        }
    }

    fn with<C: Counter + 'static>(
        plan: &PreemptPlan,
        throttling: Option<RtThrottling>,
        in_place: impl FnOnce() -> Result<(), RightsError>,
    ) -> Result<Self, InjectError> {
        let rate = calibrate::<C>(CALIBRATION)?.rate;
        let mut workers = Vec::with_capacity(plan.cpus.len());
        let mut places = Stream::new(plan.seed, Purpose::Offsets, plan.node);
        for (cpu, trace) in &plan.cpus {
            let interval = Nanos::new(trace.length().get() / trace.len().max(1) as i64);
            let worker = || {
                let toll = toll::measure::<C>(*cpu, plan.policy, rate, interval)?;
                Worker::new(*cpu, trace, toll, rate, plan)
            };
            let worker = match worker() {
                // The cost may have been that of a moment, as when a hypervisor had the CPU.
                Err(InjectError::Short { .. } | InjectError::Close { .. } | InjectError::Toll { .. }) => worker()?,
                other => other?,
            };
            let place = Nanos::new(places.below(trace.length().get() as u64) as i64);
            workers.push((worker, place, trace.length()));
        }
        for (worker, ..) in &workers {
            worker.check(throttling)?;
        }
        let mut injection = Self { alarm: Arc::new(Alarm::new()), threads: Vec::new(), rate };
        let (policy, synchronized) = (plan.policy, plan.synchronized);
        let (placing, placed) = channel::<()>();
        let mut starts = Vec::with_capacity(workers.len());
        for (mut worker, place, circle) in workers {
            let (start, begin) = channel::<Begin>();
            let alarm = Arc::clone(&injection.alarm);
            let placing = placing.clone();
            let cpu = worker.cpu;
            let thread = Thread { name: "becalm-inject".to_owned(), cpu, policy: Some(policy) };
            let thread = thread.spawn(move |settled| {
                settled.map_err(|cause| InjectError::Sched { cpu, cause })?;
                set_timer_slack(1);
                drop(placing);
                // Nobody lets it go where the others have failed.
                let begin = begin.recv().map_err(|_| InjectError::Thread(std::io::ErrorKind::BrokenPipe.into()))?;
                give_up_of_this_thread().map_err(InjectError::Thread)?;
                worker.schedule.begin_at(match synchronized {
                    true => Nanos::new((begin.wall_ns % circle.get() as u64) as i64),
                    false => place,
                });
                Ok(worker.run::<C>(&alarm, begin.start_ns))
            });
            injection.threads.push(thread.map_err(InjectError::Thread)?);
            starts.push(start);
        }
        // Until they have their class they are threads like the caller's, who may be about to keep their CPUs busy.
        drop(placing);
        let _ = placed.recv();
        in_place().map_err(InjectError::Rights)?;
        // All start together.
        let now = monotonic_ns();
        let head_start = HEAD_START_NS * (1 + plan.cpus.len() as u64);
        let begin = Begin { start_ns: now + head_start, wall_ns: wall_ns() + head_start };
        for start in starts {
            // One that could not be placed says so when it is joined.
            let _ = start.send(begin);
        }
        Ok(injection)
    }

    /// Ends the injecting, and tells what was delivered, CPU by CPU.
    ///
    /// # Errors
    /// If a thread could not be placed.
    pub fn stop(mut self) -> Result<Vec<Delivered>, InjectError> {
        self.alarm.call_off();
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        self.alarm.call_off();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The thread of one CPU.
#[derive(Debug)]
struct Worker {
    cpu: CpuId,
    schedule: Schedule,
    rate: TickRate,
    toll: Toll,
    left_out: (usize, Nanos),
    merged: usize,
    tally: DeliveryTally,
    log: LockedWords,
    logged: usize,
}

/// A detour that was burned and not yet booked.
struct Burned {
    due: Due,
    first: u64,
    last: u64,
    /// When the other lost the CPU, since the start.
    start: Nanos,
    /// What it cost beyond the loop.
    toll: Nanos,
}

/// The number of words of the log that a detour takes.
const LOG_WORDS: usize = 3;

impl Worker {
    fn new(
        cpu: CpuId,
        trace: &NoiseTrace,
        toll: Toll,
        rate: TickRate,
        plan: &PreemptPlan,
    ) -> Result<Self, InjectError> {
        let mut schedule = Schedule::new(trace, Nanos::ZERO);
        let (shortest, room) = (toll.shortest, toll.shortest + toll.lag);
        let (mut left_out, mut merged) = ((0, Nanos::ZERO), 0);
        if plan.exact {
            if let Some(length) = schedule.shortest().filter(|length| *length < shortest) {
                return Err(InjectError::Short { cpu, length, shortest });
            }
            if let Some(gap) = schedule.narrowest_gap().filter(|gap| *gap < room) {
                return Err(InjectError::Close { cpu, gap, shortest: room });
            }
        } else {
            // In this order: what the CPU loses many times in passing would else become long detours that never were.
            let longest = schedule.longest();
            left_out = schedule.drop_shorter(shortest);
            if let Some(length) = longest.filter(|length| *length < shortest) {
                return Err(InjectError::Short { cpu, length, shortest });
            }
            merged = schedule.merge_closer(room);
        }
        let log =
            LockedWords::new(plan.log * LOG_WORDS).map_err(|cause| InjectError::Log { entries: plan.log, cause })?;
        Ok(Self { cpu, schedule, rate, toll, left_out, merged, tally: DeliveryTally::default(), log, logged: 0 })
    }

    /// Whether the kernel lets a real-time thread run for so long.
    fn check(&self, throttling: Option<RtThrottling>) -> Result<(), InjectError> {
        let Some(RtThrottling { runtime: Some(runtime), period }) = throttling else { return Ok(()) };
        let (_, noise, circle) = self.schedule.lap();
        let (asked, allowed) =
            (noise.as_secs_f64() / circle.as_secs_f64(), runtime.as_secs_f64() / period.as_secs_f64());
        let asked = match self.schedule.longest() {
            Some(longest) if longest > runtime => format!("a detour of {longest}"),
            _ if asked > allowed => format!("{:.1}% of the time", asked * 100.0),
            _ => return Ok(()),
        };
        Err(InjectError::Throttled { runtime, period, asked })
    }

    /// Injects until it is called off.
    fn run<C: Counter>(mut self, alarm: &Alarm, start_ns: u64) -> Delivered {
        let axis = TicksToNanos::new(Ticks::new(0), self.rate);
        let mut before: Option<Burned> = None;
        alarm.sleep_until(start_ns);
        while let Some(due) = self.schedule.next() {
            let at = start_ns.saturating_add(due.at.get() as u64);
            let now = monotonic_ns();
            if now >= at + due.length.get() as u64 {
                self.tally.add_due(due.at, due.length);
                self.tally.missed += 1;
                if alarm.is_called_off() {
                    break;
                }
                continue;
            }
            let joined = now >= at;
            if !joined && !alarm.sleep_until(at - self.toll.lag.get() as u64) {
                break;
            }
            let first = C::read();
            let woken = monotonic_ns();
            // Late, this one begins where the one before ended, whose way out is then that of both.
            let Toll { entries: (least, most), exit, .. } = if joined { Toll::default() } else { self.toll };
            // The way in is longer at one time than at another, on a virtual machine by several times; the interrupt itself
            // comes in time. What is longer than nearly all ways in is taken for an interrupt that was late.
            let entry = Nanos::new(woken.saturating_sub(at) as i64).clamp(least, most);
            let burn = self.rate.ticks_in((due.length - entry - exit).max(Nanos::ZERO)).get();
            // Booked meanwhile, so that the books lengthen no detour.
            if let Some(before) = before.take() {
                self.book(axis, before);
            }
            self.tally.joined += u64::from(joined);
            let mut last = C::read();
            while last.wrapping_sub(first) < burn && !alarm.is_called_off() {
                last = C::read();
            }
            if alarm.is_called_off() {
                // Cut off in the middle, it is none of those that were asked for.
                break;
            }
            let start = Nanos::new(woken as i64 - start_ns as i64) - entry;
            before = Some(Burned { due, first, last, start, toll: entry + exit });
        }
        if let Some(before) = before {
            self.book(axis, before);
        }
        let observed = Nanos::new(monotonic_ns().saturating_sub(start_ns) as i64);
        let logged = self.log[..self.logged].chunks_exact(LOG_WORDS);
        let log = logged.map(|words| {
            let [first, last, asked] = [0, 1, 2].map(|word: usize| words[word].load(Ordering::Relaxed));
            DeliveredDetour { burned: (Ticks::new(first), Ticks::new(last)), asked: Nanos::new(asked as i64) }
        });
        let log = log.collect();
        let Self { cpu, toll, left_out, merged, tally, .. } = self;
        Delivered { cpu, observed, toll, left_out, merged, tally, log }
    }

    fn book(&mut self, axis: TicksToNanos, burned: Burned) {
        let Burned { due, first, last, start, toll } = burned;
        let length = axis.duration(Ticks::new(last.wrapping_sub(first))) + toll;
        self.tally.add_due(due.at, due.length);
        self.tally.add_delivered(start, length, start - due.at);
        if let Some(words) = self.log.get(self.logged..self.logged + LOG_WORDS) {
            for (word, value) in words.iter().zip([first, last, due.length.get() as u64]) {
                word.store(value, Ordering::Relaxed);
            }
            self.logged += LOG_WORDS;
        }
    }
}
