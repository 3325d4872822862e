//! Attribution the plain way, for streams whose frames are legal and that may lack switches: without a stack and without
//! state. For every interval between two events it is asked again, of the whole list of events, which thread was on the CPU
//! and which of all the frames of the run was the innermost one active in it, and of each row what caused it. Takes cubic
//! time.

mod carried;

use becalm_attribute::{AFTERMATH_LONGEST, AFTERMATH_STEPS};
use becalm_model::carried::Carrier;
use becalm_model::{Activity, Detour, Event, Happening, Kind, Label, Pid, Step, ThreadState, not_traced, root, unseen};
use becalm_units::Nanos;

use crate::scene::{LOOP, Outcome, Scene};
use crate::streams::Stream;

/// A frame from its entry to its exit, by their positions in the list of events.
struct Span {
    kind: Kind,
    source: Label,
    detail: Label,
    /// Whether it is a function of an interrupt or a softirq.
    is_function: bool,
    /// The thread in which it runs; none for an interrupt.
    thread: Option<Pid>,
    entry: usize,
    exit: Option<usize>,
}

/// Who has an interval, or what an event begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Loop,
    /// The frame of that position in the list of spans.
    Span(usize),
    /// The stay of a thread on the CPU that began with the event of that position.
    Stay(usize, Pid),
    /// The loop's sleep, in a stay of the idle thread that began with the event of that position.
    Idle(usize),
    /// A limit that has kept the loop away since the event of that position.
    Throttling(usize),
    /// The handler that the event of that position tells of.
    Nmi(usize),
    /// The gap that the event of that position ends.
    Lost(usize),
    /// Either the first thread or the second, up to the event of that position: a switch between them is missing.
    Either(usize, Pid, Pid),
}

/// Of what a step without events can be the aftermath: the end of the last step, the root of what it ended with, and how many
/// more steps.
type Aftermath = (Nanos, String, u8);

pub struct Reference<'a> {
    scene: &'a mut Scene,
    steps: &'a [Step],
    events: &'a [Event],
    spans: Vec<Span>,
}

impl<'a> Reference<'a> {
    pub fn new(scene: &'a mut Scene, stream: &'a Stream) -> Self {
        let mut reference = Self { scene, steps: &stream.steps, events: &stream.events, spans: Vec::new() };
        for entry in 0..stream.events.len() {
            if let Some(span) = reference.span(entry) {
                reference.spans.push(span);
            }
        }
        reference
    }

    /// Detours, activities, and of the tally what such a stream has.
    pub fn outcome(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let mut seen = vec![false; self.spans.len()];
        let mut aftermath: Aftermath = (Nanos::new(i64::MIN), String::new(), 0);
        for (number, step) in self.steps.iter().enumerate() {
            let (incomplete, rows, hidden) = self.rows(*step);
            hidden.into_iter().for_each(|span| seen[span] = true);
            for (owner, _, length) in &rows {
                match owner {
                    Owner::Span(span) => seen[*span] = true,
                    Owner::Either(..) => outcome.tally.missing_switch += *length,
                    _ => {}
                }
            }
            let duration = self.close(*step, number as u64, &rows, &mut aftermath, &mut outcome.activities);
            outcome.detours.push(Detour { cpu: self.scene.thread.cpu, start: step.start, duration, incomplete });
        }
        self.tally(&seen, &mut outcome);
        outcome
    }

