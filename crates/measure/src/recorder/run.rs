//! The run: the loops measure while the recorder collects.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use becalm_linux::clock::{Anchor, Counter, MonotonicRaw};
use becalm_linux::ftrace::Marks;
use becalm_linux::memory;
use becalm_linux::procfs::status::Capability;
use becalm_linux::rights::{self, Lowered};
use becalm_linux::sched::{self, Policy, SchedError};
use becalm_linux::{signals, sysfs};
use becalm_model::node::Ended;
use becalm_model::{LoopThread, NodeDoc, Pid, Step, warning};
use becalm_units::{Nanos, Ticks, TicksToNanos};

use super::collector::{Collector, HandOver, TraceSide};
use super::companion::Companion;
use super::document::{Onset, how_ended, set_ended};
use super::pauses::Pauses;
use super::prepared::Prepared;
use super::unchanged::Unchanged;
use super::{Outside, Progress, Recording};
use crate::clock_log::ClockLog;
use crate::error::RecordError;
use crate::loops::{Lanes, Loop, LoopCalibration as _};
use crate::machine::KernelCounters;
use crate::plan::AfterSetUp;
use crate::sink::Sink;
use crate::spool::Spool;
use crate::trace::{EventClock, RawCauses, RawTrace, Translator};

/// The collector's interval if it has a CPU of its own.
const QUIET_INTERVAL: Duration = Duration::from_millis(100);
/// Its interval if it disturbs a measured CPU, and the one after an interval that filled more than a quarter of the rings.
const SHARED_INTERVAL: Duration = Duration::from_millis(500);
const SHARED_AND_BUSY_INTERVAL: Duration = Duration::from_millis(250);

/// The default length of a segment.
const SEGMENT: Nanos = Nanos::from_secs(10);
/// The time allowed for starting the trace, in a recording that is set up for a given instant.
const START_TRACE: Nanos = Nanos::from_millis(200);
/// The default length and size limit of segments whose storing takes time from the loops. Two CPUs on which a busy host causes 20,000 short detours
/// per second each reach the size limit in 60 s.
const SHARED_SEGMENT: (Nanos, usize) = (Nanos::from_secs(60), 64 << 20);
/// The bytes of memory for steps that are then allocated before the start.
const SHARED_PREPARED: usize = 16 << 20;

#[derive(Clone, Copy)]
struct TakeScope {
    /// Whether to take everything.
    all: bool,
    /// Whether to read the trace's files.
    read: bool,
}

/// A recording whose loops are running.
struct Running<'a, L: Loop> {
    lanes: &'a Lanes<L>,
    collector: &'a mut Collector<L::Ring>,
    command: &'a mut Companion,
    axis: TicksToNanos,
    /// When the loops started, on the run's axis.
    start: Nanos,
    /// The counter reading at the end of the duration; `u64::MAX` without one.
    over: u64,
}

