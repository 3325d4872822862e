//! Attribution the plain way, for legal streams: without a stack and without state. For every interval between two
//! events it is asked again, of the whole list of events, which thread was on the CPU and which of all the frames of the
//! run was the innermost one active in it. Takes cubic time.

use becalm_model::Step;
use becalm_model::{Activity, Detour, Event, Happening, Kind, Label, Pid};
use becalm_units::Nanos;

use crate::scene::{LOOP, Outcome, Scene};
use crate::streams::Stream;

/// A frame from its entry to its exit, by their positions in the list of events.
struct Span {
    kind: Kind,
    source: Label,
    detail: Label,
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
    /// Throttling or sleep that began with the event of that position.
    Idle(usize, bool),
    /// The handler that the event of that position tells of.
    Nmi(usize),
    /// The gap that the event of that position ends.
    Lost(usize),
}

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

    /// Detours, activities, and of the tally what a legal stream has.
    pub fn outcome(&mut self) -> Outcome {
        let (mut detours, mut activities) = (Vec::new(), Vec::new());
        let mut seen = vec![false; self.spans.len()];
        for (number, step) in self.steps.iter().enumerate() {
            let (incomplete, rows) = self.rows(*step);
            for (owner, ..) in &rows {
                if let Owner::Span(span) = owner {
                    seen[*span] = true;
                }
            }
            let duration = self.close(*step, number as u64, &rows, &mut activities);
            detours.push(Detour { cpu: self.scene.thread.cpu, start: step.start, duration, incomplete });
        }
        let mut outcome = Outcome { detours, activities, tally: Default::default() };
        let tally = &mut outcome.tally;
        tally.incomplete = outcome.detours.iter().filter(|detour| detour.incomplete).count() as u64;
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
            if let (false, Some(exit), Kind::Irq | Kind::Softirq) = (seen, span.exit, span.kind) {
                let on_cpu = |at: &usize| span.thread.is_none_or(|thread| thread == self.current(*at).1);
                let extent = (span.entry + 1..=exit)
                    .filter(on_cpu)
                    .map(|at| self.events[at].time - self.events[at - 1].time)
                    .sum::<Nanos>();
                tally.below_threshold_events += 1;
                tally.below_threshold_max = tally.below_threshold_max.max(extent);
            }
        }
        outcome
    }

    /// The stretch of the run, a step or what lies between two, in which an event lies.
    fn stretch(&self, at: usize) -> (Nanos, Nanos) {
        let time = self.events[at].time;
        let bounds = || self.steps.iter().flat_map(|step| [step.start, step.end]);
        let from = bounds().filter(|bound| *bound <= time).max().unwrap_or(Nanos::new(i64::MIN));
        (from, bounds().filter(|bound| *bound > time).min().unwrap_or(Nanos::MAX))
    }

    /// The thread on the CPU just before the event of that position, and the event that tells of it, if it is not the
    /// bound of the stretch.
    fn current(&self, at: usize) -> (Option<usize>, Pid) {
        self.current_in(at, self.stretch(at))
    }

    fn current_in(&self, at: usize, (from, to): (Nanos, Nanos)) -> (Option<usize>, Pid) {
        for before in (0..at).rev().take_while(|before| self.events[*before].time >= from) {
            match self.events[before].what {
                Happening::Switch { next, .. } => return (Some(before), next),
                Happening::Lost { .. } => {
                    let next = self.events[before + 1..]
                        .iter()
                        .take_while(|event| event.time < to)
                        .find(|event| matches!(event.what, Happening::Switch { .. } | Happening::Lost { .. }));
                    return match next {
                        Some(Event { what: Happening::Switch { prev, .. }, .. }) => (Some(before), *prev),
                        _ => (Some(before), LOOP),
                    };
                }
                _ => {}
            }
        }
        (None, LOOP)
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
                    _ => false,
                }
        });
        Some(Span { kind, source, detail, thread, entry, exit })
    }

    /// Which of the spans known so far are active just before the event of that position.
    fn active(&self, at: usize, stretch: (Nanos, Nanos)) -> impl Iterator<Item = usize> {
        let (_, current) = self.current_in(at, stretch);
        self.under_way(at, stretch).filter(move |span| self.spans[*span].thread.is_none_or(|thread| thread == current))
    }

    /// Likewise, also those of threads that are away.
    fn under_way(&self, at: usize, (from, _): (Nanos, Nanos)) -> impl Iterator<Item = usize> {
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
        match self.current_in(at, stretch) {
            (Some(since), Pid::IDLE) => {
                let left = (0..at)
                    .rev()
                    .map(|before| (before, self.events[before].what))
                    .find(|(_, what)| matches!(what, Happening::Lost { .. } | Happening::Switch { prev: LOOP, .. }));
                let runnable = match left {
                    Some((left, Happening::Switch { prev_runnable, .. })) if self.events[left].time >= stretch.0 => {
                        prev_runnable
                    }
                    _ => true,
                };
                match self.under_way(at, stretch).find(|span| self.spans[*span].kind == Kind::Fault) {
                    Some(fault) if !runnable => Owner::Span(fault),
                    _ => Owner::Idle(since, runnable),
                }
            }
            (Some(since), other) if other != LOOP => Owner::Stay(since, other),
            _ => Owner::Loop,
        }
    }

    /// The rows of a step in the order in which they begin, with whom, since when and for how long.
    fn rows(&self, step: Step) -> (bool, Vec<(Owner, Nanos, Nanos)>) {
        let stretch = (step.start, step.end);
        let mut rows: Vec<(Owner, Nanos, Nanos)> = Vec::new();
        let mut incomplete = false;
        let mut from = step.start;
        let first = self.events.partition_point(|event| event.time < step.start);
        let end = self.events.partition_point(|event| event.time < step.end);
        for at in first..=end {
            let event = self.events.get(at);
            let to = event.map_or(step.end, |event| event.time.min(step.end));
            // The interval before the event.
            match event.map(|event| event.what) {
                Some(Happening::Lost { .. }) => {
                    incomplete = true;
                    grow(&mut rows, Owner::Lost(at), from, to, false);
                }
                Some(Happening::Nmi { delta, .. }) if at < end => {
                    let start = (to - delta).max(from);
                    grow(&mut rows, self.owner(at, stretch), from, start, false);
                    grow(&mut rows, Owner::Nmi(at), start, to, true);
                }
                _ => grow(&mut rows, self.owner(at, stretch), from, to, false),
            }
            // What begins with it has a row even if it takes no time.
            if at < end {
                let begun = self.spans.iter().position(|span| span.entry == at).map(Owner::Span);
                let begun = begun.or_else(|| match self.events[at].what {
                    Happening::Switch { .. } | Happening::Lost { .. } => {
                        Some(self.thread_owner(at + 1, stretch)).filter(|owner| *owner != Owner::Loop)
                    }
                    _ => None,
                });
                if let Some(owner) = begun {
                    grow(&mut rows, owner, to, to, true);
                }
            }
            from = to;
        }
        (incomplete, rows)
    }

    /// Writes the rows down, with `t_min` taken off; returns the detour's duration.
    fn close(
        &mut self,
        step: Step,
        detour: u64,
        rows: &[(Owner, Nanos, Nanos)],
        activities: &mut Vec<Activity>,
    ) -> Nanos {
        let t_min = self.scene.thread.t_min.get().min((step.end - step.start).get());
        let duration = step.end - step.start - Nanos::new(t_min);
        let cpu = self.scene.thread.cpu;
        if rows.iter().all(|(owner, ..)| *owner == Owner::Loop) {
            let source = self.scene.labels.intern("unseen");
            let (start, detail) = (step.start, Label::EMPTY);
            activities.push(Activity { cpu, detour, start, self_time: duration, kind: Kind::Unseen, source, detail });
            return duration;
        }
        let mut lengths: Vec<i64> = rows.iter().map(|(.., length)| length.get()).collect();
        // From the edge first, then from the others, the longest first, of equal ones the first.
        let mut payers: Vec<usize> = (0..rows.len()).collect();
        payers.sort_by_key(|row| (rows[*row].0 != Owner::Loop, -lengths[*row]));
        for _ in 0..t_min {
            let payer = payers.iter().find(|row| lengths[**row] > 0).expect("the rows have more than t_min");
            lengths[*payer] -= 1;
        }
        for ((owner, start, _), length) in rows.iter().zip(lengths) {
            if *owner == Owner::Loop && length == 0 {
                continue;
            }
            let (kind, source, detail) = self.name(*owner);
            let self_time = Nanos::new(length);
            activities.push(Activity { cpu, detour, start: *start, self_time, kind, source, detail });
        }
        duration
    }

    fn name(&mut self, owner: Owner) -> (Kind, Label, Label) {
        let mut rest = |kind, text: &str| (kind, self.scene.labels.intern(text), Label::EMPTY);
        match owner {
            Owner::Loop => rest(Kind::Edge, "edge"),
            Owner::Idle(_, true) => rest(Kind::Throttling, "cfs_bandwidth"),
            Owner::Idle(_, false) => rest(Kind::Task, "blocked"),
            Owner::Lost(_) => rest(Kind::Unseen, "lost_events"),
            Owner::Stay(_, pid) => match self.scene.tasks.get(pid) {
                Some(task) => (task.kind, task.source, task.detail),
                None => rest(Kind::Task, "unknown"),
            },
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
}

/// Adds an interval to its owner's row, which begins with its first interval that is not empty, or here if `real`.
fn grow(rows: &mut Vec<(Owner, Nanos, Nanos)>, owner: Owner, from: Nanos, to: Nanos, real: bool) {
    match rows.iter_mut().find(|(other, ..)| *other == owner) {
        Some((.., length)) => *length += to - from,
        None if real || to > from => rows.push((owner, from, to - from)),
        None => {}
    }
}