    fn tally(&self, seen: &[bool], outcome: &mut Outcome) {
        let tally = &mut outcome.tally;
        tally.incomplete = outcome.detours.iter().filter(|detour| detour.incomplete).count() as u64;
        tally.unmatched_switches = self.unmatched_switches();
        for (at, event) in self.events.iter().enumerate() {
            match event.what {
                Happening::Lost { count } => {
                    tally.lost_gaps += 1;
                    tally.lost_events += count.unwrap_or(1);
                }
                Happening::Nmi { delta, .. } => {
                    tally.events += 1;
                    if !self.steps.iter().any(|step| step.start <= event.time && event.time < step.end) {
                        let ends = self.steps.iter().map(|step| step.end).filter(|end| *end <= event.time);
                        let before = ends.chain(self.events[..at].iter().map(|event| event.time)).max();
                        let extent = before.map_or(delta, |before| delta.min(event.time - before));
                        tally.below_threshold_events += 1;
                        tally.below_threshold_max = tally.below_threshold_max.max(extent);
                    }
                }
                _ => tally.events += 1,
            }
        }
        for (span, seen) in self.spans.iter().zip(seen) {
            if let (false, false, Some(exit), Kind::Irq | Kind::Softirq) =
                (seen, span.is_function, span.exit, span.kind)
            {
                let extent = (span.entry + 1..=exit).map(|at| self.on_cpu(span, at)).sum::<Nanos>();
                tally.below_threshold_events += 1;
                tally.below_threshold_max = tally.below_threshold_max.max(extent);
            }
        }
    }

    /// How long the thread of a span is known to have been on the CPU between the event of that position and the one before:
    /// where a step begins there, the loop has come back, and where another thread writes an event, it was meant to run.
    fn on_cpu(&self, span: &Span, at: usize) -> Nanos {
        let (from, to) = (self.events[at - 1].time, self.events[at].time);
        // At both ends of a step the loop is there.
        let boundary = self.steps.iter().flat_map(|step| [step.start, step.end]).filter(|time| *time > from).min();
        let boundary = boundary.filter(|time| *time <= to);
        let last = if boundary.is_some() { Some(LOOP) } else { self.thread_after(at - 1) };
        // A handler that could not be interrupted was the other thread's from its begin on.
        let met = match self.events[at].what {
            Happening::Nmi { delta, .. } if last != self.thread_before(at) => {
                (to - delta).max(self.stretch(at).0).max(from)
            }
            _ => to,
        };
        let own = |thread| span.thread.is_none_or(|own| Some(own) == thread);
        let until = met.min(boundary.unwrap_or(to));
        let before = if own(self.thread_after(at - 1)) { until - from } else { Nanos::ZERO };
        // An interrupt runs on; a thread goes on when it is back.
        let since = if span.thread.is_none() { until } else { met };
        before + if own(self.thread_before(at)) { to - since } else { Nanos::ZERO }
    }

    /// How often another thread was on the CPU than the one that was there last, with the loop at both ends of each step.
    fn unmatched_switches(&self) -> u64 {
        // Each point in time with the thread before and after it, where that is known.
        let mut points: Vec<(Nanos, u8, Option<Pid>, Option<Pid>)> = Vec::new();
        for step in self.steps {
            points.push((step.start, 1, Some(LOOP), Some(LOOP)));
            // A gap that reaches over the end hides who was there until then.
            let next = self.events.partition_point(|event| event.time < step.end);
            let gap = matches!(self.events.get(next), Some(Event { what: Happening::Lost { .. }, .. }));
            points.push((step.end, 0, (!gap).then_some(LOOP), Some(LOOP)));
        }
        for at in 0..self.events.len() {
            points.push((self.events[at].time, 2, self.thread_before(at), self.thread_after(at)));
        }
        points.sort_by_key(|(time, order, ..)| (*time, *order));
        let differ = |pair: &&[(Nanos, u8, Option<Pid>, Option<Pid>)]| matches!((pair[0].3, pair[1].2), (Some(before), Some(after)) if before != after);
        points.windows(2).filter(differ).count() as u64
    }

    /// The thread on the CPU just before an event; unknown where events were lost until then.
    fn thread_before(&self, at: usize) -> Option<Pid> {
        match self.events[at].what {
            Happening::Lost { .. } => None,
            _ => Some(self.events[at].thread),
        }
    }

    /// The thread on the CPU right after an event; after lost ones that of the next event, or unknown.
    fn thread_after(&self, at: usize) -> Option<Pid> {
        match self.events[at].what {
            Happening::Switch { next, .. } => Some(next),
            Happening::Lost { .. } => None,
            _ => Some(self.events[at].thread),
        }
    }