impl<C: Counter, L: Loop> Prepared<C, L> {
    pub(super) fn run_loops<S: Sink>(
        &mut self,
        mut outside: Outside<'_, S>,
    ) -> Result<Recording, RecordError<S::Error>> {
        let marks = self.open_marks();
        let mut lanes = self.start_loops(marks.as_ref())?;
        self.name_own_threads(&mut lanes, marks.as_deref());
        drop(marks);
        let onset = self.onset();
        let mut node = self.document(&onset, &lanes);
        let threads: Vec<LoopThread> = self.threads(&lanes, onset.axis);
        // Before the bundle exists: observers consider the recording started once it does, and allocating the collector's memory takes time.
        let mut collector = self.collector(&lanes, &onset)?;
        outside.sink.begin(&node, &threads, &mut self.names).map_err(RecordError::Sink)?;

        let raised = AboveLoops::raise(self.plan.policy, self.free.is_empty())?;
        // Everything is open and in place; the command also starts with the remaining privileges.
        let lowered = self.leave_rights()?;
        self.sleep_until_before_instant(onset.wake_up + START_TRACE);
        if let Some(tracing) = &self.tracing {
            tracing.instance.start().map_err(|source| RecordError::Trace("start the trace", source))?;
        }
        if let Some(requests) = &self.requests {
            requests.turn(true).map_err(|source| RecordError::Trace("start the trace of requests", source))?;
        }
        self.unchanged = Unchanged::since(onset.axis.instant(Ticks::new(C::read())));
        let (start, over) = self.go(&lanes, &onset);
        let now = || onset.axis.instant(Ticks::new(C::read()));
        let before = KernelCounters::take_timed(&self.plan.root, now);
        collector.count_between(&before, None);
        self.lookout.begin(now);
        let mut command = Companion::start(self.plan.command.take(), &self.allowed, outside.signals)
            .map_err(|(command, source)| RecordError::Command(command, source))?;
        let running =
            Running { lanes: &lanes, collector: &mut collector, command: &mut command, axis: onset.axis, start, over };
        let mut clocks = ClockLog::start::<C>();
        let seen = self.collect(running, &mut clocks, &mut outside);
        let measured = lanes.stop();
        // While the trace still runs, so it contains every counted event.
        let after = KernelCounters::take_timed(&self.plan.root, now);
        if let Some(tracing) = &self.tracing {
            // The last events are in the buffers now; a running trace would only add our own writes.
            let _ = tracing.instance.stop();
        }
        if let Some(requests) = &self.requests {
            let _ = requests.turn(false);
        }
        collector.count_between(&before, Some(&after));
        drop(raised);
        drop(lowered);
        let (seen, measured) = (seen?, measured?);
        collector.watch(self.lookout.look(true, now));

        let pauses = &mut Pauses::never();
        self.take(&mut collector, TakeScope { all: true, read: true }, now, pauses)?;
        let end = Anchor::take::<C>();
        clocks.take::<C>();
        node.clock.pairs = clocks.pairs(onset.axis);
        let last = HandOver { anchor: collector.needs_anchors().then_some(end), all: true };
        collector.hand_over(outside.sink, &mut self.names, last, pauses).map_err(RecordError::Sink)?;
        collector.end_segment(outside.sink, &self.names, pauses).map_err(RecordError::Sink)?;
        set_ended(&mut node, how_ended(seen, &measured));
        for (cpu, smis) in self.lookout.smis() {
            node.cpus.iter_mut().filter(|doc| doc.cpu == cpu).for_each(|doc| doc.smis = Some(smis));
        }
        self.check_counters(&mut node, &before, &after, &collector);
        self.conclude(&mut node, &onset, &end, &measured, &collector);
        let causes = self.raw_causes(&mut collector, &lanes, &onset, end, &mut node)?;
        drop(collector);
        if let Some(tracing) = self.tracing.take() {
            tracing.instance.remove().map_err(|source| RecordError::Trace("remove the trace instance", source))?;
        }
        Ok(Recording { node, command, names: self.names.clone(), causes })
    }

    /// Takes waiting data from rings and trace, and checks that the trace is unchanged. Returns the number of steps taken.
    fn take<E>(
        &mut self,
        collector: &mut Collector<L::Ring>,
        TakeScope { all, read }: TakeScope,
        now: impl Fn() -> Nanos,
        pauses: &mut Pauses<'_>,
    ) -> Result<u64, RecordError<E>> {
        let before = now();
        let taken = collector.take(all, pauses);
        if let Some(requests) = &mut self.requests {
            requests.take(all).map_err(|source| RecordError::System("keep the trace of requests", source))?;
        }
        let ended = self.tracing.as_ref().and_then(|tracing| self.unchanged.look(&tracing.instance, before, read));
        collector.trace_goes_on(ended);
        match taken {
            // A failed read may be a consequence of the change.
            Err(_) if ended.is_some() => Ok(0),
            taken => taken.map_err(|source| RecordError::System("read the kernel's trace", source)),
        }
    }

