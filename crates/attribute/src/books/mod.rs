//! Books of threads: the whole life of each observed thread, divided among running, waiting and sleeping, from the kernel's events of all CPUs.
//!
//! # Parts of a life
//!
//! A thread *ran*, was *on the way* (woken, not yet on a run queue), *queued* (on a run queue, without a CPU), *asleep*, or *stopped*. Only queued
//! time is what the kernel counts as run delay. The parts of a thread follow each other without gap or overlap, so they add up to its life exactly;
//! [`ThreadBooks::imbalance`] checks that.
//!
//! | event | in | becomes |
//! | --- | --- | --- |
//! | switch from it, runnable | ran | queued (preempted) |
//! | switch from it, in another state | ran | asleep or stopped; on the way if it was woken while it still ran |
//! | switch to it | any | ran |
//! | `sched_waking` | asleep, stopped, unknown | on the way |
//! | `sched_waking` | ran | remembered; void once `sched_wakeup` comes before it has left |
//! | `sched_wakeup` | asleep, on the way, unknown | queued (woken) on the CPU that the event names |
//! | `sched_wakeup_new` | any | queued (new) |
//! | `sched_migrate_task` | queued | the same wait, on the other CPU |
//!
//! # Who had the CPU
//!
//! On each CPU, the top of the stack of interrupts and softirqs has the time, otherwise the thread of the last switch; `Occupancy` keeps
//! that over time. A wait belongs to those who had its CPU meanwhile. If the CPU idles:
//!
//! - while a woken thread is queued, the CPU is on its own way out of idle: kind `kthread`, source `idle_exit`;
//! - while a preempted thread is queued, a limit keeps it from running: kind `throttling`.
//!
//! # Quota
//!
//! When a group has used up its CPU time, its threads stay on the run queue by all events. They come back after the group's period timer
//! (`sched_cfs_period_timer`, or the call `__cfsb_csd_unthrottle` on the CPU of a remote run queue). So at that event, the wait of each queued thread
//! of a group with a limit is quota since the thread started to wait, or since a thread of the group last left that CPU runnable. The caller names the
//! groups that the kernel throttled during the recording; threads of others never wait for a quota.
//!
//! # Host
//!
//! On a guest whose kernel accounts for steal time, `sched_stat_runtime` reports the run time of a thread without it. What a stay on the CPU took
//! longer is the host's.

mod occupancy;
mod switches;
mod thread;

use std::collections::{HashMap, HashSet};

use becalm_model::carried::{Carrier, runs};
use becalm_model::observed::{LifePart, OwnedActivity, Owner, Stay, StayReason, ThreadDetour, ThreadId};
use becalm_model::{Event, Happening, Kind, Label, Labels, Life, Pid, ThreadState, not_traced};
use becalm_units::{CpuId, Nanos, NumberMap};

use self::occupancy::Occupancy;
pub use self::switches::{MissingSwitches, SwitchRepair};
use self::thread::{Condition, ObservedThread, Wait};
pub use self::thread::{RanAs, Sleep, Taken, ThreadBooks, ThreadIdentity, TimeCount};

/// An excess of a stay on the CPU over its accounted run time, below which the host is not assumed to have taken it: the kernel reads its clocks at
/// slightly other instants than the trace.
const LEAST_STEAL: Nanos = Nanos::from_micros(20);

/// More frames than the kernel ever nests.
const DEPTH: usize = 64;

/// The occupant of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Occupant {
    /// A thread.
    Thread(ThreadId),
    /// An interrupt, a softirq or a work item.
    Activity(Kind, Label),
    /// None: the CPU idles.
    Idle,
    /// Not known.
    Unknown,
}

/// The thread on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Present {
    Unknown,
    Idle,
    Thread(ThreadId),
}

/// An interrupt or a softirq that runs.
#[derive(Clone, Copy, Debug)]
struct Layer {
    kind: Kind,
    /// Identifies the event of its end.
    source: Label,
    /// Its name: that of its first function, if it runs any.
    shown: Label,
    is_named: bool,
}

/// Interrupts on top of a chosen thread, until it goes on.
#[derive(Clone, Copy, Debug)]
struct OnTop {
    start: Nanos,
    until: Nanos,
}

#[derive(Debug)]
struct BookCpu {
    cpu: CpuId,
    present: Present,
    stack: Vec<Layer>,
    /// The time up to which all is credited.
    since: Nanos,
    occupancy: Occupancy<Occupant>,
    /// Threads that may wait for this CPU.
    waiting: Vec<ThreadId>,
    /// When a runnable thread of a group with a limit last left this CPU.
    last_left: NumberMap<Label, Nanos>,
    on_top: Option<OnTop>,
    rows: Vec<OwnedActivity>,
}

/// Receives the parts of threads' lives as they end.
pub trait Ledger {
    /// A stay ended.
    fn stay(&mut self, stay: &Stay);

    /// A stretch ended in which others had the CPU of a thread that could have used it.
    fn detour(&mut self, detour: &ThreadDetour, rows: &[OwnedActivity]);
}

/// Labels of the books themselves.
#[derive(Clone, Copy, Debug)]
struct BookLabels {
    idle_exit: Label,
    quota: Label,
    limit: Label,
    lost: Label,
    dirty: Label,
    page_fault: Label,
    unthrottle: [Label; 3],
}

/// Counts of what the events left open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BookTally {
    /// Events taken, without the marks of lost ones.
    pub events: u64,
    /// Events that the kernel lost; a gap of unknown size counts as one.
    pub lost_events: u64,
    /// Switches to threads that slept by all events before.
    pub unexpected_runs: u64,
}

