//! The detours of a thread that measured nothing: the events of its CPU show when it had the CPU, and what took the CPU from it.
//!
//! A detour starts with the interrupt or softirq that stops the thread, or with the switch that takes the CPU from it although it is
//! runnable. It ends with the event that gives the CPU back. Two on the exit path of the same interrupt are one: a softirq after its
//! interrupt, a switch after the tick that requested it. A sleeping thread has no detours, and its wait after being woken is not one: no
//! switch shows when it was woken. The thread's own page faults and system calls are its own time.

use becalm_attribute::{Attributor, Interruptions, Tally};
use becalm_measure::Names;
use becalm_model::{Event, Happening, Label, LoopThread, Pid, Platform, Step, ThreadState};
use becalm_units::{CpuId, Nanos};

/// The longest time from the end of an interrupt to a softirq or a switch on its exit path, as in attribution.
const WAY_OUT: Nanos = Nanos::new(5_000);

/// The arrivals of a thread on CPUs.
#[derive(Clone, Debug, Default)]
pub struct Whereabouts(Vec<(Nanos, CpuId)>);

impl Whereabouts {
    /// Notes an event of a CPU.
    pub fn take(&mut self, thread: Pid, cpu: CpuId, event: &Event) {
        let comes = matches!(event.what, Happening::Switch { next, .. } if next == thread);
        // A thread that has its CPU when the trace starts arrived before.
        let is_there = event.thread == thread && self.0.last().is_none_or(|(_, last)| *last != cpu);
        if comes || is_there && !matches!(event.what, Happening::Lost { .. }) {
            self.0.push((event.time, cpu));
        }
    }

