//! A CPU with a measuring thread, a few named threads and short ways to write events down.

use becalm_attribute::{Attributor, Tally};
use becalm_model::carried::{self, Carrier};
use becalm_model::{Activity, Detour, Event, Happening, Kind, Label, Labels, Pid, ThreadState, root};
use becalm_model::{LoopThread, Platform, Step, Task, Tasks};
use becalm_units::{CpuId, Nanos};

/// The thread that measures.
pub const LOOP: Pid = Pid(100);
/// The kernel thread that runs softirqs.
pub const KSOFTIRQD: Pid = Pid(23);
/// A kworker, and another.
pub const KWORKERS: [Pid; 2] = [Pid(40), Pid(41)];
/// A process of a user.
pub const SSHD: Pid = Pid(700);
/// One of becalm's own threads.
pub const COLLECTOR: Pid = Pid(101);
/// No thread: of an event that does not say its own.
const UNSAID: Pid = Pid(i32::MIN);
/// A thread that nobody named.
pub const STRANGER: Pid = Pid(999);

/// The shortest step of the loop.
pub const T_MIN: i64 = 20;

/// The names, and who is who.
pub struct Scene {
    pub labels: Labels,
    pub tasks: Tasks,
    pub thread: LoopThread,
    pub platform: Platform,
}

/// What a test compares of a row: start, self time, kind, source, detail.
pub type Line = (i64, i64, Kind, String, String);

/// What attribution gives for a stream of events.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub detours: Vec<Detour>,
    pub activities: Vec<Activity>,
    pub tally: Tally,
}

impl Scene {
    pub fn new() -> Self {
        let mut labels = Labels::new();
        let mut tasks = Tasks::new();
        for (pid, kind, source, detail) in [
            (KSOFTIRQD, Kind::Kthread, "ksoftirqd", "ksoftirqd/1 pid 23"),
            (KWORKERS[0], Kind::Kthread, "kworker", "kworker/1:0 pid 40"),
            (KWORKERS[1], Kind::Kthread, "kworker", "kworker/1:1 pid 41"),
            (SSHD, Kind::Task, "sshd", "pid 700"),
            (COLLECTOR, Kind::Becalm, "becalm", "pid 101"),
        ] {
            tasks.set(pid, Task { kind, source: labels.intern(source), detail: labels.intern(detail) });
        }
        let thread = LoopThread { cpu: CpuId::new(1), pid: LOOP, t_min: Nanos::new(T_MIN), realtime: false };
        Self { labels, tasks, thread, platform: Platform::Metal }
    }

    pub fn attributor(&mut self) -> Attributor {
        Attributor::new(self.thread, self.platform, &mut self.labels)
    }

    /// Attributes everything in one call. Events that do not say their thread are of the one that the switches say.
    pub fn attribute(&mut self, steps: &[Step], events: &[Event]) -> Outcome {
        let events = with_threads(events);
        let mut attributor = self.attributor();
        let mut outcome = Outcome::default();
        self.hand_over(&mut attributor, steps, &events, &mut outcome);
        self.end(&mut attributor, outcome)
    }

    /// Attributes a part of a run.
    pub fn hand_over(&mut self, attributor: &mut Attributor, steps: &[Step], events: &[Event], outcome: &mut Outcome) {
        let Outcome { detours, activities, .. } = outcome;
        attributor.attribute(steps, events, &self.tasks, &mut self.labels, detours, activities);
    }

    /// Ends a run.
    pub fn end(&mut self, attributor: &mut Attributor, outcome: Outcome) -> Outcome {
        Outcome { tally: attributor.finish(&mut self.labels), ..outcome }
    }

    /// The rows of the only detour of a step from 1,000 to `end`, after a check that the books close.
    pub fn lines(&mut self, end: i64, events: &[Event]) -> (Vec<Line>, Outcome) {
        let outcome = self.attribute(&[step(1_000, end)], events);
        assert_eq!(outcome.detours.len(), 1);
        assert_eq!(outcome.detours[0].duration, Nanos::new(end - 1_000 - T_MIN));
        assert_books_close(&outcome);
        let lines = outcome.activities.iter().map(|row| self.line(row)).collect();
        (lines, outcome)
    }

    /// The rows of all detours, to be read by people.
    pub fn readable(&self, outcome: &Outcome) -> Vec<(u64, Line)> {
        outcome.activities.iter().map(|row| (row.detour, self.line(row))).collect()
    }

    fn line(&self, row: &Activity) -> Line {
        let text = |label: Label| self.labels.text(label).to_owned();
        (row.start.get(), row.self_time.get(), row.kind, text(row.source), text(row.detail))
    }

    pub fn irq_entry(&mut self, time: i64, source: &str) -> Event {
        let (source, detail) = (self.labels.intern(source), self.labels.intern("vector"));
        at(time, Happening::IrqEntry { source, detail })
    }