/// Decides whether a thread is chosen.
pub type Choose = Box<dyn Fn(&ThreadIdentity, &Labels) -> bool>;

/// The books of all threads of a machine.
pub struct Books {
    threads: Vec<ObservedThread>,
    numbers: NumberMap<Pid, ThreadId>,
    cpus: Vec<Option<BookCpu>>,
    choose: Choose,
    /// The groups that the kernel throttled, each with all groups below it.
    throttled: HashSet<Label>,
    /// The throttled group of a group, itself or one above.
    limits: HashMap<Label, Option<Label>>,
    names: BookLabels,
    is_open: bool,
    /// Whether the trace shows calls from other CPUs, so each CPU has its own event at the end of throttling.
    has_calls: bool,
    tally: BookTally,
    taken: Vec<(Occupant, bool, Nanos, u64)>,
}

impl Books {
    /// Books without threads. `throttled` are the paths of the groups that the kernel throttled; `has_calls` says whether the trace has the events of
    /// calls from other CPUs.
    pub fn new(choose: Choose, throttled: &[String], has_calls: bool, labels: &mut Labels) -> Self {
        let names = BookLabels {
            idle_exit: labels.intern("idle_exit"),
            quota: labels.intern("cfs_bandwidth"),
            limit: labels.intern("limit"),
            lost: labels.intern(not_traced::LOST_EVENTS),
            dirty: labels.intern("dirty_throttling"),
            page_fault: labels.intern("page_fault"),
            unthrottle: ["timer:sched_cfs_period_timer", "timer:sched_cfs_slack_timer", "ipi:__cfsb_csd_unthrottle"]
                .map(|name| labels.intern(name)),
        };
        Self {
            threads: Vec::new(),
            numbers: NumberMap::default(),
            cpus: Vec::new(),
            choose,
            throttled: throttled.iter().map(|group| labels.intern(group)).collect(),
            limits: HashMap::new(),
            names,
            is_open: false,
            has_calls,
            tally: BookTally::default(),
            taken: Vec::new(),
        }
    }

