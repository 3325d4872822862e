//! Noise by preemption: on each CPU a real-time thread sleeps until a detour is due, takes the CPU from the thread running there, and burns the time.
//!
//! The interrupted thread loses time from the timer interrupt until it is switched back in. The loop burns that much less: the cost of both ways is
//! measured beforehand ([`crate::toll`]), on one CPU of each kind.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use becalm_linux::alarm::{Alarm, monotonic_ns, set_timer_slack, wall_ns};
use becalm_linux::clock::{Counter, MonotonicRaw, Native, Source, calibrate};
use becalm_linux::memory::LockedWords;
use becalm_linux::placed::Thread;
use becalm_linux::realtime::FairServer;
use becalm_linux::rights::{RightsError, give_up_of_this_thread};
use becalm_linux::sched::{Policy, ThreadUsage};
use becalm_scale::NoiseTrace;
use becalm_scale::random::{Purpose, Stream};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use crate::InjectError;
use crate::document::{FairServerDoc, InjectedPlace, NoisePlace, SharedToll, Shortfall, Together};
use crate::fit::{Fit, RequestedNoise, share_below};
use crate::flood::Flood;
use crate::grounds::Grounds;
use crate::kinds::{self, KnownTolls, TrialSettings};
use crate::place;
use crate::schedule::{Due, Lap, Schedule};
use crate::tally::DeliveryTally;
use crate::toll::Toll;

/// How long to compare the counter with the kernel's clock before anything else.
const CALIBRATION: Nanos = Nanos::from_millis(50);
/// How long each thread has to get ready.
const HEAD_START_NS: u64 = 5_000_000;

/// The noise to inject, and where.
#[derive(Clone, Debug)]
pub struct PreemptPlan {
    /// The CPUs, each with its noise.
    pub cpus: Vec<(CpuId, NoiseTrace)>,
    /// Which CPUs start at the place that the wall clock gives, and which at a random one.
    pub together: Together,
    /// The seed from which random places are drawn.
    pub seed: u64,
    /// The number of this node, which makes nodes with the same seed start at different places.
    pub node: u64,
    /// The real-time class of the injecting threads.
    pub policy: Policy,
    /// How much of the noise must be possible; with less, it is refused.
    pub fit: Fit,
    /// Whether the threads burn the time by sending packets over loopback, which the network softirq receives on the same CPU, instead of reading the
    /// clock. A remainder too short for another packet is burned by reading the clock.
    pub packets: bool,
    /// The number of detours per CPU to log, from the first one on.
    pub log: usize,
}

/// A delivered detour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveredDetour {
    /// The first reading of the counter by the injecting thread.
    pub first: Ticks,
    /// The last reading of the counter by the injecting thread.
    pub last: Ticks,
    /// The requested length.
    pub asked: Nanos,
}

/// The noise delivered on one CPU.
#[derive(Clone, Debug)]
pub struct CpuDelivery {
    /// The CPU on which they were made.
    pub cpu: CpuId,
    /// The time during which detours were due.
    pub observed: Nanos,
    /// The cost of a detour on this CPU beyond its own loop.
    pub toll: Toll,
    /// The detours per lap of the circle that were too short to be made.
    pub left_out: Shortfall,
    /// The number of detours per lap that were merged with the previous one.
    pub merged: usize,
    /// The number of packets sent.
    pub packets: u64,
    /// How often the kernel took the CPU from the injecting thread before that gave it back.
    pub overtaken: u64,
    /// The requested noise, if some of it was left out or merged.
    asked: Option<RequestedNoise>,
    /// Statistics of due and delivered detours.
    pub tally: DeliveryTally,
    /// The first delivered detours; empty without a log.
    pub log: Vec<DeliveredDetour>,
}

impl CpuDelivery {
    /// The figures of the detours.
    pub fn place(&self) -> InjectedPlace {
        let place = self.tally.injected_place(NoisePlace::Cpu(self.cpu), self.observed, self.toll.shortest);
        let requested = self.asked.map_or(place.requested, |asked| asked.injected_in(self.observed));
        InjectedPlace { requested, left_out: self.left_out, merged: self.merged, overtaken: self.overtaken, ..place }
    }
}

