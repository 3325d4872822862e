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
//! | switch to it | any | ran; one that was on the way was queued since it was woken |
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
//! # Portions
//!
//! [`Books::divide`] ends all stays at an instant and lets them go on in new books, so the sums of several portions are those of the whole. A wait
//! that is divided keeps what it lost before, so visits count once and the longest loss is that of the whole wait. A portion never changes later: a
//! quota that is found after a division covers the time since then.
//!
//! # Host
//!
//! On a guest whose kernel accounts for steal time, `sched_stat_runtime` reports the run time of a thread without it. The host has the
//! rest of a stay on the CPU.

mod cpu;
mod division;
mod lives;
mod occupancy;
mod switches;
mod thread;
mod waits;

use std::collections::{HashMap, HashSet};

use becalm_model::observed::{OwnedActivity, Stay, StayReason, ThreadDetour, ThreadId, own_work};
use becalm_model::{Event, Happening, Kind, Label, Labels, Pid, ThreadState, not_traced};
use becalm_units::{CpuId, Nanos, NumberMap};

use self::occupancy::Occupancy;
pub use self::switches::{MissingSwitches, SwitchRepair};
use self::thread::{Condition, ObservedThread};
pub use self::thread::{RanAs, Sleep, Taken, ThreadBooks, ThreadIdentity, TimeCount};

/// An excess of a stay on the CPU over its accounted run time, below which the host is not assumed to have taken it: the kernel reads its clocks at
/// slightly other instants than the trace.
const LEAST_STEAL: Nanos = Nanos::from_micros(20);

/// The occupants of a CPU are remembered for at least this time.
const REMEMBERED: Nanos = Nanos::from_secs(2);

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

    /// A stretch ended: others had the CPU of a thread that could have used it.
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
    hypervisor: Label,
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
    /// The numbers of forgotten threads, which others get.
    free: Vec<ThreadId>,
    /// When the books were last divided.
    divided: Option<Nanos>,
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
            dirty: labels.intern(own_work::DIRTY_THROTTLING),
            page_fault: labels.intern("page_fault"),
            hypervisor: labels.intern("hypervisor"),
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
            free: Vec::new(),
            divided: None,
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

    /// A thread has this name from now on.
    pub fn rename(&mut self, pid: Pid, name: Label, at: Nanos, labels: &Labels) {
        let thread = self.thread(pid);
        let observed = &mut self.threads[thread.0 as usize];
        observed.identity.name = name;
        observed.is_named = true;
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

    /// The running, queued and switch counts of a thread at an instant, for comparison with the kernel's; `None` unless it is chosen.
    pub fn counts(&self, pid: Pid, at: Nanos) -> Option<ThreadCounts> {
        let id = *self.numbers.get(&pid)?;
        let thread = &self.threads[id.0 as usize];
        let books = thread.books.as_ref()?;
        let [mut ran, mut queued] = [books.ran, books.queued + books.quota];
        match thread.condition {
            Condition::Ran => {
                // The time since the last credit.
                let credited = self.cpu(thread.cpu).map_or(at, |cpu| cpu.since);
                ran += (at - credited).max(Nanos::ZERO);
            }
            Condition::Queued { .. } => queued += at - thread.since,
            _ => {}
        }
        let is_asleep = matches!(thread.condition, Condition::Asleep { .. } | Condition::Stopped { .. });
        let asleep_since = is_asleep.then_some(thread.since);
        Some(ThreadCounts { thread: id, ran: ran - books.host(), queued, switches: books.switches, asleep_since })
    }

    fn register(&mut self, pid: Pid, identity: ThreadIdentity) -> ThreadId {
        let observed = ObservedThread::new(identity);
        let thread = if let Some(thread) = self.free.pop() {
            self.threads[thread.0 as usize] = observed;
            thread
        } else {
            self.threads.push(observed);
            ThreadId(u32::try_from(self.threads.len() - 1).expect("fewer than 2^32 threads"))
        };
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
            switches::UNKNOWN_THREAD => Present::Unknown,
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
            Happening::FunctionExit { .. }
            | Happening::CallQueued { .. }
            | Happening::InterruptSent { .. }
            | Happening::WorkQueued { .. }
            | Happening::SoftirqRaised { .. }
            | Happening::Lost { .. } => {}
        }
    }

    /// Takes an event of a thread's own context, from a trace of such events alone. It does not show who has the CPU: that trace is not repaired. An
    /// event of a thread that is not on the CPU is ignored; lost ones make the contexts of all threads unknown.
    pub fn take_own(&mut self, cpu: CpuId, event: &Event, labels: &mut Labels, ledger: &mut impl Ledger) {
        if matches!(event.what, Happening::Lost { .. }) {
            for thread in &mut self.threads {
                thread.works.clear();
                (thread.faults, thread.is_paused) = (false, false);
            }
            return;
        }
        let thread = self.numbers.get(&event.thread).copied();
        if self.cpu(cpu).is_some_and(|known| Some(known.present) == thread.map(Present::Thread)) {
            self.take(cpu, event, labels, ledger);
        }
    }
}

/// Counts of a thread up to an instant, like those of `/proc/PID/schedstat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadCounts {
    /// The thread. A number of the kernel may be used by several threads in turn.
    pub thread: ThreadId,
    /// Time on a CPU, without that of the hypervisor.
    pub ran: Nanos,
    /// Time on a run queue without a CPU.
    pub queued: Nanos,
    /// How often it got a CPU.
    pub switches: u64,
    /// Since when it sleeps, if it does: the counts do not change meanwhile.
    pub asleep_since: Option<Nanos>,
}