    /// The stretch of the run, a step or what lies between two, in which an event lies.
    fn stretch(&self, at: usize) -> (Nanos, Nanos) {
        let time = self.events[at].time;
        let bounds = || self.steps.iter().flat_map(|step| [step.start, step.end]);
        let from = bounds().filter(|bound| *bound <= time).max().unwrap_or(Nanos::new(i64::MIN));
        (from, bounds().filter(|bound| *bound > time).min().unwrap_or(Nanos::MAX))
    }

    /// The thread on the CPU just before the event of that position, or the loop at the end of its stretch, and the event
    /// with which its time began, if that was not the beginning of the stretch.
    fn current(&self, at: usize) -> (Option<usize>, Pid) {
        self.current_in(at, self.stretch(at))
    }

    fn current_in(&self, at: usize, (from, to): (Nanos, Nanos)) -> (Option<usize>, Pid) {
        let inside = self.events.get(at).filter(|event| event.time < to);
        let thread = inside.map_or(Some(LOOP), |_| self.thread_before(at)).unwrap_or(LOOP);
        let mut since = None;
        for before in (0..at).rev().take_while(|before| self.events[*before].time >= from) {
            // After lost events whoever writes the next one.
            if self.thread_after(before).is_some_and(|after| after != thread) {
                return (since.or(Some(at)), thread);
            }
            since = Some(before);
            if self.thread_before(before) != Some(thread) {
                return (since, thread);
            }
        }
        (if thread == LOOP { None } else { since.or(Some(at)) }, thread)
    }

    /// The other thread that may have had the time just before the event of that position, or the end of its stretch: the
    /// one that was there last.
    fn other(&self, at: usize, (from, to): (Nanos, Nanos)) -> Option<Pid> {
        let thread = match self.events.get(at).filter(|event| event.time < to) {
            Some(_) => self.thread_before(at)?,
            None => LOOP,
        };
        let last = at.checked_sub(1).filter(|before| self.events[*before].time >= from);
        let other = last.map_or(Some(LOOP), |before| self.thread_after(before))?;
        (other != thread).then_some(other)
    }

    fn lost_between(&self, after: usize, before: usize) -> bool {
        self.events[after + 1..before].iter().any(|event| matches!(event.what, Happening::Lost { .. }))
    }

    /// The frame that an event begins.
    fn span(&self, entry: usize) -> Option<Span> {
        let (_, thread) = self.current(entry);
        let nothing = Label::EMPTY;
        let (kind, source, detail, thread) = match self.events[entry].what {
            Happening::IrqEntry { source, detail } => (Kind::Irq, source, detail, None),
            Happening::FunctionEntry { source, .. } if source != nothing => {
                let carrier = self.innermost(entry)?;
                // The first one has no frame of its own.
                self.functions(carrier, entry).next()?;
                self.functions(carrier, entry + 1).find(|at| *at == entry)?;
                let Span { kind, thread, .. } = self.spans[carrier];
                (kind, source, nothing, thread)
            }
            Happening::SoftirqEntry { source } => (Kind::Softirq, source, nothing, Some(thread)),
            Happening::WorkStart { source, .. } => {
                let detail = self.scene.tasks.get(thread).map_or(nothing, |task| task.detail);
                (Kind::Workqueue, source, detail, Some(thread))
            }
            Happening::Fault { source, detail } => {
                let stretch = self.stretch(entry);
                let only_faults = self.active(entry, stretch).all(|span| self.spans[span].kind == Kind::Fault);
                if thread != LOOP || !only_faults {
                    return None;
                }
                (Kind::Fault, source, detail, Some(LOOP))
            }
            _ => return None,
        };
        let exit = (entry + 1..self.events.len()).find(|exit| {
            let same_thread = thread.is_none_or(|thread| thread == self.current(*exit).1);
            !self.lost_between(entry, *exit)
                && same_thread
                && match (self.events[entry].what, self.events[*exit].what) {
                    (Happening::IrqEntry { source: a, .. }, Happening::IrqExit { source: b, .. })
                    | (Happening::SoftirqEntry { source: a }, Happening::SoftirqExit { source: b }) => a == b,
                    (Happening::WorkStart { work: a, .. }, Happening::WorkEnd { work: b, .. }) => a == b,
                    (
                        Happening::FunctionEntry { carrier: Carrier::Wheel, .. },
                        Happening::FunctionEntry { carrier: Carrier::Wheel, .. },
                    ) => true,
                    (Happening::FunctionEntry { .. }, Happening::SoftirqExit { source }) => {
                        kind == Kind::Softirq && self.innermost(entry).is_some_and(|at| self.spans[at].source == source)
                    }
                    // Those that interrupts within it run begin and end in it.
                    (Happening::FunctionEntry { .. }, Happening::FunctionExit { .. }) => {
                        let count = |what: &dyn Fn(&Happening) -> bool| {
                            let here = |at: &usize| thread.is_none_or(|thread| thread == self.current(*at).1);
                            (entry..=*exit).filter(here).filter(|at| what(&self.events[*at].what)).count()
                        };
                        count(&|what| matches!(what, Happening::FunctionEntry { .. }))
                            == count(&|what| matches!(what, Happening::FunctionExit { .. }))
                    }
                    _ => false,
                }
        });
        let is_function = matches!(self.events[entry].what, Happening::FunctionEntry { .. });
        Some(Span { kind, source, detail, is_function, thread, entry, exit })
    }