    /// All threads seen, in the order of their numbers in this recording.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &ThreadIdentity, Option<&ThreadBooks>)> {
        let numbered = (0..).zip(&self.threads);
        numbered.map(|(number, thread)| (ThreadId(number), &thread.identity, thread.books.as_ref()))
    }

    /// The identity of a thread.
    pub fn identity(&self, thread: ThreadId) -> &ThreadIdentity {
        &self.threads[thread.0 as usize].identity
    }

    /// Counts of what the events left open.
    pub const fn tally(&self) -> BookTally {
        self.tally
    }

    /// A thread of the kernel's list, seen at `at` in this state and on this CPU; `None` if only its identity is of interest.
    pub fn meet(
        &mut self,
        pid: Pid,
        identity: &ThreadIdentity,
        seen: Option<(ThreadState, CpuId)>,
        at: Nanos,
        labels: &Labels,
    ) {
        let thread = match self.numbers.get(&pid) {
            Some(thread) => *thread,
            None => self.register(pid, identity.clone()),
        };
        let known = &mut self.threads[thread.0 as usize];
        // The trace knows better than a look what it shows itself.
        let before = &known.identity;
        known.identity = ThreadIdentity {
            name: if known.is_named { before.name } else { identity.name },
            is_becalm: before.is_becalm || identity.is_becalm,
            parent: before.parent,
            chosen: before.chosen,
            started: before.started,
            ended: before.ended,
            ..identity.clone()
        };
        known.is_named = true;
        if let (Some((state, cpu)), Condition::Unknown) = (seen, known.condition) {
            known.cpu = cpu;
            known.since = at;
            if state.is_runnable() {
                // One that runs writes events on its CPU.
                if !self.cpus().any(|other| other.present == Present::Thread(thread)) {
                    self.queue(thread, cpu, StayReason::Preempted, at);
                }
            } else {
                known.condition = Condition::asleep(state, Label::EMPTY);
            }
        }
        self.choose_again(thread, at, labels);
    }

    /// The books start. All events before this instant have been taken.
    pub fn open(&mut self, at: Nanos, labels: &Labels) {
        for place in 0..self.cpus.len() {
            self.credit(place, at);
        }
        self.is_open = true;
        for number in 0..self.threads.len() {
            self.choose_again(ThreadId(number as u32), at, labels);
        }
    }

    /// The books end. All events before this instant have been taken.
    pub fn close(&mut self, at: Nanos, ledger: &mut impl Ledger) {
        for place in 0..self.cpus.len() {
            self.credit(place, at);
            self.end_on_top(place, ledger);
        }
        for number in 0..self.threads.len() {
            let thread = ThreadId(number as u32);
            if !matches!(self.threads[number].condition, Condition::Unborn | Condition::Dead) {
                self.leave(thread, at, ledger);
            }
        }
        self.is_open = false;
    }

    /// Events of threads' own contexts were lost: what the kernel does on their behalf is not known.
    pub fn lose_contexts(&mut self) {
        for thread in &mut self.threads {
            thread.works.clear();
            (thread.faults, thread.is_paused) = (false, false);
        }
    }

    /// The running, queued and switch counts of a thread at an instant, for comparison with the kernel's; `None` unless it is chosen.
    pub fn counts(&self, pid: Pid, at: Nanos) -> Option<ThreadCounts> {
        let thread = &self.threads[self.numbers.get(&pid)?.0 as usize];
        let books = thread.books.as_ref()?;
        let [mut ran, mut queued] = [books.ran, books.queued + books.quota];
        match thread.condition {
            Condition::Ran => {
                // What is not credited yet.
                let credited = self.cpu(thread.cpu).map_or(at, |cpu| cpu.since);
                ran += (at - credited).max(Nanos::ZERO);
            }
            Condition::Queued { .. } => queued += at - thread.since,
            _ => {}
        }
        let is_asleep = matches!(thread.condition, Condition::Asleep { .. } | Condition::Stopped { .. });
        Some(ThreadCounts { ran: ran - books.host(), queued, switches: books.switches, is_asleep })
    }

    fn register(&mut self, pid: Pid, identity: ThreadIdentity) -> ThreadId {
        let thread = ThreadId(u32::try_from(self.threads.len()).expect("fewer than 2^32 threads"));
        self.threads.push(ObservedThread::new(identity));
        self.numbers.insert(pid, thread);
        thread
    }

    fn thread(&mut self, pid: Pid) -> ThreadId {
        match self.numbers.get(&pid) {
            Some(thread) => *thread,
            None => self.register(pid, ThreadIdentity::unknown(pid)),
        }
    }

    fn cpus(&self) -> impl Iterator<Item = &BookCpu> {
        self.cpus.iter().flatten()
    }

    fn cpu(&self, cpu: CpuId) -> Option<&BookCpu> {
        self.cpus.get(cpu.get() as usize)?.as_ref()
    }

    /// The place of a CPU, which is known from now on.
    fn place(&mut self, cpu: CpuId, at: Nanos) -> usize {
        let place = cpu.get() as usize;
        if self.cpus.len() <= place {
            self.cpus.resize_with(place + 1, || None);
        }
        self.cpus[place].get_or_insert_with(|| {
            let mut occupancy = Occupancy::default();
            occupancy.enter(at, Occupant::Unknown, true);
            BookCpu {
                cpu,
                present: Present::Unknown,
                stack: Vec::new(),
                since: at,
                occupancy,
                waiting: Vec::new(),
                last_left: NumberMap::default(),
                on_top: None,
                rows: Vec::new(),
            }
        });
        place
    }

    fn at(&mut self, place: usize) -> &mut BookCpu {
        self.cpus[place].as_mut().expect("the place of a known CPU")
    }

    /// Takes an event of a CPU. Events come in order of time over all CPUs; one older than its predecessor on its CPU gets that one's time.
    pub fn take(&mut self, cpu: CpuId, event: &Event, labels: &mut Labels, ledger: &mut impl Ledger) {
        let place = self.place(cpu, event.time);
        let at = event.time.max(self.at(place).since);
        if let Happening::Lost { count } = event.what {
            self.lose(place, count, at, ledger);
            return;
        }
        self.tally.events += 1;
        let present = match event.thread {
            switches::NOBODY => Present::Unknown,
            Pid::IDLE => Present::Idle,
            pid => Present::Thread(self.thread(pid)),
        };
        if self.at(place).present != present {
            self.credit(place, at);
            self.arrive(place, present, at, ledger);
        }
        match event.what {
            Happening::IrqEntry { source, .. } => self.enter(place, Kind::Irq, source, at, ledger),
            Happening::IrqExit { source, .. } => self.exit(place, Kind::Irq, source, at, ledger),
            Happening::SoftirqEntry { source } => self.enter(place, Kind::Softirq, source, at, ledger),
            Happening::SoftirqExit { source } => self.exit(place, Kind::Softirq, source, at, ledger),
            Happening::Nmi { source, delta } => {
                let start = (at - delta.max(Nanos::ZERO)).max(self.at(place).since);
                self.enter(place, Kind::Nmi, source, start, ledger);
                self.exit(place, Kind::Nmi, source, at, ledger);
            }
            Happening::FunctionEntry { source, carrier, .. } => {
                self.name_layer(place, source, carrier, at, labels);
                if self.names.unthrottle.contains(&source) {
                    self.refill(place, at, labels);
                }
            }
            Happening::WorkStart { source, .. } => self.set_item(place, Some(source), at),
            Happening::WorkEnd { .. } => self.set_item(place, None, at),
            Happening::Switch { prev, prev_state, next } => {
                self.switch(place, (prev, prev_state), next, at, labels, ledger)
            }
            Happening::Waking { thread } => self.waking(place, thread, at, ledger),
            Happening::Woken { thread, cpu, is_new } => self.woken(thread, cpu, is_new, at, labels, ledger),
            Happening::Fault { .. } => {
                if let Some(thread) = self.own_context(place) {
                    thread.faults = true;
                }
            }
            Happening::Life(life) => self.live(place, life, at, labels, ledger),
            Happening::FunctionExit { .. } | Happening::Lost { .. } => {}
        }
    }

    /// Credits the time until now to the top of the CPU's stack.
    fn credit(&mut self, place: usize, at: Nanos) {
        let Some(cpu) = &mut self.cpus[place] else { return };
        let length = at - cpu.since;
        if length <= Nanos::ZERO {
            return;
        }
        let start = std::mem::replace(&mut cpu.since, at);
        let Present::Thread(thread) = cpu.present else { return };
        let observed = &mut self.threads[thread.0 as usize];
        let Some(books) = observed.books.as_mut().filter(|_| self.is_open) else { return };
        let as_what = match cpu.stack.last() {
            Some(layer) => {
                let row = cpu.rows.iter_mut().rev().find(|row| row.kind == layer.kind && row.source == layer.shown);
                match row {
                    Some(row) => row.time += length,
                    None => cpu.rows.push(OwnedActivity {
                        owner: Owner::Interrupt,
                        kind: layer.kind,
                        source: layer.shown,
                        thread: None,
                        time: length,
                        visits: 1,
                    }),
                }
                cpu.on_top = Some(OnTop { start: cpu.on_top.map_or(start, |open| open.start), until: at });
                RanAs::Activity(layer.kind, layer.shown)
            }
            None => observed.works.last().map_or(RanAs::Program, |work| RanAs::Own(*work)),
        };
        books.ran += length;
        books.ran_as.entry(as_what).or_default().add(length, 0);
    }

    /// Passes the interruption of the chosen thread on a CPU that has ended.
    fn end_on_top(&mut self, place: usize, ledger: &mut impl Ledger) {
        let Some(cpu) = &mut self.cpus[place] else { return };
        if let (Some(OnTop { start, until }), Present::Thread(thread)) = (cpu.on_top.take(), cpu.present) {
            let duration = cpu.rows.iter().map(|row| row.time).sum();
            debug_assert!(duration <= until - start, "no more is credited than has passed");
            ledger.detour(&ThreadDetour { thread, cpu: cpu.cpu, start, duration }, &cpu.rows);
        }
        cpu.rows.clear();
    }

    /// Notes who has the CPU from now on.
    fn occupy(&mut self, place: usize, at: Nanos, is_visit: bool) {
        let Some(cpu) = &mut self.cpus[place] else { return };
        let occupant = match (cpu.stack.last(), cpu.present) {
            (Some(layer), _) => Occupant::Activity(layer.kind, layer.shown),
            (None, Present::Unknown) => Occupant::Unknown,
            (None, Present::Idle) => Occupant::Idle,
            (None, Present::Thread(thread)) => match self.threads[thread.0 as usize].item {
                Some(item) => Occupant::Activity(Kind::Workqueue, item),
                None => Occupant::Thread(thread),
            },
        };
        cpu.occupancy.enter(at, occupant, is_visit);
        if cpu.occupancy.len().is_multiple_of(1 << 14) {
            let threads = &self.threads;
            let oldest = cpu.waiting.iter().map(|thread| threads[thread.0 as usize].waits_since()).min();
            cpu.occupancy.forget_before(oldest.unwrap_or(at).min(at));
        }
    }

    fn enter(&mut self, place: usize, kind: Kind, source: Label, at: Nanos, ledger: &mut impl Ledger) {
        self.credit(place, at);
        let cpu = self.at(place);
        if cpu.stack.len() >= DEPTH {
            cpu.stack.clear();
            self.end_on_top(place, ledger);
        }
        self.at(place).stack.push(Layer { kind, source, shown: source, is_named: false });
        self.occupy(place, at, true);
    }

    /// Ends the innermost matching layer and all above it.
    fn exit(&mut self, place: usize, kind: Kind, source: Label, at: Nanos, ledger: &mut impl Ledger) {
        self.credit(place, at);
        let cpu = self.at(place);
        let Some(depth) = cpu.stack.iter().rposition(|layer| layer.kind == kind && layer.source == source) else {
            return;
        };
        let layer = cpu.stack[depth];
        cpu.stack.truncate(depth);
        self.count(place, layer);
        if self.at(place).stack.is_empty() {
            self.end_on_top(place, ledger);
        }
        self.occupy(place, at, false);
    }

    /// Counts an interrupt or softirq that ended on top of a chosen thread.
    fn count(&mut self, place: usize, layer: Layer) {
        if let Present::Thread(thread) = self.at(place).present
            && self.is_open
            && let Some(books) = &mut self.threads[thread.0 as usize].books
        {
            books.ran_as.entry(RanAs::Activity(layer.kind, layer.shown)).or_default().count += 1;
        }
    }

    /// An interrupt or softirq runs a function, whose name it gets if it is the first.
    fn name_layer(&mut self, place: usize, source: Label, carrier: Carrier, at: Nanos, labels: &Labels) {
        let Some(layer) = self.at(place).stack.last_mut() else { return };
        let text = labels.text(layer.source);
        if source == Label::EMPTY || carrier == Carrier::Tasklet || !runs(layer.kind, text, carrier) {
            return;
        }
        let renamed = Layer { shown: source, is_named: true, ..*layer };
        if layer.is_named {
            let ended = *layer;
            self.credit(place, at);
            self.count(place, ended);
            self.at(place).stack.pop();
            self.at(place).stack.push(renamed);
            self.occupy(place, at, true);
        } else {
            // From its start, which is the last change of this CPU.
            *layer = renamed;
            self.at(place).occupancy.rename_last(Occupant::Activity(renamed.kind, source));
        }
    }

    /// A kworker starts or ends a work item.
    fn set_item(&mut self, place: usize, item: Option<Label>, at: Nanos) {
        self.credit(place, at);
        // Softirqs run work items as well.
        if let Some(thread) = self.own_context(place) {
            thread.item = item;
            self.occupy(place, at, item.is_some());
        }
    }

    /// The thread in whose own context an event was written; `None` for one within an interrupt.
    fn own_context(&mut self, place: usize) -> Option<&mut ObservedThread> {
        let cpu = self.at(place);
        match cpu.present {
            Present::Thread(thread) if cpu.stack.is_empty() => Some(&mut self.threads[thread.0 as usize]),
            _ => None,
        }
    }

    fn switch(
        &mut self,
        place: usize,
        (prev, prev_state): (Pid, ThreadState),
        next: Pid,
        at: Nanos,
        labels: &Labels,
        ledger: &mut impl Ledger,
    ) {
        self.credit(place, at);
        self.at(place).stack.clear();
        self.end_on_top(place, ledger);
        if let Some(left) = self.numbers.get(&prev).copied().filter(|_| prev.0 > 0) {
            self.depart(left, place, prev_state, at, labels, ledger);
        }
        self.at(place).present = Present::Unknown;
        let present = match next {
            switches::NOBODY => Present::Unknown,
            Pid::IDLE => Present::Idle,
            pid => Present::Thread(self.thread(pid)),
        };
        self.arrive(place, present, at, ledger);
    }

    /// A thread leaves the CPU.
    fn depart(
        &mut self,
        thread: ThreadId,
        place: usize,
        state: ThreadState,
        at: Nanos,
        labels: &Labels,
        ledger: &mut impl Ledger,
    ) {
        let cpu = self.at(place).cpu;
        if matches!(self.threads[thread.0 as usize].condition, Condition::Ran) {
            self.settle_host(thread);
        }
        self.leave(thread, at, ledger);
        let limit = self.limit(self.threads[thread.0 as usize].identity.group, labels);
        let observed = &mut self.threads[thread.0 as usize];
        observed.cpu = cpu;
        let pending = observed.pending.take();
        if state == ThreadState::UNKNOWN {
            observed.condition = Condition::Left;
            observed.wait = Some(Wait::new(cpu, at));
            self.at(place).waiting.push(thread);
        } else if state.is_runnable() {
            if let Some(limit) = limit {
                self.at(place).last_left.insert(limit, at);
            }
            self.queue(thread, cpu, StayReason::Preempted, at);
        } else if state.is_dead() {
            observed.condition = Condition::Dead;
            observed.identity.ended = Some(at);
        } else if let Some(by) = pending {
            observed.condition = Condition::OnTheWay { by };
        } else {
            let context = observed.sleeps_in(self.names.dirty, self.names.page_fault);
            observed.condition = Condition::asleep(state, context);
        }
        let observed = &mut self.threads[thread.0 as usize];
        (observed.faults, observed.is_paused) = (false, false);
    }

    /// A thread has the CPU from now on.
    fn arrive(&mut self, place: usize, present: Present, at: Nanos, ledger: &mut impl Ledger) {
        if let Present::Thread(left) = self.at(place).present
            && matches!(self.threads[left.0 as usize].condition, Condition::Ran)
        {
            // Without a switch, it is not known why it left.
            self.leave(left, at, ledger);
            self.threads[left.0 as usize].condition = Condition::Unknown;
        }
        self.end_on_top(place, ledger);
        let cpu = self.at(place);
        cpu.present = present;
        cpu.stack.clear();
        let id = cpu.cpu;
        if let Present::Thread(thread) = present {
            match self.threads[thread.0 as usize].condition {
                // It waited since it left, or the trace would have shown a waking.
                Condition::Left => {
                    let observed = &mut self.threads[thread.0 as usize];
                    observed.condition = Condition::Queued { reason: StayReason::Preempted, by: None };
                }
                Condition::Asleep { .. } | Condition::Stopped { .. } => self.tally.unexpected_runs += 1,
                // The switch from it on the other CPU is not in the trace.
                Condition::Ran => {
                    let other = self.place(self.threads[thread.0 as usize].cpu, at);
                    self.credit(other, at);
                    self.end_on_top(other, ledger);
                    let cpu = self.at(other);
                    cpu.present = Present::Unknown;
                    cpu.stack.clear();
                    self.occupy(other, at, true);
                }
                _ => {}
            }
            self.leave(thread, at, ledger);
            let observed = &mut self.threads[thread.0 as usize];
            observed.condition = Condition::Ran;
            observed.cpu = id;
            observed.accounted_until = at;
            observed.excess = Nanos::ZERO;
            if observed.identity.chosen && observed.books.is_none() && self.is_open {
                self.begin_books(thread, at);
            }
            if let Some(books) = &mut self.threads[thread.0 as usize].books {
                books.switches += 1;
            }
        }
        self.occupy(place, at, true);
    }

    /// A thread waits for a CPU from now on.
    fn queue(&mut self, thread: ThreadId, cpu: CpuId, reason: StayReason, at: Nanos) {
        let place = self.place(cpu, at);
        let observed = &mut self.threads[thread.0 as usize];
        let by = observed.condition.by();
        observed.condition = Condition::Queued { reason, by };
        observed.cpu = cpu;
        observed.wait = Some(Wait::new(cpu, at));
        self.at(place).waiting.push(thread);
    }

    fn waking(&mut self, place: usize, pid: Pid, at: Nanos, ledger: &mut impl Ledger) {
        let cpu = self.at(place);
        let by = match cpu.present {
            Present::Thread(thread) if cpu.stack.is_empty() => Some(thread),
            _ => None,
        };
        let thread = self.thread(pid);
        match self.threads[thread.0 as usize].condition {
            Condition::Ran => self.threads[thread.0 as usize].pending = Some(by),
            Condition::Asleep { .. } | Condition::Stopped { .. } | Condition::Unknown | Condition::Left => {
                self.slept(thread);
                self.leave(thread, at, ledger);
                self.threads[thread.0 as usize].condition = Condition::OnTheWay { by };
            }
            _ => {}
        }
    }

    fn woken(&mut self, pid: Pid, cpu: CpuId, is_new: bool, at: Nanos, labels: &Labels, ledger: &mut impl Ledger) {
        let thread = self.thread(pid);
        match self.threads[thread.0 as usize].condition {
            Condition::Ran => self.threads[thread.0 as usize].pending = None,
            Condition::Queued { .. } | Condition::Dead => {}
            Condition::Unborn => {
                self.threads[thread.0 as usize].since = at;
                self.queue(thread, cpu, StayReason::New, at);
                self.choose_again(thread, at, labels);
            }
            _ => {
                self.slept(thread);
                self.leave(thread, at, ledger);
                self.queue(thread, cpu, if is_new { StayReason::New } else { StayReason::Woken }, at);
            }
        }
    }

    /// A thread is woken: if the switch from it is not in the trace, it slept since.
    fn slept(&mut self, thread: ThreadId) {
        let observed = &mut self.threads[thread.0 as usize];
        if observed.condition == Condition::Left {
            observed.condition = Condition::asleep(ThreadState::UNKNOWN, Label::EMPTY);
        }
    }

    fn live(&mut self, place: usize, life: Life, at: Nanos, labels: &Labels, ledger: &mut impl Ledger) {
        match life {
            Life::Moved { thread, cpu } => self.moved(thread, cpu, at),
            Life::Created { thread, name, in_process } => self.created(place, thread, name, in_process, at, ledger),
            Life::Renamed { thread, name } => {
                let thread = self.thread(thread);
                let observed = &mut self.threads[thread.0 as usize];
                observed.identity.name = name;
                observed.is_named = true;
                self.choose_again(thread, at, labels);
            }
            Life::Accounted { thread, ran } => {
                if let Some(thread) = self.numbers.get(&thread).copied()
                    && self.at(place).present == Present::Thread(thread)
                {
                    let observed = &mut self.threads[thread.0 as usize];
                    observed.excess += at - observed.accounted_until - ran;
                    observed.accounted_until = at;
                    self.settle_host(thread);
                }
            }
            Life::WorkBegan { work } => self.set_work(place, Some(work), at),
            Life::WorkEnded { work } => self.end_work(place, |known| known == work, at),
            Life::CallBegan { call } => {
                self.end_work(place, |_| true, at);
                self.set_work(place, Some(call), at);
                if let Some(thread) = self.own_context(place) {
                    thread.faults = false;
                }
            }
            Life::CallEnded => self.end_work(place, |_| true, at),
            Life::Dirtied { is_paused } => {
                if let Some(thread) = self.own_context(place) {
                    thread.is_paused = is_paused;
                }
            }
        }
    }

    fn set_work(&mut self, place: usize, work: Option<Label>, at: Nanos) {
        self.credit(place, at);
        if let Some(thread) = self.own_context(place) {
            if thread.works.len() >= DEPTH {
                thread.works.clear();
            }
            thread.works.extend(work);
            if let (Some(work), Some(books)) = (work, &mut thread.books) {
                books.ran_as.entry(RanAs::Own(work)).or_default().count += 1;
            }
        }
    }

    fn end_work(&mut self, place: usize, is_it: impl Fn(Label) -> bool, at: Nanos) {
        self.credit(place, at);
        if let Some(thread) = self.own_context(place)
            && let Some(depth) = thread.works.iter().position(|work| is_it(*work))
        {
            thread.works.truncate(depth);
        }
    }

    /// A waiting thread was moved to the run queue of another CPU.
    fn moved(&mut self, pid: Pid, cpu: CpuId, at: Nanos) {
        let Some(thread) = self.numbers.get(&pid).copied() else { return };
        let observed = &mut self.threads[thread.0 as usize];
        if observed.condition == Condition::Left {
            // A sleeping thread would have been woken first.
            observed.condition = Condition::Queued { reason: StayReason::Preempted, by: None };
        }
        let Some(wait) = observed.wait.as_mut().filter(|_| matches!(observed.condition, Condition::Queued { .. }))
        else {
            return;
        };
        let from = std::mem::replace(&mut observed.cpu, cpu);
        if from == cpu {
            return;
        }
        wait.go_on(cpu, at);
        let [from, to] = [from, cpu].map(|cpu| self.place(cpu, at));
        self.at(from).waiting.retain(|other| *other != thread);
        self.at(to).waiting.push(thread);
    }

    fn created(&mut self, place: usize, pid: Pid, name: Label, in_process: bool, at: Nanos, ledger: &mut impl Ledger) {
        let creator = match self.at(place).present {
            Present::Thread(thread) => Some(thread),
            _ => None,
        };
        if let Some(earlier) = self.numbers.remove(&pid)
            && !matches!(self.threads[earlier.0 as usize].condition, Condition::Dead)
        {
            // Its end is not in the trace, and its number is used again.
            self.leave(earlier, at, ledger);
            let earlier = &mut self.threads[earlier.0 as usize];
            earlier.condition = Condition::Dead;
            earlier.identity.ended = Some(at);
        }
        let parent = creator.map(|creator| &self.threads[creator.0 as usize].identity);
        let identity = ThreadIdentity {
            pid,
            process: if in_process { parent.map_or(pid, |parent| parent.process) } else { pid },
            parent: creator,
            name,
            command: if in_process { parent.map_or(Label::EMPTY, |parent| parent.command) } else { Label::EMPTY },
            group: parent.map_or(Label::EMPTY, |parent| parent.group),
            is_kernel: parent.is_some_and(|parent| parent.is_kernel),
            is_becalm: parent.is_some_and(|parent| parent.is_becalm && in_process),
            chosen: false,
            started: Some(at),
            ended: None,
        };
        let thread = self.register(pid, identity);
        let observed = &mut self.threads[thread.0 as usize];
        observed.condition = Condition::Unborn;
        observed.is_named = true;
        observed.since = at;
    }

    /// Looks whether a thread is chosen now; its books then start.
    fn choose_again(&mut self, thread: ThreadId, at: Nanos, labels: &Labels) {
        let observed = &self.threads[thread.0 as usize];
        if observed.identity.chosen {
            if self.is_open && observed.books.is_none() {
                self.begin_books(thread, at);
            }
            return;
        }
        let parent = observed.identity.parent.map(|parent| &self.threads[parent.0 as usize].identity);
        // Children of becalm, such as the command, are chosen by their own numbers.
        let is_child = parent.is_some_and(|parent| parent.chosen);
        if is_child || (self.choose)(&observed.identity, labels) {
            self.threads[thread.0 as usize].identity.chosen = true;
            if self.is_open {
                self.begin_books(thread, at);
            }
        }
    }

    fn begin_books(&mut self, thread: ThreadId, at: Nanos) {
        let observed = &mut self.threads[thread.0 as usize];
        if matches!(observed.condition, Condition::Unborn | Condition::Dead) {
            return;
        }
        observed.books = Some(ThreadBooks::new(at));
        observed.since = at;
        if let Some(wait) = &mut observed.wait {
            wait.restart(observed.cpu, at);
        }
        if matches!(observed.condition, Condition::Ran)
            && let Some(place) =
                self.cpus.iter().position(|cpu| cpu.as_ref().is_some_and(|cpu| cpu.present == Present::Thread(thread)))
        {
            // The time before belongs to no books.
            self.at(place).since = at;
        }
    }

    /// The group above, or itself, that the kernel throttled.
    fn limit(&mut self, group: Label, labels: &Labels) -> Option<Label> {
        if self.throttled.is_empty() {
            return None;
        }
        let throttled = &self.throttled;
        *self.limits.entry(group).or_insert_with(|| {
            let path = labels.text(group);
            let above = |limit: &&Label| {
                let limit = labels.text(**limit);
                path == limit || path.strip_prefix(limit).is_some_and(|rest| rest.starts_with('/'))
            };
            throttled.iter().filter(above).max_by_key(|limit| labels.text(**limit).len()).copied()
        })
    }

    /// The kernel gives a group CPU time again: its threads on this CPU waited for that.
    fn refill(&mut self, place: usize, at: Nanos, labels: &Labels) {
        if self.throttled.is_empty() {
            return;
        }
        let places = if self.has_calls { place..place + 1 } else { 0..self.cpus.len() };
        for place in places {
            let Some(cpu) = &self.cpus[place] else { continue };
            for thread in cpu.waiting.clone() {
                let group = self.threads[thread.0 as usize].identity.group;
                let Some(limit) = self.limit(group, labels) else { continue };
                let left = self.at(place).last_left.get(&limit).copied();
                let observed = &mut self.threads[thread.0 as usize];
                if let (Condition::Queued { .. }, Some(wait)) = (observed.condition, &mut observed.wait) {
                    let from = wait.since().max(left.unwrap_or(Nanos::new(i64::MIN)));
                    wait.add_quota(from, at);
                }
            }
        }
    }

    /// Books what the hypervisor took from a thread on the CPU. The excess of a stay is settled at its end, or once it is large.
    fn settle_host(&mut self, thread: ThreadId) {
        let observed = &mut self.threads[thread.0 as usize];
        let excess = observed.excess;
        if excess < LEAST_STEAL {
            return;
        }
        observed.excess = Nanos::ZERO;
        let Some(books) = observed.books.as_mut().filter(|_| self.is_open) else { return };
        books.move_to_host(excess);
    }

    /// Events of a CPU were lost.
    fn lose(&mut self, place: usize, count: Option<u64>, at: Nanos, ledger: &mut impl Ledger) {
        self.tally.lost_events += count.unwrap_or(1);
        // Nothing is known since the event before.
        let since = self.at(place).since;
        let present = self.at(place).present;
        let mut affected = std::mem::take(&mut self.at(place).waiting);
        if let Present::Thread(thread) = present {
            affected.push(thread);
        }
        self.end_on_top(place, ledger);
        let cpu = self.at(place);
        cpu.stack.clear();
        cpu.present = Present::Unknown;
        self.occupy(place, since, true);
        for thread in affected {
            let observed = &self.threads[thread.0 as usize];
            let now = observed.wait.as_ref().map_or(since, |wait| wait.latest().max(since)).max(observed.since);
            self.leave(thread, now, ledger);
            self.threads[thread.0 as usize].condition = Condition::Unknown;
        }
        self.at(place).since = at;
    }

    /// Ends the current stay of a thread.
    fn leave(&mut self, thread: ThreadId, at: Nanos, ledger: &mut impl Ledger) {
        let observed = &mut self.threads[thread.0 as usize];
        let wait = observed.wait.take();
        if let Some(wait) = &wait {
            for cpu in wait.cpus() {
                if let Some(cpu) = self.cpus.get_mut(cpu.get() as usize).and_then(Option::as_mut) {
                    cpu.waiting.retain(|other| *other != thread);
                }
            }
        }
        let start = std::mem::replace(&mut observed.since, at);
        let length = at - start;
        if !self.is_open || length <= Nanos::ZERO {
            return;
        }
        let Some(books) = &mut observed.books else { return };
        books.end = at;
        let (condition, cpu) = (observed.condition, observed.cpu);
        let (reason, context, by) = condition.told();
        let stay = |part, start, duration| Stay { thread, cpu, start, duration, part, reason, context, by };
        if let (Condition::Queued { reason, .. }, Some(wait)) = (condition, &wait) {
            self.end_wait(thread, wait, reason, at, ledger);
            for (part, from, until) in wait.parts(at) {
                if until > from {
                    ledger.stay(&stay(part, from, until - from));
                }
            }
            return;
        }
        let observed = &mut self.threads[thread.0 as usize];
        let Some(books) = &mut observed.books else { return };
        let part = condition.part();
        books.add(part, length);
        if let Condition::Asleep { state, context } | Condition::Stopped { state, context } = condition {
            books.sleeps.entry(Sleep { state, context }).or_default().add(length, 1);
        }
        ledger.stay(&stay(part, start, length));
    }

    /// Ends a wait: finds out who had the CPU meanwhile.
    fn end_wait(&mut self, thread: ThreadId, wait: &Wait, reason: StayReason, at: Nanos, ledger: &mut impl Ledger) {
        let mut taken = std::mem::take(&mut self.taken);
        taken.clear();
        let mut quota = Nanos::ZERO;
        for (cpu, from, until, is_quota) in wait.stretches(at) {
            if is_quota {
                quota += until - from;
                continue;
            }
            // A preempted thread that waits for an idle CPU is kept from running; one that was moved there waits for it to wake up.
            let is_limited = reason == StayReason::Preempted && cpu == wait.first_cpu();
            let Some(book) = self.cpus.get_mut(cpu.get() as usize).and_then(Option::as_mut) else { continue };
            book.occupancy.shares(from, until, |occupant, share| {
                let known = taken.iter_mut().find(|known| known.0 == occupant && known.1 == is_limited);
                match known {
                    Some(known) => (known.2, known.3) = (known.2 + share.time, known.3 + share.visits),
                    None => taken.push((occupant, is_limited, share.time, share.visits)),
                }
            });
        }
        let mut rows: Vec<OwnedActivity> = taken
            .iter()
            .map(|(occupant, is_limited, time, visits)| self.owned(thread, *occupant, *is_limited, *time, *visits))
            .collect();
        if quota > Nanos::ZERO {
            let (kind, source) = (Kind::Throttling, self.names.quota);
            rows.push(OwnedActivity { owner: Owner::Quota, kind, source, thread: None, time: quota, visits: 1 });
        }
        self.taken = taken;
        let start = wait.since();
        let observed = &mut self.threads[thread.0 as usize];
        let cpu = observed.cpu;
        let Some(books) = &mut observed.books else { return };
        books.add(LifePart::Queued, at - start - quota);
        books.add(LifePart::Quota, quota);
        for row in &rows {
            let key = Taken { owner: row.owner, kind: row.kind, source: row.source, thread: row.thread };
            books.takers.entry(key).or_default().add(row.time, row.visits);
        }
        ledger.detour(&ThreadDetour { thread, cpu, start, duration: at - start }, &rows);
    }

    /// An occupant of a CPU as the taker of a waiting thread's time.
    fn owned(&self, victim: ThreadId, occupant: Occupant, is_limited: bool, time: Nanos, visits: u64) -> OwnedActivity {
        let (owner, kind, source, thread) = match occupant {
            Occupant::Activity(kind @ Kind::Workqueue, source) => (Owner::Kernel, kind, source, None),
            Occupant::Activity(kind, source) => (Owner::Interrupt, kind, source, None),
            Occupant::Idle if is_limited => (Owner::Quota, Kind::Throttling, self.names.limit, None),
            Occupant::Idle => (Owner::Kernel, Kind::Kthread, self.names.idle_exit, None),
            Occupant::Unknown => (Owner::Unknown, Kind::NotTraced, self.names.lost, None),
            Occupant::Thread(taker) => {
                let [of, by] = [victim, taker].map(|thread| &self.threads[thread.0 as usize].identity);
                let owner = if by.is_becalm {
                    Owner::Becalm
                } else if by.is_kernel {
                    Owner::Kernel
                } else if by.process == of.process {
                    Owner::Process
                } else if by.chosen {
                    Owner::Chosen
                } else if by.group == of.group && by.group != Label::EMPTY {
                    Owner::Group
                } else {
                    Owner::Others
                };
                let kind = if by.is_becalm {
                    Kind::Becalm
                } else if by.is_kernel {
                    Kind::Kthread
                } else {
                    Kind::Task
                };
                (owner, kind, by.name, Some(taker))
            }
        };
        OwnedActivity { owner, kind, source, thread, time, visits }
    }
}

/// Counts of a thread up to an instant, as the kernel has them in `/proc/PID/schedstat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadCounts {
    /// Time on a CPU, without that of the hypervisor.
    pub ran: Nanos,
    /// Time on a run queue without a CPU.
    pub queued: Nanos,
    /// How often it got a CPU.
    pub switches: u64,
    /// Whether it sleeps now, so the counts do not change while they are read.
    pub is_asleep: bool,
}