    pub fn irq_exit(&mut self, time: i64, source: &str) -> Event {
        let (source, detail) = (self.labels.intern(source), self.labels.intern("vector"));
        at(time, Happening::IrqExit { source, detail })
    }

    /// A function begins; `interrupt` is what runs it if no event tells of that.
    pub fn function_entry(&mut self, time: i64, carrier: Carrier, source: &str, interrupt: &str) -> Event {
        let root = carried::root(source).map(|(kind, source)| root::text(kind, source)).unwrap_or_default();
        let [source, root, interrupt] = [source, &root, interrupt].map(|text| self.labels.intern(text));
        at(time, Happening::FunctionEntry { source, root, carrier, interrupt, request: 0 })
    }

    pub fn function_exit(&mut self, time: i64, carrier: Carrier, interrupt: &str) -> Event {
        at(time, Happening::FunctionExit { carrier, interrupt: self.labels.intern(interrupt) })
    }

    pub fn softirq_entry(&mut self, time: i64, source: &str) -> Event {
        at(time, Happening::SoftirqEntry { source: self.labels.intern(source) })
    }

    pub fn softirq_exit(&mut self, time: i64, source: &str) -> Event {
        at(time, Happening::SoftirqExit { source: self.labels.intern(source) })
    }

    pub fn nmi(&mut self, time: i64, source: &str, delta: i64) -> Event {
        at(time, Happening::Nmi { source: self.labels.intern(source), delta: Nanos::new(delta) })
    }

    pub fn work_start(&mut self, time: i64, source: &str, work: u64) -> Event {
        at(time, Happening::WorkStart { source: self.labels.intern(source), work })
    }

    pub fn work_end(&mut self, time: i64, source: &str, work: u64) -> Event {
        at(time, Happening::WorkEnd { source: self.labels.intern(source), work })
    }

    pub fn fault(&mut self, time: i64, source: &str) -> Event {
        at(time, Happening::Fault { source: self.labels.intern(source), detail: Label::EMPTY })
    }
}

/// A switch from a runnable thread to another.
pub fn switch(time: i64, prev: Pid, next: Pid) -> Event {
    at(time, Happening::Switch { prev, prev_state: ThreadState::RUNNABLE, next })
}

/// From a thread that goes to sleep to another.
pub fn sleep(time: i64, prev: Pid, next: Pid) -> Event {
    at(time, Happening::Switch { prev, prev_state: ThreadState::SLEEPING, next })
}

/// A thread is woken.
pub fn wake(time: i64, thread: Pid) -> Event {
    at(time, Happening::Waking { thread })
}

pub fn lost(time: i64, count: Option<u64>) -> Event {
    at(time, Happening::Lost { count })
}

pub fn at(time: i64, what: Happening) -> Event {
    Event { time: Nanos::new(time), thread: UNSAID, in_interrupt: false, what }
}

/// The event, of that thread.
pub fn event_of_thread(thread: Pid, event: Event) -> Event {
    Event { thread, ..event }
}

/// Enters the thread that the switches say where an event does not say it.
pub fn with_threads(events: &[Event]) -> Vec<Event> {
    let mut current = LOOP;
    let mut events = events.to_vec();
    for event in &mut events {
        if event.thread != UNSAID {
            current = event.thread;
        }
        if let Happening::Switch { prev, .. } = event.what {
            current = prev;
        }
        event.thread = current;
        if let Happening::Switch { next, .. } = event.what {
            current = next;
        }
    }
    events
}

pub fn step(start: i64, end: i64) -> Step {
    Step { start: Nanos::new(start), end: Nanos::new(end) }
}

/// A row as a test expects it.
pub fn line(start: i64, self_ns: i64, kind: Kind, source: &str, detail: &str) -> Line {
    (start, self_ns, kind, source.to_owned(), detail.to_owned())
}

/// What must hold for every input.
pub fn assert_books_close(outcome: &Outcome) {
    let mut rows = outcome.activities.as_slice();
    for (number, detour) in outcome.detours.iter().enumerate() {
        assert!(detour.duration >= Nanos::ZERO);
        let own = rows.iter().take_while(|row| row.detour == number as u64).count();
        let (own, rest) = rows.split_at(own);
        rows = rest;
        assert!(!own.is_empty(), "detour {number} has no row");
        assert_eq!(own.iter().map(|row| row.self_time).sum::<Nanos>(), detour.duration, "books of detour {number}");
        assert!(own.is_sorted_by_key(|row| row.start), "rows of detour {number} out of order");
        for row in own {
            assert_eq!(row.cpu, detour.cpu);
            assert!(row.self_time >= Nanos::ZERO && row.start >= detour.start, "{row:?} in {detour:?}");
        }
    }
    assert_eq!(rows, [], "rows of no detour");
}