    /// Which of the spans known so far are active just before the event of that position.
    fn active(&self, at: usize, stretch: (Nanos, Nanos)) -> impl Iterator<Item = usize> {
        let (_, current) = self.current_in(at, stretch);
        self.spans_under_way(at, stretch)
            .filter(move |span| self.spans[*span].thread.is_none_or(|thread| thread == current))
    }

    /// Likewise, also those of threads that are away.
    fn spans_under_way(&self, at: usize, (from, _): (Nanos, Nanos)) -> impl Iterator<Item = usize> {
        (0..self.spans.len()).filter(move |span| {
            let Span { kind, entry, exit, .. } = self.spans[*span];
            // A fault ends with the next one, and with its step.
            let ended = kind == Kind::Fault
                && (self.events[entry].time < from
                    || self.spans[*span + 1..].iter().any(|next| next.kind == Kind::Fault && next.entry < at));
            entry < at && exit.is_none_or(|exit| exit >= at) && !self.lost_between(entry, at) && !ended
        })
    }

    /// Who has the time just before the event of that position, in a step.
    fn owner(&self, at: usize, stretch: (Nanos, Nanos)) -> Owner {
        if let Some(innermost) = self.active(at, stretch).max_by_key(|span| self.spans[*span].entry) {
            return Owner::Span(innermost);
        }
        self.thread_owner(at, stretch)
    }

    /// Who would have it if no frame were active.
    fn thread_owner(&self, at: usize, stretch: (Nanos, Nanos)) -> Owner {
        let (since, thread) = self.current_in(at, stretch);
        self.owner_of(thread, since, at, stretch)
    }

    /// Who has the time of a thread that came with an event, just before another one.
    fn owner_of(&self, thread: Pid, since: Option<usize>, at: usize, stretch: (Nanos, Nanos)) -> Owner {
        if thread == LOOP {
            return Owner::Loop;
        }
        let since = since.unwrap_or(at);
        if thread != Pid::IDLE {
            return Owner::Stay(since, thread);
        }
        if self.runnable(at.min(since + 1), stretch) {
            return Owner::Throttling(since);
        }
        let fault = self.spans_under_way(at, stretch).find(|span| self.spans[*span].kind == Kind::Fault);
        fault.map_or(Owner::Idle(since), Owner::Span)
    }

    /// Whether the loop could go on when it last left the CPU before the event of that position.
    fn runnable(&self, at: usize, stretch: (Nanos, Nanos)) -> bool {
        let left = (0..self.events.len().min(at)).rev().find_map(|before| match self.events[before].what {
            Happening::Switch { prev: LOOP, prev_state, .. } => Some((before, prev_state.is_runnable())),
            Happening::Lost { .. } => Some((before, true)),
            _ => None,
        });
        left.is_none_or(|(left, runnable)| self.events[left].time < stretch.0 || runnable)
    }