/// When all threads start, by `CLOCK_MONOTONIC` and by the wall clock, in nanoseconds, and the shift added to the latter; `None` if each thread has
/// its own place.
#[derive(Clone, Copy)]
struct Begin {
    start_ns: u64,
    wall_ns: u64,
    shift: Option<u64>,
}

/// Injecting threads. Dropping it ends them.
#[derive(Debug)]
pub struct Injection {
    alarm: Arc<Alarm>,
    threads: Vec<JoinHandle<Result<CpuDelivery, InjectError>>>,
    /// The rate of the counter that [`DeliveredDetour`] was read from.
    pub rate: TickRate,
    /// The CPUs on which the cost of a detour was measured, and those that share each measurement.
    pub tolls: Vec<SharedToll>,
    /// The time that the CPUs' fair servers may take.
    pub fair_servers: Vec<FairServerDoc>,
}

impl Injection {
    /// Measures the CPUs that `grounds` describes, and starts to inject. Fails if a CPU or a priority is refused, if the plan demands exact noise
    /// that cannot be made, or if one of the kernel's limits on real-time threads is too low.
    pub fn start(plan: &PreemptPlan, counter: Source, grounds: &Grounds) -> Result<Self, InjectError> {
        Self::start_again(plan, counter, grounds, &mut KnownTolls::default())
    }

    /// Like [`Self::start`], but skips what `known` has from earlier injections in the same class, and adds what it measures.
    pub fn start_again(
        plan: &PreemptPlan,
        counter: Source,
        grounds: &Grounds,
        known: &mut KnownTolls,
    ) -> Result<Self, InjectError> {
        Self::start_after(plan, counter, grounds, known, &mut |_, _| (), || Ok(()))
    }

    /// Like [`Self::start_again`]. `told` gets the number of kinds of CPU measured so far, and their total. `placed` is called when every thread has
    /// its CPU and its class, before the first detour is due, to give up the rights that this took. The threads then give up theirs.
    pub fn start_after(
        plan: &PreemptPlan,
        counter: Source,
        grounds: &Grounds,
        known: &mut KnownTolls,
        told: &mut dyn FnMut(usize, usize),
        placed: impl FnOnce() -> Result<(), RightsError>,
    ) -> Result<Self, InjectError> {
        match counter {
            Source::Native => Self::start_with_counter::<Native>(plan, grounds, known, told, placed),
            Source::MonotonicRaw => Self::start_with_counter::<MonotonicRaw>(plan, grounds, known, told, placed),
        }
    }

