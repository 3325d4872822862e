//! A recorded loop that does work: prepared, measured into a ring, and also done by further copies on the same CPU.

use std::path::{Path, PathBuf};

use becalm_linux::clock::Counter;
use becalm_linux::perf::{Counters, Space};
use becalm_linux::sched;
use becalm_model::node::{
    CoreClockDoc, CpuDoc, Fixed, NodeDoc, SettingsDoc, WorkBody, WorkDoc, WorkLoopDoc, WorkSession,
};
use becalm_units::{CpuId, Nanos, TickRate, Ticks, TicksToNanos};

use super::acquire::{End, Lengths, LoopTally};
use super::event_counts::{EventTotals, run_counted};
use super::kind::{Loop, LoopCalibration, LoopError, LoopResult, StepRing};
use super::ring::Ring;
use super::sample_ring::SampleRing;
use super::sampling::{Quanta, Stop, fixed_time, fixed_work};
use crate::plan::{Threshold, WorkPlan};
use crate::work::{Body, CacheSize, Unsupported, Work, WorkSize, calibrate, calibrate_unit, core_clock};

/// How long before the loop its counters start: a few system calls.
const COUNTERS_LEAD: Nanos = Nanos::from_micros(100);

/// Repeats the same work.
#[derive(Clone, Debug)]
pub struct WorkLoop {
    /// The requested work, and the length of a sample.
    pub plan: WorkPlan,
    /// The root of the file system.
    pub root: PathBuf,
}

/// Calibration of a loop that works: iterations per sample, and the size of its memory.
#[derive(Clone, Copy, Debug)]
pub struct WorkCalibration {
    calibrated: WorkSize,
    memory_bytes: u64,
    /// The cache that determined the memory size.
    cache: Option<CacheSize>,
    core_clock: Option<CoreClockDoc>,
}

impl LoopCalibration for WorkCalibration {
    fn shortest_step(&self) -> Ticks {
        Ticks::new(0)
    }
}

/// Work ready to be measured.
pub struct ReadyWork {
    work: Work,
    iterations: u64,
    rate: TickRate,
    counters: Option<Counters>,
}

impl WorkLoop {
    fn work(&self, cpu: CpuId) -> Result<Work, Unsupported> {
        Work::new(self.plan.body_on(cpu), &self.root as &Path, cpu)
    }

    /// Finds the iterations per sample, unless they are given.
    fn calibrate<C: Counter>(&self, work: &mut Work, cpu: CpuId, rate: TickRate) -> WorkSize {
        let plan = &self.plan;
        match (plan.iterations.get(&cpu), plan.fixed) {
            // Their duration is measured again, for the length of one sample.
            (Some(iterations), _) => {
                let before = C::read();
                work.run::<C>(*iterations);
                WorkSize { iterations: *iterations, ticks: C::read().wrapping_sub(before) as f64, trials: 1 }
            }
            (None, Fixed::Work) => calibrate::<C>(work, plan.grain, rate),
            (None, Fixed::Time) => calibrate_unit::<C>(work, plan.grain, rate),
        }
    }

    /// Loads the loop's code and resolves lazily bound symbols.
    fn rehearse<C: Counter>(&self, work: &mut Work, rate: TickRate) {
        let stop = Stop { samples: 2, deadline: u64::MAX };
        let quanta = Quanta { ticks: rate.ticks_in(Nanos::from_micros(10)).get(), step: 1 };
        match self.plan.fixed {
            Fixed::Work => fixed_work::<C>(work, 1, 0, stop, &mut |_, _, _| true),
            Fixed::Time => fixed_time::<C>(work, quanta, 0, stop, &mut |_, _, _| true),
        };
    }

    /// Measures the requested number of samples, with `iterations` per sample (fixed work) or per step (fixed time).
    fn sample<C: Counter>(
        &self,
        work: &mut Work,
        (iterations, rate): (u64, TickRate),
        samples: &SampleRing,
        ring: &Ring,
        cpu: CpuId,
        start: Ticks,
    ) -> LoopTally {
        let mut end = End::Deadline;
        let mut began = false;
        let mut shortest = u64::MAX;
        let may_have_moved = Lengths::until_full(Ticks::new(0), rate).may_have_moved.get();
        let mut keep = |before: u64, after: u64, work: u64| {
            let (from, until) = (Ticks::new(before), Ticks::new(after));
            if !began {
                began = true;
                ring.set_began(from);
            }
            if !samples.push(from, until, work) {
                end = End::Full;
                return false;
            }
            ring.set_progress(until);
            let took = after.wrapping_sub(before);
            shortest = shortest.min(took);
            if took >= shortest.saturating_add(may_have_moved) && sched::current_cpu().is_some_and(|now| now != cpu) {
                end = End::Moved;
                return false;
            }
            until < ring.deadline()
        };
        let stop = Stop { samples: self.plan.samples.unwrap_or(u64::MAX), deadline: u64::MAX };
        let sampled = match self.plan.fixed {
            Fixed::Work => fixed_work::<C>(work, iterations, start.get(), stop, &mut keep),
            Fixed::Time => {
                let quanta = Quanta { ticks: rate.ticks_in(self.plan.grain).get(), step: iterations };
                fixed_time::<C>(work, quanta, start.get(), stop, &mut keep)
            }
        };
        // The other copies on this CPU end with the measured one.
        ring.stop();
        let first = Ticks::new(sampled.first);
        let kept = if end == End::Full { sampled.samples - 1 } else { sampled.samples };
        // A sample that did not fit into the ring is not part of the tally.
        let last = if end == End::Full { ring.progress().max(first) } else { Ticks::new(sampled.last) };
        LoopTally {
            first,
            last,
            iterations: kept,
            shortest: Ticks::new(shortest),
            below: Ticks::new(0),
            kept: last - first,
            kept_steps: kept,
            backwards: 0,
            end,
        }
    }

