//! The recorder: sets everything up, lets the loops run, collects, and says how it went.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use becalm_linux::clock::{self, Anchor, Calibration, Counter, MonotonicRaw};
use becalm_linux::ftrace::{Instance, InstanceConfig, TraceClock, Tracefs, TracefsError, remove_dead};
use becalm_linux::janitor::Janitor;
use becalm_linux::memory;
use becalm_linux::procfs::kallsyms::Kallsyms;
use becalm_linux::procfs::kernel;
use becalm_linux::sched::{self, Policy};
use becalm_linux::signals::{self, StopSignals};
use becalm_linux::sysfs::machine::Lockdown;
use becalm_model::node::{
    ClockDoc, CpuDoc, Ended, NodeDoc, Rung, SCHEMA, Settings, TracingDoc, Warning, WorkDoc, WorkLoop, WorkSession,
};
use becalm_model::node_name;
use becalm_model::{LoopThread, Pid};
use becalm_units::{CpuId, CpuList, Named, Nanos, Ticks, TicksToNanos};

use crate::acquire::{End, Tally};
use crate::collector::{Collector, TraceSide};
use crate::companion::Companion;
use crate::counters::Snapshot;
use crate::error::RecordError;
use crate::event_clock::EventClock;
use crate::loop_thread::{Go, Loops, Measured, Profile};
use crate::plan::{Plan, Threshold};
use crate::preflight;
use crate::ring::Ring;
use crate::steps::StepProfile;
use crate::threads::Names;
use crate::translate::Translator;
use crate::work::Body;
use crate::work_loop::{Task, WorkTask};
use crate::{Sink, machine, warnings};

/// How far a recording is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// For how long the loops have run.
    pub elapsed: Nanos,
    /// For how long they shall; nothing if that is open.
    pub duration: Option<Nanos>,
    /// Detours so far.
    pub detours: u64,
}

/// A finished recording.
#[derive(Debug)]
pub struct Recording {
    /// The node's document, but for what attribution counted.
    pub node: NodeDoc,
    /// The command that ran meanwhile, and may run still.
    pub command: Companion,
}

/// How often the collector looks, where it has a CPU of its own.
const QUIET_INTERVAL: Duration = Duration::from_millis(100);
/// How often it looks where it disturbs a measured CPU.
const SHARED_INTERVAL: Duration = Duration::from_secs(1);
/// How long the counter's rate is measured before the start.
const CALIBRATION: Nanos = Nanos::from_millis(100);