    /// Since which event a limit has kept the loop away, right after the event of that position.
    fn throttled(&self, at: usize, stretch: (Nanos, Nanos)) -> Option<usize> {
        let in_stretch = |event: &usize| {
            self.events.get(*event).is_some_and(|event| stretch.0 <= event.time && event.time < stretch.1)
        };
        // After lost events, the thread that writes the next event, unless that is lost as well.
        let next_thread = |event: usize| match self.thread_after(event) {
            None if in_stretch(&(event + 1)) => self.thread_before(event + 1).or(Some(LOOP)),
            None => Some(LOOP),
            after => after,
        };
        let is_there = |event: usize, pid| self.thread_before(event) == Some(pid) || next_thread(event) == Some(pid);
        let lost = |event: usize| matches!(self.events[event].what, Happening::Lost { .. });
        // The absence of the loop after the event: from where it was last there, or events were lost, until it is again.
        if !in_stretch(&at) || next_thread(at) == Some(LOOP) {
            return None;
        }
        let began = (0..=at).rev().take_while(in_stretch).find(|event| lost(*event) || is_there(*event, LOOP));
        let first = self.events.partition_point(|event| event.time < stretch.0);
        let absence = began.unwrap_or(first)..=at;
        let ends = |event: &usize| {
            lost(*event) || self.thread_before(*event) == Some(LOOP) || next_thread(*event - 1) == Some(LOOP)
        };
        let later = (at + 1..).take_while(in_stretch).take_while(|event| !ends(event));
        let left_for_it = began.filter(|event| {
            matches!(self.events[*event].what, Happening::Switch { prev: LOOP, prev_state: ThreadState::RUNNABLE, .. })
        });
        if let Some(left) = left_for_it {
            return (left..=at).chain(later).any(|event| is_there(event, Pid::IDLE)).then_some(left);
        }
        let idles = |event: usize| match began {
            Some(began) if began == event => next_thread(event) == Some(Pid::IDLE),
            _ => is_there(event, Pid::IDLE),
        };
        absence.into_iter().find(|event| idles(*event) && self.runnable(*event + 1, stretch))
    }

