//! Puts the lines of the kernel's tracers osnoise and timerlat in order of time: the events that they do not write, and the gaps of the
//! tracer's own loop.
//!
//! A line reports something that has ended: its start, and its time on the CPU without interruptions. Non-maskable interrupts interrupt
//! everything, interrupts interrupt softirqs and threads, softirqs interrupt threads; lines are in the order of ends. So anything that
//! started after the start given in a later line, and may interrupt it, was inside it and delayed its end by its own time. timerlat counts
//! the time of a thread from within the interrupt of its timer: that interrupt is taken as part of the thread, too.

use std::collections::BTreeMap;

use becalm_measure::{Names, SOFTIRQS};
use becalm_model::{Event, Happening, Label, Pid, Step, ThreadState};
use becalm_units::{CpuId, Nanos};

use super::HeldTrace;
use super::clock::Axis;
use crate::read::ReadError;
use crate::read::osnoise::{NoiseMaker, OsnoiseEvent, OsnoiseHappening, Period};

/// Takes the lines of a text, in the order of the text.
#[derive(Debug, Default)]
pub struct NoiseNamer {
    cpus: BTreeMap<CpuId, NoiseCpu>,
    figures: TracerFigures,
    first: Option<Nanos>,
}

/// The tracer's own counts for periods that are completely in the text, and the counts found in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TracerFigures {
    pub periods: u64,
    /// The tracer's counts; the longest gap is that of all periods.
    pub counted: Period,
    /// The counts found in the text.
    pub found: Period,
}

/// The trace made from a text.
#[derive(Debug)]
pub struct NoiseTrace {
    /// The events, on an axis that starts with the first of them or with the first gap.
    pub trace: HeldTrace,
    /// The start of that axis by the clock of the tracer.
    pub origin: Nanos,
    /// The loop of each CPU of the trace. No loop has a step if no tracer's loop ran, as with timerlat.
    pub loops: Vec<TracerLoop>,
    /// The tracer's own counts.
    pub figures: TracerFigures,
}

#[derive(Clone, Debug)]
pub struct TracerLoop {
    pub thread: Pid,
    /// Its gaps, in order of time, without overlap.
    pub steps: Vec<Step>,
    /// The run time that it reports for all periods that have ended, also for one that is only partly in the text.
    pub runtime: Nanos,
}

/// The start of a loss, until a later line has a time.
const UNKNOWN: Nanos = Nanos::MAX;

/// Each level interrupts the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    /// Lines were lost; no span extends over that.
    Lost,
    Thread,
    Softirq,
    Irq,
    Nmi,
}

/// An uninterrupted stay on the CPU, apart from interruptions by higher levels.
#[derive(Clone, Copy, Debug)]
struct Span {
    level: Level,
    start: Nanos,
    end: Nanos,
    net: Nanos,
    /// The number of spans directly before it that are inside it.
    inner: usize,
    who: Who,
}

#[derive(Clone, Copy, Debug)]
enum Who {
    Nmi(Label),
    Irq { source: Label, detail: Label },
    Softirq(Label),
    Thread(Pid),
    Lost { count: Option<u64> },
}

/// The lines read of one CPU.
#[derive(Debug, Default)]
struct NoiseCpu {
    tracer: Option<Pid>,
    /// In the order of their ends.
    spans: Vec<Span>,
    gaps: Vec<Step>,
    runtime: Nanos,
    /// The counts of the present period, if the text has all of it.
    period: Option<Period>,
}

impl NoiseNamer {
    /// Takes the next line. Fails if it ends later than times can be.
    pub fn take(&mut self, event: &OsnoiseEvent<'_>, names: &mut Names) -> Result<(), ReadError> {
        let cpu = self.cpus.entry(event.cpu).or_default();
        let began = match event.what {
            OsnoiseHappening::Noise { who, start, net } => {
                cpu.count(who);
                let Some((level, who)) = named(who, names) else { return Ok(()) };
                Some(cpu.span(level, who, start, net)?)
            }
            OsnoiseHappening::Gap { start, duration, interference } => {
                cpu.tracer = event.thread.map(Pid).or(cpu.tracer);
                Some(cpu.gap(start, duration, interference))
            }
            OsnoiseHappening::Period(period) => {
                cpu.runtime = cpu.runtime.saturating_add(period.runtime);
                if let Some(found) = cpu.period.replace(Period::default()) {
                    self.figures.add(&period, &found);
                }
                None
            }
            OsnoiseHappening::Latency => None,
            OsnoiseHappening::Lost { count } => {
                let (level, who, net) = (Level::Lost, Who::Lost { count }, Nanos::ZERO);
                cpu.spans.push(Span { level, start: UNKNOWN, end: UNKNOWN, net, inner: 0, who });
                cpu.period = None;
                None
            }
        };
        self.first = [self.first, began].into_iter().flatten().min();
        Ok(())
    }

