//! The purpose of interrupts the plain way: from the list of all events.

use becalm_model::carried::{BRINGING, Carrier, SENT, runs};
use becalm_model::{Event, Happening, Kind, Label, Pid, ThreadState, root};
use becalm_units::Nanos;

use super::{Owner, Reference, Span};
use crate::scene::LOOP;

impl Reference<'_> {
    /// The innermost frame just before the event of that position, functions left out.
    pub(super) fn innermost(&self, at: usize) -> Option<usize> {
        let frames = self.active(at, self.stretch(at)).filter(|span| !self.spans[*span].is_function);
        frames.max_by_key(|span| self.spans[*span].entry)
    }

    /// The functions that an interrupt or a softirq has begun before the event of that position.
    pub(super) fn functions(&self, interrupt: usize, until: usize) -> impl Iterator<Item = usize> {
        let Span { kind, source, .. } = self.spans[interrupt];
        let is_function = move |at: &usize| match self.events[*at].what {
            Happening::FunctionEntry { carrier, .. } => runs(kind, self.scene.labels.text(source), carrier),
            _ => false,
        };
        let begun = (self.spans[interrupt].entry + 1..until).filter(is_function);
        begun.filter(move |at| self.innermost(*at) == Some(interrupt))
    }

    /// Where a frame ends: with its exit, or because events were lost.
    fn end(&self, span: usize) -> usize {
        let Span { entry, exit, .. } = self.spans[span];
        let lost = |at: &usize| matches!(self.events[*at].what, Happening::Lost { .. });
        exit.or_else(|| (entry + 1..self.events.len()).find(lost)).unwrap_or(self.events.len())
    }

    /// The source and the root of an interrupt, a softirq, or one of their functions, and the carrier's own name if a function replaces it.
    pub(super) fn carried(&self, span: usize) -> (Label, String, Option<Label>) {
        let Span { kind, source, is_function, entry, .. } = self.spans[span];
        let text = |label: Label| self.scene.labels.text(label);
        if !self.is_in_step(entry) {
            return (source, self.plain_root(span), None);
        }
        // Only what the same thread wrote in this stretch counts, up to the next switch.
        let (thread, (_, end)) = (self.events[entry].thread, self.stretch(entry));
        let other = |at: &usize| {
            let Event { time, thread: other, what, .. } = self.events[*at];
            other != thread || time >= end || matches!(what, Happening::Switch { .. })
        };
        let until = (entry + 1..self.end(span)).find(other).unwrap_or(self.end(span));
        let carrier =
            if is_function { self.innermost(entry).expect("an interrupt or a softirq runs it") } else { span };
        let vehicle = self.spans[carrier].source;
        let function = if is_function { Some(entry) } else { self.functions(span, until).next() };
        let ends = |at: &usize| {
            let what = self.events[*at].what;
            matches!(what, Happening::FunctionExit { .. } | Happening::FunctionEntry { carrier: Carrier::Wheel, .. })
        };
        let woken_in = match function {
            Some(at) => {
                at + 1..(at + 1..until).find(|at| ends(at) && self.innermost(*at) == Some(carrier)).unwrap_or(until)
            }
            None if SENT.contains(&text(source)) => entry + 1..until,
            None => 0..0,
        };
        let woken = woken_in.into_iter().find_map(|at| match self.events[at].what {
            Happening::Waking { thread } if self.innermost(at) == Some(carrier) => Some((at, thread)),
            _ => None,
        });
        let named = function.map(|at| match self.events[at].what {
            Happening::FunctionEntry { source, root, .. } => (source, root),
            _ => unreachable!("only functions were looked for"),
        });
        let named = named.filter(|(source, _)| *source != Label::EMPTY);
        let shown = named.map_or(source, |(source, _)| source);
        let always = named.filter(|(_, root)| *root != Label::EMPTY).map(|(_, root)| text(root).to_owned());
        let brought = || {
            let brings = BRINGING.contains(&text(shown)) && self.spans[span].exit == Some(until);
            brings.then(|| self.switched_to(until)).flatten().and_then(|thread| self.root_of_thread(thread))
        };
        let root = always.or_else(|| woken.and_then(|woken| self.root_of_woken(woken, until))).or_else(brought);
        let own = || if named.is_some() { root::text(kind, text(shown)) } else { self.plain_root(span) };
        (shown, root.unwrap_or_else(own), named.map(|_| vehicle))
    }

    /// The root of an interrupt or a softirq by its plain name: the softirq's is what raised it.
    pub(super) fn plain_root(&self, span: usize) -> String {
        let Span { kind, source, entry, thread, is_function, .. } = self.spans[span];
        let own = root::text(kind, self.scene.labels.text(source));
        if kind == Kind::Irq || is_function {
            return own;
        }
        let thread = thread.expect("a softirq runs in a thread's time");
        if let Some(raised) = self.raised_by(entry, thread) {
            return self.root_of_raised(raised);
        }
        match self.thread_owner(entry, self.stretch(entry)) {
            Owner::Loop => own,
            owner => self.root(owner),
        }
    }

    /// Whether an event is in a step. Interrupts between steps keep their own names.
    pub(super) fn is_in_step(&self, at: usize) -> bool {
        let time = self.events[at].time;
        self.steps.iter().any(|step| step.start <= time && time < step.end)
    }

    /// The thread that the CPU switches to right after the exit of that position. Softirqs may run in between.
    fn switched_to(&self, exit: usize) -> Option<Pid> {
        let stretch = self.stretch(exit);
        let mut ended = self.events[exit].time;
        for event in self.events[exit + 1..].iter().take_while(|event| event.time < stretch.1) {
            match event.what {
                Happening::Switch { prev_state: ThreadState::RUNNABLE, next, .. }
                    if event.time - ended <= Nanos::new(50_000) =>
                {
                    return Some(next);
                }
                Happening::IrqExit { .. } | Happening::SoftirqExit { .. } => ended = event.time,
                Happening::SoftirqEntry { .. }
                | Happening::FunctionEntry { .. }
                | Happening::FunctionExit { .. }
                | Happening::Waking { .. } => {}
                _ => return None,
            }
        }
        None
    }

    /// The root of a thread that the event of that position wakes: a kworker's is the first work item that it starts after the event that
    /// ends the look.
    fn root_of_woken(&self, (at, thread): (usize, Pid), until: usize) -> Option<String> {
        let task = self.scene.tasks.get(thread)?;
        let stretch = self.stretch(at);
        let coming = self.events.iter().skip(until + 1).take_while(|event| event.time < stretch.1);
        let mut works = coming.filter(|event| event.thread == thread).filter_map(|event| match event.what {
            Happening::WorkStart { source, .. } => Some(root::text(Kind::Workqueue, self.scene.labels.text(source))),
            _ => None,
        });
        let work = if self.scene.labels.text(task.source) == "kworker" { works.next() } else { None };
        work.or_else(|| self.root_of_thread(thread))
    }

    fn root_of_thread(&self, thread: Pid) -> Option<String> {
        let task = self.scene.tasks.get(thread).filter(|_| thread != LOOP && thread != Pid::IDLE)?;
        Some(root::text(task.kind, self.scene.labels.text(task.source)))
    }

    /// The root of the softirqs that an interrupt or a softirq raises.
    pub(super) fn root_of_raised(&self, span: usize) -> String {
        if self.spans[span].kind == Kind::Softirq {
            return self.plain_root(span);
        }
        if self.is_in_step(self.spans[span].entry) {
            let roots = self.functions(span, self.end(span)).filter_map(|at| match self.events[at].what {
                Happening::FunctionEntry { root, .. } if root != Label::EMPTY => Some(root),
                _ => None,
            });
            if let Some(root) = roots.last() {
                return self.scene.labels.text(root).to_owned();
            }
        }
        self.carried(span).1
    }
}