    /// Whether a step is incomplete; its rows by start, each with owner, start and length; and the frames without a row, because a
    /// limit kept the loop away.
    fn rows(&self, step: Step) -> (bool, Vec<(Owner, Nanos, Nanos)>, Vec<usize>) {
        let stretch = (step.start, step.end);
        let mut rows: Vec<(Owner, Nanos, Nanos)> = Vec::new();
        let mut incomplete = false;
        let mut hidden = Vec::new();
        let mut from = step.start;
        let first = self.events.partition_point(|event| event.time < step.start);
        let end = self.events.partition_point(|event| event.time < step.end);
        for at in first..=end {
            let event = self.events.get(at);
            let to = event.map_or(step.end, |event| event.time.min(step.end));
            let what = event.map(|event| event.what);
            // What the event tells of began before it only if it was a handler that could not be interrupted.
            let begin = match what {
                Some(Happening::Nmi { delta, .. }) if at < end => (to - delta).max(from),
                _ => to,
            };
            let throttled = at.checked_sub(1).and_then(|before| self.throttled(before, stretch));
            let loop_is_back = at == end || self.thread_before(at) == Some(LOOP);
            let kept_away = throttled.filter(|_| !loop_is_back);
            // The interval before the event.
            if let Some(Happening::Lost { .. }) = what {
                incomplete = true;
                grow(&mut rows, Owner::Lost(at), from, to, false);
            } else if let Some(since) = kept_away {
                grow(&mut rows, Owner::Throttling(since), from, to, false);
                // Where a switch is missing, the thread is known to be there from the handler's begin on.
                let known_from = if self.other(at, stretch).is_some() { begin } else { from };
                if let Owner::Span(span) = self.owner(at, stretch)
                    && to > known_from
                {
                    hidden.push(span);
                }
            } else if let Some(other) = self.other(at, stretch) {
                let thread = self.current_in(at, stretch).1;
                grow(&mut rows, Owner::Either(at, other, thread), from, begin, false);
                let met = self.throttled(at, stretch).filter(|_| thread == Pid::IDLE);
                let met = met.map_or_else(|| self.thread_owner(at, stretch), Owner::Throttling);
                if at < end && thread != LOOP {
                    grow(&mut rows, met, begin, begin, true);
                }
            } else {
                grow(&mut rows, self.owner(at, stretch), from, begin, false);
            }
            let throttled = self.throttled(at, stretch);
            if at < end && throttled.is_none() && matches!(what, Some(Happening::Nmi { .. })) {
                grow(&mut rows, Owner::Nmi(at), begin, to, true);
            }
            // What begins with it has a row even if it takes no time.
            if let Some(since) = throttled {
                // The thread that a handler interrupted was there when the handler started.
                let from = if kept_away.is_some() { to } else { begin };
                grow(&mut rows, Owner::Throttling(since), from, to, true);
                if let Owner::Span(span) = self.owner(at, stretch)
                    && to > from
                {
                    hidden.push(span);
                }
                hidden.extend(self.spans.iter().position(|span| span.entry == at));
            } else if at < end {
                let begun = self.spans.iter().position(|span| span.entry == at).map(Owner::Span);
                let begun = begun.or_else(|| match self.events[at].what {
                    Happening::Switch { .. } | Happening::Lost { .. } => {
                        self.begun_thread(at, stretch).filter(|owner| *owner != Owner::Loop)
                    }
                    _ => None,
                });
                if let Some(owner) = begun {
                    grow(&mut rows, owner, to, to, true);
                }
            }
            from = to;
        }
        (incomplete, rows, hidden)
    }

    /// Who has the time of the thread that a switch brought in, or that goes on after lost events.
    fn begun_thread(&self, at: usize, stretch: (Nanos, Nanos)) -> Option<Owner> {
        match self.thread_after(at) {
            Some(thread) => Some(self.owner_of(thread, Some(at), at + 1, stretch)),
            None => Some(self.thread_owner(at + 1, stretch)),
        }
    }

    /// Writes the rows down, with `t_min` taken off; returns the detour's duration.
    fn close(
        &mut self,
        step: Step,
        detour: u64,
        rows: &[(Owner, Nanos, Nanos)],
        aftermath: &mut Aftermath,
        activities: &mut Vec<Activity>,
    ) -> Nanos {
        let t_min = self.scene.thread.t_min.get().min((step.end - step.start).get());
        let duration = step.end - step.start - Nanos::new(t_min);
        let cpu = self.scene.thread.cpu;
        if rows.iter().all(|(owner, ..)| *owner == Owner::Loop) {
            let (kind, source, detail) = self.without_events(step, duration, aftermath);
            activities.push(Activity { cpu, detour, start: step.start, self_time: duration, kind, source, detail });
            return duration;
        }
        let exit = rows.len() - 1;
        let mut lengths: Vec<i64> = rows.iter().map(|(.., length)| length.get()).collect();
        // From the exit first, then from the other rests, then from the others, the longest first, of equal ones the first.
        let mut payers: Vec<usize> = (0..rows.len()).collect();
        payers.sort_by_key(|row| match rows[*row].0 {
            Owner::Loop => (0, i64::from(*row != exit)),
            _ => (1, -lengths[*row]),
        });
        for _ in 0..t_min {
            let payer = payers.iter().find(|row| lengths[**row] > 0).expect("the rows have more than t_min");
            lengths[*payer] -= 1;
        }
        let ended = self.ended(step, rows);
        for (row, ((owner, start, _), length)) in rows.iter().zip(lengths).enumerate() {
            if *owner == Owner::Loop && length == 0 {
                continue;
            }
            let (kind, source, detail) = match owner {
                Owner::Loop => {
                    let cause = rows.get(row + 1).map_or(ended.clone(), |(next, ..)| self.root(*next));
                    let place = if row == exit {
                        "exit"
                    } else if row == 0 {
                        "entry"
                    } else {
                        "between"
                    };
                    (Kind::Edge, self.scene.labels.intern(place), self.scene.labels.intern(&cause))
                }
                _ => self.name(*owner),
            };
            let self_time = Nanos::new(length);
            activities.push(Activity { cpu, detour, start: *start, self_time, kind, source, detail });
        }
        *aftermath = (step.end, ended, AFTERMATH_STEPS);
        duration
    }

