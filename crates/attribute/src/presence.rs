//! The owner of a CPU according to the kernel's events alone, without a loop: a stack like that of the [`Attributor`](crate::Attributor), for
//! any thread.
//!
//! An *interruption* is an unbroken stretch of interrupts, softirqs and kernel threads on the CPU: a program would have had to wait
//! for its end. It is reported as a detour, divided among its activities. Programs' own time and idle time are no interruptions. Kernel
//! entry and exit are not included, because only a loop sees them.
//!
//! After a gap with lost events, the stack restarts with the thread of the next event.

use becalm_model::carried::{BRINGING, Carrier, RESCHEDULING, SENT, runs};
use becalm_model::{Activity, Detour, Event, Happening, Kind, Label, Labels, Pid, Task, Tasks, root};
use becalm_units::{CpuId, Nanos};

use super::carried::SWITCHES_WITHIN;
use super::frame::SourceName;

/// More frames than the kernel ever nests.
const DEPTH: usize = 64;

/// An interruption with more rows is split, which bounds memory if a kernel thread never yields.
const MOST_ROWS: usize = 256;

/// The number of threads kept that left the CPU within a work item.
const MOST_AWAY: usize = 64;

/// Kinds of activity that run above a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LayerKind {
    Irq,
    /// A further function of an interrupt.
    IrqFunction,
    Softirq,
    /// A further timer of a softirq.
    SoftirqFunction,
    Work(u64),
}