    /// The trace. Fails if no line shows what had a CPU, or the times are too far apart.
    pub fn finish(self) -> Result<NoiseTrace, ReadError> {
        let origin = self.first.ok_or_else(|| {
            ReadError::new(
                "it holds no event of the tracer: switch them on before tracing (echo 1 > events/osnoise/enable in /sys/kernel/tracing), or \
                 let rtla do it (-t)",
            )
        })?;
        let (mut cpus, mut loops, mut backwards) = (Vec::new(), Vec::new(), 0);
        for (cpu, read) in self.cpus {
            let thread = read.tracer.unwrap_or(Pid::IDLE);
            let mut axis = Axis::new(origin.get().into());
            let mut last = origin;
            let mut events = events(&read.spans, thread);
            for event in &mut events {
                // The kernel reads the clock separately for each start and end, so they may be a few nanoseconds out of order.
                last = last.max(event.time);
                event.time = axis.place(last.get().into(), 0)?;
            }
            let (steps, overlapping) = steps(read.gaps, origin);
            backwards += overlapping;
            cpus.push((cpu, events));
            loops.push(TracerLoop { thread, steps, runtime: read.runtime });
        }
        Ok(NoiseTrace { trace: HeldTrace::new(cpus, backwards), origin, loops, figures: self.figures })
    }
}

impl TracerFigures {
    /// Kinds with a higher count by the tracer than in the text: name, number counted, number in the text.
    pub fn lacking(&self) -> Vec<(&'static str, u64, u64)> {
        let Self { counted, found, .. } = self;
        let all = [
            ("gaps without any event", counted.hardware, found.hardware),
            ("non-maskable interrupts", counted.nmis, found.nmis),
            ("interrupts", counted.irqs, found.irqs),
            ("softirqs", counted.softirqs, found.softirqs),
            ("threads", counted.threads, found.threads),
        ];
        all.into_iter().filter(|(_, counted, found)| counted > found).collect()
    }

    /// Adds a period that is completely in the text.
    fn add(&mut self, counted: &Period, found: &Period) {
        self.periods += 1;
        for (sum, period) in [(&mut self.counted, counted), (&mut self.found, found)] {
            sum.runtime = sum.runtime.saturating_add(period.runtime);
            sum.noise = sum.noise.saturating_add(period.noise);
            sum.longest = sum.longest.max(period.longest);
            sum.hardware += period.hardware;
            sum.nmis += period.nmis;
            sum.irqs += period.irqs;
            sum.softirqs += period.softirqs;
            sum.threads += period.threads;
        }
    }
}

impl NoiseCpu {
    fn count(&mut self, who: NoiseMaker<'_>) {
        let Some(period) = &mut self.period else { return };
        match who {
            NoiseMaker::Nmi => period.nmis += 1,
            NoiseMaker::Irq { .. } => period.irqs += 1,
            NoiseMaker::Softirq { .. } => period.softirqs += 1,
            NoiseMaker::Thread { .. } => period.threads += 1,
        }
    }

    /// Adds a span that has ended; returns its start.
    fn span(&mut self, level: Level, who: Who, start: Nanos, net: Nanos) -> Result<Nanos, ReadError> {
        let too_late = || ReadError::new("what it tells of ends later than times can be");
        let (mut start, mut end) = (start, start.checked_add(net).ok_or_else(too_late)?);
        let mut inner = 0;
        for within in self.spans.iter().rev() {
            if within.level <= level || within.end <= start {
                break;
            }
            inner += 1;
            end = end.checked_add(within.net).ok_or_else(too_late)?;
        }
        // A span inside it started earlier: the reported start is too late.
        let earliest = self.spans[self.spans.len() - inner..].iter().map(|within| within.start).min();
        start = earliest.map_or(start, |earliest| earliest.min(start));
        self.spans.push(Span { level, start, end, net, inner, who });
        Ok(start)
    }

    /// Adds a gap of the tracer's loop; returns the start of it or of the loss before it.
    fn gap(&mut self, start: Nanos, duration: Nanos, interference: u64) -> Nanos {
        // Both are below a quarter of the largest time.
        let (end, mut began) = (start + duration, start);
        if let Some(lost) = self.spans.last_mut().filter(|span| span.level == Level::Lost && span.start == UNKNOWN) {
            // Events in the first gap after the mark are among the lost ones.
            let instant = Nanos::new(1);
            lost.start = if interference == 0 { start - instant } else { (end - instant).max(start) };
            began = began.min(lost.start);
        }
        self.gaps.push(Step { start, end });
        if let Some(period) = &mut self.period {
            period.noise = period.noise.saturating_add(duration);
            period.longest = period.longest.max(duration);
            period.hardware += u64::from(interference == 0);
        }
        began
    }
}