    /// What a step without events is.
    fn without_events(&mut self, step: Step, duration: Nanos, aftermath: &mut Aftermath) -> (Kind, Label, Label) {
        let (since, cause, left) = aftermath.clone();
        if since == step.start && step.end - step.start <= AFTERMATH_LONGEST && left > 0 {
            *aftermath = (step.end, cause.clone(), left - 1);
            return (Kind::Edge, self.scene.labels.intern("after"), self.scene.labels.intern(&cause));
        }
        let source = unseen::source(duration, self.scene.platform);
        let left = if source == unseen::SHORT { 0 } else { AFTERMATH_STEPS };
        *aftermath = (step.end, root::text(Kind::Unseen, source), left);
        (Kind::Unseen, self.scene.labels.intern(source), Label::EMPTY)
    }

    /// The root of what a step with events ended with.
    fn ended(&mut self, step: Step, rows: &[(Owner, Nanos, Nanos)]) -> String {
        let stretch = (step.start, step.end);
        let end = self.events.partition_point(|event| event.time < step.end);
        let last = self.events[..end].iter().rposition(|event| event.time >= step.start);
        if let Some(Event { what: Happening::Lost { .. }, .. }) = self.events.get(end) {
            return root::text(Kind::NotTraced, not_traced::LOST_EVENTS);
        }
        if let Some(outermost) = self.active(end, stretch).min_by_key(|span| self.spans[*span].entry) {
            return self.root(Owner::Span(outermost));
        }
        if let Some(other) = self.other(end, stretch)
            && other != LOOP
        {
            let throttled = end.checked_sub(1).and_then(|last| self.throttled(last, stretch));
            let owner = throttled.map(Owner::Throttling);
            return self.root(owner.unwrap_or_else(|| self.owner_of(other, None, end, stretch)));
        }
        let Some(last) = last else { return self.root(rows[rows.len() - 1].0) };
        match self.events[last].what {
            Happening::Lost { .. } => root::text(Kind::NotTraced, not_traced::LOST_EVENTS),
            Happening::Nmi { .. } => self.root(Owner::Nmi(last)),
            Happening::Switch { prev, .. } => {
                let throttled = last.checked_sub(1).and_then(|before| self.throttled(before, stretch));
                let owner = throttled.filter(|_| prev != LOOP).map(Owner::Throttling);
                self.root(owner.unwrap_or_else(|| self.thread_owner(last, stretch)))
            }
            _ => {
                let span = self.spans.iter().position(|span| span.exit == Some(last)).expect("a frame ended last");
                self.root(Owner::Span(span))
            }
        }
    }

    /// The root of an owner, as `kind:source`.
    fn root(&self, owner: Owner) -> String {
        let text = |kind, source: Label| root::text(kind, self.scene.labels.text(source));
        match owner {
            Owner::Loop => unreachable!("the loop's own time has the cause of what is beside it"),
            Owner::Throttling(_) => root::text(Kind::Throttling, "cfs_bandwidth"),
            Owner::Idle(_) => root::text(Kind::Task, "blocked"),
            Owner::Lost(_) => root::text(Kind::NotTraced, not_traced::LOST_EVENTS),
            Owner::Either(..) => root::text(Kind::NotTraced, not_traced::MISSING_SWITCH),
            Owner::Stay(_, pid) => match self.scene.tasks.get(pid) {
                Some(task) => text(task.kind, task.source),
                None => root::text(Kind::Task, "unknown"),
            },
            Owner::Span(span) => {
                let Span { kind, source, .. } = self.spans[span];
                match kind {
                    Kind::Irq | Kind::Softirq => self.carried(span).1,
                    _ => text(kind, source),
                }
            }
            Owner::Nmi(at) => match self.events[at].what {
                Happening::Nmi { source, .. } => text(Kind::Nmi, source),
                _ => unreachable!("only an NMI's event begins an NMI's row"),
            },
        }
    }