    /// The traces from which the causes of activities follow; `None`, with a warning, if another program changed that of requests, which ends.
    fn raw_causes<E>(
        &mut self,
        collector: &mut Collector<L::Ring>,
        lanes: &Lanes<L>,
        onset: &Onset,
        end: Anchor,
        node: &mut NodeDoc,
    ) -> Result<Option<RawCauses>, RecordError<E>> {
        let (Some(requests), Some(tracing)) = (self.requests.take(), &self.tracing) else { return Ok(None) };
        let Some(spool) = collector.take_kept() else { return Ok(None) };
        let mut clock = EventClock::new(tracing.clock, C::NAME != MonotonicRaw::NAME, onset.axis, onset.anchor);
        clock.advance(end);
        let changed = requests.changed();
        let requests =
            requests.finish(clock).map_err(|source| RecordError::Trace("remove the trace of requests", source))?;
        if !changed.is_empty() {
            let why = format!("another program changed becalm's trace ({})", warning::changed_files(&changed));
            node.warnings.push(warning::no_causes(&why));
            return Ok(None);
        }
        let activities = RawTrace {
            spool,
            cpus: self.cpus.iter().collect(),
            decoder: tracing.instance.decoder().clone(),
            clock,
            symbols: requests.symbols.clone(),
            strings: tracing.strings.clone(),
            untraced_timer: tracing.untraced_timer,
        };
        let own = lanes.iter().map(|lane| lane.pid()).chain([Pid(sched::current_tid())]);
        let janitor = self.guard.as_ref().ok().map(|janitor| Pid(janitor.pid()));
        Ok(Some(RawCauses { activities, requests, own: own.chain(janitor).collect() }))
    }

    /// Starts the loops' threads, which calibrate themselves and then sleep.
    fn start_loops<E>(&self, marks: Option<&Arc<Marks>>) -> Result<Lanes<L>, RecordError<E>> {
        let places = self.cpus.iter().zip(self.rings.iter().cloned());
        let lanes = Lanes::start::<C>(&self.kind, self.plan.policy, self.calibration.rate, marks, places)?;
        if L::ALLOCATES {
            memory::lock_current_pages();
        }
        Ok(lanes)
    }

    /// Drops or lowers the process's privileges. The janitor keeps its own, and accepts no further requests once this process could be compromised.
    fn leave_rights<E>(&self) -> Result<Option<Lowered>, RecordError<E>> {
        match &self.plan.rights {
            AfterSetUp::Keep => Ok(None),
            AfterSetUp::Lower(user) => Ok(Some(rights::lower(user.as_ref())?)),
            AfterSetUp::GiveUp(left) => {
                let mut left = left.clone();
                match &self.guard {
                    Ok(janitor) if janitor.seal().is_ok() => {}
                    // Without it, nothing would remove the trace instance at the end.
                    _ if self.tracing.is_some() => left.kept = left.kept.with_capability(Capability::DacOverride),
                    _ => {}
                }
                rights::give_up(&left)?;
                Ok(None)
            }
        }
    }

    /// Chooses the origin, slightly in the future.
    fn onset(&self) -> Onset {
        let rate = self.calibration.rate;
        let wake_up = Nanos::from_millis(10) + Nanos::from_micros(50 * self.cpus.len() as i64);
        let anchor = Anchor::take::<C>();
        let origin = Ticks::new(anchor.ticks.get() + rate.ticks_in(wake_up).get());
        Onset { anchor, wake_up, axis: TicksToNanos::new(origin, rate) }
    }

    /// The measuring threads, for attribution.
    fn threads(&self, lanes: &Lanes<L>, axis: TicksToNanos) -> Vec<LoopThread> {
        let realtime = self.plan.policy.is_realtime();
        let thread = |lane: &crate::loops::LoopLane<L>| LoopThread {
            cpu: lane.cpu,
            pid: lane.pid(),
            t_min: axis.duration(lane.calibration().shortest_step()),
            realtime,
        };
        lanes.iter().map(thread).collect()
    }