    /// The work's part of the document before anything was measured.
    fn document(&self) -> WorkDoc {
        let plan = &self.plan;
        WorkDoc {
            body: plan.body_name(),
            iteration: match plan.bodies.len() {
                0 => plan.body.iteration().to_owned(),
                _ => "each CPU with a body of its own".to_owned(),
            },
            bodies: plan
                .bodies
                .iter()
                .map(|(cpu, body)| WorkBody {
                    cpu: *cpu,
                    body: body.name().to_owned(),
                    iteration: body.iteration().to_owned(),
                })
                .collect(),
            fixed: plan.fixed,
            grain_ns: plan.grain,
            copies: plan.copies,
            added_hz: plan.added_hz,
            samples: plan.samples,
            memory_bytes: 0,
            cache_bytes: None,
            cache_known: true,
            loops: Vec::new(),
            sessions: vec![WorkSession { start_ns: Nanos::ZERO, ended: None }],
            counts: Vec::new(),
            not_counted: Vec::new(),
        }
    }
}

impl Loop for WorkLoop {
    const ALLOCATES: bool = true;

    type Ring = SampleRing;
    type Calibration = WorkCalibration;
    type Ready = ReadyWork;

    fn check(&self) -> Result<(), LoopError> {
        let plan = &self.plan;
        Ok(std::iter::once(&plan.body).chain(plan.bodies.values()).try_for_each(|body| Body::check(*body))?)
    }

    fn prepare<C: Counter>(
        &self,
        cpu: CpuId,
        rate: TickRate,
        _: &SampleRing,
    ) -> Result<(ReadyWork, WorkCalibration), LoopError> {
        let events = &self.plan.counters;
        let counters = (!events.is_empty()).then(|| Counters::for_current_thread(events, &Space::APART));
        let mut work = self.work(cpu)?;
        let calibrated = self.calibrate::<C>(&mut work, cpu, rate);
        let core_clock = core_clock::<C>(self.plan.body_on(cpu), rate);
        self.rehearse::<C>(&mut work, rate);
        let sized =
            WorkCalibration { calibrated, memory_bytes: work.memory_bytes(), cache: work.cache_size(), core_clock };
        Ok((ReadyWork { work, iterations: calibrated.iterations, rate, counters }, sized))
    }

    fn measure<C: Counter>(
        &self,
        ready: ReadyWork,
        cpu: CpuId,
        ring: &SampleRing,
        start: Ticks,
    ) -> (LoopTally, EventTotals) {
        let ReadyWork { mut work, iterations, rate, counters } = ready;
        let lead = rate.ticks_in(COUNTERS_LEAD);
        let readings = ring.readings();
        let sample = || self.sample::<C>(&mut work, (iterations, rate), ring, readings, cpu, start);
        run_counted::<C, _>(counters, start.get().saturating_sub(lead.get()), sample)
    }

    fn further_threads(&self) -> u32 {
        self.plan.copies.saturating_sub(1)
    }

    fn accompany<'a, C: Counter>(
        &self,
        cpu: CpuId,
        ring: &SampleRing,
        calibrated: impl FnOnce() -> Option<&'a WorkCalibration>,
    ) -> u64 {
        let work = self.work(cpu);
        let (Some(sized), Ok(mut work)) = (calibrated(), work) else { return 0 };
        let iterations = sized.calibrated.iterations;
        let readings = ring.readings();
        let mut done = 0;
        while Ticks::new(C::read()) < readings.deadline() {
            std::hint::black_box(work.run::<C>(iterations));
            done += iterations;
        }
        done
    }

    fn variation(&self) -> Option<f64> {
        self.plan.maiv
    }

    fn threshold_text(&self) -> String {
        Threshold::Auto.to_string()
    }

    fn describe(&self, calibrations: &[&WorkCalibration], _: TicksToNanos, rate: TickRate, node: &mut NodeDoc) {
        let mut doc = self.document();
        for (cpu, sized) in node.cpus.iter().zip(calibrations) {
            doc.memory_bytes = doc.memory_bytes.max(sized.memory_bytes);
            doc.cache_bytes = doc.cache_bytes.max(sized.cache.map(|cache| cache.bytes));
            doc.cache_known &= sized.cache.is_none_or(|cache| cache.is_known);
            doc.loops.push(WorkLoopDoc {
                cpu: cpu.cpu,
                iterations: sized.calibrated.iterations,
                calibrated_ns: sized.calibrated.duration(rate),
                others_iterations: 0,
                core_clock: sized.core_clock,
            });
        }
        node.settings.work = Some(doc);
    }

    fn conclude(&self, measured: &LoopResult, cpu: &mut CpuDoc, settings: &mut SettingsDoc) {
        let Some(work) = &mut settings.work else { return };
        for one in work.loops.iter_mut().filter(|one| one.cpu == cpu.cpu) {
            one.others_iterations = measured.others_iterations;
        }
        work.counts.extend(measured.counted.rows(cpu.cpu));
        for line in &measured.counted.not_counted {
            if !work.not_counted.contains(line) {
                work.not_counted.push(line.clone());
            }
        }
    }
}