    /// The interrupt or softirq on whose way out a softirq begins.
    fn raised_by(&self, entry: usize, thread: Pid) -> Option<usize> {
        let before = entry.checked_sub(1)?;
        let ended = self.spans.iter().position(|span| span.exit == Some(before))?;
        let interrupts = |span: &usize| matches!(self.spans[*span].kind, Kind::Irq | Kind::Softirq);
        let stretch = self.stretch(entry);
        let gap = self.events[entry].time - self.events[before].time;
        let soon = thread == LOOP || gap <= Nanos::new(5_000);
        (interrupts(&ended)
            && self.stretch(before) == stretch
            && self.thread_after(before) == Some(thread)
            && soon
            && !self.active(entry, stretch).any(|span| interrupts(&span)))
        .then_some(ended)
    }

    fn name(&mut self, owner: Owner) -> (Kind, Label, Label) {
        let detail = match owner {
            Owner::Either(_, one, other) => format!("{} or {}", self.thread_name(one), self.thread_name(other)),
            _ => String::new(),
        };
        let mut rest = |kind, text: &str| (kind, self.scene.labels.intern(text), self.scene.labels.intern(&detail));
        match owner {
            Owner::Loop => unreachable!("the loop's own time is named by its place"),
            Owner::Throttling(_) => rest(Kind::Throttling, "cfs_bandwidth"),
            Owner::Idle(_) => rest(Kind::Task, "blocked"),
            Owner::Lost(_) => rest(Kind::NotTraced, not_traced::LOST_EVENTS),
            Owner::Either(..) => rest(Kind::NotTraced, not_traced::MISSING_SWITCH),
            Owner::Stay(_, pid) => match self.scene.tasks.get(pid) {
                Some(task) => (task.kind, task.source, task.detail),
                None => rest(Kind::Task, "unknown"),
            },
            Owner::Span(span) if matches!(self.spans[span].kind, Kind::Irq | Kind::Softirq) => {
                let kind = self.spans[span].kind;
                let (shown, cause, vehicle) = self.carried(span);
                let is_own = cause == root::text(kind, self.scene.labels.text(shown));
                let own = vehicle.unwrap_or(self.spans[span].detail);
                (kind, shown, if is_own { own } else { self.scene.labels.intern(&cause) })
            }
            Owner::Span(span) => {
                let Span { kind, source, detail, .. } = self.spans[span];
                (kind, source, detail)
            }
            Owner::Nmi(at) => match self.events[at].what {
                Happening::Nmi { source, .. } => (Kind::Nmi, source, Label::EMPTY),
                _ => unreachable!("only an NMI's event begins an NMI's row"),
            },
        }
    }

    fn thread_name(&self, pid: Pid) -> String {
        match self.scene.tasks.get(pid) {
            _ if pid == LOOP => "the measuring thread".to_owned(),
            _ if pid == Pid::IDLE => "the idle thread".to_owned(),
            Some(task) => root::text(task.kind, self.scene.labels.text(task.source)),
            None => format!("pid {}", pid.0),
        }
    }
}

/// Adds an interval to its owner's row, which begins with its first interval that is not empty, or here if `real`. The loop
/// has a row of its own between any two others.
fn grow(rows: &mut Vec<(Owner, Nanos, Nanos)>, owner: Owner, from: Nanos, to: Nanos, real: bool) {
    let first = if owner == Owner::Loop { rows.len().saturating_sub(1) } else { 0 };
    match rows[first..].iter_mut().find(|(other, ..)| *other == owner) {
        Some((.., length)) => *length += to - from,
        None if real || to > from => rows.push((owner, from, to - from)),
        None => {}
    }
}