    /// The collector of the loops and the trace.
    fn collector<E>(&mut self, lanes: &Lanes<L>, onset: &Onset) -> Result<Collector<L::Ring>, RecordError<E>> {
        let trace = match &mut self.tracing {
            None => None,
            Some(tracing) => {
                let readers: Result<Vec<_>, _> = self.cpus.iter().map(|cpu| tracing.instance.reader(cpu)).collect();
                let decoder = tracing.instance.decoder().clone();
                tracing.instance.watch_changes(&self.cpus);
                let (symbols, labels) = (tracing.symbols.take(), &mut self.names.labels);
                let native = C::NAME != MonotonicRaw::NAME;
                Some(TraceSide {
                    translator: Translator::new(&decoder, symbols, &tracing.strings, tracing.untraced_timer, labels),
                    clock: EventClock::new(tracing.clock, native, onset.axis, onset.anchor),
                    decoder,
                    readers: readers.map_err(|source| RecordError::Trace("open the trace", source))?,
                })
            }
        };
        let rings = lanes.iter().map(|lane| (lane.cpu, Arc::clone(&lane.ring))).collect();
        let mut collector = Collector::new(rings, onset.axis, trace);
        if let (Some(directory), Some(_), Some(tracing)) = (&self.plan.causes, &self.requests, &self.tracing) {
            let spool = Spool::new(directory, self.cpus.len(), tracing.instance.page_size());
            collector.keep_pages(spool.map_err(|source| RecordError::System("keep the kernel's trace", source))?);
        }
        if self.free.is_empty() {
            collector.prepare(SHARED_PREPARED);
        }
        collector.pair(|cpu| sysfs::cpu::siblings(&self.plan.root, cpu).ok().flatten().unwrap_or_default());
        if let Some(variation) = self.kind.variation() {
            collector.watch_repetitions(variation);
        }
        Ok(collector)
    }

    /// Releases the loops and sleeps until they start. Returns their start, and the latest reading at which they end.
    fn go(&self, lanes: &Lanes<L>, onset: &Onset) -> (Nanos, u64) {
        let rate = self.calibration.rate;
        // Everything before took time; the start must be in the future for every thread.
        let soonest = onset.axis.origin().get().max(C::read() + rate.ticks_in(onset.wake_up).get());
        let wanted =
            self.until_instant().map(|(left, anchor)| anchor.ticks.get().saturating_add(rate.ticks_in(left).get()));
        let origin = wanted.map_or(soonest, |wanted| soonest.max(wanted));
        let deadline =
            self.plan.duration.map_or(u64::MAX, |duration| origin.saturating_add(rate.ticks_in(duration).get()));
        lanes.go(Ticks::new(origin), Ticks::new(deadline.min(self.unattended_deadline()(origin))));
        // Sleep until the start before the kernel's counters are read: waking all loops takes long enough for many ticks.
        let ahead = Ticks::new(origin.saturating_sub(C::read()));
        std::thread::sleep(onset.axis.duration(ahead).to_std());
        (onset.axis.instant(Ticks::new(origin)), deadline)
    }

    /// The time until the loops' planned start, with readings of all clocks now; `None` if they may start at once.
    fn until_instant(&self) -> Option<(Nanos, Anchor)> {
        let anchor = Anchor::take::<C>();
        let now = i64::try_from(anchor.wall_ns).unwrap_or(i64::MAX);
        self.plan.at_ns.map(|at_ns| (Nanos::new(at_ns.saturating_sub(now).max(0)), anchor))
    }

    /// Sleeps until `lead` before the planned start, because no earlier event is needed.
    fn sleep_until_before_instant(&self, lead: Nanos) {
        if let Some((left, _)) = self.until_instant().filter(|(left, _)| *left > lead) {
            std::thread::sleep((left - lead).to_std());
        }
    }

    /// Whether real-time loops occupy every CPU, so only a thread of higher priority can preempt them.
    fn is_top(&self) -> bool {
        self.free.is_empty() && self.plan.policy.is_realtime()
    }

    /// Returns a function from a reading to the deadline of loops that occupy the whole machine if nothing is collected after it.
    fn unattended_deadline(&self) -> impl Fn(u64) -> u64 + use<C, L> {
        let unattended = self.is_top().then(|| self.calibration.rate.ticks_in(self.plan.unattended).get());
        move |now| unattended.map_or(u64::MAX, |ticks| now.saturating_add(ticks))
    }