/// Records as planned. `guard` removes the trace instance should the process be killed, or says why nobody will; `signals`
/// end the recording in good order.
///
/// # Errors
/// Before the start: whatever makes the plan impossible, and nothing is left behind. Later: if the sink fails, or the
/// system in a way that leaves nothing to record.
pub fn record<S: Sink>(
    plan: Plan,
    guard: Result<Arc<Janitor>, String>,
    signals: &StopSignals,
    sink: &mut S,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recording, RecordError<S::Error>> {
    let choice = clock::choose(&plan.root);
    match choice.source {
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        clock::Source::Native => {
            Recorder::<clock::Native>::prepare(plan, guard, choice.why_not_native)?.run(signals, sink, progress)
        }
        _ => Recorder::<MonotonicRaw>::prepare(plan, guard, choice.why_not_native)?.run(signals, sink, progress),
    }
}

/// Everything that a run needs, set up, with the loops asleep.
struct Recorder<C> {
    plan: Plan,
    cpus: CpuList,
    calibration: Calibration,
    clock: ClockDoc,
    tracing: Option<Tracing>,
    rings: Vec<Arc<Ring>>,
    /// The guard process, or why there is none.
    guard: Result<Arc<Janitor>, String>,
    names: Names,
    warnings: Vec<Warning>,
    /// The CPUs on which the process may run and where no loop runs.
    free: CpuList,
    /// Where the process ran before.
    allowed: CpuList,
    counter: std::marker::PhantomData<C>,
}

/// The kernel's trace, set up and off.
struct Tracing {
    instance: Instance,
    clock: TraceClock,
    symbols: Option<Kallsyms>,
    /// The kernel's strings by address, which name the reasons of inter-processor interrupts on Arm.
    strings: BTreeMap<u64, String>,
    doc: TracingDoc,
}

impl<C: Counter> Recorder<C> {
    fn prepare<E>(
        plan: Plan,
        guard: Result<Arc<Janitor>, String>,
        why_not_native: Option<String>,
    ) -> Result<Self, RecordError<E>> {
        let mut warnings = Vec::new();
        warnings.extend(why_not_native.map(|why| warnings::slow_clock(&why)));
        if let Some(work) = &plan.work {
            Body::check(work.body)?;
        }
        let selection = preflight::select(&plan.root, plan.cpus.as_ref())?;
        if !selection.left_out.is_empty() {
            warnings.push(warnings::left_out(&selection.left_out));
        }
        let cpus = selection.cpus;
        let allowed = sched::allowed_cpus()?;
        let free = allowed.without(&cpus);
        if free.is_empty() {
            warnings.push(warnings::no_free_cpu());
        }
        let calibration = clock::calibrate::<C>(CALIBRATION)?;
        let agreement = clock::compare_cpus::<C>(&cpus, calibration.rate);
        let resolution = clock::resolution::<C>(calibration.rate);
        // Counters that move in leaps may be a leap apart at any instant without being off.
        if agreement.proven > resolution {
            warnings.push(warnings::counters_differ(agreement.proven));
        }
        let clock = ClockDoc {
            counter: C::NAME.to_owned(),
            origin_ticks: 0,
            rate_hz: calibration.rate.hz(),
            rate_error_ratio: calibration.error_ratio,
            resolution_ns: resolution,
            cross_cpu_ns: (agreement.compared > 0).then_some(agreement.offset),
            backwards: 0,
        };
        let new_ring = || match plan.work {
            None => Ring::new(plan.ring_bytes / 16),
            Some(_) => Ring::of_samples(plan.ring_bytes / 24),
        };
        let rings: Result<Vec<_>, _> = cpus.iter().map(|_| new_ring().map(Arc::new)).collect();
        let mut recorder = Self {
            names: Names::new(&plan.root),
            plan,
            cpus,
            calibration,
            clock,
            tracing: None,
            rings: rings?,
            guard,
            warnings,
            free,
            allowed,
            counter: std::marker::PhantomData,
        };
        if recorder.plan.sources {
            if let Err(why) = &recorder.guard {
                recorder.warnings.push(warnings::no_janitor(why));
            }
            match recorder.set_up_tracing() {
                Ok(tracing) => recorder.tracing = Some(tracing),
                Err(error) => {
                    // The kernel's own answer is a plain "no such file" or "not permitted" then.
                    let why = match Lockdown::read(&recorder.plan.root) {
                        Ok(Lockdown::Confidentiality) => {
                            format!("kernel lockdown (confidentiality) forbids it, also to root; {error}")
                        }
                        _ => error.to_string(),
                    };
                    recorder.warnings.push(warnings::no_tracing(&why));
                }
            }
        }
        Ok(recorder)
    }

    fn set_up_tracing(&mut self) -> Result<Tracing, TracefsError> {
        let proc_root = self.plan.root.join("proc");
        let tracefs = Tracefs::find_or_mount(&self.plan.root, Path::new(Tracefs::MOUNT_POINT))?;
        // Instances of becalms that were killed together with their janitors cost every event of everybody.
        remove_dead(&tracefs, &proc_root)?;
        // The counter's own clock needs no conversion. The fallback counter is itself the kernel's raw clock.
        let offered = tracefs.clocks()?;
        let tsc = C::NAME == "tsc" && offered.iter().any(|clock| clock == TraceClock::X86Tsc.name());
        let clock = if tsc { TraceClock::X86Tsc } else { TraceClock::MonoRaw };
        let kib = |bytes: usize| u32::try_from(bytes >> 10).unwrap_or(u32::MAX).max(64);
        let config = InstanceConfig {
            cpus: self.cpus.clone(),
            clock,
            buffer_kb: kib(self.plan.trace_bytes),
            subbuf_kb: Some(SUBBUF_KB),
        };
        let instance = Instance::create(&tracefs, &proc_root, &config, self.guard.as_ref().ok().cloned())?;
        let missing: Vec<String> = instance
            .missing()
            .iter()
            .map(|event| format!("{} ({}): {}", event.event, event.why, event.unseen))
            .collect();
        if !missing.is_empty() {
            self.warnings.push(warnings::missing_events(&missing));
        }
        let symbols = match Kallsyms::read(&self.plan.root) {
            Ok(symbols) => Some(symbols),
            Err(error) => {
                self.warnings.push(warnings::no_symbols(&error.to_string()));
                None
            }
        };
        let buffer_kb = self.cpus.iter().next().map_or(Ok(0), |cpu| instance.buffer_kb(cpu))?;
        let doc = TracingDoc {
            clock: clock.name().to_owned(),
            events: instance.enabled().iter().map(ToString::to_string).collect(),
            missing,
            buffer_bytes: u64::from(buffer_kb) << 10,
        };
        Ok(Tracing { instance, clock, symbols, strings: tracefs.strings().unwrap_or_default(), doc })
    }

    fn run<S: Sink>(
        mut self,
        signals: &StopSignals,
        sink: &mut S,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Recording, RecordError<S::Error>> {
        if self.rings.iter().any(|ring| !ring.is_locked()) | !memory::lock_current_pages() {
            self.warnings.push(warnings::not_locked());
        }
        // Becoming a quiet neighbor before the loops exist, so that their calibration is not disturbed.
        if !self.free.is_empty() {
            sched::set_affinity(&self.free)?;
        }
        let result = self.run_loops(signals, sink, progress);
        memory::unlock_pages();
        let _ = sched::set_affinity(&self.allowed);
        result
    }

    fn run_loops<S: Sink>(
        &mut self,
        signals: &StopSignals,
        sink: &mut S,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Recording, RecordError<S::Error>> {
        let system = |action| move |source| RecordError::System { action, source };
        let rate = self.calibration.rate;
        let task = match &self.plan.work {
            None => Task::Watch,
            Some(work) => Task::Work(Arc::new(WorkTask { plan: work.clone(), rate, root: self.plan.root.clone() })),
        };
        let mut loops = Loops::start::<C>(&self.cpus, self.plan.policy, &task, &self.rings)
            .map_err(system("start a measuring thread"))?;
        let profiles = loops.gather()?;
        if self.plan.work.is_some() {
            // The memory that the bodies work on has come since.
            memory::lock_current_pages();
        }
        let parameters = self.parameters(&profiles)?;

        // The origin lies a little ahead: the time that waking all the threads takes.
        let wake_up = Nanos::from_millis(10) + Nanos::from_micros(50 * self.cpus.len() as i64);
        // Whatever else this process does is not becalm's work: a benchmark or an MPI rank may record itself.
        self.names.set_own(Pid(sched::current_tid()));
        for (tid, _) in &profiles {
            self.names.set_own(Pid(*tid));
        }
        if let Ok(janitor) = &self.guard {
            self.names.set_own(Pid(janitor.pid()));
        }
        let anchor = Anchor::take::<C>();
        let origin = Ticks::new(anchor.ticks.get() + rate.ticks_in(wake_up).get());
        let axis = TicksToNanos::new(origin, rate);
        let described: Vec<LoopThread> = self
            .cpus
            .iter()
            .zip(&profiles)
            .map(|(cpu, (tid, profile))| LoopThread {
                cpu,
                pid: Pid(*tid),
                t_min: match profile {
                    Profile::Steps(steps) => axis.duration(Ticks::new(steps.shortest)),
                    Profile::Work(..) => Nanos::ZERO,
                },
                realtime: self.plan.policy.is_realtime(),
            })
            .collect();
        let mut node = self.node(&anchor, wake_up, axis, &profiles, &parameters);
        sink.begin(&node, &described, &mut self.names).map_err(RecordError::Sink)?;

        let trace = match &mut self.tracing {
            None => None,
            Some(tracing) => {
                let readers: Result<Vec<_>, _> = self.cpus.iter().map(|cpu| tracing.instance.reader(cpu)).collect();
                let decoder = tracing.instance.decoder().clone();
                Some(TraceSide {
                    translator: Translator::new(
                        &decoder,
                        tracing.symbols.take(),
                        &tracing.strings,
                        &mut self.names.labels,
                    ),
                    clock: EventClock::new(tracing.clock, C::NAME != MonotonicRaw::NAME, axis, anchor),
                    decoder,
                    readers: readers.map_err(|error| RecordError::System {
                        action: "open the trace",
                        source: io::Error::other(error),
                    })?,
                })
            }
        };
        let rings = self.cpus.iter().zip(self.rings.iter().cloned()).collect();
        let mut collector = Collector::new(rings, axis, trace);
        if let Some(maiv) = self.plan.work.as_ref().and_then(|work| work.maiv) {
            collector.watch_repetitions(maiv);
        }

        // On a machine where every CPU is measured, the collector must get through to end the recording at all.
        if self.free.is_empty() && self.plan.policy.is_realtime() {
            sched::set_policy(Policy::Fifo((self.plan.policy.priority() + 1).min(99)))?;
        }
        if let Some(tracing) = &self.tracing {
            tracing
                .instance
                .start()
                .map_err(|error| RecordError::System { action: "start the trace", source: io::Error::other(error) })?;
        }
        // Everything above took time; the start must lie ahead of now for every thread.
        let origin = axis.origin().get().max(C::read() + rate.ticks_in(wake_up).get());
        let deadline =
            self.plan.duration.map_or(u64::MAX, |duration| origin.saturating_add(rate.ticks_in(duration).get()));
        for ring in &self.rings {
            ring.set_deadline(deadline);
        }
        loops.start.give(Go::At(origin, parameters.into()));
        // Taken when the loops begin, not before: waking them all takes long enough for many ticks.
        let ahead = Ticks::new(origin.saturating_sub(C::read()));
        std::thread::sleep(axis.duration(ahead).to_std());
        let before = Snapshot::take(&self.plan.root);

        let mut command = Companion::start(self.plan.command.take(), &self.allowed, signals)
            .map_err(|(command, source)| RecordError::Command { command, source })?;
        let start = axis.instant(Ticks::new(origin));
        let collected =
            self.collect::<S>(&mut loops, &mut collector, &mut command, signals, (axis, start), sink, progress);
        for ring in &self.rings {
            ring.stop();
        }
        let measured = loops.join();
        if let Some(tracing) = &self.tracing {
            // The last events are in the buffers by now; a trace that goes on would only bring our own writing.
            let _ = tracing.instance.stop();
        }
        let after = Snapshot::take(&self.plan.root);
        if self.free.is_empty() && self.plan.policy.is_realtime() {
            let _ = sched::set_policy(Policy::Other);
        }
        let ended = how_ended(collected?, &measured);
        collector.take(true).map_err(system("read the kernel's trace"))?;
        let end = Anchor::take::<C>();
        let late_anchor = collector.needs_anchors().then_some(end);
        collector.hand_over(sink, &mut self.names, late_anchor, true).map_err(RecordError::Sink)?;
        sink.end_segment(&self.names).map_err(RecordError::Sink)?;

        node.ended = Some(ended);
        for session in node.settings.work.iter_mut().flat_map(|work| &mut work.sessions) {
            session.ended = Some(ended);
        }
        node.counters = after.since(&before, &self.cpus);
        // The whole run is the longest baseline there is: how far was the rate off that was used?
        if let Ok(whole) = Calibration::between::<C>(&anchor, &end) {
            let off = (whole.rate.hz() / rate.hz() - 1.0).abs();
            node.clock.rate_error_ratio = off + whole.error_ratio;
        }
        for (((cpu, measured), counts), ring) in
            node.cpus.iter_mut().zip(&measured).zip(collector.counts()).zip(&self.rings)
        {
            let Some(measured) = measured else { continue };
            fill(cpu, measured, axis);
            if let Some(work) = &mut node.settings.work {
                // Each of its steps is a sample, and none a detour.
                cpu.detours = 0;
                let of = work.loops.iter_mut().find(|of| of.cpu == cpu.cpu);
                of.into_iter().for_each(|of| of.others_iterations = measured.others_iterations);
                work.counts.extend(measured.counted.rows(cpu.cpu));
                for line in &measured.counted.not_counted {
                    if !work.not_counted.contains(line) {
                        work.not_counted.push(line.clone());
                    }
                }
            }
            cpu.events = counts.events;
            cpu.lost_events = counts.lost_events;
            node.clock.backwards += measured.tally.backwards;
            debug_assert!(ring.waiting() == 0, "every step was taken");
        }
        self.late_warnings(&mut node, &collector);
        drop(collector);
        if let Some(tracing) = self.tracing.take() {
            tracing.instance.remove().map_err(|error| RecordError::System {
                action: "remove the trace instance",
                source: io::Error::other(error),
            })?;
        }
        Ok(Recording { node, command })
    }

    /// The thresholds in ticks, or the iterations of loops that do work.
    fn parameters<E>(&self, profiles: &[(i32, Profile)]) -> Result<Vec<u64>, RecordError<E>> {
        let of = |(cpu, (_, profile)): (CpuId, &(i32, Profile))| match profile {
            Profile::Steps(steps) => self.threshold(cpu, steps),
            Profile::Work(calibrated, ..) => Ok(calibrated.iterations),
        };
        self.cpus.iter().zip(profiles).map(of).collect()
    }

    fn threshold<E>(&self, cpu: CpuId, profile: &StepProfile) -> Result<u64, RecordError<E>> {
        let rate = self.calibration.rate;
        match self.plan.threshold {
            Threshold::Auto => Ok(profile.auto_threshold()),
            Threshold::Length(length) => {
                let ticks = rate.ticks_in(length).get();
                if ticks > profile.shortest {
                    return Ok(ticks);
                }
                let ns = |ticks: u64| Nanos::new((ticks as f64 * rate.tick_ns()).ceil() as i64);
                let (t_min, least) = (ns(profile.shortest), ns(profile.shortest) + Nanos::new(1));
                Err(RecordError::Threshold { threshold: length, t_min, cpu, least })
            }
        }
    }

    /// The document at the start: nothing has been measured yet.
    fn node(
        &mut self,
        anchor: &Anchor,
        wake_up: Nanos,
        axis: TicksToNanos,
        profiles: &[(i32, Profile)],
        parameters: &[u64],
    ) -> NodeDoc {
        let root: &Path = &self.plan.root;
        let rung = match &self.tracing {
            Some(_) => Rung::Tracepoints,
            None if Snapshot::take(root).is_some() => Rung::Proc,
            None => Rung::Loop,
        };
        let cpus = self.cpus.iter().zip(profiles).zip(parameters).map(|((cpu, (_, profile)), parameter)| {
            let ns = |ticks| axis.duration(Ticks::new(ticks));
            let mut doc = CpuDoc::new(cpu);
            if let Profile::Steps(steps) = profile {
                doc.t_min_ns = ns(steps.shortest);
                doc.median_step_ns = ns(steps.median);
                doc.threshold_ns = ns(*parameter);
            }
            doc
        });
        let wall = anchor.wall_ns as i128 + i128::from(wake_up.get());
        NodeDoc {
            schema: SCHEMA.to_owned(),
            node: node_name(&kernel::hostname(root).unwrap_or_else(|_| "localhost".to_owned())),
            program: format!("becalm {}", env!("CARGO_PKG_VERSION")),
            origin: jiff::Timestamp::from_nanosecond(wall).unwrap_or_default(),
            ended: None,
            machine: machine::describe(root),
            clock: ClockDoc { origin_ticks: axis.origin().get(), ..self.clock.clone() },
            settings: Settings {
                sched: self.plan.policy.to_string(),
                threshold: self.plan.threshold.to_string(),
                duration_ns: self.plan.duration,
                command: self.plan.command.as_ref().map(|(_, written)| written.clone()).unwrap_or_default(),
                work: self.work_doc(profiles),
            },
            rung,
            cpus: cpus.collect(),
            tracing: self.tracing.as_ref().map(|tracing| tracing.doc.clone()),
            counters: Vec::new(),
            warnings: self.warnings.clone(),
        }
    }

    /// What the loops do, if they do work.
    fn work_doc(&self, profiles: &[(i32, Profile)]) -> Option<WorkDoc> {
        let plan = self.plan.work.as_ref()?;
        let mut doc = WorkDoc {
            body: plan.body.name().to_owned(),
            iteration: plan.body.iteration().to_owned(),
            fixed: plan.fixed,
            grain_ns: plan.grain,
            copies: plan.copies,
            samples: plan.samples,
            memory_bytes: 0,
            cache_bytes: None,
            cache_known: true,
            loops: Vec::new(),
            sessions: vec![WorkSession { start_ns: Nanos::ZERO, ended: None }],
            counts: Vec::new(),
            not_counted: Vec::new(),
        };
        for (cpu, (_, profile)) in self.cpus.iter().zip(profiles) {
            let Profile::Work(calibrated, memory_bytes, cache) = profile else { continue };
            doc.memory_bytes = doc.memory_bytes.max(*memory_bytes);
            doc.cache_bytes = doc.cache_bytes.max(cache.map(|(bytes, _)| bytes));
            doc.cache_known &= cache.is_none_or(|(_, known)| known);
            doc.loops.push(WorkLoop {
                cpu,
                iterations: calibrated.iterations,
                calibrated_ns: calibrated.duration(self.calibration.rate),
                others_iterations: 0,
            });
        }
        Some(doc)
    }

    #[expect(clippy::too_many_arguments, reason = "the one place where all parts of a running recording meet")]
    fn collect<S: Sink>(
        &mut self,
        loops: &mut Loops,
        collector: &mut Collector,
        command: &mut Companion,
        signals: &StopSignals,
        (axis, start): (TicksToNanos, Nanos),
        sink: &mut S,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Ended, RecordError<S::Error>> {
        let shared = self.free.is_empty();
        let interval = if shared { SHARED_INTERVAL } else { QUIET_INTERVAL };
        let mut detours = 0;
        let mut segment_began = Nanos::ZERO;
        loop {
            let now = axis.instant(Ticks::new(C::read())) - start;
            let left = self.plan.duration.map_or(Nanos::MAX, |duration| duration - now);
            // A millisecond past the deadline, so that the last look finds the loops ended.
            let patience = interval.min((left.max(Nanos::ZERO).to_std()).saturating_add(Duration::from_millis(1)));
            signals::wait_readable([Some(signals.as_fd()), command.end_fd()], patience)
                .map_err(|source| RecordError::System { action: "wait for the loops", source })?;
            let now = axis.instant(Ticks::new(C::read())) - start;
            let ended = if signals.take().is_some() {
                Some(Ended::Signal)
            } else if command.has_ended() {
                Some(Ended::Command)
            } else if loops.all_ended() {
                Some(Ended::Duration)
            } else {
                None
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
            if left <= Nanos::ZERO {
                // The loops are about to end; one may be in a long detour.
                continue;
            }
            detours += collector
                .take(false)
                .map_err(|source| RecordError::System { action: "read the kernel's trace", source })?;
            let segment_is_full = now - segment_began >= self.plan.segment;
            if !shared || segment_is_full || collector.backlog() >= self.plan.backlog_bytes {
                let anchor = collector.needs_anchors().then(Anchor::take::<C>);
                collector.hand_over(sink, &mut self.names, anchor, false).map_err(RecordError::Sink)?;
            }
            if segment_is_full {
                sink.end_segment(&self.names).map_err(RecordError::Sink)?;
                segment_began = now;
            }
            let enough = self.plan.work.as_ref().is_some_and(|work| work.maiv.is_some()) && collector.repeated_enough();
            if enough {
                return Ok(Ended::Duration);
            }
            progress(Progress { elapsed: now, duration: self.plan.duration, detours });
        }
    }

    fn late_warnings(&self, node: &mut NodeDoc, collector: &Collector) {
        if node.clock.backwards > 0 {
            node.warnings.push(warnings::backwards(node.clock.backwards));
        }
        if let Some((cpu, error)) = collector.first_broken() {
            let pages: u64 = collector.counts().map(|counts| counts.broken_pages).sum();
            node.warnings.push(warnings::broken_pages(pages, *cpu, &error.to_string()));
        }
    }
}

/// The size of the trace's sub-buffers where the kernel lets us choose: each read takes one, so that at 10,000 events a
/// second on each of 1,024 CPUs some thousand reads a second do.
const SUBBUF_KB: u32 = 64;

/// How the recording ended: as the collector saw it, unless the loops had a reason of their own.
fn how_ended(seen: Ended, measured: &[Option<Measured>]) -> Ended {
    let because = |end: End| {
        move |measured: &Option<Measured>| measured.as_ref().is_some_and(|measured| measured.tally.end == end)
    };
    if measured.iter().any(because(End::Full)) {
        Ended::BufferFull
    } else if measured.iter().all(because(End::Moved)) {
        Ended::CpusGone
    } else {
        seen
    }
}

/// Enters what a loop measured into its CPU's document.
fn fill(doc: &mut CpuDoc, measured: &Measured, axis: TicksToNanos) {
    let Tally { first, last, iterations, below, kept_steps, end, .. } = measured.tally;
    doc.start_ns = axis.instant(Ticks::new(first));
    doc.duration_ns = axis.instant(Ticks::new(last)) - doc.start_ns;
    doc.iterations = iterations;
    doc.below_threshold_ns = axis.duration(Ticks::new(below));
    doc.detours = kept_steps;
    doc.faults = measured.usage.faults;
    doc.voluntary_switches = measured.usage.voluntary_switches;
    doc.involuntary_switches = measured.usage.involuntary_switches;
    doc.cut_short = end != End::Deadline;
}