/// Level and table entry of a noise maker; `None` for the idle thread.
fn named(who: NoiseMaker<'_>, names: &mut Names) -> Option<(Level, Who)> {
    Some(match who {
        NoiseMaker::Nmi => (Level::Nmi, Who::Nmi(names.labels.intern("nmi"))),
        NoiseMaker::Irq { name, vector } => {
            let detail = names.labels.intern(&format!("{name}:{vector}"));
            let source = if name.is_empty() { detail } else { names.labels.intern(name) };
            (Level::Irq, Who::Irq { source, detail })
        }
        NoiseMaker::Softirq { vec } => {
            let known = SOFTIRQS.get(vec as usize).map(|name| names.labels.intern(name));
            (Level::Softirq, Who::Softirq(known.unwrap_or_else(|| names.labels.intern(&format!("softirq {vec}")))))
        }
        NoiseMaker::Thread { tid: 0, .. } => return None,
        NoiseMaker::Thread { name, tid } => {
            names.see(Pid(tid), name.as_bytes());
            (Level::Thread, Who::Thread(Pid(tid)))
        }
    })
}

/// Gaps as steps since the origin, in order, and the number left out because they overlap the one before.
fn steps(mut gaps: Vec<Step>, origin: Nanos) -> (Vec<Step>, u64) {
    gaps.sort_by_key(|gap| gap.start);
    let (mut steps, mut until) = (Vec::with_capacity(gaps.len()), Nanos::ZERO);
    let all = gaps.len();
    for gap in gaps {
        let step = Step { start: gap.start - origin, end: gap.end - origin };
        if step.start >= until && step.end > step.start {
            until = step.end;
            steps.push(step);
        }
    }
    let left_out = all - steps.len();
    (steps, left_out as u64)
}

/// The events of the spans, with the times of the text. The thread `base` runs below all of them.
fn events(spans: &[Span], base: Pid) -> Vec<Event> {
    // Backwards, so each span comes before those inside it.
    let mut events: Vec<Event> = Vec::with_capacity(2 * spans.len());
    // Open spans, each with the number of inner spans still to come.
    let mut open: Vec<(&Span, usize)> = Vec::new();
    for span in spans.iter().rev() {
        let below = thread_of(&open, base);
        if let Who::Lost { count } = span.who {
            // Up to the next event; a loss after the last line does not matter.
            let time = events.last().map_or(UNKNOWN, |event| event.time).min(span.start);
            if time < UNKNOWN {
                events.push(Event { time, thread: Pid::IDLE, in_interrupt: false, what: Happening::Lost { count } });
            }
            continue;
        }
        events.extend(end(span, below, base));
        open.push((span, span.inner));
        while let Some((span, _)) = open.pop_if(|(_, left)| *left == 0) {
            events.extend(begin(span, thread_of(&open, base), base));
            if let Some((_, left)) = open.last_mut() {
                *left = left.saturating_sub(span.inner + 1);
            }
        }
    }
    events.reverse();
    events
}

fn thread_of(open: &[(&Span, usize)], base: Pid) -> Pid {
    let thread = |(span, _): &(&Span, usize)| if let Who::Thread(pid) = span.who { Some(pid) } else { None };
    open.iter().rev().find_map(thread).unwrap_or(base)
}

/// The event that ends a span. A thread is switched in and out above `base`.
fn end(span: &Span, below: Pid, base: Pid) -> Option<Event> {
    let (thread, what) = match span.who {
        Who::Nmi(source) => (below, Happening::Nmi { source, delta: span.net }),
        Who::Irq { source, detail } => (below, Happening::IrqExit { source, detail }),
        Who::Softirq(source) => (below, Happening::SoftirqExit { source }),
        Who::Thread(pid) => (pid, Happening::Switch { prev: pid, prev_state: ThreadState::RUNNABLE, next: base }),
        Who::Lost { .. } => return None,
    };
    Some(Event { time: span.end, thread, in_interrupt: true, what })
}

fn begin(span: &Span, below: Pid, base: Pid) -> Option<Event> {
    let (thread, what) = match span.who {
        Who::Irq { source, detail } => (below, Happening::IrqEntry { source, detail }),
        Who::Softirq(source) => (below, Happening::SoftirqEntry { source }),
        Who::Thread(pid) => (base, Happening::Switch { prev: base, prev_state: ThreadState::RUNNABLE, next: pid }),
        // Only its end is an event; it contains the length.
        Who::Nmi(_) | Who::Lost { .. } => return None,
    };
    Some(Event { time: span.start, thread, in_interrupt: true, what })
}