    /// Collects until the recording ends, and returns the reason.
    fn collect<S: Sink>(
        &mut self,
        running: Running<'_, L>,
        clocks: &mut ClockLog,
        outside: &mut Outside<'_, S>,
    ) -> Result<Ended, RecordError<S::Error>> {
        let Running { lanes, collector, command, axis, start, over } = running;
        let elapsed = || axis.instant(Ticks::new(C::read())) - start;
        let shared = self.free.is_empty();
        let mut interval = if shared { SHARED_INTERVAL } else { QUIET_INTERVAL };
        let quarter_of_rings = (lanes.iter().count() * self.plan.ring_bytes / size_of::<Step>() / 4) as u64;
        let (segment, backlog) = match self.plan.segment {
            None if shared => SHARED_SEGMENT,
            asked => (asked.unwrap_or(SEGMENT), self.plan.backlog_bytes),
        };
        let (renewed, unattended_deadline) = (Cell::new(Nanos::ZERO), self.unattended_deadline());
        let renew = |now| {
            lanes.renew(Ticks::new(over.min(unattended_deadline(C::read()))));
            renewed.set(now);
        };
        let mut detours = 0;
        let mut segment_began = Nanos::ZERO;
        loop {
            let left = self.plan.duration.map_or(Nanos::MAX, |duration| duration - elapsed());
            // One millisecond past the deadline, so the last iteration finds the loops ended.
            let patience = interval.min((left.max(Nanos::ZERO).to_std()).saturating_add(Duration::from_millis(1)));
            let waited_for = [Some(outside.signals.as_fd()), command.end_fd(), Some(lanes.end_fd())];
            let [.., all_ended] = signals::wait_readable(waited_for, patience)
                .map_err(|source| RecordError::System("wait for the loops", source))?;
            let now = elapsed();
            if outside.signals.take().is_some() {
                return Ok(Ended::Signal);
            } else if command.has_ended() {
                return Ok(Ended::Command);
            } else if all_ended || lanes.all_ended() {
                let unattended = self.is_top() && now - renewed.get() >= self.plan.unattended;
                return Ok(if unattended && left > Nanos::ZERO { Ended::Unattended } else { Ended::Duration });
            }
            renew(now);
            clocks.look::<C>(now);
            if left <= Nanos::ZERO {
                // The loops are about to end; one may be in a long detour.
                continue;
            }
            let mut sleep = |length| {
                let interrupted = signals::wait_readable([Some(outside.signals.as_fd()), command.end_fd()], length);
                if !interrupted.is_ok_and(|readable| readable == [false; 2]) {
                    // The recording is about to end, and the remaining work takes no time from ended loops.
                    lanes.renew(Ticks::new(C::read()));
                    return false;
                }
                renew(elapsed());
                !lanes.all_ended()
            };
            let pauses = &mut if shared { Pauses::new(&mut sleep) } else { Pauses::never() };
            let segment_is_full = now - segment_began >= segment || collector.backlog() >= backlog;
            let axis_now = || axis.instant(Ticks::new(C::read()));
            let taken = self.take(collector, TakeScope { all: false, read: segment_is_full }, axis_now, pauses)?;
            detours += taken;
            if shared {
                interval = if taken > quarter_of_rings { SHARED_AND_BUSY_INTERVAL } else { SHARED_INTERVAL };
            }
            collector.watch(self.lookout.look(false, axis_now));
            if !shared || segment_is_full {
                let so_far = HandOver { anchor: collector.needs_anchors().then(Anchor::take::<C>), all: false };
                collector.hand_over(outside.sink, &mut self.names, so_far, pauses).map_err(RecordError::Sink)?;
            }
            if segment_is_full {
                collector.end_segment(outside.sink, &self.names, pauses).map_err(RecordError::Sink)?;
                segment_began = now;
            }
            if self.kind.variation().is_some() && collector.repeated_enough() {
                return Ok(Ended::Duration);
            }
            (outside.progress)(Progress { elapsed: now, duration: self.plan.duration, detours });
        }
    }
}

/// Keeps the recorder above real-time loops if it has no CPU of its own; otherwise it would never run to end the recording.
struct AboveLoops(bool);

impl AboveLoops {
    fn raise(policy: Policy, shared: bool) -> Result<Self, SchedError> {
        let raised = shared && policy.is_realtime();
        if raised {
            // There is always one above, because the highest priority was rejected.
            sched::set_policy(Policy::Fifo(policy.priority() + 1))?;
        }
        Ok(Self(raised))
    }
}

impl Drop for AboveLoops {
    fn drop(&mut self) {
        if self.0 {
            let _ = sched::set_policy(Policy::Other);
        }
    }
}