    /// The CPUs on which it was seen, in rising order.
    pub fn cpus(&self) -> Vec<CpuId> {
        let mut cpus: Vec<CpuId> = self.0.iter().map(|(_, cpu)| *cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// Its arrivals on CPUs other than this one, in order of time.
    fn elsewhere(&self, cpu: CpuId) -> Vec<Nanos> {
        let mut times: Vec<Nanos> = self.0.iter().filter(|(_, other)| *other != cpu).map(|(time, _)| *time).collect();
        times.sort_unstable();
        times
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadTime {
    /// Its time on the CPU, including its interruptions.
    pub had: Nanos,
    /// Its runnable time with others on the CPU.
    pub waited: Nanos,
    /// The number of such waits that ended on another CPU.
    pub moved: u64,
}

/// An interrupt or a softirq under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Handler {
    Irq(Label),
    Softirq(Label),
}

/// Follows a thread on one CPU.
#[derive(Debug)]
pub struct ThreadDetours {
    thread: Pid,
    attributor: Attributor,
    /// Its arrivals on other CPUs that are still to come.
    elsewhere: std::iter::Peekable<std::vec::IntoIter<Nanos>>,
    /// The thread on the CPU; `None` if that is unknown.
    current: Option<Pid>,
    /// The handlers above the thread while it has the CPU.
    handlers: Vec<Handler>,
    /// The start of the present detour, and its events.
    open: Option<Nanos>,
    events: Vec<Event>,
    /// Its end, unless the next event belongs to it.
    ending: Option<Nanos>,
    /// The start of the thread's wait, if it waits.
    waits_since: Option<Nanos>,
    /// The start of its time on the CPU, if it has it.
    has_since: Option<Nanos>,
    last: Nanos,
    time: ThreadTime,
}

impl ThreadDetours {
    pub fn new(thread: Pid, cpu: CpuId, whereabouts: &Whereabouts, names: &mut Names) -> Self {
        let as_loop = LoopThread { cpu, pid: thread, t_min: Nanos::ZERO, realtime: false };
        Self {
            thread,
            attributor: Attributor::new(as_loop, Platform::Metal, &mut names.labels).with_events_alone(),
            elsewhere: whereabouts.elsewhere(cpu).into_iter().peekable(),
            current: None,
            handlers: Vec::new(),
            open: None,
            events: Vec::new(),
            ending: None,
            waits_since: None,
            has_since: None,
            last: Nanos::ZERO,
            time: ThreadTime::default(),
        }
    }

    pub fn take(&mut self, event: &Event, names: &mut Names, found: &mut Interruptions) {
        let at = event.time;
        self.leave_for_elsewhere(at, names, found);
        if matches!(event.what, Happening::Lost { .. }) {
            self.lose(event, names, found);
            return;
        }
        self.settle(event, names, found);
        let present = if let Happening::Switch { prev, .. } = event.what { prev } else { event.thread };
        self.meet(present, at, names, found);
        self.happen(event, names, found);
        self.last = at;
    }

    /// Ends the trace, and everything under way with its last event. Returns attribution's counts, and the thread's time.
    pub fn end(&mut self, names: &mut Names, found: &mut Interruptions) -> (Tally, ThreadTime) {
        self.leave_for_elsewhere(self.last, names, found);
        self.stop(names, found);
        (self.attributor.finish(&mut names.labels), self.time)
    }

    fn is_there(&self) -> bool {
        self.current == Some(self.thread)
    }

    /// Ends a wait that was over when the thread continued on another CPU.
    fn leave_for_elsewhere(&mut self, at: Nanos, names: &mut Names, found: &mut Interruptions) {
        let Some(since) = self.waits_since else { return };
        while self.elsewhere.next_if(|time| *time <= since).is_some() {}
        let Some(until) = self.elsewhere.next_if(|time| *time <= at) else { return };
        let until = until.max(self.last);
        self.come_back(until);
        self.finish(until, false, names, found);
        self.wait_until(until);
        self.time.moved += 1;
    }

    /// Tells attribution that the thread continues; this CPU has no event for it.
    fn come_back(&mut self, at: Nanos) {
        if let (Some(prev), false) = (self.current, self.is_there()) {
            let what = Happening::Switch { prev, prev_state: ThreadState::RUNNABLE, next: self.thread };
            self.events.push(Event { time: at, thread: prev, what });
        }
    }

    fn wait_until(&mut self, at: Nanos) {
        self.time.waited += self.waits_since.take().map_or(Nanos::ZERO, |since| at - since);
    }

    fn have_until(&mut self, at: Nanos) {
        self.time.had += self.has_since.take().map_or(Nanos::ZERO, |since| at - since);
    }

    /// Stops at the last event: nothing is known after it.
    fn stop(&mut self, names: &mut Names, found: &mut Interruptions) {
        if let Some(end) = self.ending {
            self.finish(end, false, names, found);
        } else if self.open.is_some() {
            self.come_back(self.last);
            self.finish(self.last, true, names, found);
        }
        self.wait_until(self.last);
        self.have_until(self.last);
        self.current = None;
        self.handlers.clear();
    }

    /// Handles events lost before this one.
    fn lose(&mut self, event: &Event, names: &mut Names, found: &mut Interruptions) {
        self.stop(names, found);
        let Names { tasks, labels, .. } = names;
        self.attributor.attribute(&[], &[*event], tasks, labels, &mut found.detours, &mut found.activities);
        self.last = event.time;
    }

    /// Ends a detour that seemed to be over, or continues it.
    fn settle(&mut self, event: &Event, names: &mut Names, found: &mut Interruptions) {
        let Some(end) = self.ending else { return };
        let follows = match event.what {
            Happening::SoftirqEntry { .. } => event.thread == self.thread,
            Happening::Switch { prev, prev_state, .. } => prev == self.thread && prev_state.is_runnable(),
            _ => false,
        };
        if follows && event.time - end <= WAY_OUT {
            self.ending = None;
        } else {
            self.finish(end, false, names, found);
        }
    }

    /// Learns which thread has the CPU just before an event. If it is not the one of the last switch, a switch is missing from the trace.
    fn meet(&mut self, present: Pid, at: Nanos, names: &mut Names, found: &mut Interruptions) {
        if self.current == Some(present) {
            return;
        }
        if present == self.thread {
            // Attribution decides which of the two had it until now.
            self.finish(at, false, names, found);
            self.wait_until(at);
            self.has_since = Some(if self.current.is_none() { self.last.max(Nanos::ZERO) } else { at });
            self.handlers.clear();
        } else if self.is_there() {
            self.finish(self.last, true, names, found);
            self.have_until(self.last);
            self.handlers.clear();
        }
        self.current = Some(present);
    }

    fn happen(&mut self, event: &Event, names: &mut Names, found: &mut Interruptions) {
        let at = event.time;
        match event.what {
            Happening::Switch { prev, prev_state, next } => {
                self.switch(event, prev, prev_state.is_runnable(), next, names, found)
            }
            Happening::IrqEntry { source, .. } => self.begin(event, Handler::Irq(source)),
            Happening::SoftirqEntry { source } => self.begin(event, Handler::Softirq(source)),
            Happening::IrqExit { source, .. } => self.return_from(event, Handler::Irq(source)),
            Happening::SoftirqExit { source } => self.return_from(event, Handler::Softirq(source)),
            Happening::Nmi { delta, .. } if self.is_there() && self.open.is_none() => {
                let start = (at - delta.max(Nanos::ZERO)).max(self.last);
                if start < at {
                    self.open = Some(start);
                    self.events.push(*event);
                    self.ending = Some(at);
                }
            }
            Happening::Nmi { .. }
            | Happening::WorkStart { .. }
            | Happening::WorkEnd { .. }
            | Happening::FunctionEntry { .. }
            | Happening::FunctionExit { .. }
            | Happening::Waking { .. }
            | Happening::Woken { .. }
            | Happening::Life(_) => self.keep(event),
            // No event shows the end of a fault: those of the thread are its own time.
            Happening::Fault { .. } | Happening::Lost { .. } => {}
        }
    }

    fn keep(&mut self, event: &Event) {
        if self.open.is_some() {
            self.events.push(*event);
        }
    }

    fn begin(&mut self, event: &Event, handler: Handler) {
        if self.is_there() {
            self.open.get_or_insert(event.time);
            self.handlers.push(handler);
        }
        self.keep(event);
    }

    fn return_from(&mut self, event: &Event, handler: Handler) {
        self.keep(event);
        if let (true, Some(depth)) = (self.is_there(), self.handlers.iter().rposition(|known| *known == handler)) {
            self.handlers.truncate(depth);
            if depth == 0 && self.open.is_some() {
                self.ending = Some(event.time);
            }
        }
    }

    fn switch(
        &mut self,
        event: &Event,
        prev: Pid,
        prev_runnable: bool,
        next: Pid,
        names: &mut Names,
        found: &mut Interruptions,
    ) {
        let at = event.time;
        if prev == self.thread {
            self.handlers.clear();
            self.have_until(at);
            if prev_runnable {
                self.open.get_or_insert(at);
                self.waits_since = Some(at);
                self.keep(event);
            } else {
                self.finish(at, false, names, found);
            }
        } else {
            self.keep(event);
        }
        self.current = Some(next);
        if next == self.thread {
            self.finish(at, false, names, found);
            self.wait_until(at);
            self.has_since = Some(at);
        }
    }

    /// Ends the present detour, if there is one, at an instant up to which all of its events have been kept.
    fn finish(&mut self, end: Nanos, is_incomplete: bool, names: &mut Names, found: &mut Interruptions) {
        self.ending = None;
        let Some(start) = self.open.take() else { return };
        if end > start {
            let Names { tasks, labels, .. } = names;
            let step = Step { start, end };
            self.attributor.attribute(&[step], &self.events, tasks, labels, &mut found.detours, &mut found.activities);
            if let Some(detour) = found.detours.last_mut() {
                detour.incomplete |= is_incomplete;
            }
        }
        self.events.clear();
    }
}