    fn start_with_counter<C: Counter + 'static>(
        plan: &PreemptPlan,
        grounds: &Grounds,
        known: &mut KnownTolls,
        told: &mut dyn FnMut(usize, usize),
        in_place: impl FnOnce() -> Result<(), RightsError>,
    ) -> Result<Self, InjectError> {
        let rate = calibrate::<C>(CALIBRATION).map_err(InjectError::Clock)?.rate;
        for (cpu, trace) in &plan.cpus {
            // If it is refused anyway, there is no need to measure; checked again after measuring.
            grounds.allows(*cpu, (plan.fit == Fit::Exact).then(|| longest(trace)).flatten(), 0.0)?;
        }
        let (workers, tolls) = workers::<C>(plan, rate, grounds, known, told)?;
        let fair_servers = fair_servers(plan, grounds);
        let mut injection = Self { alarm: Arc::new(Alarm::new()), threads: Vec::new(), rate, tolls, fair_servers };
        let (placing, placed) = channel::<()>();
        let mut starts = Vec::with_capacity(workers.len());
        let mut places = Stream::new(plan.seed, Purpose::Offsets, plan.node);
        for mut worker in workers {
            let (start, begin) = channel::<Begin>();
            let alarm = Arc::clone(&injection.alarm);
            let placing = placing.clone();
            let (cpu, circle) = (worker.cpu, worker.schedule.lap().length);
            let own_place = Nanos::new(places.below(circle.get() as u64) as i64);
            let thread = Thread { name: "becalm-inject".to_owned(), cpu, policy: Some(plan.policy) };
            let thread = thread.spawn(move |settled| {
                settled.map_err(|cause| InjectError::Sched(cpu, cause))?;
                set_timer_slack(1);
                drop(placing);
                // No start comes if another thread failed.
                let begin = begin.recv().map_err(|_| InjectError::Thread(std::io::ErrorKind::BrokenPipe.into()))?;
                give_up_of_this_thread().map_err(InjectError::Thread)?;
                let place = begin.shift.map(|shift| place::at(begin.wall_ns, shift, circle));
                worker.schedule.begin_at(place.unwrap_or(own_place));
                Ok(worker.run::<C>(&alarm, begin.start_ns))
            });
            injection.threads.push(thread.map_err(InjectError::Thread)?);
            starts.push(start);
        }
        // Until they have their class, they run like the caller, which may be about to keep their CPUs busy.
        drop(placing);
        let _ = placed.recv();
        in_place().map_err(InjectError::Rights)?;
        let now = monotonic_ns();
        let head_start = HEAD_START_NS * (1 + plan.cpus.len() as u64);
        let shift = place::shift(plan.together, plan.seed, plan.node);
        let begin = Begin { start_ns: now + head_start, wall_ns: wall_ns() + head_start, shift };
        for start in starts {
            // A thread that could not be placed reports that when it is joined.
            let _ = start.send(begin);
        }
        Ok(injection)
    }

    /// Stops injecting, and returns what was delivered on each CPU. Fails if a thread could not be placed.
    pub fn stop(mut self) -> Result<Vec<CpuDelivery>, InjectError> {
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

fn longest(trace: &NoiseTrace) -> Option<Nanos> {
    trace.detours().map(|(_, length)| length).max()
}

/// Measures the costs of detours that are unknown, and makes a worker for each CPU.
fn workers<C: Counter>(
    plan: &PreemptPlan,
    rate: TickRate,
    grounds: &Grounds,
    known: &mut KnownTolls,
    told: &mut dyn FnMut(usize, usize),
) -> Result<(Vec<Worker>, Vec<SharedToll>), InjectError> {
    let interval = |trace: &NoiseTrace| Nanos::new(trace.length().get() / trace.len().max(1) as i64);
    let cpus: Vec<(CpuId, Nanos)> = plan.cpus.iter().map(|(cpu, trace)| (*cpu, interval(trace))).collect();
    let fits = |member: usize, toll: Toll| {
        let (cpu, trace) = &plan.cpus[member];
        fitting(*cpu, trace, toll, plan.fit).map(|_| ())
    };
    let (tolls, shared) =
        kinds::measure::<C>(&cpus, TrialSettings { policy: plan.policy, rate }, grounds, known, fits, told)?;
    let worker = |((cpu, trace), toll): (&(CpuId, NoiseTrace), Toll)| Worker::new(*cpu, trace, toll, rate, plan);
    let workers: Vec<Worker> = plan.cpus.iter().zip(tolls).map(worker).collect::<Result<_, _>>()?;
    for worker in &workers {
        let Lap { noise, length, .. } = worker.schedule.lap();
        grounds.allows(worker.cpu, worker.schedule.longest(), noise.as_secs_f64() / length.as_secs_f64())?;
    }
    Ok((workers, shared))
}

/// The fair servers of the CPUs, grouped by equal limits.
fn fair_servers(plan: &PreemptPlan, grounds: &Grounds) -> Vec<FairServerDoc> {
    let mut alike: Vec<(FairServer, Vec<CpuId>)> = Vec::new();
    for (cpu, _) in &plan.cpus {
        let Some(server) = grounds.fair_server(*cpu) else { continue };
        match alike.iter_mut().find(|(other, _)| *other == server) {
            Some((_, cpus)) => cpus.push(*cpu),
            None => alike.push((server, vec![*cpu])),
        }
    }
    let doc = |(FairServer { runtime, period, assumed }, cpus): (FairServer, Vec<CpuId>)| FairServerDoc {
        cpus: cpus.into_iter().collect(),
        runtime,
        period,
        assumed,
    };
    alike.into_iter().map(doc).collect()
}

/// The part of a CPU's noise that can be made there.
struct FittedNoise {
    schedule: Schedule,
    left_out: Shortfall,
    merged: usize,
}

/// Leaves out noise that cannot be made with this cost of a detour. Fails if less than the required part can be made.
fn fitting(cpu: CpuId, trace: &NoiseTrace, toll: Toll, fit: Fit) -> Result<FittedNoise, InjectError> {
    let mut schedule = Schedule::new(trace, Nanos::ZERO);
    let (shortest, room) = (toll.shortest, toll.shortest + toll.lag);
    let (mut left_out, mut merged) = (Shortfall::default(), 0);
    let lengths = || trace.detours().map(|(_, length)| length);
    if let Some(length) = fit.needs(lengths()).filter(|length| *length < shortest) {
        let is_part = longest(trace).is_some_and(|longest| longest >= shortest);
        return Err(match fit {
            Fit::Most if is_part => InjectError::MostlyShort { cpu, share: share_below(lengths(), shortest), shortest },
            _ => InjectError::Short { cpu, length, shortest },
        });
    }
    if fit == Fit::Exact {
        if let Some(gap) = schedule.narrowest_gap().filter(|gap| *gap < room) {
            return Err(InjectError::Close { cpu, gap, shortest: room });
        }
    } else {
        // In this order: otherwise many short ones would merge into long detours that never existed.
        left_out = schedule.drop_shorter(shortest);
        merged = schedule.merge_closer(room);
    }
    Ok(FittedNoise { schedule, left_out, merged })
}

/// The thread of one CPU.
#[derive(Debug)]
struct Worker {
    cpu: CpuId,
    schedule: Schedule,
    rate: TickRate,
    toll: Toll,
    left_out: Shortfall,
    merged: usize,
    asked: Option<RequestedNoise>,
    tally: DeliveryTally,
    /// Sends the packets that burn the time, if requested.
    flood: Option<Flood>,
    log: LockedWords,
    logged: usize,
}

/// A detour that was burned but not yet recorded.
struct BurnedDetour {
    due: Due,
    first: u64,
    last: u64,
    /// When the other thread lost the CPU, since the start.
    start: Nanos,
    /// Its cost beyond the loop.
    toll: Nanos,
}

/// The number of words per detour in the log.
const LOG_WORDS: usize = 3;

impl Worker {
    fn new(
        cpu: CpuId,
        trace: &NoiseTrace,
        toll: Toll,
        rate: TickRate,
        plan: &PreemptPlan,
    ) -> Result<Self, InjectError> {
        let FittedNoise { schedule, left_out, merged } = fitting(cpu, trace, toll, plan.fit)?;
        let log = LockedWords::new(plan.log * LOG_WORDS).map_err(|cause| InjectError::Log(plan.log, cause))?;
        let flood = plan.packets.then(Flood::open).transpose().map_err(InjectError::Packets)?;
        let asked = (left_out.count > 0 || merged > 0).then(|| RequestedNoise::new(trace));
        let tally = DeliveryTally::default();
        Ok(Self { cpu, schedule, rate, toll, left_out, merged, asked, tally, flood, log, logged: 0 })
    }

    /// Injects until it is called off.
    fn run<C: Counter>(mut self, alarm: &Alarm, start_ns: u64) -> CpuDelivery {
        let axis = TicksToNanos::new(Ticks::new(0), self.rate);
        let mut before: Option<BurnedDetour> = None;
        let usage = ThreadUsage::for_current_thread();
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
            // A late detour starts where the previous one ended; they share that one's exit.
            let Toll { entries, exit, .. } = if joined { Toll::default() } else { self.toll };
            // The entry time varies, on a virtual machine by a factor of several, while the interrupt itself is on time. If it takes longer than
            // nearly all entries, the interrupt was late.
            let entry = Nanos::new(woken.saturating_sub(at) as i64).clamp(entries.shortest, entries.longest);
            let burn = self.rate.ticks_in((due.length - entry - exit).max(Nanos::ZERO)).get();
            // Recorded during this detour, so recording lengthens none.
            if let Some(before) = before.take() {
                self.book(axis, before);
            }
            self.tally.joined += u64::from(joined);
            self.flood.iter_mut().for_each(Flood::begin);
            let mut last = C::read();
            while last.wrapping_sub(first) < burn && !alarm.is_called_off() {
                if let Some(flood) = &mut self.flood {
                    flood.send_within::<C>(burn - last.wrapping_sub(first), last);
                }
                last = C::read();
            }
            if alarm.is_called_off() {
                // A detour cut off in the middle is not one of the requested ones.
                break;
            }
            let start = Nanos::new(woken as i64 - start_ns as i64) - entry;
            before = Some(BurnedDetour { due, first, last, start, toll: entry + exit });
        }
        if let Some(before) = before {
            self.book(axis, before);
        }
        let overtaken = ThreadUsage::for_current_thread().since(usage).involuntary_switches;
        let observed = Nanos::new(monotonic_ns().saturating_sub(start_ns) as i64);
        let logged = self.log[..self.logged].chunks_exact(LOG_WORDS);
        let log = logged.map(|words| {
            let [first, last, asked] = [0, 1, 2].map(|word: usize| words[word].load(Ordering::Relaxed));
            DeliveredDetour { first: Ticks::new(first), last: Ticks::new(last), asked: Nanos::new(asked as i64) }
        });
        let log = log.collect();
        let packets = self.flood.map_or(0, |flood| flood.sent);
        let Self { cpu, toll, left_out, merged, asked, tally, .. } = self;
        CpuDelivery { cpu, observed, toll, left_out, merged, packets, overtaken, asked, tally, log }
    }

    fn book(&mut self, axis: TicksToNanos, burned: BurnedDetour) {
        let BurnedDetour { due, first, last, start, toll } = burned;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_of_which_too_little_can_be_made_is_refused() {
        let cpu = CpuId::new(1);
        let us = Nanos::from_micros;
        let toll = Toll { shortest: us(30), lag: us(5), ..Toll::default() };
        // 15 of 115 us, 15 of 155, all of it.
        let trace = |lengths: &[i64]| {
            let detours = (1..).zip(lengths).map(|(at, length)| (us(1_000 * at), us(*length)));
            NoiseTrace::new(us(10_000), detours).unwrap()
        };
        let [much, little, all] = [&[100, 15][..], &[100, 15, 40], &[15, 10]].map(trace);
        let left_out = |trace, fit| {
            fitting(cpu, trace, toll, fit).map(|fitting| fitting.left_out).map_err(|error| error.to_string())
        };
        let refused = "13.0% of the requested time is in detours shorter than 30us, which is how long it takes to take CPU 1 and give it \
                       back";
        assert_eq!(left_out(&much, Fit::Most), Err(refused.to_owned()));
        assert_eq!(left_out(&much, Fit::Part), Ok(Shortfall { count: 1, time: us(15) }));
        assert_eq!(left_out(&little, Fit::Most), Ok(Shortfall { count: 1, time: us(15) }));
        for (fit, length) in [(Fit::Exact, 10), (Fit::Part, 15)] {
            let short = format!("a detour of {length}us is too short: to take CPU 1 and give it back takes 30us here");
            assert_eq!(left_out(&all, fit), Err(short));
        }
        assert!(left_out(&all, Fit::Most).unwrap_err().starts_with("a detour of 1"));
    }
}