impl LayerKind {
    const fn kind(self) -> Kind {
        match self {
            Self::Irq | Self::IrqFunction => Kind::Irq,
            Self::Softirq | Self::SoftirqFunction => Kind::Softirq,
            Self::Work(_) => Kind::Workqueue,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Layer {
    what: LayerKind,
    /// Identifies the event of its end.
    source: Label,
    /// The name of its row.
    shown: SourceName,
    /// How far the purpose of an interrupt, a softirq or a function is known.
    purpose: Purpose,
    /// Its row in the current interruption, once it has one.
    row: Option<usize>,
}

/// How far the purpose of an interrupt, a softirq, or one of their functions is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// It has run no function.
    Nothing,
    /// Its function runs. The first thread that this function wakes is its root.
    Running,
    /// Its function returned without waking a thread.
    Returned,
    /// Its root is known.
    Root,
}

/// An interrupt that can let a thread run without waking it.
#[derive(Clone, Copy, Debug)]
struct BringingInterrupt {
    /// The start of its row.
    start: Nanos,
    end: Nanos,
}

/// A kworker that was woken.
#[derive(Clone, Copy, Debug)]
struct WokenKworker {
    thread: Pid,
    /// Kind and start of the row that belongs to its work.
    kind: Kind,
    start: Nanos,
}

/// Interruptions that have ended, in order of time, with their activities in order of detour. Each has at least one activity.
#[derive(Clone, Debug, Default)]
pub struct Interruptions {
    /// The interruptions.
    pub detours: Vec<Detour>,
    /// Their activities. Detour numbers count from the start of following the CPU.
    pub activities: Vec<Activity>,
}

/// Follows one CPU.
#[derive(Clone, Debug)]
pub struct Presence {
    cpu: CpuId,
    stack: Vec<Layer>,
    /// The thread on the CPU; `None` if unknown.
    thread: Option<Pid>,
    /// That thread, if it counts as an interruption.
    interrupts: Option<Task>,
    /// Whether programs count as interruptions as well.
    with_programs: bool,
    /// That thread's row in the current interruption.
    thread_row: Option<usize>,
    /// The time up to which all is credited; `None` while not following.
    since: Option<Nanos>,
    /// The start of the current interruption.
    open: Option<Nanos>,
    incomplete: bool,
    rows: Vec<Activity>,
    /// Work items of threads that are not on the CPU.
    away: Vec<(Pid, Layer)>,
    /// The last interrupt, if it belongs to the thread that the CPU switches to next.
    brought: Option<BringingInterrupt>,
    /// The last kworker that was woken, until it starts a work item.
    called: Option<WokenKworker>,
    /// The number of the current interruption.
    number: u64,
    gap: Nanos,
}

impl Presence {
    /// For a CPU in unknown state.
    pub const fn new(cpu: CpuId) -> Self {
        Self {
            cpu,
            stack: Vec::new(),
            thread: None,
            interrupts: None,
            with_programs: false,
            thread_row: None,
            since: None,
            open: None,
            incomplete: false,
            rows: Vec::new(),
            away: Vec::new(),
            brought: None,
            called: None,
            number: 0,
            gap: Nanos::ZERO,
        }
    }

    /// For a CPU that belongs to one program: other programs interrupt it as well. That program's threads must be named as becalm's own
    /// ([`Kind::Becalm`]).
    pub const fn for_one_program(cpu: CpuId) -> Self {
        let mut presence = Self::new(cpu);
        presence.with_programs = true;
        presence
    }

    /// Starts following at `at`.
    pub fn begin(&mut self, at: Nanos) {
        self.since = Some(at);
    }

    /// Stops following: the current interruption ends with the last event.
    pub fn end(&mut self, found: &mut Interruptions) {
        if let Some(since) = self.since {
            self.close(since, found);
        }
        self.forget();
        self.since = None;
    }

    /// The time with lost events since the last call.
    pub const fn take_gap(&mut self) -> Nanos {
        std::mem::replace(&mut self.gap, Nanos::ZERO)
    }

    /// Takes an event. One older than its predecessor gets the predecessor's time.
    pub fn take(&mut self, event: &Event, tasks: &Tasks, labels: &mut Labels, found: &mut Interruptions) {
        let since = self.since.unwrap_or(event.time);
        let at = event.time.max(since);
        if matches!(event.what, Happening::Lost { .. }) {
            self.incomplete = true;
            self.close(since, found);
            self.forget();
            self.gap += at - since;
            self.since = Some(at);
            return;
        }
        self.since = Some(since);
        if let Happening::Nmi { source, delta } = event.what {
            self.nmi(source, delta, at, found);
            return;
        }
        self.credit(at);
        if self.thread != Some(event.thread) {
            self.stay(event.thread, tasks);
        }
        match event.what {
            Happening::IrqEntry { source, detail } => self.push(LayerKind::Irq, source, detail),
            Happening::IrqExit { source, .. } => {
                if let Some(ended) = self.pop(|layer| layer.what == LayerKind::Irq && layer.source == source) {
                    let [shown, detail] = [ended.shown.source, ended.shown.detail].map(|label| labels.text(label));
                    let brings = BRINGING.contains(&shown) || detail == RESCHEDULING;
                    let brings = brings && ended.purpose != Purpose::Root;
                    let row = ended.row.filter(|_| brings);
                    self.brought = row.map(|row| BringingInterrupt { start: self.rows[row].start, end: at });
                }
            }
            Happening::FunctionEntry { source, root, carrier, .. } => {
                self.enter_function(source, root, carrier, labels)
            }
            Happening::FunctionExit { .. } => self.leave_function(),
            Happening::Waking { thread } | Happening::Woken { thread, .. } => self.wake(thread, tasks, labels),
            Happening::SoftirqEntry { source } => self.push(LayerKind::Softirq, source, Label::EMPTY),
            Happening::SoftirqExit { source } => {
                self.pop(|layer| layer.what == LayerKind::Softirq && layer.source == source);
            }
            Happening::WorkStart { source, work } => {
                self.name_called(event.thread, source, labels, found);
                self.push(LayerKind::Work(work), source, Label::EMPTY);
            }
            Happening::WorkEnd { work, .. } => {
                self.pop(|layer| layer.what == LayerKind::Work(work));
            }
            Happening::Switch { prev_state, next, .. } => {
                if prev_state.is_runnable() {
                    self.bring(next, at, (tasks, labels), found);
                }
                self.stay(next, tasks);
            }
            // Handled above, or without a frame.
            Happening::Nmi { .. }
            | Happening::Lost { .. }
            | Happening::Fault { .. }
            | Happening::Life(_)
            | Happening::CallQueued { .. }
            | Happening::InterruptSent { .. }
            | Happening::WorkQueued { .. }
            | Happening::SoftirqRaised { .. } => {}
        }
        let is_interrupted = !self.stack.is_empty() || self.interrupts.is_some();
        match self.open {
            None if is_interrupted => self.open = Some(at),
            Some(_) if !is_interrupted => self.close(at, found),
            Some(_) if self.rows.len() >= MOST_ROWS => {
                self.close(at, found);
                self.open = Some(at);
            }
            _ => {}
        }
    }

    /// Credits the time until now to the top of the stack.
    fn credit(&mut self, at: Nanos) {
        let (Some(since), true) = (self.since.replace(at), self.open.is_some()) else { return };
        let next = self.rows.len();
        let (row, kind, source, detail) = match (self.stack.last_mut(), self.interrupts) {
            (Some(layer), _) => {
                (layer.row.get_or_insert(next), layer.what.kind(), layer.shown.source, layer.shown.detail)
            }
            (None, Some(Task { kind, source, detail })) => (self.thread_row.get_or_insert(next), kind, source, detail),
            (None, None) => return,
        };
        let row = *row;
        if row == next {
            self.rows.push(self.row(since, kind, source, detail));
        }
        self.rows[row].self_time += at - since;
    }

    const fn row(&self, start: Nanos, kind: Kind, source: Label, detail: Label) -> Activity {
        Activity { cpu: self.cpu, detour: self.number, start, self_time: Nanos::ZERO, kind, source, detail }
    }

    /// A non-maskable handler ended: takes its time from the top of the stack, but at most back to the last event.
    fn nmi(&mut self, source: Label, delta: Nanos, at: Nanos, found: &mut Interruptions) {
        let since = self.since.unwrap_or(at);
        let start = (at - delta.max(Nanos::ZERO)).max(since);
        let is_alone = self.open.is_none();
        let began = *self.open.get_or_insert(start);
        // The rest of the time since the previous event belongs to the top of the stack and is credited at its next event, so it is
        // shifted.
        let mut row = self.row(start, Kind::Nmi, source, Label::EMPTY);
        row.self_time = at - start;
        self.rows.push(row);
        if is_alone {
            self.close(at, found);
            self.since = Some(at);
        } else {
            // The time in between belongs to the top of the stack: credit it as if it came later.
            self.open = Some(began);
            self.since = Some(since + (at - start));
        }
    }

    fn push(&mut self, what: LayerKind, source: Label, detail: Label) {
        if self.stack.len() >= DEPTH {
            self.stack.clear();
        }
        self.brought = None;
        self.stack.push(Layer {
            what,
            source,
            shown: SourceName { source, detail },
            purpose: Purpose::Nothing,
            row: None,
        });
    }

    /// Ends the innermost matching frame and all above it; without a match nothing changes.
    fn pop(&mut self, is_it: impl Fn(&Layer) -> bool) -> Option<Layer> {
        let depth = self.stack.iter().rposition(is_it)?;
        let ended = self.stack[depth];
        self.stack.truncate(depth);
        Some(ended)
    }

    /// A function starts. The first one names its interrupt or softirq, and further ones get their own rows.
    fn enter_function(&mut self, source: Label, root: Label, carrier: Carrier, labels: &Labels) {
        if carrier == Carrier::Wheel && self.stack.last().is_some_and(|top| top.what == LayerKind::SoftirqFunction) {
            // The last one has no event at its end.
            self.stack.pop();
        }
        let carries = |top: &Layer| {
            matches!(top.what, LayerKind::Irq | LayerKind::Softirq)
                && runs(top.what.kind(), labels.text(top.source), carrier)
        };
        let Some(top) = self.stack.last().copied().filter(carries) else { return };
        let purpose = if root == Label::EMPTY { Purpose::Running } else { Purpose::Root };
        let is_named = source != Label::EMPTY;
        if top.purpose != Purpose::Nothing && is_named {
            let what = if top.what == LayerKind::Irq { LayerKind::IrqFunction } else { LayerKind::SoftirqFunction };
            self.push(what, source, top.source);
        } else if top.purpose != Purpose::Nothing {
            return;
        }
        let is_own = labels.text(root) == root::text(Kind::Irq, labels.text(source));
        let detail = if root == Label::EMPTY || is_own { top.source } else { root };
        self.rename(if is_named { SourceName { source, detail } } else { top.shown }, purpose);
    }

    fn leave_function(&mut self) {
        match self.stack.last_mut() {
            Some(Layer { what: LayerKind::IrqFunction | LayerKind::SoftirqFunction, .. }) => {
                self.stack.truncate(self.stack.len() - 1)
            }
            Some(Layer { purpose: purpose @ Purpose::Running, .. }) => *purpose = Purpose::Returned,
            _ => {}
        }
    }

    /// A thread is woken. It becomes the root of the interrupt or function that wakes it, unless that already has one.
    fn wake(&mut self, thread: Pid, tasks: &Tasks, labels: &mut Labels) {
        let Some(top) = self.stack.last().copied() else { return };
        let is_sent = || top.what == LayerKind::Irq && SENT.contains(&labels.text(top.source));
        if (top.purpose == Purpose::Running || top.purpose == Purpose::Nothing && is_sent())
            && let Some(root) = root_of_thread(thread, tasks, labels)
        {
            self.rename(SourceName { source: top.shown.source, detail: root }, Purpose::Root);
            let is_worker = tasks.get(thread).is_some_and(|task| labels.text(task.source) == "kworker");
            let row = top.row.filter(|_| is_worker).map(|row| &self.rows[row]);
            self.called = row.map(|row| WokenKworker { thread, kind: row.kind, start: row.start }).or(self.called);
        }
    }

    /// A woken kworker starts a work item, which becomes the root of the activity that woke it.
    fn name_called(&mut self, thread: Pid, work: Label, labels: &mut Labels, found: &mut Interruptions) {
        let Some(WokenKworker { kind, start, .. }) = self.called.take_if(|called| called.thread == thread) else {
            return;
        };
        let root = root::text(Kind::Workqueue, labels.text(work));
        let root = labels.intern(&root);
        self.set_root((kind, start), root, found);
    }

    /// Sets the root of a row of the current interruption, or of the last one.
    fn set_root(&mut self, (kind, start): (Kind, Nanos), root: Label, found: &mut Interruptions) {
        let ended = found.activities.iter_mut().rev().take(MOST_ROWS);
        let row = self.rows.iter_mut().rev().chain(ended).find(|row| row.kind == kind && row.start == start);
        if let Some(row) = row {
            row.detail = root;
        }
    }

    /// The CPU switches to the thread that the last interrupt came for.
    fn bring(&mut self, next: Pid, at: Nanos, (tasks, labels): (&Tasks, &mut Labels), found: &mut Interruptions) {
        let Some(interrupt) = self.brought.take().filter(|interrupt| at - interrupt.end <= SWITCHES_WITHIN) else {
            return;
        };
        if let Some(root) = root_of_thread(next, tasks, labels) {
            self.set_root((Kind::Irq, interrupt.start), root, found);
        }
    }

    /// Renames the frame on top of the stack, and its row.
    fn rename(&mut self, shown: SourceName, purpose: Purpose) {
        if let Some(top) = self.stack.last_mut() {
            (top.shown, top.purpose) = (shown, purpose);
            if let Some(row) = top.row {
                (self.rows[row].source, self.rows[row].detail) = (shown.source, shown.detail);
            }
        }
    }

    /// Another thread is on the CPU; work items move with their threads.
    fn stay(&mut self, thread: Pid, tasks: &Tasks) {
        if let Some(left) = self.thread {
            let works = self.stack.iter().filter(|layer| matches!(layer.what, LayerKind::Work(_)));
            self.away.extend(works.map(|layer| (left, Layer { row: None, ..*layer })));
            let over = self.away.len().saturating_sub(MOST_AWAY);
            self.away.drain(..over);
        }
        self.stack.clear();
        let back = self.away.iter().filter(|(pid, _)| *pid == thread).map(|(_, layer)| *layer);
        self.stack.extend(back);
        self.away.retain(|(pid, _)| *pid != thread);
        let interrupts = |kind| kind == Kind::Kthread || (self.with_programs && kind == Kind::Task);
        let task = tasks.get(thread).filter(|task| thread != Pid::IDLE && interrupts(task.kind));
        self.interrupts = task.copied();
        (self.thread, self.thread_row) = (Some(thread), None);
    }

    fn close(&mut self, at: Nanos, found: &mut Interruptions) {
        let Some(start) = self.open.take() else { return };
        let duration = self.rows.iter().map(|row| row.self_time).sum::<Nanos>();
        debug_assert!(duration <= at - start, "no more is credited than has passed");
        if !self.rows.is_empty() {
            found.detours.push(Detour { cpu: self.cpu, start, duration, incomplete: self.incomplete });
            found.activities.append(&mut self.rows);
            self.number += 1;
        }
        self.incomplete = false;
        self.thread_row = None;
        self.stack.iter_mut().for_each(|layer| layer.row = None);
    }

    fn forget(&mut self) {
        self.brought = None;
        self.stack.clear();
        self.away.clear();
        self.rows.clear();
        (self.thread, self.interrupts, self.thread_row, self.open, self.incomplete) = (None, None, None, None, false);
    }
}

/// The root of the work of a thread, if that thread has a name.
fn root_of_thread(thread: Pid, tasks: &Tasks, labels: &mut Labels) -> Option<Label> {
    let task = tasks.get(thread).filter(|_| thread != Pid::IDLE)?;
    let text = root::text(task.kind, labels.text(task.source));
    Some(labels.intern(&text))
}

#[cfg(test)]
mod tests {
    use becalm_model::ThreadState;

    use super::*;
    use proptest::prelude::*;

    const PROGRAM: Pid = Pid(10);
    const KERNEL: Pid = Pid(20);

    /// Start and length of an interruption, and its rows with their time.
    type Expectation = (i64, i64, Vec<(String, i64)>);

    struct World {
        labels: Labels,
        tasks: Tasks,
        presence: Presence,
        found: Interruptions,
    }

    impl World {
        fn new() -> Self {
            let (mut labels, mut tasks) = (Labels::new(), Tasks::new());
            for (pid, kind, name) in [(PROGRAM, Kind::Task, "program"), (KERNEL, Kind::Kthread, "kernel")] {
                tasks.set(pid, Task { kind, source: labels.intern(name), detail: Label::EMPTY });
            }
            let mut presence = Presence::new(CpuId::new(3));
            presence.begin(Nanos::ZERO);
            Self { labels, tasks, presence, found: Interruptions::default() }
        }

        fn at(&mut self, time: i64, thread: Pid, what: Happening) -> &mut Self {
            let event = Event { time: Nanos::new(time), thread, in_interrupt: false, what };
            self.presence.take(&event, &self.tasks, &mut self.labels, &mut self.found);
            self
        }

        fn irq(&mut self, name: &str, enters: bool) -> Happening {
            let source = self.labels.intern(name);
            let detail = Label::EMPTY;
            if enters { Happening::IrqEntry { source, detail } } else { Happening::IrqExit { source, detail } }
        }

        /// The interruptions found.
        fn interruptions(&self) -> Vec<Expectation> {
            let row = |row: &Activity| (format!("{}:{}", row.kind, self.labels.text(row.source)), row.self_time.get());
            let rows = |at: usize| self.found.activities.iter().filter(move |row| row.detour == at as u64).map(row);
            let detours = self.found.detours.iter().enumerate();
            detours.map(|(at, detour)| (detour.start.get(), detour.duration.get(), rows(at).collect())).collect()
        }
    }

    const fn switch(prev: Pid, next: Pid) -> Happening {
        Happening::Switch { prev, prev_state: ThreadState::RUNNABLE, next }
    }

    #[test]
    fn on_the_cpu_of_one_program_others_interrupt() {
        let mut world = World::new();
        let other = Pid(30);
        let (own, theirs) = (world.labels.intern("bench"), world.labels.intern("other"));
        world.tasks.set(PROGRAM, Task { kind: Kind::Becalm, source: own, detail: Label::EMPTY });
        world.tasks.set(other, Task { kind: Kind::Task, source: theirs, detail: Label::EMPTY });
        let passes = |world: &mut World| {
            world.at(10, PROGRAM, switch(PROGRAM, other)).at(25, other, switch(other, KERNEL));
            world.at(30, KERNEL, switch(KERNEL, PROGRAM)).at(50, PROGRAM, switch(PROGRAM, Pid::IDLE));
        };
        passes(&mut world);
        assert_eq!(world.interruptions(), [(25, 5, vec![("kthread:kernel".to_owned(), 5)])], "programs are let pass");
        (world.presence, world.found) = (Presence::for_one_program(CpuId::new(3)), Interruptions::default());
        world.presence.begin(Nanos::ZERO);
        passes(&mut world);
        let rows = vec![("task:other".to_owned(), 15), ("kthread:kernel".to_owned(), 5)];
        assert_eq!(world.interruptions(), [(10, 20, rows)]);
    }

    /// Names and roots are those that a measuring loop would give.
    #[test]
    fn interrupts_are_named_by_what_they_are_for() {
        let mut world = World::new();
        let (enter, leave) = (world.irq("local_timer", true), world.irq("local_timer", false));
        let (resched, resched_end) = (world.irq("reschedule", true), world.irq("reschedule", false));
        let function = |world: &mut World, source: &str, root: &str| {
            let [source, root] = [source, root].map(|text| world.labels.intern(text));
            Happening::FunctionEntry { source, root, carrier: Carrier::Timer, interrupt: Label::EMPTY, request: 0 }
        };
        let ends = Happening::FunctionExit { carrier: Carrier::Timer, interrupt: Label::EMPTY };
        let wakes = function(&mut world, "timer:hrtimer_wakeup", "");
        let tick = function(&mut world, "tick", "irq:tick");
        world.at(100, PROGRAM, enter).at(102, PROGRAM, wakes).at(103, PROGRAM, Happening::Waking { thread: KERNEL });
        world.at(104, PROGRAM, ends).at(105, PROGRAM, tick).at(106, PROGRAM, Happening::Waking { thread: KERNEL });
        world.at(108, PROGRAM, ends).at(110, PROGRAM, leave);
        world.at(200, PROGRAM, resched).at(203, PROGRAM, resched_end);
        world.at(205, PROGRAM, switch(PROGRAM, KERNEL)).at(210, KERNEL, switch(KERNEL, PROGRAM));
        let rows: Vec<(&str, &str, i64)> = world
            .found
            .activities
            .iter()
            .map(|row| (world.labels.text(row.source), world.labels.text(row.detail), row.self_time.get()))
            .collect();
        assert_eq!(
            rows,
            [
                ("timer:hrtimer_wakeup", "kthread:kernel", 7),
                ("tick", "local_timer", 3),
                ("reschedule", "kthread:kernel", 3),
                ("kernel", "", 5),
            ]
        );
    }

    /// As a measuring loop would give them.
    #[test]
    fn timer_softirqs_are_named_by_what_expired() {
        let mut world = World::new();
        let worker = Pid(40);
        let [kworker, timer, work] =
            ["kworker", "timer", "kworker:vmstat_update"].map(|name| world.labels.intern(name));
        world.tasks.set(worker, Task { kind: Kind::Kthread, source: kworker, detail: Label::EMPTY });
        let timeout = |world: &mut World, name: &str| {
            let source = world.labels.intern(name);
            Happening::FunctionEntry {
                source,
                root: Label::EMPTY,
                carrier: Carrier::Wheel,
                interrupt: Label::EMPTY,
                request: 0,
            }
        };
        let [wakes, delayed, alone] = ["timer:process_timeout", "timer:delayed_work_timer_fn", "timer:tcp_write_timer"]
            .map(|name| timeout(&mut world, name));
        world.at(100, PROGRAM, Happening::SoftirqEntry { source: timer });
        world.at(110, PROGRAM, wakes).at(115, PROGRAM, Happening::Waking { thread: KERNEL });
        world.at(120, PROGRAM, delayed).at(125, PROGRAM, Happening::Waking { thread: worker });
        world.at(130, PROGRAM, alone).at(140, PROGRAM, Happening::SoftirqExit { source: timer });
        world.at(150, PROGRAM, switch(PROGRAM, worker)).at(152, worker, Happening::WorkStart { source: work, work: 1 });
        world.at(160, worker, Happening::WorkEnd { source: work, work: 1 }).at(161, worker, switch(worker, PROGRAM));
        let text = |label| world.labels.text(label);
        let rows = world.found.activities.iter().filter(|row| row.kind == Kind::Softirq);
        let rows: Vec<_> = rows.map(|row| (text(row.source), text(row.detail), row.self_time.get())).collect();
        assert_eq!(
            rows,
            [
                ("timer:process_timeout", "kthread:kernel", 20),
                ("timer:delayed_work_timer_fn", "workqueue:kworker:vmstat_update", 10),
                ("timer:tcp_write_timer", "timer", 10),
            ]
        );
    }

    #[test]
    fn what_the_kernel_does_in_a_row_is_one_interruption() {
        let mut world = World::new();
        let (enter, leave) = (world.irq("timer", true), world.irq("timer", false));
        let softirq = world.labels.intern("rcu");
        world.at(10, PROGRAM, enter).at(15, PROGRAM, leave);
        // In an idle CPU: an interrupt, which another interrupts, and a kernel thread right behind them.
        let (inner, inner_end) = (world.irq("disk", true), world.irq("disk", false));
        world.at(100, Pid::IDLE, enter).at(103, Pid::IDLE, inner).at(107, Pid::IDLE, inner_end);
        world.at(110, Pid::IDLE, leave).at(110, Pid::IDLE, Happening::SoftirqEntry { source: softirq });
        world.at(130, Pid::IDLE, Happening::SoftirqExit { source: softirq });
        world.at(140, Pid::IDLE, switch(Pid::IDLE, KERNEL)).at(150, KERNEL, switch(KERNEL, PROGRAM));
        let row = |name: &str, time| (name.to_owned(), time);
        assert_eq!(
            world.interruptions(),
            [
                (10, 5, vec![row("irq:timer", 5)]),
                (100, 10, vec![row("irq:timer", 6), row("irq:disk", 4)]),
                (110, 20, vec![row("softirq:rcu", 20)]),
                (140, 10, vec![row("kthread:kernel", 10)]),
            ]
        );
    }

    #[test]
    fn work_items_go_and_come_back_with_their_thread() {
        let mut world = World::new();
        let source = world.labels.intern("flush");
        let (start, end) = (Happening::WorkStart { source, work: 7 }, Happening::WorkEnd { source, work: 7 });
        world.at(0, Pid::IDLE, switch(Pid::IDLE, KERNEL)).at(5, KERNEL, start).at(25, KERNEL, switch(KERNEL, PROGRAM));
        world.at(60, PROGRAM, switch(PROGRAM, KERNEL)).at(61, KERNEL, end).at(64, KERNEL, switch(KERNEL, Pid::IDLE));
        let row = |name: &str, time| (name.to_owned(), time);
        assert_eq!(
            world.interruptions(),
            [
                (0, 25, vec![row("kthread:kernel", 5), row("workqueue:flush", 20)]),
                (60, 4, vec![row("workqueue:flush", 1), row("kthread:kernel", 3)]),
            ]
        );
    }

    #[test]
    fn lost_events_end_what_was_known_and_are_a_gap() {
        let mut world = World::new();
        let (enter, leave) = (world.irq("timer", true), world.irq("timer", false));
        world.at(10, PROGRAM, enter).at(12, PROGRAM, switch(PROGRAM, KERNEL));
        world.at(50, Pid(0), Happening::Lost { count: Some(3) }).at(60, PROGRAM, leave).at(70, PROGRAM, enter);
        world.at(75, PROGRAM, leave);
        assert_eq!(world.presence.take_gap(), Nanos::new(38));
        assert_eq!(
            world.interruptions(),
            [(10, 2, vec![("irq:timer".to_owned(), 2)]), (70, 5, vec![("irq:timer".to_owned(), 5)])]
        );
        assert!(world.found.detours[0].incomplete && !world.found.detours[1].incomplete);
    }

    #[test]
    fn a_non_maskable_interrupt_takes_its_time_from_what_it_interrupted() {
        let mut world = World::new();
        let source = world.labels.intern("watchdog");
        let nmi = |delta| Happening::Nmi { source, delta: Nanos::new(delta) };
        let (enter, leave) = (world.irq("timer", true), world.irq("timer", false));
        world.at(10, PROGRAM, nmi(4)).at(20, PROGRAM, enter).at(29, PROGRAM, nmi(3)).at(40, PROGRAM, leave);
        let row = |name: &str, time| (name.to_owned(), time);
        assert_eq!(
            world.interruptions(),
            [(6, 4, vec![row("nmi:watchdog", 4)]), (20, 20, vec![row("nmi:watchdog", 3), row("irq:timer", 17)])]
        );
    }

    proptest! {
        /// Whatever comes, interruptions do not overlap, each is the sum of its rows, and memory stays bounded.
        #[test]
        fn the_books_close(events in prop::collection::vec((0_i64..30, 0_usize..3, 0_usize..8, 0_i64..40), 0..400)) {
            let mut world = World::new();
            let threads = [Pid::IDLE, PROGRAM, KERNEL];
            let source = world.labels.intern("source");
            let detail = Label::EMPTY;
            let (mut time, mut thread) = (0, Pid::IDLE);
            for (step, next, which, delta) in events {
                time += step;
                let what = match which {
                    0 => Happening::IrqEntry { source, detail },
                    1 => Happening::IrqExit { source, detail },
                    2 => Happening::SoftirqEntry { source },
                    3 => Happening::SoftirqExit { source },
                    4 => Happening::WorkStart { source, work: 1 },
                    5 => Happening::Nmi { source, delta: Nanos::new(delta) },
                    6 => Happening::Lost { count: None },
                    _ => switch(thread, threads[next]),
                };
                world.at(time, thread, what);
                if which == 7 {
                    thread = threads[next];
                }
                prop_assert!(world.presence.rows.len() <= MOST_ROWS && world.presence.stack.len() <= DEPTH);
            }
            world.presence.end(&mut world.found);
            let mut before = Nanos::ZERO;
            for (number, detour) in world.found.detours.iter().enumerate() {
                prop_assert!(detour.start >= before, "{:?}", world.found.detours);
                before = detour.start + detour.duration;
                let rows = world.found.activities.iter().filter(|row| row.detour == number as u64);
                prop_assert_eq!(rows.map(|row| row.self_time).sum::<Nanos>(), detour.duration);
            }
            prop_assert!(before <= Nanos::new(time));
        }
    }
}
